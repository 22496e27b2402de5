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
	"math"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// maxRV is the greatest resourceVersion that an API server can have: a revision of etcd is an
// int64.
const maxRV = math.MaxInt64

// maxStep is how much earlier than its begin a recording may end, because the clock was set back.
const maxStep = 24 * time.Hour

// minTime is before all times of a cluster.
var minTime = time.Unix(0, 0)

// A decoder reads lines and verifies their number and checksum.
type decoder struct {
	ctx     context.Context
	file    *bufio.Reader // the compressed recording
	zstd    *zstd.Decoder
	in      *bufio.Reader
	text    []byte // of the last line
	sum     hash.Hash
	lines   int
	columns map[int]string // of the current stream
	kept    int            // approximate bytes of memory that lines need until the end
	maxKept int
}

// Estimates of memory, in addition to that of the strings in a line.
const (
	documentOverhead = 256
	columnsOverhead  = 256     // their entries in maps of the decoder and of the store
	streamOverhead   = 4 << 10 // a history.Stream
	gapOverhead      = 128     // a history.Gap, or a history.ClockStep
)

// zstdMagic begins a zstd stream (RFC 8878).
const zstdMagic = "\x28\xb5\x2f\xfd"

// newDecoder reads the header. If maxBytes is not 0, the decoder fails with
// [ErrTooLarge] after that many bytes of lines. It also fails when ctx is
// canceled, and with [ErrDamaged] when it would have to keep more than maxKept
// bytes.
func newDecoder(ctx context.Context, r io.Reader, maxBytes int64, maxKept int) (*decoder, *Header, error) {
	start := bufio.NewReader(r)
	// zstd would report other files that are short as cut off.
	switch magic, err := start.Peek(len(zstdMagic)); {
	case err == nil && string(magic) != zstdMagic, errors.Is(err, io.EOF):
		return nil, nil, fmt.Errorf("%w: it is not compressed with zstd", ErrNotRecording)
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrNotRecording, err)
	}
	z, err := zstd.NewReader(start, zstd.WithDecoderMaxWindow(windowSize), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotRecording, err)
	}
	d := &decoder{ctx: ctx, file: start, zstd: z, in: bufio.NewReaderSize(&boundedReader{r: z, max: maxBytes}, 64<<10), sum: sha256.New(), maxKept: maxKept}
	l, err := d.next()
	switch {
	case err != nil && !errors.Is(err, ErrDamaged): // an error of the reader, not of the file
	case errors.Is(err, errPacked): // the file begins like a recording
	case errors.Is(err, errKept):
	case err != nil:
		err = fmt.Errorf("%w: %s", ErrNotRecording, strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": line 1: "))
	case l.Recording == nil || l.Recording.Format < 1:
		err = fmt.Errorf("%w: the header is missing", ErrNotRecording)
	case l.Recording.To.Before(l.Recording.From.Add(-maxStep)):
		err = fmt.Errorf("%w: it ends at %s, before its begin, %s", ErrDamaged, l.Recording.To.Format(time.RFC3339), l.Recording.From.Format(time.RFC3339))
	case l.Recording.Format > formatVersion:
		err = fmt.Errorf("%w: format %d, this version reads up to %d", ErrNewerFormat, l.Recording.Format, formatVersion)
	default:
		return d, l.Recording, nil
	}
	d.close()
	return nil, nil, err
}

func (d *decoder) close() { d.zstd.Close() }

// A boundedReader limits the unpacked size: a small file can contain anything.
type boundedReader struct {
	r    io.Reader
	max  int64 // 0 means no limit
	read int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.max > 0 && b.read > b.max {
		return 0, ErrTooLarge
	}
	return n, err
}

// errKept: a recording of the size of a cluster does not need that much memory.
var errKept = errors.New("what it contains besides objects and events needs too much memory")

var (
	errPacked = errors.New("from here it cannot be unpacked")
	errLong   = errors.New("the line is longer")
)

// keep counts what a line needs until the end: everything but objects and events.
func (d *decoder) keep(l *line) error {
	switch {
	case l.Recording != nil:
		d.kept += len(l.Recording.Program) + len(l.Recording.Cluster)
		if s := l.Recording.Scope; s != nil {
			d.kept += len(s.Namespace) + len(s.LabelSelector)
			for _, name := range slices.Concat(s.Resources, s.Denied) {
				d.kept += 16 + len(name)
			}
		}
	case l.Document != nil:
		d.kept += documentOverhead + len(l.Document.Path) + len(l.Document.Type) + cap(l.Document.Body)
	case l.Stream != nil:
		s := l.Stream
		d.kept += streamOverhead + 2*(len(s.Group)+len(s.Version)+len(s.Resource)) + len(s.ListKind)
	case l.Form != nil:
		d.kept += len(l.Form.JSON) + len(l.Form.Row)
	case l.Columns != nil:
		d.kept += columnsOverhead + len(l.Columns.Definitions)
	case l.Gap != nil, l.Step != nil:
		d.kept += gapOverhead
	}
	if d.kept > d.maxKept {
		return d.damaged("%w: more than %d bytes", errKept, d.maxKept)
	}
	return nil
}

func (d *decoder) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %w", ErrDamaged, d.lines+1, fmt.Errorf(format, args...))
}

// next returns the next line. After the last line, which it verifies, it
// returns io.EOF.
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
		return nil, d.damaged("%w", d.unreadable(err))
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, d.damaged("%w", err)
	}
	if l.members() > 1 {
		return nil, d.damaged("a line has one member")
	}
	if l.End != nil {
		return nil, d.end(l.End)
	}
	for _, t := range l.times() {
		if t.Before(minTime) && !t.IsZero() {
			return nil, d.damaged("the time %s", t.Format(time.RFC3339))
		}
	}
	if err := d.keep(&l); err != nil {
		return nil, err
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

// unreadable explains an error of reading a line.
func (d *decoder) unreadable(err error) error {
	if errors.Is(err, errLong) {
		return err
	}
	if _, end := d.file.Peek(1); errors.Is(err, io.ErrUnexpectedEOF) && errors.Is(end, io.EOF) {
		return fmt.Errorf("%w: the file ends here, before the end of the recording (%w)", errPacked, err)
	}
	return fmt.Errorf("%w: %w", errPacked, err)
}

// read returns the text of a line with its newline. It is valid until the next
// call.
func (d *decoder) read() (text []byte, err error) {
	d.text = d.text[:0]
	for {
		part, err := d.in.ReadSlice('\n')
		if d.text = append(d.text, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return d.text, err
		}
		if len(d.text) > maxLine {
			return nil, fmt.Errorf("%w than %d bytes", errLong, maxLine)
		}
	}
}

func (d *decoder) end(end *endLine) error {
	switch _, err := d.in.ReadByte(); {
	case end.Lines != d.lines:
		return d.damaged("there should be %d lines before it", end.Lines)
	case end.SHA256 != hex.EncodeToString(d.sum.Sum(nil)):
		return d.damaged("the checksum does not match the lines")
	case err == nil:
		return d.damaged("something follows the end")
	case !errors.Is(err, io.EOF):
		return d.damaged("%w", d.unreadable(err))
	}
	return io.EOF
}

// object parses the object of a line.
func (d *decoder) object(l *objectLine) (*scan.Object, error) {
	o, err := scan.ParseObject(string(l.JSON))
	if err != nil {
		return nil, d.damaged("%w", err)
	}
	if len(o.Key) > maxKey {
		return nil, d.damaged("a name of %d bytes", len(o.Key))
	}
	if o.RV > maxRV {
		return nil, d.damaged("the resourceVersion %d", o.RV)
	}
	return o, d.print(o, l)
}

// form parses the object of a form line.
func (d *decoder) form(l *objectLine) (*scan.Object, error) {
	o, err := scan.ParseTemplate(string(l.JSON))
	if err != nil {
		return nil, d.damaged("%w", err)
	}
	return o, d.print(o, l)
}

// print sets the printed row and columns of an object.
func (d *decoder) print(o *scan.Object, l *objectLine) error {
	if n := len(l.Row); n > 2 && l.Row[0] == '{' {
		o.Row = string(l.Row[1 : n-1])
	}
	if l.Columns == 0 {
		return nil
	}
	columns, ok := d.columns[l.Columns]
	if !ok {
		return d.damaged("columns %d are missing", l.Columns)
	}
	o.Columns = columns
	return nil
}
