// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// zipPast is how much of what was written last the next piece may refer to. It
// is all that a stream keeps while it is idle (T10): a compressor with its
// tables would be a hundred times that. Events resemble the few before them, so
// that its larger window would save another tenth only.
const zipPast = 8 << 10

// A zipOut is a response in gzip (RFC 1952). Each piece is compressed by itself
// and ends at a byte, so that a client can read it at once.
type zipOut struct {
	*responseOut
	past []byte // the last zipPast bytes
	sum  uint32 // of all bytes
	size uint32
}

var zipBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// newZipOut goes on in gzip on a response that has just begun.
func newZipOut(out *responseOut) (*zipOut, error) {
	// No flags, no time, no name; of an unknown system.
	return &zipOut{responseOut: out}, out.write([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
}

func (o *zipOut) writeFrame(f *wire.Frame) error { return o.write(f.Bytes()) }
func (o *zipOut) writeBlock(b *block) error      { return o.write(b.bytes()) }

func (o *zipOut) write(p []byte) error {
	o.sum = crc32.Update(o.sum, crc32.IEEETable, p)
	o.size += uint32(len(p))
	err := o.deflate(p, nil)
	o.past = append(o.past, p[max(0, len(p)-zipPast):]...)
	if over := len(o.past) - zipPast; over > 0 {
		o.past = o.past[:copy(o.past, o.past[over:])]
	}
	return err
}

// end writes what is behind the last piece.
func (o *zipOut) end() error {
	tail := binary.LittleEndian.AppendUint32(nil, o.sum)
	return o.deflate(nil, binary.LittleEndian.AppendUint32(tail, o.size))
}

// deflate writes a piece, and the tail behind the last one.
func (o *zipOut) deflate(p, tail []byte) error {
	b := zipBuffers.Get().(*bytes.Buffer)
	defer zipBuffers.Put(b)
	b.Reset()
	_ = flate.StatelessDeflate(b, p, tail != nil, o.past) // to memory
	b.Write(tail)
	return o.responseOut.write(b.Bytes())
}
