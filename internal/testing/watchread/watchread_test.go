// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchread_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

const jsonWatch = `{"type":"ADDED","object":{"kind":"Pod","metadata":{"namespace":"n","name":"a","resourceVersion":"7"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}
{"object":{"kind":"Table","metadata":{"resourceVersion":"11"},"rows":[{"object":{"metadata":{"namespace":"n","name":"a","resourceVersion":"11"}}}]},"type":"DELETED"}
{"watch":3,"type":"ERROR","object":{"kind":"Status","code":410}}
`

// message is an event as the API server frames it.
func message(t *testing.T, typ, name, rv string) string {
	t.Helper()
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: rv}}
	raw, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "Pod", APIVersion: "v1"}, Raw: raw}
	envelope, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), envelope...)}}
	body, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string([]byte{0, 0, byte(len(body) >> 8), byte(len(body))}) + string(body)
}

// read reads all frames of a body, and what ended it.
func read(t *testing.T, contentType, body string) (all []string, raw string, err error) {
	t.Helper()
	r, err := watchread.New(contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for {
		f, err := r.Next()
		raw += string(f.Raw)
		if err != nil {
			return all, raw, err
		}
		m, err := f.Meta()
		if err != nil {
			return all, raw, err
		}
		all = append(all, fmt.Sprintf("%d %s %s %s/%s@%s %d %v", f.Watch, f.Type, m.Kind, m.Namespace, m.Name, m.RV, m.Code, m.EndsInitialEvents()))
	}
}

// TestNext reads watches in both framings, and keeps their bytes.
func TestNext(t *testing.T) {
	protobuf := message(t, "ADDED", "a", "7") + message(t, "BOOKMARK", "", "9")
	for contentType, test := range map[string]struct {
		body string
		want []string
	}{
		watchread.JSON: {jsonWatch, []string{
			"0 ADDED Pod n/a@7 0 false", "0 BOOKMARK Pod /@9 0 true", "0 DELETED Table n/a@11 0 false", "3 ERROR Status /@ 410 false",
		}},
		watchread.Protobuf: {protobuf, []string{"0 ADDED Pod /a@7 0 false", "0 BOOKMARK Pod /@9 0 false"}},
	} {
		all, raw, err := read(t, contentType, test.body)
		if err != io.EOF || raw != test.body || !slices.Equal(all, test.want) {
			t.Errorf("%s: %q, %v", contentType, all, err)
		}
		if _, _, err := read(t, contentType, test.body[:30]); !errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			t.Errorf("%s that is cut: %v", contentType, err)
		}
	}
	if _, err := watchread.New("text/plain", strings.NewReader("")); err == nil {
		t.Error("any Content-Type is read")
	}
}

// TestMalformed: a malformed frame is an error, with its bytes.
func TestMalformed(t *testing.T) {
	for _, test := range []struct{ contentType, body string }{
		{watchread.JSON, "nonsense\n"},
		{watchread.JSON, `{"type":"ADDED","object":{}` + "\n"},
		{watchread.JSON, `{"type":"ADDED","object":{]}` + "\n"},
		{watchread.JSON, `{"type":7}` + "\n"},
		{watchread.Protobuf, "\x00\x00\x00\x01\xff"},
		{watchread.Protobuf, "\xff\xff\xff\xff"},
	} {
		all, raw, err := read(t, test.contentType, test.body)
		if !errors.Is(err, watchread.ErrMalformed) || len(all) > 0 || raw != test.body {
			t.Errorf("%q: %q, %q, %v", test.body, all, raw, err)
		}
	}
}
