// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A form reads the lists and watch streams of one encoding. O is what an object
// is to the sink.
type form[O any] interface {
	// accept returns the media types to ask for, and sets what goes with them
	// in the query.
	accept(query url.Values) string
	// list reads the body of a LIST and returns its head; like is of the
	// collection's lists.
	list(body io.Reader, like *scan.List, item func(O)) (*scan.List, error)
	// watch reads the body of a watch; streaming tells that it begins with a
	// list.
	watch(body io.Reader, streaming bool) frames[O]
	// plainer turns to a plainer form for an upstream that cannot do this one,
	// if there is one.
	plainer() bool
}

// frames are those of one stream. An object stands until the next call, unless
// its type says otherwise.
type frames[O any] interface {
	// next reads a frame; a clean end is io.EOF.
	next() (frame[O], error)
	// waiting reports whether a further frame is there to be read.
	waiting() bool
}

// A frame is one event of a watch.
type frame[O any] struct {
	typ     kube.EventType
	rv      uint64
	end     bool   // the bookmark that ends the initial events
	columns string // that objects of the stream are printed under
	object  O
	status  []byte // of an ERROR, in its encoding
}

// counted tells of the bytes that are read.
type counted struct {
	io.Reader
	count func(int)
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.count(n)
	}
	return n, err
}

const (
	// maxFrame bounds one watch event; etcd's own limit of a request is
	// 1.5 MiB by default.
	maxFrame    = 64 << 20
	frameBuffer = 64 << 10 // what is read of a stream at a time
)

// lines reads the lines of a stream.
type lines struct {
	body *bufio.Reader
	line []byte
}

// next reads a line, without its end. It stands until the next call.
func (l *lines) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		part, err := l.body.ReadSlice('\n')
		if err == nil && len(l.line) == 0 {
			return part[:len(part)-1], nil
		}
		l.line = append(l.line, part...)
		switch {
		case err == nil:
			return l.line[:len(l.line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull) && len(l.line) <= maxFrame:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: a frame of more than %d bytes", scan.ErrSyntax, maxFrame)
		case errors.Is(err, io.EOF) && len(l.line) > 0:
			return nil, fmt.Errorf("%w: the stream ends within a frame", scan.ErrSyntax)
		}
		return nil, err
	}
}

func (l *lines) waiting() bool {
	buffered, _ := l.body.Peek(l.body.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}
