// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrSyntax marks text that is not one JSON value. Errors that wrap it tell
// the offset.
var ErrSyntax = errors.New("malformed JSON")

// maxDepth is encoding/json's own limit of nesting.
const maxDepth = 10000

// A scanner walks a JSON text once, from left to right, checking its syntax.
// It allocates nothing. Its methods leave i behind what they consumed.
type scanner struct {
	s     string
	i     int
	depth int
	table *table // where a Table's rows go; nil if it is an object like others
	more  bool   // the text is the beginning of one, of which there is more
}

// errMore is the error of a text that is to be scanned again when there is more
// of it. It is made often, so it says nothing.
var errMore = errors.New("the text goes on")

// edge is how many bytes before the end of a beginning a scan may fail since
// there is more to come: an escape or a word is noticed where it begins.
const edge = 8

func (p *scanner) errorf(format string, args ...any) error {
	if p.more && p.i+edge >= len(p.s) {
		return errMore
	}
	return fmt.Errorf("%w at offset %d: %s", ErrSyntax, p.i, fmt.Sprintf(format, args...))
}

func (p *scanner) space() {
	if p.i < len(p.s) && p.s[p.i] > ' ' {
		return // nearly always
	}
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\r', '\n':
			p.i++
		default:
			return
		}
	}
}

// next skips white space and returns the next byte without consuming it, 0 at
// the end of the text (a NUL byte in the text is an error to every caller, as
// the end is).
func (p *scanner) next() byte {
	p.space()
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

func (p *scanner) expect(c byte) error {
	if p.next() != c {
		return p.unexpected(fmt.Sprintf("%q", c))
	}
	p.i++
	return nil
}

func (p *scanner) unexpected(wanted string) error {
	if p.i >= len(p.s) {
		return p.errorf("the text ends, %s is wanted", wanted)
	}
	return p.errorf("%q, where %s is wanted", p.s[p.i], wanted)
}

// end checks that nothing but white space is left.
func (p *scanner) end() error {
	p.space()
	if p.i != len(p.s) {
		return p.unexpected("the end")
	}
	return nil
}

// member goes to the next member of an object, positioned at its value, which
// the caller must consume before it asks for the next one. The first call, with
// first set, consumes the brace. At the closing brace, which it consumes, ok is
// false.
//
//	for first := true; ; first = false {
//		name, ok, err := p.member(first)
//		if err != nil || !ok {
//			return err
//		}
//		…
//	}
func (p *scanner) member(first bool) (name string, ok bool, err error) {
	if ok, err = p.enter(first, '{', '}'); err != nil || !ok {
		return "", ok, err
	}
	if name, err = p.text(); err != nil {
		return "", false, err
	}
	if err = p.expect(':'); err != nil {
		return "", false, err
	}
	p.space()
	return name, true, nil
}

// element is member for arrays.
func (p *scanner) element(first bool) (ok bool, err error) {
	return p.enter(first, '[', ']')
}

// enter consumes what stands before a member or element: the opening byte or a
// comma; or the closing byte, and then ok is false.
func (p *scanner) enter(first bool, open, closing byte) (ok bool, err error) {
	if first {
		if err := p.expect(open); err != nil {
			return false, err
		}
		if p.depth++; p.depth > maxDepth {
			return false, p.errorf("nested deeper than %d", maxDepth)
		}
	}
	switch c := p.next(); {
	case c == closing:
		p.i++
		p.depth--
		return false, nil
	case first:
	case c == ',':
		p.i++
		p.space()
	default:
		return false, p.unexpected(fmt.Sprintf("',' or %q", closing))
	}
	return true, nil
}

// skip consumes any value.
func (p *scanner) skip() error {
	switch c := p.next(); {
	case c == '{':
		for first := true; ; first = false {
			if ok, err := p.enter(first, '{', '}'); err != nil || !ok {
				return err
			}
			// The name as it stands: those of managedFields are full of escapes.
			if _, err := p.raw(); err != nil {
				return err
			}
			if err := p.expect(':'); err != nil {
				return err
			}
			if err := p.skip(); err != nil {
				return err
			}
		}
	case c == '[':
		for first := true; ; first = false {
			if ok, err := p.element(first); err != nil || !ok {
				return err
			}
			if err := p.skip(); err != nil {
				return err
			}
		}
	case c == '"':
		_, err := p.raw()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true")
	case c == 'f':
		return p.literal("false")
	case c == 'n':
		return p.literal("null")
	default:
		return p.unexpected("a value")
	}
}

func (p *scanner) literal(word string) error {
	if len(p.s)-p.i < len(word) || p.s[p.i:p.i+len(word)] != word {
		return p.unexpected(word)
	}
	p.i += len(word)
	return nil
}

func (p *scanner) digits() bool {
	start := p.i
	for p.i < len(p.s) && '0' <= p.s[p.i] && p.s[p.i] <= '9' {
		p.i++
	}
	return p.i > start
}

func (p *scanner) at(c byte) bool { return p.i < len(p.s) && p.s[p.i] == c }

func (p *scanner) number() error {
	if p.at('-') {
		p.i++
	}
	if p.at('0') {
		p.i++
	} else if !p.digits() {
		return p.unexpected("a digit")
	}
	if p.at('.') {
		p.i++
		if !p.digits() {
			return p.unexpected("a digit")
		}
	}
	if p.at('e') || p.at('E') {
		p.i++
		if p.at('+') || p.at('-') {
			p.i++
		}
		if !p.digits() {
			return p.unexpected("a digit")
		}
	}
	return nil
}

// raw consumes a string and returns what stands between its quotes, escapes
// and all.
func (p *scanner) raw() (string, error) {
	if !p.at('"') {
		return "", p.unexpected("a string")
	}
	p.i++
	s, start := p.s, p.i
	for i := start; i < len(s); {
		if ordinary[s[i]] {
			i++
			continue
		}
		switch c := s[i]; c {
		case '"':
			p.i = i + 1
			return s[start:i], nil
		case '\\':
			n := escapeLen(s[i:])
			if n == 0 {
				p.i = i
				return "", p.errorf("a bad escape")
			}
			i += n
		default:
			p.i = i
			return "", p.errorf("a control character in a string")
		}
	}
	p.i = len(s)
	return "", p.unexpected("'\"'")
}

// ordinary are the bytes that stand for themselves in a string.
var ordinary = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// escapeLen returns the length of the escape sequence that s begins with, 0 if
// it is not a valid one.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		for _, c := range []byte(s[2:6]) {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// text consumes a string and returns its value: a substring of the text where
// there are no escapes in it.
func (p *scanner) text() (string, error) {
	raw, err := p.raw()
	if err != nil {
		return "", err
	}
	for i := range len(raw) {
		if raw[i] == '\\' {
			var v string
			err := json.Unmarshal([]byte(p.s[p.i-len(raw)-2:p.i]), &v)
			return v, err
		}
	}
	return raw, nil
}

// rawOrNull is raw for a member that may be null, which reads as "".
func (p *scanner) rawOrNull() (string, error) {
	if p.at('n') {
		return "", p.literal("null")
	}
	return p.raw()
}

// textOrNull is text for a member that may be null, which reads as "".
func (p *scanner) textOrNull() (string, error) {
	if p.at('n') {
		return "", p.literal("null")
	}
	return p.text()
}
