// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// pseudonyms replace the names of objects, wherever these stand in an object: as
// its own, as an owner's, in a message or a label. One name has one pseudonym
// in a recording, and another in the next. A name that begins with another one,
// as a Pod's does with that of its ReplicaSet, keeps beginning with it.
//
// Nothing else is hidden: not images, addresses, labels or commands.
type pseudonyms struct {
	key   []byte
	names map[string]string
	taken map[string]bool // the pseudonyms
}

// longestName is how long the name of an object can be.
const longestName = 253

// openNames are those that every cluster has.
var openNames = []string{"default", "kube-system", "kube-public", "kube-node-lease", "kubernetes", "kube-root-ca.crt"}

func newPseudonyms() *pseudonyms {
	p := &pseudonyms{key: make([]byte, 32), names: map[string]string{}, taken: map[string]bool{}}
	rand.Read(p.key) // it never fails
	return p
}

// learn takes note of the names in an object. All are to be learned before the
// first text.
func (p *pseudonyms) learn(o *kube.Object) error {
	type ref struct{ Name, Namespace string }
	var named struct {
		Metadata struct {
			Name, Namespace, GenerateName string
			OwnerReferences               []ref
		}
		Spec                               struct{ NodeName string }
		InvolvedObject, Regarding, Related ref
	}
	if err := json.Unmarshal([]byte(o.JSON), &named); err != nil {
		return err
	}
	m := named.Metadata
	refs := append(m.OwnerReferences, ref{m.Name, m.Namespace}, named.InvolvedObject, named.Regarding, named.Related)
	for _, r := range refs {
		p.add(r.Name)
		p.add(r.Namespace)
	}
	p.add(strings.TrimRight(m.GenerateName, "-"))
	p.add(named.Spec.NodeName)
	return nil
}

func (p *pseudonyms) add(name string) {
	if name != "" && !slices.Contains(openNames, name) {
		p.names[strings.ToLower(name)] = ""
	}
}

// of returns the pseudonym of a name, and whether it is a name.
func (p *pseudonyms) of(name string) (string, bool) {
	pseudonym, ok := p.names[name]
	if !ok || pseudonym != "" {
		return pseudonym, ok
	}
	before, digits := "x", 8 // a name begins with a letter
	if stem, _, ok := p.split(name); ok {
		before, _ = p.of(stem)
		before, digits = before+"-", 5
	}
	for pseudonym = before + p.hash(name, digits); p.taken[pseudonym]; digits++ {
		pseudonym = before + p.hash(name, digits+1) // two objects are not to become one
	}
	p.names[name], p.taken[pseudonym] = pseudonym, true
	return pseudonym, true
}

// split splits a name behind the longest other name that it begins with.
func (p *pseudonyms) split(name string) (stem, rest string, ok bool) {
	for i := strings.LastIndexByte(name[:min(len(name), longestName+1)], '-'); i > 0; i = strings.LastIndexByte(name[:i], '-') {
		if _, ok := p.names[name[:i]]; ok {
			return name[:i], name[i+1:], true
		}
	}
	return "", "", false
}

func (p *pseudonyms) hash(text string, n int) string {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))[:n]
}

// object returns the object under its pseudonym.
func (p *pseudonyms) object(o *kube.Object) (*kube.Object, error) {
	renamed, err := kube.ScanObject(p.text(o.JSON))
	if err != nil {
		return nil, err
	}
	if renamed.Columns = o.Columns; o.Row != "" {
		row := p.text("{" + o.Row + "}")
		renamed.Row = row[1 : len(row)-1]
	}
	return renamed, nil
}

// plainMembers are those whose values hold no names, though they may look so.
var plainMembers = []string{"kind", "apiVersion", "resourceVersion", "uid"}

// text replaces the names in the strings of a JSON text. Names of members stay,
// unless they are made of values, as in managedFields.
func (p *pseudonyms) text(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	member := ""
	for i := 0; i < len(text); {
		open := strings.IndexByte(text[i:], '"')
		if open < 0 {
			b.WriteString(text[i:])
			break
		}
		open += i + 1
		end := open
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(text))
		b.WriteString(text[i:open])
		content := text[open:end]
		switch isMember := end+1 < len(text) && text[end+1] == ':'; {
		case isMember && !strings.HasPrefix(content, `k:{`):
			member = content
			b.WriteString(content)
		case !isMember && slices.Contains(plainMembers, member):
			b.WriteString(content)
		default:
			p.words(&b, content)
		}
		i = end
		if i < len(text) {
			b.WriteByte('"')
			i++
		}
	}
	return b.String()
}

// words replaces the names among the words of a string.
func (p *pseudonyms) words(b *strings.Builder, s string) {
	for i := 0; i < len(s); {
		if s[i] == '\\' { // its letter is no part of a word
			n := min(len(s), i+2)
			if s[n-1] == 'u' {
				n = min(len(s), i+6)
			}
			b.WriteString(s[i:n])
			i = n
			continue
		}
		n := i
		for n < len(s) && isNameByte(s[n]) {
			n++
		}
		if n == i {
			b.WriteByte(s[i])
			i++
			continue
		}
		p.word(b, s[i:n])
		i = n
	}
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.'
}

// word replaces a word that is a name, begins with one and a hyphen, or has one
// between its dots.
func (p *pseudonyms) word(b *strings.Builder, word string) {
	if pseudonym, ok := p.of(word); ok {
		b.WriteString(pseudonym)
		return
	}
	if stem, rest, ok := p.split(word); ok {
		pseudonym, _ := p.of(stem)
		b.WriteString(pseudonym + "-" + rest)
		return
	}
	for i, part := range strings.Split(word, ".") {
		if i > 0 {
			b.WriteByte('.')
		}
		switch stem, rest, ok := p.split(part); {
		case part == word:
			b.WriteString(part)
		case ok:
			pseudonym, _ := p.of(stem)
			b.WriteString(pseudonym + "-" + rest)
		default:
			if pseudonym, ok := p.of(part); ok {
				part = pseudonym
			}
			b.WriteString(part)
		}
	}
}
