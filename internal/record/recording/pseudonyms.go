// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// pseudonyms replace the names of objects (see classes.go) wherever they occur
// as words in an object: as its own name, an owner's, or in a message or label.
// A word ends where neither a letter nor a digit follows: web is replaced in
// web-0, my-web and web.example.com, but not in webhook or Web. A name has one
// pseudonym within a recording, and another one in the next. If a name begins
// with another name, as a Pod's does with its ReplicaSet's, so does its
// pseudonym.
//
// Nothing else is hidden: not images, addresses, labels or commands.
type pseudonyms struct {
	key   []byte
	names map[string]string // to pseudonyms; "" until needed
	taken map[string]bool   // pseudonyms in use
	// heads are the first words of the names, with the length of the longest
	// such name; marks are the bytes between words.
	heads map[string]int
	marks [256]bool
}

// maxName is the longest name considered: 253 letters for objects, more for
// people.
const maxName = 512

// openNames exist in every cluster and are not replaced.
var openNames = []string{
	"default", "kube-system", "kube-public", "kube-node-lease", "kubernetes", "kube-root-ca.crt",
	"cluster-admin", "admin", "edit", "view", "localhost",
}

// apiKinds are the kinds whose names are part of the API and occur everywhere.
var apiKinds = []string{"CustomResourceDefinition", "APIService", "FlowSchema", "PriorityLevelConfiguration"}

func newPseudonyms() *pseudonyms {
	p := &pseudonyms{key: make([]byte, 32), names: map[string]string{}, taken: map[string]bool{}, heads: map[string]int{}}
	rand.Read(p.key) // never fails
	return p
}

// learn collects the names in an object. All names must be collected before the
// first text is replaced.
func (p *pseudonyms) learn(o *scan.Object) error {
	type ref struct{ Kind, Name string }
	var own struct {
		Metadata struct {
			Name            string
			OwnerReferences []ref
			Labels          map[string]string
		}
		InvolvedObject, Regarding ref
	}
	if err := json.Unmarshal([]byte(o.JSON), &own); err != nil {
		return err
	}
	m := own.Metadata
	open := m.Name
	if !slices.Contains(apiKinds, o.Kind) {
		open = ""
	}
	// An Event is named after its object, and other objects rarely contain its
	// name.
	for _, about := range []ref{own.InvolvedObject, own.Regarding} {
		if o.Kind == "Event" && about.Name != "" && strings.HasPrefix(m.Name, about.Name+".") {
			open = m.Name
		}
	}
	w := walker{kind: o.Kind, visit: func(s string, c class) string {
		if c == nameText && s != open {
			p.add(s)
		}
		return s
	}}
	w.walk(o.JSON)
	// These are names of Deployments and CronJobs that may be missing from the
	// recording.
	for _, owner := range append(m.OwnerReferences, ref{o.Kind, m.Name}) {
		switch hash := m.Labels["pod-template-hash"]; owner.Kind {
		case "ReplicaSet":
			if deployment, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" {
				p.add(deployment)
			}
		case "Job":
			if i := strings.LastIndexByte(owner.Name, '-'); i > 0 && len(owner.Name)-i > 8 && strings.Trim(owner.Name[i+1:], "0123456789") == "" {
				p.add(owner.Name[:i])
			}
		}
	}
	return nil
}

// add collects one name.
func (p *pseudonyms) add(name string) {
	name = strings.TrimFunc(name, func(r rune) bool { return r < 0x80 && !isWordByte(byte(r)) })
	if name == "" || len(name) > maxName || slices.Contains(openNames, name) || strings.HasPrefix(name, "system:") {
		return
	}
	if _, ok := p.names[name]; ok {
		return
	}
	p.names[name] = ""
	head := name[:wordEnd(name, 0)]
	p.heads[head] = max(p.heads[head], len(name))
	for i := range len(name) {
		p.marks[name[i]] = p.marks[name[i]] || !isWordByte(name[i])
	}
}

// of returns the pseudonym of a name.
func (p *pseudonyms) of(name string) string {
	if pseudonym := p.names[name]; pseudonym != "" {
		return pseudonym
	}
	before, digits := "x", 8 // a name begins with a letter
	if stem := p.stem(name); stem != "" {
		before, digits = p.of(stem)+name[len(stem):len(stem)+1], 5
	}
	pseudonym := ""
	for free := false; !free; digits++ {
		word := p.hash(name, digits)
		pseudonym = before + word
		_, isName := p.names[pseudonym]
		_, isWord := p.names[word]
		free = !p.taken[pseudonym] && !isName && !isWord // pseudonyms must differ from each other and from all names
	}
	p.names[name], p.taken[pseudonym] = pseudonym, true
	return pseudonym
}

// stem returns the longest other name that a name begins with, "" if there is
// none.
func (p *pseudonyms) stem(name string) string {
	for i := len(name) - 1; i > 0; i-- {
		if !isWordByte(name[i]) && isWordByte(name[i-1]) {
			if _, ok := p.names[name[:i]]; ok {
				return name[:i]
			}
		}
	}
	return ""
}

func (p *pseudonyms) hash(text string, n int) string {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))[:min(n, 2*sha256.Size)]
}

// object returns an object under its pseudonym.
func (p *pseudonyms) object(o *scan.Object) (*scan.Object, error) {
	renamed, err := scan.ParseObject(p.text(o.JSON, o.Kind))
	if err != nil {
		return nil, err
	}
	if renamed.Columns = o.Columns; o.Row != "" {
		w := walker{visit: func(s string, _ class) string { return p.words(s) }}
		row := w.walk("{" + o.Row + "}")
		renamed.Row = row[1 : len(row)-1]
	}
	return renamed, nil
}

// document returns a document with pseudonyms. Discovery contains no names of
// objects, but a CustomResourceDefinition can contain them outside its schema.
func (p *pseudonyms) document(d Document) (Document, error) {
	if !strings.Contains(d.Path, "/customresourcedefinitions/") {
		return d, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(d.Body))
	decoder.UseNumber()
	var definition map[string]any
	if err := decoder.Decode(&definition); err != nil {
		return d, err
	}
	for of, members := range map[string][]string{"metadata": {"annotations", "labels", "managedFields", "ownerReferences"}, "spec": {"conversion"}} {
		if part, ok := definition[of].(map[string]any); ok {
			for _, member := range members {
				delete(part, member)
			}
		}
	}
	var err error
	d.Body, err = json.Marshal(definition)
	return d, err
}

// text replaces the names in an object's JSON.
func (p *pseudonyms) text(text, kind string) string {
	w := walker{kind: kind, visit: func(s string, c class) string {
		if _, isName := p.names[s]; c == nameText || !isTyped(s) || isName && isAddress(s) {
			return p.words(s)
		}
		return s
	}}
	return w.walk(text)
}

// words replaces the names in a text.
func (p *pseudonyms) words(s string) string {
	var b strings.Builder
	from := 0 // b contains everything before
	for i := 0; i < len(s); {
		if !isWordByte(s[i]) {
			i++
			continue
		}
		end := wordEnd(s, i)
		if n := p.match(s[i:], end-i); n > 0 {
			b.WriteString(s[from:i])
			b.WriteString(p.of(s[i : i+n]))
			i += n
			from = i
		} else if n := escaped(s, i); n > 0 {
			i += n
		} else {
			i = end
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// match returns the length of the longest name at the start of a text, 0 for
// none, and the length of its first word.
func (p *pseudonyms) match(s string, word int) (n int) {
	longest := p.heads[s[:word]]
	for end := word; end <= longest; {
		if _, ok := p.names[s[:end]]; ok {
			n = end
		}
		next := end
		for next < len(s) && !isWordByte(s[next]) && p.marks[s[next]] {
			next++
		}
		if next == len(s) || next == end || !isWordByte(s[next]) {
			break
		}
		end = wordEnd(s, next)
	}
	return n
}

// isWordByte reports whether a byte is part of a word.
func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= 0x80
}

func wordEnd(s string, i int) int {
	for i < len(s) && isWordByte(s[i]) {
		i++
	}
	return i
}

// escaped returns how many bytes at i complete an escape sequence, such as the
// n of \n, although they look like the start of a word.
func escaped(s string, i int) int {
	if i == 0 {
		return 0
	}
	hex := 0
	switch s[i-1] {
	case '\\':
		switch s[i] {
		case 'n', 'r', 't', 'b', 'f':
			return 1
		case 'u':
			hex = 4
		case 'x':
			hex = 2
		}
		if hex > 0 && isHex(s[i+1:], hex) {
			return 1 + hex
		}
	case '%':
		if isHex(s[i:], 2) {
			return 2
		}
	case '[', ';': // a terminal color
		end := i
		for end < len(s) && '0' <= s[end] && s[end] <= '9' {
			end++
		}
		if end < len(s) && s[end] == 'm' && strings.Contains(s[max(0, i-10):i], "\x1b[") {
			return end + 1 - i
		}
	}
	return 0
}

// isHex reports whether a text begins with n hexadecimal digits.
func isHex(s string, n int) bool {
	return len(s) >= n && strings.Trim(s[:n], "0123456789abcdefABCDEF") == ""
}
