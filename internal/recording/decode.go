// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A decoder reads lines, and checks that they are those which were written.
type decoder struct {
	ctx     context.Context
	zstd    *zstd.Decoder
	in      *bufio.Reader
	sum     hash.Hash
	lines   int
	columns map[int]string // of the stream
}

// newDecoder reads the header. The decoder fails with [ErrTooLarge] behind so
// many bytes of lines, if most is not 0, and with the context's error.
func newDecoder(ctx context.Context, r io.Reader, most int64) (*decoder, *Header, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(4*windowSize), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotRecording, err)
	}
	d := &decoder{ctx: ctx, zstd: z, in: bufio.NewReaderSize(&boundedReader{r: z, most: most}, 64<<10), sum: sha256.New()}
	l, err := d.next()
	switch {
	case err != nil && !errors.Is(err, ErrDamaged): // it is not the file's fault
	case errors.Is(err, io.ErrUnexpectedEOF): // it began as one does
	case err != nil:
		err = fmt.Errorf("%w: %s", ErrNotRecording, strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": line 1: "))
	case l.Recording == nil || l.Recording.Format < 1:
		err = fmt.Errorf("%w: it does not say what it is", ErrNotRecording)
	case l.Recording.Format > formatVersion:
		err = fmt.Errorf("%w: format %d, this one reads up to %d", ErrNewerFormat, l.Recording.Format, formatVersion)
	default:
		return d, l.Recording, nil
	}
	d.close()
	return nil, nil, err
}

func (d *decoder) close() { d.zstd.Close() }

// A boundedReader reads so many bytes at the most: a small file can be of any size
// when it is unpacked.
type boundedReader struct {
	r    io.Reader
	most int64 // 0 is any
	read int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.most > 0 && b.read > b.most {
		return 0, ErrTooLarge
	}
	return n, err
}

func (d *decoder) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %w", ErrDamaged, d.lines+1, fmt.Errorf(format, args...))
}

// next returns the next line. After the last, which it checks, it is io.EOF.
func (d *decoder) next() (*line, error) {
	if err := d.ctx.Err(); err != nil {
		return nil, err
	}
	text, err := d.read()
	if errors.Is(err, io.EOF) {
		return nil, d.damaged("the file ends here, before the end of the recording")
	}
	if errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, d.damaged("%w", err)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, d.damaged("%w", err)
	}
	if l.End != nil {
		return nil, d.end(l.End)
	}
	d.sum.Write(text)
	d.lines++
	switch {
	case l.Stream != nil:
		d.columns = map[int]string{}
	case l.Columns != nil:
		if d.columns == nil {
			return nil, d.damaged("columns without a resource")
		}
		d.columns[l.Columns.Number] = string(l.Columns.Definitions)
	}
	return &l, nil
}

// read returns a line's text with its newline.
func (d *decoder) read() (text []byte, err error) {
	for {
		part, err := d.in.ReadSlice('\n')
		if text = append(text, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
		if len(text) > longestLine {
			return nil, fmt.Errorf("it is longer than %d bytes", longestLine)
		}
	}
}

func (d *decoder) end(end *endLine) error {
	switch _, err := d.in.ReadByte(); {
	case end.Lines != d.lines:
		return d.damaged("there should be %d lines before it", end.Lines)
	case end.SHA256 != hex.EncodeToString(d.sum.Sum(nil)):
		return d.damaged("the checksum is not that of what was written")
	case err == nil:
		return d.damaged("something follows the end")
	case !errors.Is(err, io.EOF):
		return d.damaged("%w", err)
	}
	return io.EOF
}

// object returns the object of a line.
func (d *decoder) object(l *objectLine) (*scan.Object, error) {
	o, err := scan.ParseObject(string(l.JSON))
	if err != nil {
		return nil, d.damaged("%w", err)
	}
	return o, d.print(o, l)
}

// form returns the object of a line that is a form.
func (d *decoder) form(l *objectLine) (*scan.Object, error) {
	o, err := scan.ParseTemplate(string(l.JSON))
	if err != nil {
		return nil, d.damaged("%w", err)
	}
	return o, d.print(o, l)
}

// print sets how the object is printed.
func (d *decoder) print(o *scan.Object, l *objectLine) error {
	if n := len(l.Row); n > 2 && l.Row[0] == '{' {
		o.Row = string(l.Row[1 : n-1])
	}
	if l.Columns == 0 {
		return nil
	}
	columns, ok := d.columns[l.Columns]
	if !ok {
		return d.damaged("columns %d are not there", l.Columns)
	}
	o.Columns = columns
	return nil
}
