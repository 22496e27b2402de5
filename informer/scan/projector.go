// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strings"
	"unsafe"
)

// A projector copies the parts of a projection from the text of an object. The text
// is known to be valid. Methods that consume a value at an index return the index
// after it.
type projector struct {
	s          string
	out        []byte
	rvFrom, rv int
}

// copy appends a part of the text.
func (w *projector) copy(from, to int) {
	if from <= w.rvFrom && w.rvFrom < to {
		w.rv = len(w.out) + w.rvFrom - from
	}
	w.out = append(w.out, w.s[from:to]...)
}

// value consumes a value and appends the node's part of it; shown is false if there
// is none.
func (w *projector) value(n *pathNode, i int) (end int, shown bool) {
	switch c := w.s[i]; {
	case n.whole:
		end = afterValue(w.s, i)
		w.copy(i, end)
		return end, true
	case c == '{' && n.members != nil:
		return w.object(n, i)
	case c == '[' && n.each != nil:
		return w.array(n.each, i), true
	}
	return afterValue(w.s, i), false
}

// object is value for objects. It appends nothing if it would append no member.
func (w *projector) object(n *pathNode, i int) (end int, shown bool) {
	s, start := w.s, len(w.out)
	w.out = append(w.out, '{')
	for i = afterSpace(s, i+1); s[i] != '}'; {
		from, to := i, afterString(s, i)
		i = afterSpace(s, afterSpace(s, to)+1) // after the colon
		if m := findMember(n.named, s[from:to]); m == nil {
			i = afterValue(s, i)
		} else {
			before := len(w.out)
			if before > start+1 {
				w.out = append(w.out, ',')
			}
			w.copy(from, to)
			w.out = append(w.out, ':')
			var ok bool
			if i, ok = w.value(m, i); !ok {
				w.out = w.out[:before]
			}
		}
		i = afterComma(s, i)
	}
	if len(w.out) == start+1 {
		w.out = w.out[:start]
		return i + 1, false
	}
	w.out = append(w.out, '}')
	return i + 1, true
}

// array consumes an array and appends the node's part of each element.
func (w *projector) array(n *pathNode, i int) (end int) {
	s, first := w.s, true
	w.out = append(w.out, '[')
	for i = afterSpace(s, i+1); s[i] != ']'; first = false {
		if !first {
			w.out = append(w.out, ',')
		}
		var shown bool
		if i, shown = w.value(n, i); !shown {
			w.out = append(w.out, "{}"...)
		}
		i = afterComma(s, i)
	}
	w.out = append(w.out, ']')
	return i + 1
}

// findMember returns the node of the member with a name, given in quotes; nil if there is
// none.
func findMember[N any](members []namedNode[N], quoted string) *N {
	name := unquoted(quoted)
	for i := range members {
		if members[i].name == name {
			return members[i].node
		}
	}
	return nil
}

// unquoted returns the value of a string in quotes: a part of it, unless it has escapes.
func unquoted(text string) string {
	if plain := text[1 : len(text)-1]; strings.IndexByte(plain, '\\') < 0 {
		return plain
	}
	return unescaped(text)
}

// unescaped is unquoted for a string with escapes. It is apart because it allocates its
// result, even where it does not get that far.
func unescaped(text string) (value string) {
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err) // the text is valid
	}
	return value
}

// afterComma returns the index of the next member or element, or of the closing
// byte, given the index after a value.
func afterComma(s string, i int) int {
	if i = afterSpace(s, i); s[i] == ',' {
		i = afterSpace(s, i+1)
	}
	return i
}

// afterValue returns the index after the value at i.
func afterValue(s string, i int) int {
	switch s[i] {
	case '"':
		return afterString(s, i)
	case '{', '[':
		for depth := 0; ; {
			switch s[i] {
			case '"':
				i = afterString(s, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for s[i] > ' ' && s[i] != ',' && s[i] != '}' && s[i] != ']' {
		i++
	}
	return i
}

// afterString returns the index after the string at i.
func afterString(s string, i int) int {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for i++; ; {
		if len(b)-i >= 8 {
			special := specials(binary.LittleEndian.Uint64(b[i:]))
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		}
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2 // the digits of a longer escape need no care here
		default:
			i++
		}
	}
}
