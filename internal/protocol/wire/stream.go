// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// ErrColumns marks a row of a Table whose columns differ from the earlier ones: the
// definition of the custom resource has changed.
var ErrColumns = errors.New("the columns have changed")

// A Stream writes the events of one watch. It is for one goroutine.
type Stream struct {
	enc      *Encoder
	form     Form
	messages bool
	columns  string   // the columnDefinitions of a Table, from the first event
	begun    bool     // the first event of a Table has been written
	parts    []string // of the last event
}

// Stream returns a stream in the form. With messages, as on a WebSocket, each event
// is its own message and needs no length before it.
func (e *Encoder) Stream(f Form, messages bool) *Stream {
	return &Stream{enc: e, form: f, messages: messages}
}

// Event returns an encoded event, in parts that are valid until the next call.
// After [ErrForm] or [ErrColumns] the stream cannot continue.
func (s *Stream) Event(typ kube.EventType, o *scan.Object) ([]string, error) {
	if typ == kube.Bookmark && s.form.Fields != nil {
		return s.frame(typ, []string{o.JSON}) // with its annotations, which may end the initial events
	}
	object, err := s.object(o)
	if err != nil {
		return nil, err
	}
	return s.frame(typ, object)
}

// Ahead is how many objects are encoded at a time, see [Stream.Prepare].
const Ahead = 16 * runLength

// Prepare encodes objects on all cores, if that is worth it, so that their events are ready. Errors
// are those of Event.
func (s *Stream) Prepare(objects []*scan.Object) {
	if s.form.Media == JSON && s.form.View != Metadata || s.form.View == Table {
		return
	}
	_ = encodeAll(&Body{}, objects, func(_ *Body, _ int, run []*scan.Object) error {
		for _, o := range run {
			_, _ = s.enc.object(s.form, o)
		}
		return nil
	})
}

// Shared returns an event as a frame that is encoded once for all streams. It
// returns nil if the frame cannot be shared, and the caller is to use Event: for a
// Table, whose rows depend on the stream and the time, for a message, and for a
// very large frame. A lagging stream must not call it, since its frames would
// replace those that other streams share.
func (s *Stream) Shared(typ kube.EventType, o *scan.Object) (*Frame, error) {
	if s.messages || s.form.View == Table {
		return nil, nil
	}
	return s.enc.Cache.frames.get(typ, o, s.form, func() ([]string, error) { return s.Event(typ, o) })
}

// Error returns an ERROR event.
func (s *Stream) Error(status metav1.Status) ([]string, error) {
	status.Kind, status.APIVersion = "Status", "v1"
	var object []string
	switch s.form.Media {
	case Protobuf:
		raw, err := status.Marshal()
		if err != nil {
			return nil, err
		}
		object = envelope("v1", "Status", string(raw))
	case CBOR:
		text, err := encodeCBOR(status)
		if err != nil {
			return nil, err
		}
		object = []string{selfDescribed, text}
	default:
		object = []string{marshal(status)}
	}
	return s.frame(kube.Error, object)
}

// object returns the parts of an event's object.
func (s *Stream) object(o *scan.Object) ([]string, error) {
	if s.form.View != Table {
		return s.enc.object(s.form, o)
	}
	if s.begun && o.Columns != s.columns {
		return nil, ErrColumns
	}
	columns := "null"
	if !s.begun || repeatsColumns(s.enc.Resource) {
		columns = o.Columns
	}
	b := Body{}
	if err := s.enc.tableEvent(&b, s.form, columns, o); err != nil {
		return nil, err
	}
	s.begun, s.columns = true, o.Columns
	return b.parts, nil
}

// frame returns the parts of an event.
func (s *Stream) frame(typ kube.EventType, object []string) ([]string, error) {
	switch s.form.Media {
	case Protobuf:
		s.parts = append(append(s.parts[:0], frameProtobuf(typ, object, s.messages)), object...)
	case CBOR:
		text, err := frameCBOR(typ, strings.Join(object, ""))
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts[:0], selfDescribed, text)
	default:
		s.parts = append(append(s.parts[:0], jsonFrameHead[typ]), object...)
		s.parts = append(s.parts, "}\n")
	}
	return s.parts, nil
}

var jsonFrameHead = map[kube.EventType]string{
	kube.Added:    `{"type":"ADDED","object":`,
	kube.Modified: `{"type":"MODIFIED","object":`,
	kube.Deleted:  `{"type":"DELETED","object":`,
	kube.Bookmark: `{"type":"BOOKMARK","object":`,
	kube.Error:    `{"type":"ERROR","object":`,
}

// frameProtobuf returns the part of an event before its object:
//
//	length   4 bytes, big endian, of what follows; not in messages
//	0a …     the type
//	12 …     a RawExtension, whose only field
//	  0a …     is the object, in its envelope
func frameProtobuf(typ kube.EventType, object []string, messages bool) string {
	size := 0
	for _, p := range object {
		size += len(p)
	}
	raw := appendLength(nil, 1, size)
	event := append(appendLength(nil, 1, len(typ)), typ...)
	event = append(appendLength(event, 2, len(raw)+size), raw...)
	if messages {
		return string(event)
	}
	length := binary.BigEndian.AppendUint32(nil, uint32(len(event)+size))
	return string(length) + string(event)
}
