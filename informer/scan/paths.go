// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrPath marks text that is not a list of paths.
var ErrPath = errors.New("not a list of paths")

const (
	// longestPaths, mostPaths and deepestPath bound what one projection names.
	longestPaths = 4 << 10
	mostPaths    = 64
	deepestPath  = 32
)

// Paths are the parts of an object that a projection shows, besides apiVersion,
// kind and metadata.{name,namespace,uid,resourceVersion}, which all show. They
// are immutable.
type Paths struct {
	text string
	root *pathNode
}

// A pathNode is a place in an object.
type pathNode struct {
	whole   bool // all of it is shown
	members map[string]*pathNode
	named   []namedNode // the members, which are few
	each    *pathNode   // the elements, if it is an array
}

type namedNode struct {
	name string
	node *pathNode
}

func (n *pathNode) member(name string) *pathNode {
	if n.members == nil {
		n.members = map[string]*pathNode{}
	}
	m := n.members[name]
	if m == nil {
		m = &pathNode{}
		n.members[name] = m
		n.named = append(n.named, namedNode{name, m})
	}
	return m
}

func (n *pathNode) elements() *pathNode {
	if n.each == nil {
		n.each = &pathNode{}
	}
	return n.each
}

// always are the paths that all projections show.
var always = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// ParsePaths reads paths separated by commas. A path is member names with dots
// between them; [*] stands for every element of an array, and a name that is not
// letters, digits, - and _ is quoted in brackets:
//
//	metadata.labels['app.kubernetes.io/name'],spec.containers[*].image
//
// Errors wrap [ErrPath].
func ParsePaths(text string) (*Paths, error) {
	if len(text) > longestPaths {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrPath, longestPaths)
	}
	p := &Paths{root: &pathNode{}}
	for _, path := range always {
		n := p.root
		for name := range strings.SplitSeq(path, ".") {
			n = n.member(name)
		}
		n.whole = true
	}
	s := pathParser{rest: text, all: text}
	for n := 1; ; n++ {
		if n > mostPaths {
			return nil, s.errorf("more than %d", mostPaths)
		}
		if err := s.path(p.root); err != nil {
			return nil, err
		}
		if s.rest == "" {
			break
		}
		if !s.take(",") {
			return nil, s.errorf("a dot, a bracket or a comma is wanted")
		}
	}
	var b strings.Builder
	p.root.write(&b)
	p.text = b.String()
	return p, nil
}

// String returns a text that is the same for equal paths in any order. It is not
// one that ParsePaths reads.
func (p *Paths) String() string { return p.text }

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

type pathParser struct{ rest, all string }

func (s *pathParser) take(what string) bool {
	rest, ok := strings.CutPrefix(s.rest, what)
	if ok {
		s.rest = rest
	}
	return ok
}

func (s *pathParser) errorf(format string, args ...any) error {
	return fmt.Errorf("%w: at offset %d of %q: %s", ErrPath, len(s.all)-len(s.rest), s.all, fmt.Sprintf(format, args...))
}

// path reads one path and enters it below the root.
func (s *pathParser) path(n *pathNode) error {
	for depth := 0; ; depth++ {
		if depth == deepestPath {
			return s.errorf("deeper than %d", deepestPath)
		}
		switch {
		case depth > 0 && s.take("[*]"):
			n = n.elements()
		case s.take("["):
			name, err := s.quoted()
			if err != nil {
				return err
			}
			n = n.member(name)
		case depth == 0 || s.take("."):
			name := s.name()
			if name == "" {
				return s.errorf("a name is wanted: of letters, digits, - and _, or quoted as in ['a.b/c']")
			}
			n = n.member(name)
		default:
			n.whole = true
			return nil
		}
	}
}

func (s *pathParser) name() string {
	end := strings.IndexFunc(s.rest, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	})
	if end < 0 {
		end = len(s.rest)
	}
	name := s.rest[:end]
	s.rest = s.rest[end:]
	return name
}

// quoted reads a name in quotes, single or double, and the closing bracket. A
// name cannot have the quote that it stands in.
func (s *pathParser) quoted() (string, error) {
	if s.rest == "" || s.rest[0] != '\'' && s.rest[0] != '"' {
		return "", s.errorf("[*] or a quoted name is wanted")
	}
	name, rest, ok := strings.Cut(s.rest[1:], s.rest[:1]+"]")
	if !ok || name == "" || strings.Contains(name, s.rest[:1]) {
		return "", s.errorf("a name and %s] are wanted", s.rest[:1])
	}
	s.rest = rest
	return name, nil
}

// Project returns what the paths show of an object, in the order of its JSON. A
// path that leads nowhere shows nothing. Elements of an array of which nothing is
// shown are {}, so that the others keep their places.
//
// rv is where metadata.resourceVersion stands in the text: what is before and
// behind it is the same in versions that differ in nothing the paths show.
func (p *Paths) Project(o *Object) (text string, rv int) {
	out, rv := p.Append(make([]byte, 0, len(o.JSON)/4), o)
	return string(out), rv
}

// Append appends to dst what Project returns.
func (p *Paths) Append(dst []byte, o *Object) (out []byte, rv int) {
	w := projector{s: o.JSON, out: dst, rvFrom: int(o.rvText.from)}
	w.object(p.root, afterSpace(o.JSON, 0))
	return w.out, w.rv - len(dst)
}
