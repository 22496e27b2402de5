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

// A projector copies what is shown from the text of an object. That was scanned
// before, so it is not checked again. Methods that begin at a place return where
// what they consumed ends.
type projector struct {
	s          string
	out        []byte
	rvFrom, rv int
}

// copy shows a part of the text.
func (w *projector) copy(from, to int) {
	if from <= w.rvFrom && w.rvFrom < to {
		w.rv = len(w.out) + w.rvFrom - from
	}
	w.out = append(w.out, w.s[from:to]...)
}

// value consumes a value and shows what the node says; shown is false if that is
// nothing.
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

// object consumes an object. Without a member that is shown, nothing is.
func (w *projector) object(n *pathNode, i int) (end int, shown bool) {
	s, start := w.s, len(w.out)
	w.out = append(w.out, '{')
	for i = afterSpace(s, i+1); s[i] != '}'; {
		from, to := i, afterString(s, i)
		i = afterSpace(s, afterSpace(s, to)+1) // behind the colon
		if m := n.find(s[from:to]); m == nil {
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

// array consumes an array, whose elements are shown by the node.
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

// find returns what is shown of the member with a name, in its quotes; nil for
// nothing.
func (n *pathNode) find(quoted string) *pathNode {
	name := quoted[1 : len(quoted)-1]
	for i := range n.named {
		if n.named[i].name == name {
			return n.named[i].node
		}
	}
	if strings.IndexByte(name, '\\') < 0 {
		return nil
	}
	return n.members[unquoted(quoted)]
}

func unquoted(text string) (value string) {
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err) // it was scanned before
	}
	return value
}

// afterComma goes from behind a member or an element to the next one, or to what
// closes.
func afterComma(s string, i int) int {
	if i = afterSpace(s, i); s[i] == ',' {
		i = afterSpace(s, i+1)
	}
	return i
}

// afterValue returns where the value ends that begins at i.
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

// afterString returns where the string ends that begins at i.
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
			i += 2 // of more, the others stand for themselves here
		default:
			i++
		}
	}
}
