// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// field is a delimited field of protobuf.
func field(number int, value string) string {
	return string(binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(value)))) + value
}

// binaryEvent is an event of an object with a name and an RV, and with other fields.
func binaryEvent(typ, name, rv string, others ...string) string {
	object := "k8s\x00" + field(2, field(1, field(1, name)+field(6, rv))+strings.Join(others, ""))
	event := field(1, typ) + field(2, field(1, object))
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(event)))) + event
}

// TestFrames: frames of both encodings are read however the stream is split, and
// anything else is an error.
func TestFrames(t *testing.T) {
	big := strings.Repeat("x", 3*frameBuffer)
	bigJSON := strings.Replace(script.Event("MODIFIED", "a", 2), `"spec":{}`, `"spec":"`+big+`"`, 1)
	bigBinary := binaryEvent("MODIFIED", "a", "2", field(2, big))
	for _, test := range []struct {
		name, stream string
		protobuf     bool
		want         string
		err          error
	}{
		{"JSON", script.Event("ADDED", "a", 1) + bigJSON + script.Event("DELETED", "b", 3), false, "ADDED 1 MODIFIED 2 DELETED 3", io.EOF},
		{"JSON that ends in a frame", script.Event("ADDED", "a", 1) + script.Event("ADDED", "b", 2)[:20], false, "ADDED 1", scan.ErrSyntax},
		{"malformed JSON", script.Event("ADDED", "a", 1) + "oops\n", false, "ADDED 1", scan.ErrSyntax},
		{"protobuf", binaryEvent("ADDED", "a", "1") + bigBinary + binaryEvent("DELETED", "b", "3"), true, "ADDED 1 MODIFIED 2 DELETED 3", io.EOF},
		{"protobuf that ends in a length", binaryEvent("ADDED", "a", "1") + "\x00", true, "ADDED 1", io.ErrUnexpectedEOF},
		{"protobuf that ends after a length", binaryEvent("ADDED", "a", "1") + "\x00\x00\x00\x09", true, "ADDED 1", io.ErrUnexpectedEOF},
		{"protobuf that ends in a frame", binaryEvent("ADDED", "a", "1")[:9], true, "", io.ErrUnexpectedEOF},
		{"a frame that is too large", binaryEvent("ADDED", "a", "1") + "\xff\xff\xff\xff" + big, true, "ADDED 1", scan.ErrProtobuf},
		{"malformed protobuf", "\x00\x00\x00\x02\xff\xff", true, "", scan.ErrProtobuf},
		{"no object", "\x00\x00\x00\x07" + field(1, "ADDED"), true, "", scan.ErrProtobuf},
	} {
		for pieces, body := range map[string]io.Reader{"whole": strings.NewReader(test.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(test.stream))} {
			frames := (&itemEncoding{protobuf: test.protobuf}).watch(body)
			var got []string
			f, err := frames.next()
			for ; err == nil; f, err = frames.next() {
				got = append(got, fmt.Sprintf("%s %d", f.typ, f.rv))
			}
			if strings.Join(got, " ") != test.want || !errors.Is(err, test.err) {
				t.Errorf("%s, %s: %q, %v; want %q, %v", test.name, pieces, got, err, test.want, test.err)
			}
		}
	}
}

// TestWaiting: a frame is waiting once all of it has been received.
func TestWaiting(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		first, second := script.Event("ADDED", "a", 1), script.Event("ADDED", "b", 2)
		if protobuf {
			first, second = binaryEvent("ADDED", "a", "1"), binaryEvent("ADDED", "b", "2")
		}
		for cut, want := range map[int]bool{0: false, 2: false, len(second) - 1: false, len(second): true} {
			frames := (&itemEncoding{protobuf: protobuf}).watch(strings.NewReader(first + second[:cut]))
			if _, err := frames.next(); err != nil || frames.waiting() != want {
				t.Errorf("protobuf %v, %d of %d bytes of a second frame: waiting %v, %v", protobuf, cut, len(second), frames.waiting(), err)
			}
		}
	}
}

// TestObjectsOutliveTheirFrames: an object does not change when the stream is read on, into
// the same buffers, and refers to no text but its own.
func TestObjectsOutliveTheirFrames(t *testing.T) {
	plain := script.Event("ADDED", "a", 1) + script.Event("MODIFIED", "b", 2) + script.Event("DELETED", "a", 3)
	escaped := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"\u0061","namespace":"ns","uid":"\u0075","resourceVersion":"1","labels":{"k":"v","\u0065":"\u00e9"}}}}` + "\n"
	for name, stream := range map[string]string{
		"objects":            plain,
		"tables":             printed(`["a"]`, plain),
		"escapes":            escaped,
		"without namespaces": strings.ReplaceAll(plain, `"namespace":"ns",`, ""),
	} {
		lines := strings.SplitAfter(stream, "\n")
		lines = lines[:len(lines)-1]
		bookmarks := strings.Repeat(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"}}}`+"\n", 2000) // more than the buffers
		frames := (&objectEncoding{}).watch(strings.NewReader(stream + bookmarks))
		var objects []*scan.Object
		for f, err := frames.next(); err == nil; f, err = frames.next() {
			objects = append(objects, f.object)
		}
		for i, line := range lines {
			want, err := scan.ParseFrame(strings.TrimSuffix(line, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			got := objects[i]
			want.Object.Columns = got.Columns // which only the first frame has
			if !reflect.DeepEqual(want.Object, got) {
				t.Errorf("%s: object %d: %+v, want %+v", name, i, got, want.Object)
			}
		}
	}
}
