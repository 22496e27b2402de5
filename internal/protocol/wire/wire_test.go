// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

func TestNegotiate(t *testing.T) {
	const (
		protobuf = "application/vnd.kubernetes.protobuf"
		table    = ";as=Table;g=meta.k8s.io;v=v1"
		partial  = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		partials = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	)
	no := func() bool { return false }
	list, watch, get := Offer{List: true, Typed: true, CBOR: no}, Offer{Watch: true, Typed: true, CBOR: no}, Offer{Typed: true, CBOR: no}
	custom, cbor := Offer{List: true, CBOR: no}, Offer{List: true, CBOR: func() bool { return true }}
	tables, metadata := Form{View: Table, Version: "v1"}, Form{View: Metadata, Version: "v1"}
	for _, test := range []struct {
		accept string
		offer  Offer
		want   Form
		ok     bool
	}{
		{"", list, Form{}, true},
		{"*/*", list, Form{}, true},
		{"application/*", list, Form{}, false}, // 406, of the router
		{"application/*", custom, Form{}, true},
		{"application/*,application/json", list, Form{}, true},
		{"application/json, */*", list, Form{}, true},
		{"text/html,application/xhtml+xml,*/*;q=0.8", list, Form{}, true},
		{"application/yaml,application/json", list, Form{Media: YAML}, true},
		{"application/yaml,application/json", watch, Form{}, false}, // 406
		{"application/json;q=0.1,application/yaml", list, Form{Media: YAML}, true},
		{protobuf + ",application/json", list, Form{Media: Protobuf}, true},
		{protobuf + ",application/json", custom, Form{}, true},
		{protobuf + ";stream=watch,application/json", watch, Form{Media: Protobuf}, true},
		{"application/json;stream=watch", get, Form{}, true},
		{"application/json;stream=other", get, Form{}, false},
		{"application/yaml;stream=watch,application/json", get, Form{}, true},
		{"application/json;pretty=1", get, Form{Pretty: true}, true},
		{"application/json;sv=v1", get, Form{}, true},
		{"application/json;sv=v2", get, Form{}, false},
		{"application/json" + table + ",application/json", list, tables, true},
		{protobuf + table + ",application/json", list, Form{}, true},
		{"application/yaml" + table, list, Form{Media: YAML, View: Table, Version: "v1"}, true},
		{"application/json;as=Table;g=meta.k8s.io;v=v1beta1", watch, Form{View: Table, Version: "v1beta1"}, true},
		{"application/json;as=Table;g=meta.k8s.io;v=v2,application/json", list, Form{}, true},
		{"application/json;as=Table,application/json", list, Form{}, true},
		{"application/json;as=Chair;g=meta.k8s.io;v=v1", list, Form{}, false},
		{"application/json;g=meta.k8s.io", list, Form{}, false},
		{"application/json" + partials, list, metadata, true},
		{"application/json" + partial + ",application/json", list, Form{}, false}, // 406
		{"application/json" + partial, watch, metadata, true},
		{"application/json" + partials, watch, Form{}, false},
		{"application/json" + partial, get, metadata, true},
		{protobuf + partials, custom, Form{Media: Protobuf, View: Metadata, Version: "v1"}, true},
		{"application/cbor,application/json", list, Form{}, true},
		{"application/cbor,application/json", cbor, Form{Media: CBOR}, true},
		{"application/cbor" + partials, cbor, Form{Media: CBOR, View: Metadata, Version: "v1"}, true},
		{"application/cbor" + table + ",application/json", cbor, Form{}, true},
		{"APPLICATION/JSON", list, Form{}, false},
		{"text/html", list, Form{}, false},
		{";;;", list, Form{}, false},
	} {
		got, ok := Negotiate(test.accept, test.offer)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%q of %+v: %+v %v", test.accept, test.offer, got, ok)
		}
	}
}

func newEncoder() *Encoder { return &Encoder{Cache: NewCache(1 << 20)} }

// listOf returns the body of a LIST, or fails the test.
func listOf(t *testing.T, e *Encoder, f Form, h ListHead, items []*scan.Object) string {
	t.Helper()
	b, err := e.List(f, h, items)
	if err != nil {
		t.Fatal(err)
	}
	if s := b.String(); len(s) != b.Size() {
		t.Errorf("Size is %d, of %d", b.Size(), len(s))
	}
	return b.String()
}

// TestListTyped compares with what the API server's own types marshal to.
func TestListTyped(t *testing.T) {
	remaining := int64(7)
	for _, want := range []corev1.PodList{
		{Items: []corev1.Pod{}},
		{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a<b", Namespace: "ns", ResourceVersion: "5"}}, {ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "6"}}}},
		{ListMeta: metav1.ListMeta{Continue: "tok", RemainingItemCount: &remaining}, Items: []corev1.Pod{}},
	} {
		want.TypeMeta = metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}
		want.ResourceVersion = "99"
		var items []*scan.Object
		for _, pod := range want.Items {
			pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			items = append(items, parse(t, marshal(pod)))
		}
		head := ListHead{Kind: "PodList", APIVersion: "v1", Typed: true, RV: 99, Continue: want.Continue}
		if want.RemainingItemCount != nil {
			head.Remaining = remaining
		}
		if diff := cmp.Diff(marshal(want)+"\n", listOf(t, newEncoder(), Form{}, head, items)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(indent(t, want), listOf(t, newEncoder(), Form{Pretty: true}, head, items)); diff != "" {
			t.Errorf("indented (-want +got)\n%s", diff)
		}
	}
}

// TestListCustom compares with what unstructured lists marshal to.
func TestListCustom(t *testing.T) {
	want := unstructured.UnstructuredList{Object: map[string]any{
		"kind": "WidgetList", "apiVersion": "example.com/v1",
		"metadata": map[string]any{"resourceVersion": "99", "continue": "tok", "remainingItemCount": int64(3)},
	}}
	want.Items = []unstructured.Unstructured{{Object: map[string]any{
		"kind": "Widget", "apiVersion": "example.com/v1", "metadata": map[string]any{"name": "w", "resourceVersion": "4"}}}}
	o := parse(t, marshal(want.Items[0].Object))
	head := ListHead{Kind: "WidgetList", APIVersion: "example.com/v1", RV: 99, Continue: "tok", Remaining: 3}
	if diff := cmp.Diff(marshal(want.UnstructuredContent())+"\n", listOf(t, newEncoder(), Form{}, head, []*scan.Object{o})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	empty := ListHead{Kind: "WidgetList", APIVersion: "example.com/v1", RV: 9}
	if got, want := listOf(t, newEncoder(), Form{}, empty, nil), `{"apiVersion":"example.com/v1","items":[],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"9"}}`+"\n"; got != want {
		t.Errorf("got %s", got)
	}
}

func parse(t *testing.T, text string) *scan.Object {
	t.Helper()
	o, err := scan.ParseObject(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestJSONFrames(t *testing.T) {
	e := newEncoder()
	o := parse(t, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`)
	for _, messages := range []bool{false, true} {
		s := e.Stream(Form{}, messages)
		if got := event(t, s, kube.Added, o); got != `{"type":"ADDED","object":`+o.JSON+"}\n" {
			t.Errorf("%q", got)
		}
		parts, err := s.Error(metav1.Status{Code: 410})
		if got := strings.Join(parts, ""); err != nil || got != `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"code":410}}`+"\n" {
			t.Errorf("%q %v", got, err)
		}
	}
}

func event(t *testing.T, s *Stream, typ kube.EventType, o *scan.Object) string {
	t.Helper()
	parts, err := s.Event(typ, o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(parts, "")
}
