// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchread

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Content-Types of watches.
const (
	JSON     = "application/json"
	Protobuf = "application/vnd.kubernetes.protobuf;stream=watch"
)

// maxFrame bounds the length of a frame in protobuf, so that a broken length is
// an error.
const maxFrame = 64 << 20

// ErrMalformed is the error of a frame that is complete and cannot be read.
var ErrMalformed = errors.New("malformed watch frame")

// A Frame is one event of a watch.
type Frame struct {
	Type string
	// Raw is the frame as it came, with its newline or length.
	Raw []byte
	// Object is the object in it: JSON, or a complete protobuf envelope.
	Object []byte
	// Watch is the index of the watch in a multiwatch.
	Watch int
}

// A Reader reads frames.
type Reader struct {
	in   *bufio.Reader
	read func(*bufio.Reader) (Frame, error)
}

// New returns a reader of a body that has a Content-Type.
func New(contentType string, body io.Reader) (*Reader, error) {
	switch contentType {
	case JSON:
		return Lines(body), nil
	case Protobuf:
		return &Reader{bufio.NewReader(body), readMessage}, nil
	}
	return nil, fmt.Errorf("a watch of %q", contentType)
}

// Lines returns a reader of JSON.
func Lines(body io.Reader) *Reader { return &Reader{bufio.NewReader(body), readLine} }

// Next reads the next frame. It returns io.EOF only between frames; the error
// within a frame is io.ErrUnexpectedEOF. A malformed frame is returned with its
// Raw bytes and an error that wraps [ErrMalformed].
func (r *Reader) Next() (Frame, error) { return r.read(r.in) }

func readLine(in *bufio.Reader) (Frame, error) {
	line, err := in.ReadBytes('\n')
	if err == io.EOF && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	f := Frame{Raw: line}
	if err != nil || f.cut() {
		return f, err
	}
	var event struct {
		Watch  int
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return f, fmt.Errorf("%w: %w: %q", ErrMalformed, err, line)
	}
	f.Watch, f.Type, f.Object = event.Watch, event.Type, event.Object
	return f, nil
}

// cut takes type and object out of a line that has the API server's form, which
// saves a copy of the object. It reports whether the line has that form.
func (f *Frame) cut() bool {
	rest, ok := bytes.CutPrefix(f.Raw, []byte(`{"type":"`))
	if !ok {
		return false
	}
	name, object, ok := bytes.Cut(rest, []byte(`","object":`))
	if !ok || bytes.ContainsAny(name, `"\`) {
		return false
	}
	if object, ok = bytes.CutSuffix(object, []byte("}\n")); !ok || !json.Valid(object) {
		return false
	}
	f.Type, f.Object = string(name), object
	return true
}

func readMessage(in *bufio.Reader) (Frame, error) {
	raw := make([]byte, 4)
	if _, err := io.ReadFull(in, raw); err != nil {
		return Frame{}, err
	}
	length := binary.BigEndian.Uint32(raw)
	if length > maxFrame {
		return Frame{Raw: raw}, fmt.Errorf("%w: a length of %d bytes", ErrMalformed, length)
	}
	raw = append(raw, make([]byte, length)...)
	if _, err := io.ReadFull(in, raw[4:]); err != nil {
		return Frame{Raw: raw}, errors.Join(io.ErrUnexpectedEOF, err)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(raw[4:]); err != nil {
		return Frame{Raw: raw}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return Frame{Type: event.Type, Raw: raw, Object: event.Object.Raw}, nil
}
