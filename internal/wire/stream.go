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

// ErrColumns marks an event of a Table that is printed in other columns than
// those before it: the definition of the custom resource has changed.
var ErrColumns = errors.New("other columns than those before")

// A Stream writes the events of one watch. It is for one goroutine.
type Stream struct {
	enc      *Encoder
	form     Form
	messages bool
	columns  string   // of a Table: those that the first event told
	begun    bool     // the first event has been written
	parts    []string // of the last event
}

// Stream returns a stream in the form. In messages (of a WebSocket) each event
// stands by itself; otherwise what separates events in the form is written too.
func (e *Encoder) Stream(f Form, messages bool) *Stream {
	return &Stream{enc: e, form: f, messages: messages}
}

// Event returns one event as it goes over the wire, in parts that are valid
// until the next call. On [ErrForm] or [ErrColumns] the
// stream cannot go on.
func (s *Stream) Event(typ kube.EventType, o *scan.Object) ([]string, error) {
	if typ == kube.Bookmark && s.form.Fields != nil {
		return s.frame(typ, []string{o.JSON}) // which it is stands in its annotations
	}
	object, err := s.object(o)
	if err != nil {
		return nil, err
	}
	return s.frame(typ, object)
}

// Shared returns one event as a frame that is made once for all streams; nil if
// it is not shared, and Event is to be used: a Table, whose rows depend on the
// stream and the time, a message, and what is very large. It is for events that
// others want at the same time: what a stream alone wants would be kept in
// their place.
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

// object returns an event's object, in parts.
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

// frame puts an event around the parts of its object.
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

// frameProtobuf returns what stands before the object of an event:
//
//	length   4 bytes, big endian, of all behind it; not in messages
//	0a …     the type
//	12 …     a RawExtension, whose only field
//	  0a …     is the object, an envelope of its own
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
