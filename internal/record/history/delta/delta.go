// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package delta encodes a text as its difference from an earlier one.
//
// Consecutive versions of a Kubernetes object differ in a few places and keep the
// order of their members, so a delta is hardly larger than what is new. Its
// encoding repeats, up to its end:
//
//	uvarint m      insert m bytes:
//	m bytes
//	uvarint n      then copy n bytes of the earlier text, from the offset
//	varint  jump   where the last copy ended, plus m, plus jump
//
// The last copy may be missing. A delta has no checksum: [Edits] notices one that
// does not fit, but cannot detect every wrong base.
//
// All functions may be called concurrently.
package delta

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// ErrMismatch marks a delta that does not fit the text it is applied to.
var ErrMismatch = errors.New("a delta does not fit the version before it")

const (
	// minCopy is the length below which a copy is not worthwhile. It is also
	// the number of bytes compared at a time.
	minCopy = 8
	// maxShift limits the first, cheap search: after a difference, such as
	// another timestamp, both texts usually continue alike at the same
	// distance.
	maxShift = 48
	// indexStep is the distance between indexed offsets.
	indexStep = 4
)

// Append appends to dst the delta that turns from into to.
func Append(dst []byte, from, to string) []byte {
	d := differ{from: from, to: to}
	defer d.release()
	for i, end := 0, 0; i < len(to); {
		at, offset, n := d.next(i, end)
		dst = binary.AppendUvarint(dst, uint64(at-i))
		dst = append(dst, to[i:at]...)
		if n > 0 {
			dst = binary.AppendUvarint(dst, uint64(n))
			dst = binary.AppendVarint(dst, int64(offset-end-(at-i)))
		}
		i, end = at+n, offset+n
	}
	return dst
}

// Overwrite makes in a text what the delta makes of it, if that has the same length and
// moves nothing: most often, another time or number of as many digits. Otherwise it
// changes nothing, and returns false.
func Overwrite(text, delta []byte) bool {
	var inserts [24]struct{ at, from, n int }
	k := 0
	at := 0 // in both texts
	for i := 0; i < len(delta); {
		m, n := uvarint(delta[i:])
		i += n
		if n <= 0 || m > uint64(len(delta)-i) || m > uint64(len(text)-at) || k == len(inserts) {
			return false
		}
		if m > 0 {
			inserts[k].at, inserts[k].from, inserts[k].n = at, i, int(m)
			k++
		}
		at, i = at+int(m), i+int(m)
		if i == len(delta) {
			break
		}
		copied, n := uvarint(delta[i:])
		i += n
		if n <= 0 || i == len(delta) || delta[i] != 0 || copied > uint64(len(text)-at) {
			return false
		}
		at, i = at+int(copied), i+1
	}
	if at != len(text) {
		return false
	}
	for _, e := range inserts[:k] {
		copy(text[e.at:], delta[e.from:e.from+e.n])
	}
	return true
}

// uvarint is binary.Uvarint, and faster for numbers below 1<<14.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 1 {
		if b[0] < 0x80 {
			return uint64(b[0]), 1
		}
		if b[1] < 0x80 {
			return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
		}
	}
	return binary.Uvarint(b)
}

// Edits appends to dst the edits that a delta makes in a text. Their texts refer to the
// delta and to the text. ok is false if the delta does not fit.
func Edits(dst []scan.Edit, from string, delta []byte) (edits []scan.Edit, ok bool) {
	end := 0 // of the text that is copied or replaced so far
	for last := 0; len(delta) > 0 || end < len(from); {
		m, k := uvarint(delta)
		if k <= 0 && len(delta) > 0 || m > uint64(len(delta)-k) {
			return dst, false
		}
		e := scan.Edit{From: end, To: len(from), Text: unsafe.String(unsafe.SliceData(delta[k:]), m)}
		var again string
		if delta = delta[k+int(m):]; len(delta) > 0 {
			n, k := uvarint(delta)
			jump, l := binary.Varint(delta[max(k, 0):])
			if k <= 0 || l <= 0 {
				return dst, false
			}
			at := int64(last) + int64(m) + jump
			if at < 0 || at > int64(len(from)) || n > uint64(int64(len(from))-at) {
				return dst, false
			}
			last = int(at) + int(n)
			if int(at) < end { // a part is copied a second time
				again = from[at:min(end, last)]
			}
			delta, e.To = delta[k+l:], max(int(at), end)
			end = max(last, end)
		} else {
			end = len(from)
		}
		if e.From != e.To || e.Text != "" {
			dst = append(dst, e)
		}
		if again != "" {
			dst = append(dst, scan.Edit{From: e.To, To: e.To, Text: again})
		}
	}
	return dst, true
}

// Patched returns a copy of a text with edits.
func Patched(dst []byte, text string, edits []scan.Edit) []byte {
	end := 0
	for i := range edits {
		e := &edits[i]
		dst = append(append(dst, text[end:e.From]...), e.Text...)
		end = e.To
	}
	return append(dst, text[end:]...)
}

// Patch makes edits in a text, whose memory it uses. The edits may refer to that text.
func Patch(text []byte, edits []scan.Edit) []byte {
	// From the last edit to the first: then the offsets of the others still hold, and
	// so does the text before them, which is all that they refer to.
	for i := len(edits) - 1; i >= 0; i-- {
		e := &edits[i]
		if d := len(e.Text) - (e.To - e.From); d != 0 {
			n := len(text)
			if d > 0 {
				text = slices.Grow(text, d)
			}
			text = text[:n+d]
			copy(text[e.To+d:], text[e.To:n])
		}
		copy(text[e.From:], e.Text)
	}
	return text
}

// A differ finds the parts that two texts have in common.
type differ struct {
	from, to string
	offsets  *[]uint32 // by hash: an offset in from, plus 1; nil until it is needed
	shift    int
}

// next returns the next part of to, from i on, that is also in from: its
// offsets in both, and its length, 0 if there is none. The last copy ended at
// end in from.
func (d *differ) next(i, end int) (at, offset, n int) {
	if n := d.matchLen(i, end); n >= minCopy || n > 0 && i+n == len(d.to) {
		return i, end, n
	}
	for k := 1; k < maxShift; k++ {
		if n := d.matchLen(i+k, end+k); n >= minCopy {
			return i + k, end + k, n
		}
	}
	if d.offsets == nil {
		d.index()
	}
	for at := i; at+minCopy <= len(d.to); at++ {
		offset := int((*d.offsets)[d.hash(d.to, at)]) - 1
		if offset < 0 || load(d.from, offset) != load(d.to, at) {
			continue
		}
		n := d.matchLen(at, offset)
		for at > i && offset > 0 && d.to[at-1] == d.from[offset-1] {
			at, offset, n = at-1, offset-1, n+1
		}
		return at, offset, n
	}
	return len(d.to), end + len(d.to) - i, 0
}

// matchLen returns how many bytes of to from i on equal those of from at
// offset.
func (d *differ) matchLen(i, offset int) int {
	n, limit := 0, min(len(d.to)-i, len(d.from)-offset)
	for ; n+8 <= limit; n += 8 {
		if x := load(d.to, i+n) ^ load(d.from, offset+n); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < limit && d.to[i+n] == d.from[offset+n] {
		n++
	}
	return max(n, 0)
}

// offsetPool holds the hash tables of finished differs.
var offsetPool = sync.Pool{New: func() any { return new([]uint32) }}

// index fills the hash table with the offsets of from.
func (d *differ) index() {
	size := bits.Len(uint(len(d.from) / indexStep * 2))
	d.shift = 64 - size
	d.offsets = offsetPool.Get().(*[]uint32)
	if cap(*d.offsets) < 1<<size {
		*d.offsets = make([]uint32, 1<<size)
	}
	*d.offsets = (*d.offsets)[:1<<size]
	clear(*d.offsets)
	for offset := 0; offset+minCopy <= len(d.from); offset += indexStep {
		// The first of several offsets wins: the longest text follows it.
		if at := &(*d.offsets)[d.hash(d.from, offset)]; *at == 0 {
			*at = uint32(offset + 1)
		}
	}
}

func (d *differ) release() {
	if d.offsets != nil {
		offsetPool.Put(d.offsets)
	}
}

func (d *differ) hash(s string, i int) uint64 {
	return load(s, i) * 0x9e3779b97f4a7c15 >> d.shift
}

// load returns the 8 bytes of s at i.
func load(s string, i int) uint64 {
	return binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), len(s))[i:])
}
