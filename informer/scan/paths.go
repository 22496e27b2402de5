// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrPath marks text that is not a list of paths.
var ErrPath = errors.New("not a list of paths")

// Paths are the parts of an object that a projection has, besides those that identify
// it. They are immutable.
type Paths struct {
	key  string
	once *projection // what an object has after its first projection
	root *pathNode
	rows *rowPaths // the projection is a row; nil for an object
}

// A pathNode is a value in an object.
type pathNode struct {
	whole   bool // the projection has all of it
	members map[string]*pathNode
	named   []namedNode[pathNode] // the members again, for a scan: they are few
	each    *pathNode             // for each element of an array
}

// A namedNode is the member of an object with a name.
type namedNode[N any] struct {
	name string
	node *N
}

func (n *pathNode) member(name string) *pathNode {
	if n.members == nil {
		n.members = map[string]*pathNode{}
	}
	m := n.members[name]
	if m == nil {
		m = &pathNode{}
		n.members[name] = m
		n.named = append(n.named, namedNode[pathNode]{name, m})
	}
	return m
}

func (n *pathNode) elements() *pathNode {
	if n.each == nil {
		n.each = &pathNode{}
	}
	return n.each
}

// alwaysShown are the paths in every projection that is an object.
var alwaysShown = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// ParsePaths parses paths separated by commas, of a projection that is an object with
// apiVersion, kind, metadata.{name,namespace,uid,resourceVersion} and the parts that
// the paths name. A path is member names joined by dots; [*] is every element of an
// array, and a name of other characters than letters, digits, - and _ is quoted in
// brackets:
//
//	metadata.labels['app.kubernetes.io/name'],spec.containers[*].image
//
// Errors wrap [ErrPath].
func ParsePaths(text string) (*Paths, error) {
	p := &Paths{root: &pathNode{}}
	for _, path := range alwaysShown {
		n := p.root
		for name := range strings.SplitSeq(path, ".") {
			n = n.member(name)
		}
		n.whole = true
	}
	parsed, err := parsePaths(text)
	if err != nil {
		return nil, err
	}
	for _, path := range parsed {
		n := p.root
		for _, s := range path.steps {
			switch s.kind {
			case stepMember:
				n = n.member(s.name)
			case stepEach:
				n = n.elements()
			default:
				return nil, fmt.Errorf("%w: %s selects one element of an array, which only rows can show: use [*], or as=rows", ErrPath, path.text)
			}
		}
		n.whole = true
	}
	var b strings.Builder
	p.root.write(&b)
	p.setKey(b.String())
	return p, nil
}

// Key returns a short text that is equal for paths with the same projections: of objects,
// in any order.
func (p *Paths) Key() string { return p.key }

// setKey sets the key to a digest of a text that tells these paths from others.
func (p *Paths) setKey(text string) {
	sum := sha256.Sum256([]byte(text))
	p.key = string(sum[:])
	p.once = &projection{key: p.key}
}

func (n *pathNode) write(b *strings.Builder) {
	if n.whole {
		b.WriteByte('!')
		return
	}
	if n.each != nil {
		b.WriteString("[*]")
		n.each.write(b)
	}
	b.WriteByte('{')
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		b.WriteString(strconv.Quote(name))
		n.members[name].write(b)
	}
	b.WriteByte('}')
}

// Project returns the projection of an object, in the order of its JSON. A path
// without a value is ignored. An element of an array of which the projection has
// nothing is {}, so that the others keep their indexes.
//
// rv is the offset of metadata.resourceVersion in the text. Two versions with equal
// projections have equal text before and after it.
//
// The projection of [ParseRows] is a row instead.
func (p *Paths) Project(o *Object) (text string, rv int) {
	if c := p.cached(o); c != nil {
		return c.text, c.rv
	}
	out, rv := p.append(make([]byte, 0, len(o.JSON)/4), o)
	return string(out), rv
}

// Append appends the projection of an object to dst; rv is relative to its start.
//
// An object that is projected a second time by the same paths is likely to be so again.
// It then caches the text, if that is at most an eighth as long as its JSON: one text, for
// the paths that were used last. Objects that are projected once, such as those of a
// history, cache none.
func (p *Paths) Append(dst []byte, o *Object) (out []byte, rv int) {
	if c := p.cached(o); c != nil {
		return append(dst, c.text...), c.rv
	}
	out, rv = p.append(dst, o)
	text := out[len(dst):]
	last := o.cached.Load()
	switch {
	case last == nil || last.key != p.key:
		o.cached.Store(p.once)
	case len(text) <= len(o.JSON)/cachedShare:
		o.cached.Store(&projection{p.key, string(text), rv})
	}
	return out, rv
}

// cachedShare is the fraction of its JSON that the projection an object caches may take:
// an eighth.
const cachedShare = 8

// A projection of an object by paths.
type projection struct {
	key  string // of the paths
	text string // "" if it was made, but is not cached
	rv   int
}

// cached returns the projection that an object caches; nil if it has none by these paths.
func (p *Paths) cached(o *Object) *projection {
	if c := o.cached.Load(); c != nil && c.key == p.key && c.text != "" {
		return c
	}
	return nil
}

func (p *Paths) append(dst []byte, o *Object) (out []byte, rv int) {
	if p.rows != nil {
		return p.rows.append(dst, o.JSON, o.managed)
	}
	w := projector{s: o.JSON, out: dst, rvFrom: int(o.rvText.from)}
	w.object(p.root, afterSpace(o.JSON, 0))
	return w.out, w.rv - len(dst)
}
