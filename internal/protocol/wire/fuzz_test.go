// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// The corpora are in testdata/fuzz.

// FuzzNegotiate: the chosen form is one that the client accepts and that exists.
func FuzzNegotiate(f *testing.F) {
	f.Fuzz(func(t *testing.T, accept string, watch, list, typed, offersCBOR bool) {
		asked := 0
		o := Offer{Watch: watch, List: list, Typed: typed, CBOR: func() bool { asked++; return offersCBOR }}
		form, ok := Negotiate(accept, o)
		if asked > 0 && !strings.Contains(accept, "cbor") && !strings.Contains(accept, "*") {
			t.Errorf("%q: Offer.CBOR is called", accept)
		}
		if !ok {
			return
		}
		if again, ok := Negotiate(accept, o); !ok || again != form {
			t.Fatalf("%q is %+v, and then %+v", accept, form, again)
		}
		content := form.ContentType(watch)
		medium, _, _ := strings.Cut(strings.TrimSuffix(content, "-seq"), ";")
		switch {
		case content == "":
			t.Fatalf("%q: no Content-Type for %+v", accept, form)
		case accept != "" && !strings.Contains(accept, medium) && !strings.Contains(accept, "*"):
			t.Errorf("%q: %s", accept, content)
		case form.Media == CBOR && !offersCBOR, form.Media == Protobuf && form.View == Whole && !typed:
			t.Errorf("%q: %+v is not offered by %+v", accept, form, o)
		case form.View == Table && form.Media != JSON && form.Media != YAML:
			t.Errorf("%q: a Table as %+v", accept, form)
		case (form.View == Whole) != (form.Version == ""):
			t.Errorf("%q: version of %+v", accept, form)
		case form.View != Whole && !strings.Contains(accept, "meta.k8s.io"):
			t.Errorf("%q: %+v", accept, form)
		}
	})
}

// allForms returns the forms of a single object.
func allForms() (all []Form) {
	for media := range mediaCount {
		all = append(all, Form{Media: media})
		for _, version := range []string{"v1", "v1beta1"} {
			all = append(all, Form{Media: media, View: Metadata, Version: version})
			if media == JSON || media == YAML {
				all = append(all, Form{Media: media, View: Table, Version: version, Include: IncludeObject})
			}
		}
	}
	return append(all, Form{Pretty: true})
}

// FuzzEncode: an object that the scanner accepts is written in each form, or
// refused with ErrForm; decoded again, it is equal.
func FuzzEncode(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, columns, row string) {
		o, err := scan.ParseObject(text)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		o.Columns, o.Row = "[]", `"cells":[]`
		if frame, err := scan.ParseFrame(`{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":` +
			columns + `,"rows":[{` + row + `,"object":` + text + `}]}}`); err == nil && frame.Object.JSON == o.JSON {
			o = frame.Object
		}
		e := tableEncoder(podResource)
		for _, form := range allForms() {
			body, err := e.Object(form, o)
			if err != nil {
				if form.Media == JSON && form.View == Whole {
					t.Errorf("%s is not written in JSON: %v", text, err)
				}
				continue
			}
			readAgain(t, form, o, body.String())
			h := ListHead{Kind: "PodList", APIVersion: "v1", Typed: o.Typed(), RV: 9, Columns: o.Columns}
			if _, err := e.List(form, h, []*scan.Object{o, o}); err != nil {
				t.Errorf("%+v: a list of %s: %v", form, text, err)
			}
			if form.Media == YAML {
				continue // not a form of watches
			}
			for _, messages := range []bool{false, true} {
				s := e.Stream(form, messages)
				for range 2 {
					if _, err := s.Event(kube.Modified, o); err != nil {
						t.Errorf("%+v: an event of %s: %v", form, text, err)
					}
				}
			}
		}
	})
}

// readAgain decodes an encoded object and compares it with the object.
func readAgain(t *testing.T, form Form, o *scan.Object, body string) {
	t.Helper()
	if form.View == Table || form.View == Metadata && (form.Media == JSON || form.Media == YAML) {
		if form.Media == JSON && !json.Valid([]byte(body)) {
			t.Errorf("%+v: no JSON: %q", form, body)
		}
		var v map[string]any
		if form.Media == YAML && yaml.Unmarshal([]byte(body), &v) != nil && !tooDeep(o) {
			t.Errorf("%+v: no YAML: %q", form, body)
		}
		return
	}
	if form.View == Metadata {
		return // covered by decoding the whole object
	}
	switch form.Media {
	case JSON:
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(o.JSON)); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Compact(&got, []byte(body)); err != nil || got.String() != want.String() {
			t.Errorf("%+v: %q of %s: %v", form, body, o.JSON, err)
		}
	case Protobuf, CBOR:
		if form.Media == CBOR && !o.Typed() {
			var want unstructured.Unstructured
			if err := want.UnmarshalJSON([]byte(o.JSON)); err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := direct.Unmarshal([]byte(body), &got); err != nil && !tooDeep(o) {
				t.Errorf("%v in CBOR of %s", err, o.JSON)
			} else if err == nil && !reflect.DeepEqual(got, want.Object) {
				t.Errorf("%v in CBOR, of %s", got, o.JSON)
			}
			return
		}
		want, err := decodeTyped(o)
		if err != nil {
			t.Fatal(err)
		}
		var codec runtime.Decoder = cbor.NewSerializer(scheme.Scheme, scheme.Scheme)
		if form.Media == Protobuf {
			codec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
		}
		got, _, err := codec.Decode([]byte(body), nil, nil)
		if err != nil {
			if !tooDeep(o) {
				t.Errorf("%+v of %s: %v", form, o.JSON, err)
			}
			return
		}
		// Compared as JSON, where empty and absent are equal, as in protobuf.
		if a, b := marshal(got), marshal(want); a != b {
			t.Errorf("%+v: %s, want %s", form, a, b)
		}
	}
}

// tooDeep reports whether an object is nested so deeply that some decoders
// refuse it.
func tooDeep(o *scan.Object) bool {
	return strings.Count(o.JSON, "{")+strings.Count(o.JSON, "[") >= 60
}

// TestDeepNesting: the deepest object that the scanner accepts is encoded or
// refused, without a stack overflow.
func TestDeepNesting(t *testing.T) {
	for _, kind := range []string{`"kind":"ConfigMap","apiVersion":"v1"`, `"apiVersion":"example.com/v1","kind":"Widget"`} {
		for _, nested := range []string{strings.Repeat("[", 9990) + strings.Repeat("]", 9990), strings.Repeat(`{"a":`, 9990) + "1" + strings.Repeat("}", 9990), strings.Repeat("[", 90) + strings.Repeat("1,", 10_000) + "1" + strings.Repeat("]", 90)} {
			o := parse(t, `{`+kind+`,"metadata":{"name":"a","resourceVersion":"1"},"spec":`+nested+`}`)
			o.Columns, o.Row = "[]", `"cells":[]`
			e := tableEncoder(podResource)
			for _, form := range allForms() {
				body, err := e.Object(form, o)
				if err != nil && !errors.Is(err, ErrForm) {
					t.Errorf("%+v: %v", form, err)
				}
				if err == nil && body.Size() > 10*len(o.JSON) {
					t.Errorf("%+v: %d bytes of %d", form, body.Size(), len(o.JSON))
				}
			}
		}
	}
	if _, err := newEncoder().Stream(Form{}, false).Error(metav1.Status{Message: strings.Repeat("\xff", 1<<20)}); err != nil {
		t.Error(err)
	}
}
