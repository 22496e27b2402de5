// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// FieldValue returns a function that reads a field of an object.
func FieldValue(f kube.Field) func(*Object) string {
	if len(f.Paths) == 1 {
		switch f.Paths[0] {
		case "metadata.name":
			return func(o *Object) string { return o.Key.Name() }
		case "metadata.namespace":
			return func(o *Object) string { return o.Key.Namespace() }
		}
	}
	paths := make([][]string, len(f.Paths))
	for i, p := range f.Paths {
		paths[i] = strings.Split(p, ".")
	}
	return func(o *Object) string {
		for _, path := range paths {
			if v := Lookup(o.JSON, path...); v != "" {
				return v
			}
		}
		return f.Zero
	}
}

// Lookup returns the string, number or boolean at a path of member names in a
// JSON object, as text; "" if there is none there.
func Lookup(text string, path ...string) string {
	p := scanner{s: text}
	for _, member := range path {
		if !p.find(member) {
			return ""
		}
	}
	switch p.next() {
	case '"':
		v, _ := p.text() // "" if it is invalid
		return v
	case '{', '[', 'n':
		return ""
	}
	from := p.i
	if p.skip() != nil {
		return ""
	}
	return p.s[from:p.i]
}

// Has reports whether a JSON object has a member.
func Has(text, member string) bool {
	p := scanner{s: text}
	return p.find(member)
}
