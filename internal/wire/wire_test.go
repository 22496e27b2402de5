// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

func TestAcceptsJSON(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                  true,
		"*/*":                               true,
		"application/json":                  true,
		"application/json, */*":             true,
		"application/*":                     false,
		"application/json,application/yaml": true,
		"application/yaml":                  false,
		"application/yaml,application/json": false,
		"application/vnd.kubernetes.protobuf,application/json":          false,
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json": false,
		"application/json;q=0.1,application/yaml":                       false,
		"application/json;stream=watch":                                 false,
		"APPLICATION/JSON":                                              false,
		"text/html":                                                     false,
		";;;":                                                           false,
	} {
		if got := AcceptsJSON(accept); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

// TestWriteListTyped compares with what the API server's own types marshal to.
func TestWriteListTyped(t *testing.T) {
	remaining := int64(7)
	for _, list := range []corev1.PodList{
		{Items: []corev1.Pod{}},
		{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a<b", Namespace: "ns", ResourceVersion: "5"}}, {ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "6"}}}},
		{ListMeta: metav1.ListMeta{Continue: "tok", RemainingItemCount: &remaining}, Items: []corev1.Pod{}},
	} {
		list.TypeMeta = metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}
		list.ResourceVersion = "99"
		want := marshal(t, list)

		var items []*kube.Object
		for _, pod := range list.Items {
			pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			o, err := kube.ScanObject(marshal(t, pod))
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, o)
		}
		head := ListHead{Kind: "PodList", APIVersion: "v1", Typed: true, RV: 99, Continue: list.Continue}
		if list.RemainingItemCount != nil {
			head.Remaining = remaining
		}
		var b bytes.Buffer
		if err := WriteList(&b, head, items); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want+"\n", b.String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		indented, _ := json.MarshalIndent(list, "", "  ")
		if diff := cmp.Diff(string(indented), string(Indent(b.Bytes()))); diff != "" {
			t.Errorf("indented (-want +got)\n%s", diff)
		}
	}
}

// TestWriteListCustom compares with what unstructured lists marshal to.
func TestWriteListCustom(t *testing.T) {
	list := unstructured.UnstructuredList{Object: map[string]any{
		"kind": "WidgetList", "apiVersion": "example.com/v1",
		"metadata": map[string]any{"resourceVersion": "99", "continue": "tok", "remainingItemCount": int64(3)},
	}}
	list.Items = []unstructured.Unstructured{{Object: map[string]any{
		"kind": "Widget", "apiVersion": "example.com/v1", "metadata": map[string]any{"name": "w", "resourceVersion": "4"}}}}
	o, err := kube.ScanObject(marshal(t, list.Items[0].Object))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	head := ListHead{Kind: "WidgetList", APIVersion: "example.com/v1", RV: 99, Continue: "tok", Remaining: 3}
	if err := WriteList(&b, head, []*kube.Object{o}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(marshal(t, list.UnstructuredContent())+"\n", b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.Reset()
	if err := WriteList(&b, ListHead{Kind: "WidgetList", APIVersion: "example.com/v1", RV: 9}, nil); err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"example.com/v1","items":[],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"9"}}` + "\n"; b.String() != want {
		t.Errorf("got %s", b.String())
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWriteFrame(t *testing.T) {
	var b strings.Builder
	if err := WriteFrame(&b, kube.Added, `{"a":1}`); err != nil || b.String() != `{"type":"ADDED","object":{"a":1}}`+"\n" {
		t.Errorf("%v %q", err, b.String())
	}
	if err := WriteList(broken{}, ListHead{}, nil); err == nil {
		t.Error("a write error is lost")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }
