// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A Difference is the error for two answers that differ.
type Difference struct {
	Request string
	What    string // status, header X, body, …
	Want    string
	Got     string
}

func (d *Difference) Error() string {
	return fmt.Sprintf("%s: %s\n  want %s\n  got  %s", d.Request, d.What, d.Want, d.Got)
}

// ignored are the headers that depend only on the server, the connection or the
// time, and those that the gateway adds to answers of the API server, for browsers.
// Content-Length is among them since a server may also send a body in chunks; the bytes
// are compared.
var ignored = []string{
	"Date", "Audit-Id", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid", "Content-Length",
	"Content-Security-Policy", "X-Content-Type-Options", "Watchkeeper-Timeout-Seconds",
}

// Diff compares two answers to a request. Masks blank the parts of the bodies
// that may differ. nil means that the answers are the same.
func Diff(r Request, want, got *Answer, masks ...Mask) error {
	name := r.String()
	w, g := want.Body, got.Body
	for _, m := range masks {
		w, g = m(w), m(g)
	}
	switch {
	case want.Code != got.Code:
		return &Difference{name, "status", fmt.Sprintf("%d %.600s", want.Code, want.Body), fmt.Sprintf("%d %.600s", got.Code, got.Body)}
	case want.Proto != got.Proto:
		return &Difference{name, "protocol", want.Proto, got.Proto}
	case (want.End == nil) != (got.End == nil):
		return &Difference{name, "end of the body", fmt.Sprint(want.End), fmt.Sprint(got.End)}
	}
	if err := diffHeaders(name, want.Header, got.Header); err != nil {
		return err
	}
	if !bytes.Equal(w, g) {
		return bodyDifference(name, w, g)
	}
	return nil
}

func diffHeaders(name string, want, got http.Header) error {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(ignored, key) && !slices.Equal(want[key], got[key]) {
			return &Difference{name, "header " + key, fmt.Sprintf("%q", want[key]), fmt.Sprintf("%q", got[key])}
		}
	}
	return nil
}

// bodyDifference describes the first difference of two texts.
func bodyDifference(name string, want, got []byte) *Difference {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	around := func(b []byte) string {
		from, to := max(0, i-120), min(len(b), i+200)
		text := b[from:to]
		if strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' && r != '\n' || r == '\uFFFD' }) {
			return fmt.Sprintf("(%d bytes, …%d:) %q", len(b), from, text)
		}
		return fmt.Sprintf("(%d bytes, …%d:) %s", len(b), from, text)
	}
	return &Difference{name, fmt.Sprintf("body from byte %d on", i), around(want), around(got)}
}

// DiffText compares two texts.
func DiffText(name string, want, got []byte) error {
	if bytes.Equal(want, got) {
		return nil
	}
	return bodyDifference(name, want, got)
}
