// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"
	"unsafe"
)

// A delta is how to make a text out of the one before it. It is a sequence of
//
//	uvarint  m     insert m bytes:
//	m bytes
//	uvarint  n     copy n bytes of the text before …
//	varint   jump  … from where the last copy ended, and m bytes further, and jump
//
// up to its end; the last copy may be left out. A version of an object differs
// from the one before it in a few places and keeps the order of its members, so
// that a delta is little more than what is new.

// errDelta marks a delta that does not fit the text it is applied to.
var errDelta = errors.New("a delta does not fit the version before it")

const (
	// shortestCopy is below what a copy is not worth while, and what is compared
	// at a time.
	shortestCopy = 8
	// nearby is how far from a difference it is tried first whether both texts go
	// on alike at the same distance, as behind another timestamp.
	nearby = 48
	// indexStep is how many bytes lie between the places that can be found again.
	indexStep = 4
)

// appendDelta appends to dst the delta that makes to out of from.
func appendDelta(dst []byte, from, to string) []byte {
	d := differ{from: from, to: to}
	defer d.release()
	for i, end := 0, 0; i < len(to); {
		at, place, n := d.next(i, end)
		dst = binary.AppendUvarint(dst, uint64(at-i))
		dst = append(dst, to[i:at]...)
		if n > 0 {
			dst = binary.AppendUvarint(dst, uint64(n))
			dst = binary.AppendVarint(dst, int64(place-end-(at-i)))
		}
		i, end = at+n, place+n
	}
	return dst
}

// applyDelta appends to dst the text that the delta makes out of from.
func applyDelta(dst []byte, from string, delta []byte) ([]byte, error) {
	end := 0
	for len(delta) > 0 {
		m, k := binary.Uvarint(delta)
		if k <= 0 || m > uint64(len(delta)-k) {
			return nil, errDelta
		}
		dst = append(dst, delta[k:k+int(m)]...)
		if delta = delta[k+int(m):]; len(delta) == 0 {
			break
		}
		n, k := binary.Uvarint(delta)
		jump, l := binary.Varint(delta[max(k, 0):])
		if k <= 0 || l <= 0 {
			return nil, errDelta
		}
		delta = delta[k+l:]
		at := int64(end) + int64(m) + jump
		if at < 0 || at > int64(len(from)) || n > uint64(int64(len(from))-at) {
			return nil, errDelta
		}
		dst = append(dst, from[at:at+int64(n)]...)
		end = int(at) + int(n)
	}
	return dst, nil
}

// A differ finds what two texts have in common.
type differ struct {
	from, to string
	places   *[]uint32 // by hash: one above a place in from; nil until it is needed
	shift    int
}

// next returns the next part of to, from i on, that is also in from: where it
// is in both, and its length, 0 if there is none. The last one ended at end.
func (d *differ) next(i, end int) (at, place, n int) {
	if n := d.alike(i, end); n >= shortestCopy || n > 0 && i+n == len(d.to) {
		return i, end, n
	}
	for k := 1; k < nearby; k++ {
		if n := d.alike(i+k, end+k); n >= shortestCopy {
			return i + k, end + k, n
		}
	}
	if d.places == nil {
		d.index()
	}
	for at := i; at+shortestCopy <= len(d.to); at++ {
		place := int((*d.places)[d.hash(d.to, at)]) - 1
		if place < 0 || load(d.from, place) != load(d.to, at) {
			continue
		}
		n := d.alike(at, place)
		for at > i && place > 0 && d.to[at-1] == d.from[place-1] {
			at, place, n = at-1, place-1, n+1
		}
		return at, place, n
	}
	return len(d.to), end + len(d.to) - i, 0
}

// alike returns how many bytes of to from i on are those of from at place.
func (d *differ) alike(i, place int) int {
	n, most := 0, min(len(d.to)-i, len(d.from)-place)
	for ; n+8 <= most; n += 8 {
		if x := load(d.to, i+n) ^ load(d.from, place+n); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < most && d.to[i+n] == d.from[place+n] {
		n++
	}
	return max(n, 0)
}

// tables are the places of texts that are no longer compared.
var tables = sync.Pool{New: func() any { return new([]uint32) }}

// index enters the places of from.
func (d *differ) index() {
	size := bits.Len(uint(len(d.from) / indexStep * 2))
	d.shift = 64 - size
	d.places = tables.Get().(*[]uint32)
	if cap(*d.places) < 1<<size {
		*d.places = make([]uint32, 1<<size)
	}
	*d.places = (*d.places)[:1<<size]
	clear(*d.places)
	for place := 0; place+shortestCopy <= len(d.from); place += indexStep {
		// Of several the first: what follows it is longest.
		if at := &(*d.places)[d.hash(d.from, place)]; *at == 0 {
			*at = uint32(place + 1)
		}
	}
}

func (d *differ) release() {
	if d.places != nil {
		tables.Put(d.places)
	}
}

func (d *differ) hash(s string, i int) uint64 {
	return load(s, i) * 0x9e3779b97f4a7c15 >> d.shift
}

// load returns the 8 bytes of s from i on.
func load(s string, i int) uint64 {
	return binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), len(s))[i:])
}

// viewOf is a text that may be read for as long as the bytes stay as they are.
func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
