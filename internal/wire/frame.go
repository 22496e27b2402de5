// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Frame is an event as it goes over the wire, for all streams that want it.
// Its bytes are shared and must not be changed.
type Frame struct {
	chunk    []byte
	from, to int // of the frame in the chunk
}

// Bytes returns the frame.
func (f *Frame) Bytes() []byte { return f.chunk[f.from:f.to] }

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

// frameSlots is how many frames are kept. All streams want the newest ones, and
// those that lag put theirs together themselves: see [Stream.Shared].
const frameSlots = 128

// frames keeps the last frames that were asked for. Looking one up takes no
// lock, since all streams do it at the same moment: a frame has its slot by its
// RV, and is replaced by the next one that falls there.
type frames struct {
	most  int64 // bytes of the largest frame that is kept, and of its object
	slots [frameSlots]atomic.Pointer[sharedFrame]
	size  atomic.Int64 // of what is in the slots
}

// A sharedFrame is made by whoever wants it first.
type sharedFrame struct {
	typ    kube.EventType
	form   Form
	object *scan.Object
	once   sync.Once
	frame  Frame
	err    error
}

// weight is about what a frame takes, with the object that it keeps alive. No
// encoding is much larger than JSON.
func weight(o *scan.Object) int64 { return int64(2*len(o.JSON)+len(o.Row)) + cacheEntry }

// is reports whether f is the frame of an event.
func (f *sharedFrame) is(typ kube.EventType, o *scan.Object, form Form) bool {
	return f.typ == typ && f.object == o && f.form.same(form)
}

// get returns the frame of an event, which encode makes if need be; nil if it
// is too large to be kept.
func (c *frames) get(typ kube.EventType, o *scan.Object, form Form, encode func() ([]string, error)) (*Frame, error) {
	if weight(o) > c.most {
		return nil, nil
	}
	slot := &c.slots[(o.RV+uint64(form.Media)<<3+uint64(form.View)<<5)%frameSlots]
	f := slot.Load()
	for f == nil || !f.is(typ, o, form) {
		made := &sharedFrame{typ: typ, form: form, object: o}
		if !slot.CompareAndSwap(f, made) {
			f = slot.Load()
			continue
		}
		c.size.Add(weight(o))
		if f != nil {
			c.size.Add(-weight(f.object))
		}
		f = made
	}
	f.once.Do(func() {
		var parts []string
		if parts, f.err = encode(); f.err == nil {
			f.frame = newFrame(parts)
		}
	})
	return &f.frame, f.err
}
