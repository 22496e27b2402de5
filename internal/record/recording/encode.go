// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
)

// An encoder writes lines. After an error it writes nothing more.
type encoder struct {
	zstd    *zstd.Encoder
	working io.Writer // to zstd
	sum     hash.Hash
	buf     bytes.Buffer
	lines   int
	columns map[string]int // of the current stream, by columnDefinitions
	err     error
}

// newEncoder returns an encoder that has the turn while it encodes lines, and gives it up while w
// is written to.
func newEncoder(w io.Writer, turn *fairness.Turn) (*encoder, error) {
	z, err := zstd.NewWriter(turn.Waiting(w), zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(windowSize),
		zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return &encoder{zstd: z, working: turn.Working(z), sum: sha256.New()}, nil
}

// line writes one line.
func (e *encoder) line(l line) error {
	if e.err != nil {
		return e.err
	}
	e.buf.Reset()
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false) // keep the objects' JSON as it is
	if e.err = enc.Encode(l); e.err == nil {
		e.sum.Write(e.buf.Bytes())
		e.lines++
		_, e.err = e.working.Write(e.buf.Bytes())
	}
	return e.err
}

// stream begins a resource, whose objects have the form of item.
func (e *encoder) stream(s *streamLine, item *scan.Object) error {
	e.columns = map[string]int{}
	if err := e.line(line{Stream: s}); err != nil {
		return err
	}
	form, err := e.object(item)
	if err != nil {
		return err
	}
	return e.line(line{Form: &form})
}

// object returns an object as it appears in a line. It first writes its columns
// if they are new.
func (e *encoder) object(o *scan.Object) (objectLine, error) {
	l := objectLine{JSON: json.RawMessage(o.JSON)}
	if o.Row != "" {
		l.Row = json.RawMessage("{" + o.Row + "}")
	}
	if o.Columns == "" {
		return l, nil
	}
	number, ok := e.columns[o.Columns]
	if !ok {
		number = len(e.columns) + 1
		e.columns[o.Columns] = number
		if err := e.line(line{Columns: &columnsLine{number, json.RawMessage(o.Columns)}}); err != nil {
			return l, err
		}
	}
	l.Columns = number
	return l, nil
}

// close writes the last line, unless an error occurred: readers reject a
// recording without it.
func (e *encoder) close() error {
	if e.err == nil {
		e.err = e.line(line{End: &endLine{e.lines, hex.EncodeToString(e.sum.Sum(nil))}})
	}
	return errors.Join(e.err, e.zstd.Close())
}
