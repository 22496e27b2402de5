// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Frame is an encoded event that streams share. Its bytes must not be changed.
type Frame struct {
	chunk    []byte
	from, to int // the frame is chunk[from:to]
}

// Bytes returns the frame.
func (f *Frame) Bytes() []byte { return f.chunk[f.from:f.to] }

// Text returns the frame as a string, without a copy.
func (f *Frame) Text() string {
	b := f.Bytes()
	return unsafe.String(unsafe.SliceData(b), len(b)) // the bytes never change
}

// Chunk returns the frame as a chunk of an HTTP/1.1 body (RFC 9112, 7.1):
//
//	a5f\r\n    the length in hexadecimal
//	…\r\n      the frame
func (f *Frame) Chunk() []byte { return f.chunk }

func newFrame(parts []string) Frame {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	chunk := make([]byte, 0, size+12)
	chunk = append(strconv.AppendInt(chunk, int64(size), 16), "\r\n"...)
	from := len(chunk)
	for _, p := range parts {
		chunk = append(chunk, p...)
	}
	return Frame{chunk: append(chunk, "\r\n"...), from: from, to: from + size}
}

// frameSlots is how many frames are kept. They are those of the newest events,
// which most streams write at the same time; a lagging stream encodes its own
// (see [Stream.Shared]).
const frameSlots = 128

// frames keeps frames of the newest events. A lookup takes no lock, since all
// streams do it at the same moment: the RV determines a frame's slot, and the
// next frame with the same slot replaces it.
type frames struct {
	maxFrame int64 // the largest weight that is kept
	slots    [frameSlots]atomic.Pointer[sharedFrame]
	size     atomic.Int64 // the weights in the slots
}

// A sharedFrame is encoded by the first stream that needs it.
type sharedFrame struct {
	typ    kube.EventType
	form   Form
	object *scan.Object
	once   sync.Once
	frame  Frame
	err    error
}

// weight estimates the memory of a frame, including the object that it keeps in
// memory. No encoding is much larger than JSON.
func weight(o *scan.Object) int64 { return int64(2*len(o.JSON)+len(o.Row)) + entryOverhead }

// is reports whether f is the frame of an event in a form.
func (f *sharedFrame) is(typ kube.EventType, o *scan.Object, form Form) bool {
	return f.typ == typ && f.object == o && f.form.equal(form)
}

// get returns the frame of an event; encode makes it if it is not kept. It returns
// nil for a frame that is too large to keep.
func (c *frames) get(typ kube.EventType, o *scan.Object, form Form, encode func() ([]string, error)) (*Frame, error) {
	if weight(o) > c.maxFrame {
		return nil, nil
	}
	slot := &c.slots[(o.RV+uint64(form.Media)<<3+uint64(form.View)<<5)%frameSlots]
	f := slot.Load()
	for f == nil || !f.is(typ, o, form) {
		added := &sharedFrame{typ: typ, form: form, object: o}
		if !slot.CompareAndSwap(f, added) {
			f = slot.Load()
			continue
		}
		c.size.Add(weight(o))
		if f != nil {
			c.size.Add(-weight(f.object))
		}
		f = added
	}
	f.once.Do(func() {
		var parts []string
		if parts, f.err = encode(); f.err == nil {
			f.frame = newFrame(parts)
		}
	})
	return &f.frame, f.err
}
