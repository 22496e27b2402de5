// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"
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

func (p *scanner) space() { p.i = afterSpace(p.s, p.i) }

// afterSpace returns i, or where the white space ends that begins there.
func afterSpace(s string, i int) int {
	if i < len(s) && s[i] > ' ' {
		return i // nearly always
	}
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
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
func (p *scanner) skip() (err error) {
	p.i, err = p.value(p.i)
	return err
}

// value returns where the value that begins at i ends. Most of a text is
// skipped, so this goes by an i of its own, which is in a register, and leaves
// that of the scanner alone, unless there is an error to tell the place of.
func (p *scanner) value(i int) (end int, err error) {
	s := p.s
	i = afterSpace(s, i)
	if i == len(s) {
		return p.fault(i, "a value")
	}
	switch c := s[i]; c {
	case '"':
		return p.quoted(i)
	case '{', '[':
		if p.depth++; p.depth > maxDepth {
			p.i = i + 1
			return p.i, p.errorf("nested deeper than %d", maxDepth)
		}
		closing := c + 2 // in ASCII, of both
		if i = afterSpace(s, i+1); i < len(s) && s[i] == closing {
			p.depth--
			return i + 1, nil
		}
		for {
			if c == '{' {
				// The name as it stands: those of managedFields are full of escapes.
				if i, err = p.quoted(i); err != nil {
					return i, err
				}
				if i = afterSpace(s, i); i == len(s) || s[i] != ':' {
					return p.fault(i, "':'")
				}
				i++
			}
			if i, err = p.value(i); err != nil {
				return i, err
			}
			switch i = afterSpace(s, i); {
			case i < len(s) && s[i] == ',':
				i = afterSpace(s, i+1)
			case i < len(s) && s[i] == closing:
				p.depth--
				return i + 1, nil
			default:
				return p.fault(i, fmt.Sprintf("',' or %q", closing))
			}
		}
	}
	p.i = i
	err = p.word()
	return p.i, err
}

// fault is an error of value's.
func (p *scanner) fault(i int, wanted string) (int, error) {
	p.i = i
	return i, p.unexpected(wanted)
}

// word consumes a value that is a number, true, false or null.
func (p *scanner) word() error {
	switch c := p.s[p.i]; {
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true")
	case c == 'f':
		return p.literal("false")
	case c == 'n':
		return p.literal("null")
	}
	return p.unexpected("a value")
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
	start := p.i + 1
	end, err := p.quoted(p.i)
	if p.i = end; err != nil {
		return "", err
	}
	return p.s[start : end-1], nil
}

// quoted returns where the string that begins at i ends.
func (p *scanner) quoted(i int) (end int, err error) {
	s := p.s
	if i == len(s) || s[i] != '"' {
		return p.fault(i, "a string")
	}
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for i++; i < len(s); {
		if len(b)-i >= 8 {
			special := specials(binary.LittleEndian.Uint64(b[i:]))
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		}
		switch c := s[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\':
			n := escapeLen(s[i:])
			if n == 0 {
				p.i = i
				return i, p.errorf("a bad escape")
			}
			i += n
		case c < ' ':
			p.i = i
			return i, p.errorf("a control character in a string")
		default:
			i++
		}
	}
	return p.fault(len(s), "'\"'")
}

// specials finds the bytes that do not stand for themselves in a string: control
// characters, the quote and the backslash. Of the eight in w, the lowest that is
// one has its highest bit set in the result; those above it may have it set for
// nothing.
func specials(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & high
}

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
