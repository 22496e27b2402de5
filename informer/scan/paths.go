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

// The limits of one projection.
const (
	maxPathsLen  = 4 << 10 // bytes
	maxPaths     = 64
	maxPathDepth = 32
)

// Paths are the parts of an object that a projection has, besides apiVersion, kind
// and metadata.{name,namespace,uid,resourceVersion}. They are immutable.
type Paths struct {
	text string
	root *pathNode
}

// A pathNode is a value in an object.
type pathNode struct {
	whole   bool // the projection has all of it
	members map[string]*pathNode
	named   []namedNode // the members again, for a scan: they are few
	each    *pathNode   // for each element of an array
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

// alwaysShown are the paths in every projection.
var alwaysShown = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// ParsePaths parses paths separated by commas. A path is member names joined by
// dots; [*] is every element of an array, and a name of other characters than
// letters, digits, - and _ is quoted in brackets:
//
//	metadata.labels['app.kubernetes.io/name'],spec.containers[*].image
//
// Errors wrap [ErrPath].
func ParsePaths(text string) (*Paths, error) {
	if len(text) > maxPathsLen {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrPath, maxPathsLen)
	}
	p := &Paths{root: &pathNode{}}
	for _, path := range alwaysShown {
		n := p.root
		for name := range strings.SplitSeq(path, ".") {
			n = n.member(name)
		}
		n.whole = true
	}
	s := pathParser{rest: text, all: text}
	for n := 1; ; n++ {
		if n > maxPaths {
			return nil, s.errorf("more than %d", maxPaths)
		}
		if err := s.path(p.root); err != nil {
			return nil, err
		}
		if s.rest == "" {
			break
		}
		if !s.take(",") {
			return nil, s.errorf("expected a dot, a bracket or a comma")
		}
	}
	var b strings.Builder
	p.root.write(&b)
	p.text = b.String()
	return p, nil
}

// String returns a text that is equal for equal paths in any order. It is not in the
// syntax of ParsePaths.
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

// path parses one path and adds it to n, the root.
func (s *pathParser) path(n *pathNode) error {
	for depth := 0; ; depth++ {
		if depth == maxPathDepth {
			return s.errorf("deeper than %d", maxPathDepth)
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
				return s.errorf("expected a name of letters, digits, - and _, or quoted as in ['a.b/c']")
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

// quoted parses a name in single or double quotes, and the closing bracket. The name
// cannot contain its quote.
func (s *pathParser) quoted() (string, error) {
	if s.rest == "" || s.rest[0] != '\'' && s.rest[0] != '"' {
		return "", s.errorf("expected [*] or a quoted name")
	}
	name, rest, ok := strings.Cut(s.rest[1:], s.rest[:1]+"]")
	if !ok || name == "" || strings.Contains(name, s.rest[:1]) {
		return "", s.errorf("expected a name and %s]", s.rest[:1])
	}
	s.rest = rest
	return name, nil
}

// Project returns the projection of an object, in the order of its JSON. A path
// without a value is ignored. An element of an array of which the projection has
// nothing is {}, so that the others keep their indexes.
//
// rv is the offset of metadata.resourceVersion in the text. Two versions with equal
// projections have equal text before and after it.
func (p *Paths) Project(o *Object) (text string, rv int) {
	out, rv := p.Append(make([]byte, 0, len(o.JSON)/4), o)
	return string(out), rv
}

// Append appends the projection of an object to dst; rv is relative to its start.
func (p *Paths) Append(dst []byte, o *Object) (out []byte, rv int) {
	w := projector{s: o.JSON, out: dst, rvFrom: int(o.rvText.from)}
	w.object(p.root, afterSpace(o.JSON, 0))
	return w.out, w.rv - len(dst)
}
