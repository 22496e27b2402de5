// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// gzipWindow is the number of bytes of earlier output that the next piece may refer
// to. An idle stream keeps nothing else (T10); a compressor with its tables would take
// a hundred times as much. Events resemble the few before them, so a larger window
// would shrink the output only by another tenth.
const gzipWindow = 8 << 10

// A gzipOutput is a response in gzip (RFC 1952). Each piece is compressed separately
// and ends at a byte boundary, so that the client can decompress it at once.
type gzipOutput struct {
	*responseOutput
	window []byte // the last gzipWindow bytes
	sum    uint32 // of all bytes
	size   uint32
}

var gzipBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// newGzipOutput begins the gzip stream of a response.
func newGzipOutput(out *responseOutput) (*gzipOutput, error) {
	// The header: no flags, no time, no name, unknown system.
	return &gzipOutput{responseOutput: out}, out.write([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
}

func (o *gzipOutput) writeFrame(f *wire.Frame) error { return o.write(f.Bytes()) }
func (o *gzipOutput) writeBlock(b *block) error      { return o.write(b.bytes()) }

func (o *gzipOutput) write(p []byte) error {
	o.sum = crc32.Update(o.sum, crc32.IEEETable, p)
	o.size += uint32(len(p))
	err := o.deflate(p, nil)
	o.window = append(o.window, p[max(0, len(p)-gzipWindow):]...)
	if over := len(o.window) - gzipWindow; over > 0 {
		o.window = o.window[:copy(o.window, o.window[over:])]
	}
	return err
}

// end writes the end of the gzip stream.
func (o *gzipOutput) end() error {
	tail := binary.LittleEndian.AppendUint32(nil, o.sum)
	return o.deflate(nil, binary.LittleEndian.AppendUint32(tail, o.size))
}

// deflate writes a piece, and the tail if it is not nil; a tail ends the stream.
func (o *gzipOutput) deflate(p, tail []byte) error {
	b := gzipBuffers.Get().(*bytes.Buffer)
	defer gzipBuffers.Put(b)
	b.Reset()
	_ = flate.StatelessDeflate(b, p, tail != nil, o.window) // to memory
	b.Write(tail)
	return o.responseOutput.write(b.Bytes())
}
