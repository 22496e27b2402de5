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

// ErrSyntax marks text that is not one JSON value. Errors that wrap it have the
// offset.
var ErrSyntax = errors.New("malformed JSON")

// maxDepth is encoding/json's limit of nesting.
const maxDepth = 10000

// A scanner reads a JSON text once, from left to right, and checks its syntax. It
// allocates nothing. Its methods leave i after what they consumed.
type scanner struct {
	s       string
	i       int
	depth   int
	table   *table // receives the rows of a Table; nil if a Table is an object like others
	partial bool   // s is the beginning of a longer text
	stored  bool   // s is a valid object
}

// errNeedMore is returned for an error near the end of a partial text, which is to
// be scanned again when more of it has been read. It occurs often, so it is not
// formatted.
var errNeedMore = errors.New("more text is needed")

// maxToken is how many bytes before the end of a partial text an escape or a word
// may begin and be incomplete.
const maxToken = 8

func (p *scanner) errorf(format string, args ...any) error {
	if p.partial && p.i+maxToken >= len(p.s) {
		return errNeedMore
	}
	return fmt.Errorf("%w at offset %d: %s", ErrSyntax, p.i, fmt.Sprintf(format, args...))
}

func (p *scanner) space() { p.i = afterSpace(p.s, p.i) }

// afterSpace returns the index of the first byte from i on that is not white space.
func afterSpace(s string, i int) int {
	if i < len(s) && s[i] > ' ' {
		return i // nearly always
	}
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// next skips white space and returns the next byte without consuming it, 0 at the
// end of the text. To every caller a NUL byte is an error, as the end is.
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

func (p *scanner) unexpected(expected string) error {
	if p.i >= len(p.s) {
		return p.errorf("unexpected end of the text, expected %s", expected)
	}
	return p.errorf("unexpected %q, expected %s", p.s[p.i], expected)
}

// end checks that only white space follows.
func (p *scanner) end() error {
	p.space()
	if p.i != len(p.s) {
		return p.unexpected("the end")
	}
	return nil
}

// member consumes the name of the next member of an object; the caller must consume
// its value before the next call. The first call, with first set, also consumes
// the opening brace. At the closing brace, which it consumes, ok is false.
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

// enter consumes the opening byte or the comma before a member or element, or the
// closing byte; then ok is false.
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

// value returns the index after the value at i. Most of a text is skipped by it, so
// it keeps i in a register, and sets the scanner's only for an error.
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
		closing := c + 2 // in ASCII, for both
		if i = afterSpace(s, i+1); i < len(s) && s[i] == closing {
			p.depth--
			return i + 1, nil
		}
		for {
			if c == '{' {
				// Not decoded: names in managedFields have many escapes.
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

// fault returns the error for an unexpected byte at i.
func (p *scanner) fault(i int, expected string) (int, error) {
	p.i = i
	return i, p.unexpected(expected)
}

// word consumes a number, true, false or null.
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

// raw consumes a string and returns the text between its quotes, with its escapes.
func (p *scanner) raw() (string, error) {
	start := p.i + 1
	end, err := p.quoted(p.i)
	if p.i = end; err != nil {
		return "", err
	}
	return p.s[start : end-1], nil
}

// quoted returns the index after the string at i.
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
				return i, p.errorf("invalid escape")
			}
			i += n
		case c < ' ':
			p.i = i
			return i, p.errorf("control character in a string")
		default:
			i++
		}
	}
	return p.fault(len(s), "'\"'")
}

// specials finds control characters, quotes and backslashes among the eight bytes of
// w. In the result, the lowest of them has its highest bit set and the bytes below
// it have not; bytes above it may have it set without being special.
func specials(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & high
}

// escapeLen returns the length of the escape at the beginning of s, 0 if it is
// invalid.
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

// text consumes a string and returns its value: a substring of the text if it has
// no escapes.
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

// rawOrNull is raw for a string or null, which is returned as "".
func (p *scanner) rawOrNull() (string, error) {
	if p.at('n') {
		return "", p.literal("null")
	}
	return p.raw()
}

// textOrNull is text for a string or null, which is returned as "".
func (p *scanner) textOrNull() (string, error) {
	if p.at('n') {
		return "", p.literal("null")
	}
	return p.text()
}
