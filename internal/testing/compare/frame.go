// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// The media types of watches.
const (
	JSON          = watchread.JSON
	YAML          = "application/yaml"
	Protobuf      = "application/vnd.kubernetes.protobuf"
	ProtobufWatch = watchread.Protobuf
)

// A Frame is one event of a watch, with the identity of its object.
type Frame struct {
	watchread.Frame
	watchread.Meta
}

// EndsInitial reports whether the frame is the bookmark that ends the initial
// events.
func (f *Frame) EndsInitial() bool {
	return f.Type == "BOOKMARK" && f.EndsInitialEvents()
}

func (f *Frame) String() string {
	return fmt.Sprintf("%s %s %s/%s@%s", f.Type, f.Kind, f.Namespace, f.Name, f.RV)
}

// masked returns the frame, for a bookmark with a blanked RV: two servers may have
// reached different RVs.
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

// blankProtobuf removes the RV of an object in protobuf, and adapts the lengths
// around it.
func blankProtobuf(object []byte) ([]byte, error) {
	u, err := watchread.Envelope(object)
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
	r, err := watchread.New(contentType, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	var out []Frame
	for {
		f, err := readFrame(r)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, f)
	}
}

// readFrame reads the next frame. It returns io.EOF only between frames.
func readFrame(r *watchread.Reader) (Frame, error) {
	f, err := r.Next()
	if err != nil {
		return Frame{}, err
	}
	m, err := f.Meta()
	return Frame{f, m}, err
}
