// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// serve returns an endpoint that answers with a function.
func serve(t *testing.T, f http.HandlerFunc) *compare.Endpoint {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return &compare.Endpoint{URL: s.URL, Client: s.Client(), Plain: s.Client()}
}

func says(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body) //nolint:errcheck // a test server
	}
}

const list = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"17"},"items":[]}` + "\n"

// TestDiff: Diff finds every difference between two answers, except for the allowed
// ones.
func TestDiff(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5000")
		w.WriteHeader(200)
		io.WriteString(w, list) //nolint:errcheck // a test server
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	for name, test := range map[string]struct {
		got  http.HandlerFunc
		mask compare.Mask
		what string // "" means that they are the same
	}{
		"same":             {says(200, list), nil, ""},
		"status":           {says(201, list), nil, "status"},
		"extra header":     {says(200, list, "Warning", "x"), nil, "header Warning"},
		"ignored headers":  {says(200, list, "Audit-Id", "x", "Date", "now"), nil, ""},
		"newline":          {says(200, strings.TrimSpace(list)), nil, "body"},
		"version":          {says(200, strings.Replace(list, "17", "18", 1)), nil, "body"},
		"version, masked":  {says(200, strings.Replace(list, "17", "18", 1)), compare.ListRV, ""},
		"more than the RV": {says(200, strings.Replace(list, "17", "x", 1)), compare.ListRV, "body"},
		"broken body":      {broken, nil, "end of the body"},
	} {
		t.Run(name, func(t *testing.T) {
			r := compare.Request{Path: "/x"}
			want, err := serve(t, says(200, list)).Do(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := serve(t, test.got).Do(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			var masks []compare.Mask
			if test.mask != nil {
				masks = append(masks, test.mask)
			}
			err = compare.Diff(r, want, got, masks...)
			d, different := errors.AsType[*compare.Difference](err)
			if different != (test.what != "") || different && !strings.HasPrefix(d.What, test.what) {
				t.Errorf("got %v, want a difference of %q", err, test.what)
			}
		})
	}
}

// TestListRV: ListRV masks the RV of a list and that in its token, but not those of
// objects.
func TestListRV(t *testing.T) {
	for text, want := range map[string]string{
		`{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","resourceVersion":"2"}}]}`:               `{"metadata":{"resourceVersion":"RV"},"items":[{"metadata":{"name":"a","resourceVersion":"2"}}]}`,
		`{"items":[{"metadata":{"name":"a","resourceVersion":"2"}}],"metadata":{"continue":"","resourceVersion":"1"}}`: `{"items":[{"metadata":{"name":"a","resourceVersion":"2"}}],"metadata":{"continue":"","resourceVersion":"RV"}}`,
		`{"metadata":{"resourceVersion":"1","continue":"eyJydiI6MTIsInN0YXJ0IjoiYSJ9"}}`:                               `{"metadata":{"resourceVersion":"RV","continue":"{"rv":RV,"start":"a"}"}}`,
		"items:\n- metadata:\n    resourceVersion: \"2\"\nmetadata:\n  resourceVersion: \"1\"\n":                       "items:\n- metadata:\n    resourceVersion: \"2\"\nmetadata:\n  resourceVersion: \"RV\"\n",
	} {
		if got := string(compare.ListRV([]byte(text))); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

const jsonWatch = `{"type":"ADDED","object":{"kind":"Pod","metadata":{"namespace":"n","name":"a","resourceVersion":"7"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}
{"type":"DELETED","object":{"kind":"Table","metadata":{"resourceVersion":"11"},"rows":[{"object":{"metadata":{"namespace":"n","name":"a","resourceVersion":"11"}}}]}}
{"type":"ERROR","object":{"kind":"Status","code":410}}
`

// protobufFrame returns an event in the API server's framing.
func protobufFrame(t *testing.T, typ, name, rv string) []byte {
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
	message, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{0, 0, byte(len(message) >> 8), byte(len(message))}, message...)
}

// TestFrames reads watches in either framing.
func TestFrames(t *testing.T) {
	frames, err := compare.Frames(compare.JSON, []byte(jsonWatch))
	if err != nil || len(frames) != 4 {
		t.Fatalf("%v %v", frames, err)
	}
	var all []string
	for _, f := range frames {
		all = append(all, f.String())
	}
	want := []string{"ADDED Pod n/a@7", "BOOKMARK Pod /@9", "DELETED Table n/a@11", "ERROR Status /@"}
	if !slices.Equal(all, want) || !frames[1].EndsInitial() || frames[0].EndsInitial() || frames[3].Code != 410 {
		t.Errorf("got %q", all)
	}
	body := append(protobufFrame(t, "ADDED", "a", "7"), protobufFrame(t, "BOOKMARK", "", "9")...)
	frames, err = compare.Frames(compare.ProtobufWatch, body)
	if err != nil || len(frames) != 2 || frames[0].String() != "ADDED Pod /a@7" || frames[1].String() != "BOOKMARK Pod /@9" {
		t.Errorf("%v %v", frames, err)
	}
	for name, cut := range map[string][]byte{compare.JSON: []byte(jsonWatch[:30]), compare.ProtobufWatch: body[:30]} {
		if _, err := compare.Frames(name, cut); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s that is cut off: %v", name, err)
		}
	}
}

// TestBookmarks: Bookmarks masks only the RVs of bookmarks.
func TestBookmarks(t *testing.T) {
	mask := compare.Bookmarks(compare.JSON)
	if a, b := mask([]byte(jsonWatch)), mask([]byte(strings.Replace(jsonWatch, `"9"`, `"10"`, 1))); string(a) != string(b) {
		t.Errorf("%s\n%s", a, b)
	}
	if a, b := mask([]byte(jsonWatch)), mask([]byte(strings.Replace(jsonWatch, `"7"`, `"8"`, 1))); string(a) == string(b) {
		t.Error("the RV of an event is masked")
	}
	mask = compare.Bookmarks(compare.ProtobufWatch)
	a := mask(protobufFrame(t, "BOOKMARK", "", "7"))
	if b := mask(protobufFrame(t, "BOOKMARK", "", "1000")); string(a) != string(b) {
		t.Errorf("%q\n%q", a, b)
	}
	if b := mask(protobufFrame(t, "BOOKMARK", "x", "7")); string(a) == string(b) {
		t.Error("the rest of a bookmark is masked")
	}
}

// TestPair: a Pair compares two streams frame by frame, and finds missing, additional
// and different frames.
func TestPair(t *testing.T) {
	lines := strings.SplitAfter(jsonWatch, "\n")
	stream := func(frames ...string) http.HandlerFunc {
		return says(200, strings.Join(frames, ""), "Content-Type", compare.JSON)
	}
	want := stream(lines[0], lines[1], lines[3])
	for name, test := range map[string]struct {
		got  http.HandlerFunc
		same bool
	}{
		"same":             {want, true},
		"another bookmark": {stream(lines[0], strings.Replace(lines[1], `"9"`, `"8"`, 1), lines[3]), true},
		"missing frame":    {stream(lines[0], lines[3]), false},
		"extra frame":      {stream(lines[0], lines[1], lines[3], lines[3]), false},
		"another order":    {stream(lines[1], lines[0], lines[3]), false},
		"another type":     {says(200, jsonWatch, "Content-Type", "text/plain"), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := func() error {
				p, err := compare.Watch(t.Context(), serve(t, want), serve(t, test.got), compare.Request{Path: "/x?watch=1"})
				if err != nil {
					return err
				}
				defer p.Close()
				_, err = p.Until(t.Context(), nil)
				return err
			}()
			if _, different := errors.AsType[*compare.Difference](err); different == test.same || err != nil && !different {
				t.Errorf("got %v", err)
			}
		})
	}
}
