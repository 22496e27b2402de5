// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The media types of watches.
const (
	JSON          = "application/json"
	YAML          = "application/yaml"
	Protobuf      = "application/vnd.kubernetes.protobuf"
	ProtobufWatch = "application/vnd.kubernetes.protobuf;stream=watch"
)

// A Frame is one event of a watch.
type Frame struct {
	Type string
	// Raw is the frame as it came, with what separates it from the next.
	Raw []byte
	// Object is the object in it: JSON, or a complete protobuf envelope.
	Object []byte
	// Kind, Namespace, Name and RV are those of the object; of a Table, those
	// of the object in its row.
	Kind, Namespace, Name, RV string
	// Annotations are the object's own.
	Annotations map[string]string
	// Code is that of the Status in an ERROR.
	Code int
}

// EndsInitial reports whether the frame is the bookmark that ends the initial
// events.
func (f *Frame) EndsInitial() bool {
	return f.Type == "BOOKMARK" && f.Annotations["k8s.io/initial-events-end"] == "true"
}

func (f *Frame) String() string {
	return fmt.Sprintf("%s %s %s/%s@%s", f.Type, f.Kind, f.Namespace, f.Name, f.RV)
}

// masked is the frame with a bookmark's RV blanked: how far two servers have
// seen may differ.
func (f *Frame) masked() []byte {
	switch {
	case f.Type != "BOOKMARK" || f.RV == "":
		return f.Raw
	case f.Object[0] == '{':
		return bytes.ReplaceAll(f.Raw, []byte(`"`+f.RV+`"`), []byte(`"RV"`))
	}
	blank, err := blankProtobuf(f.Object)
	if err != nil {
		return f.Raw
	}
	return blank
}

// blankProtobuf takes the RV out of an object in protobuf, with the lengths of
// what encloses it.
func blankProtobuf(object []byte) ([]byte, error) {
	u, err := Envelope(object)
	if err != nil {
		return nil, err
	}
	// The metadata is member 1 and comes first: a tag, the length, the text.
	length, n := binary.Uvarint(u.Raw[1:])
	if u.Raw[0] != 1<<3|2 || n <= 0 || uint64(len(u.Raw)) < 1+uint64(n)+length {
		return nil, fmt.Errorf("no metadata in %q", u.Raw)
	}
	end := 1 + n + int(length)
	var m metav1.ObjectMeta
	if err := m.Unmarshal(u.Raw[1+n : end]); err != nil {
		return nil, err
	}
	m.ResourceVersion = ""
	blank, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	rest := u.Raw[end:]
	u.Raw = append(blank, rest...)
	out, err := u.Marshal()
	return append([]byte("BOOKMARK "), out...), err
}

// Frames reads the body of a watch.
func Frames(contentType string, body []byte) ([]Frame, error) {
	r := bufio.NewReader(bytes.NewReader(body))
	var out []Frame
	for {
		f, err := readFrame(contentType, r)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, f)
	}
}

// readFrame reads the next frame. It returns io.EOF only between frames.
func readFrame(contentType string, r *bufio.Reader) (Frame, error) {
	switch contentType {
	case JSON:
		line, err := r.ReadBytes('\n')
		if len(line) > 0 && err == io.EOF {
			return Frame{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return Frame{}, err
		}
		return jsonFrame(line)
	case ProtobufWatch:
		length := make([]byte, 4)
		if _, err := io.ReadFull(r, length); err != nil {
			return Frame{}, err
		}
		message := make([]byte, binary.BigEndian.Uint32(length))
		if _, err := io.ReadFull(r, message); err != nil {
			return Frame{}, errors.Join(io.ErrUnexpectedEOF, err)
		}
		f, err := protobufFrame(message)
		f.Raw = append(length, message...)
		return f, err
	}
	return Frame{}, fmt.Errorf("a watch of %q", contentType)
}

type object struct {
	Kind     string
	Code     int
	Metadata struct {
		Namespace, Name, ResourceVersion string
		Annotations                      map[string]string
	}
	Rows []struct{ Object json.RawMessage }
}

func jsonFrame(line []byte) (Frame, error) {
	var event struct {
		Type   string
		Object json.RawMessage
	}
	var o object
	if err := json.Unmarshal(line, &event); err != nil {
		return Frame{}, fmt.Errorf("%w in %q", err, line)
	}
	if err := json.Unmarshal(event.Object, &o); err != nil {
		return Frame{}, err
	}
	f := Frame{Type: event.Type, Raw: line, Object: event.Object, Kind: o.Kind, Code: o.Code, RV: o.Metadata.ResourceVersion}
	if o.Kind == "Table" && len(o.Rows) > 0 {
		var row object
		if err := json.Unmarshal(o.Rows[0].Object, &row); err != nil {
			return Frame{}, err
		}
		o.Metadata = row.Metadata
	}
	f.Namespace, f.Name, f.Annotations = o.Metadata.Namespace, o.Metadata.Name, o.Metadata.Annotations
	return f, nil
}

func protobufFrame(message []byte) (Frame, error) {
	var event metav1.WatchEvent
	if err := event.Unmarshal(message); err != nil {
		return Frame{}, err
	}
	f := Frame{Type: event.Type, Object: event.Object.Raw}
	u, err := Envelope(f.Object)
	if err != nil {
		return Frame{}, err
	}
	f.Kind = u.Kind
	if f.Kind == "Status" {
		var s metav1.Status
		err := s.Unmarshal(u.Raw)
		f.Code = int(s.Code)
		return f, err
	}
	// The metadata is member 1 of every kind.
	var o metav1.PartialObjectMetadata
	if err := o.Unmarshal(u.Raw); err != nil {
		return Frame{}, err
	}
	f.Namespace, f.Name, f.RV, f.Annotations = o.Namespace, o.Name, o.ResourceVersion, o.Annotations
	return f, nil
}

// Envelope opens a protobuf body: "k8s", a zero, and a runtime.Unknown.
func Envelope(body []byte) (runtime.Unknown, error) {
	var u runtime.Unknown
	rest, ok := strings.CutPrefix(string(body), "k8s\x00")
	if !ok {
		return u, fmt.Errorf("no protobuf envelope: %.20q", body)
	}
	return u, u.Unmarshal([]byte(rest))
}
