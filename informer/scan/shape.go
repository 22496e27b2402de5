// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A Shape has the names of the members that a program reads from a JSON value. The zero
// value, like nil, has none.
type Shape struct {
	// Each is the shape of the elements of an array, and of the values of an object that has
	// any names.
	Each *Shape

	members map[string]*Shape
	names   []string // of members
	lengths uint64   // bit n: a name has n bytes; bit 63: or more
	unicode bool     // a name is not ASCII
}

// Add adds a member of an object, with the shape of its value, which may be nil.
func (s *Shape) Add(name string, value *Shape) {
	if s.members == nil {
		s.members = map[string]*Shape{}
	}
	s.members[name] = value
	s.names = append(s.names, name)
	s.lengths |= lengthBit(name)
	s.unicode = s.unicode || !isASCII(name)
}

func lengthBit(name string) uint64 { return 1 << min(len(name), 63) }

// Exact returns text in which no object has a member whose name differs only in case from one
// of its shape: encoding/json would take it for that one. The names of such members become
// commas, which the name of no struct field has. Exact does not modify text, and returns text
// itself if there is nothing to change, or if it is not JSON.
func (s *Shape) Exact(text []byte) []byte {
	if s == nil {
		return text
	}
	e := exact{scanner: scanner{s: unsafeString(text)}, text: text}
	if e.value(s) != nil {
		return text
	}
	return e.text
}

// An exact is a scanner that hides names in a copy of its text.
type exact struct {
	scanner
	text   []byte
	copied bool
}

// value consumes a value with a shape.
func (e *exact) value(s *Shape) error {
	switch c := e.next(); {
	case s == nil:
	case c == '{':
		return e.object(s)
	case c == '[' && s.Each != nil:
		for first := true; ; first = false {
			if ok, err := e.element(first); err != nil || !ok {
				return err
			}
			if err := e.value(s.Each); err != nil {
				return err
			}
		}
	}
	return e.skip()
}

func (e *exact) object(s *Shape) error {
	for first := true; ; first = false {
		if ok, err := e.enter(first, '{', '}'); err != nil || !ok {
			return err
		}
		from := e.i + 1
		name, err := e.scanner.text()
		if err != nil {
			return err
		}
		to := e.i - 1
		if err := e.expect(':'); err != nil {
			return err
		}
		value, ok := s.members[name]
		switch {
		case ok:
		case s.Each != nil:
			value = s.Each
		case s.hasSimilar(name):
			e.hide(from, to)
		}
		if err := e.value(value); err != nil {
			return err
		}
	}
}

// hide changes the name between two offsets.
func (e *exact) hide(from, to int) {
	if !e.copied {
		e.text, e.copied = append([]byte(nil), e.text...), true
	}
	for i := from; i < to; i++ {
		e.text[i] = ','
	}
}

// hasSimilar reports whether a member has a name that differs only in case.
func (s *Shape) hasSimilar(name string) bool {
	// In ASCII, both have the same length.
	if s.lengths&lengthBit(name) == 0 && !s.unicode && isASCII(name) {
		return false
	}
	return slices.ContainsFunc(s.names, func(n string) bool { return strings.EqualFold(n, name) })
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
