// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// samplePods returns Pods with fields of all kinds.
func samplePods() []corev1.Pod {
	when := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	var pods []corev1.Pod
	for _, name := range []string{"a", "b<&>"} {
		p := corev1.Pod{
			TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", ResourceVersion: "5", CreationTimestamp: when, Labels: map[string]string{"x": "1", "a": ""},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Time: &when, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: strings.Repeat("long ", 30), LivenessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}},
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &when},
		}
		pods = append(pods, p)
	}
	return pods
}

func samples(t *testing.T) (items []*scan.Object, want corev1.PodList, head ListHead) {
	t.Helper()
	remaining := int64(3)
	want.TypeMeta = metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}
	want.ListMeta = metav1.ListMeta{ResourceVersion: "99", Continue: "tok", RemainingItemCount: &remaining}
	for _, p := range samplePods() {
		items = append(items, parse(t, marshal(p)))
		p.TypeMeta = metav1.TypeMeta{}
		want.Items = append(want.Items, p)
	}
	return items, want, ListHead{Kind: "PodList", APIVersion: "v1", Typed: true, RV: 99, Continue: "tok", Remaining: 3}
}

// encoded returns what apimachinery's serializer writes.
func encoded(t *testing.T, s runtime.Encoder, o runtime.Object) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestProtobuf(t *testing.T) {
	items, want, head := samples(t)
	e := newEncoder()
	f := Form{Media: Protobuf}
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if got := listOf(t, e, f, head, items); got != encoded(t, codec, &want) {
		t.Errorf("list: %q", got)
	}
	pod := samplePods()[0]
	body, err := e.Object(f, items[0])
	if err != nil || body.String() != encoded(t, codec, &pod) {
		t.Errorf("object: %q %v", body, err)
	}
	for _, version := range []string{"v1", "v1beta1"} {
		f := Form{Media: Protobuf, View: Metadata, Version: version}
		gv := schema.GroupVersion{Group: "meta.k8s.io", Version: version}
		var partials runtime.Object
		one := metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
		one.SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
		list1 := []metav1.PartialObjectMetadata{{ObjectMeta: want.Items[0].ObjectMeta}, {ObjectMeta: want.Items[1].ObjectMeta}}
		if version == "v1" {
			partials = &metav1.PartialObjectMetadataList{ListMeta: want.ListMeta, Items: list1}
		} else {
			partials = &metav1beta1.PartialObjectMetadataList{ListMeta: want.ListMeta, Items: list1}
		}
		partials.GetObjectKind().SetGroupVersionKind(gv.WithKind("PartialObjectMetadataList"))
		if got := listOf(t, e, f, head, items); got != encoded(t, codec, partials) {
			t.Errorf("metadata list %s: %q", version, got)
		}
		if body, err := e.Object(f, items[0]); err != nil || body.String() != encoded(t, codec, &one) {
			t.Errorf("metadata %s: %q %v", version, body, err)
		}
	}

	frames := event(t, e.Stream(f, false), kube.Added, items[0])
	message := event(t, e.Stream(f, true), kube.Added, items[0])
	if frames[4:] != message || frames[:4] != string([]byte{0, 0, byte(len(message) >> 8), byte(len(message))}) {
		t.Errorf("frame %q", frames)
	}
	var w metav1.WatchEvent
	if err := w.Unmarshal([]byte(message)); err != nil || w.Type != "ADDED" || string(w.Object.Raw) != encoded(t, codec, &pod) {
		t.Errorf("event %+v %v", w, err)
	}
	parts, err := e.Stream(f, true).Error(metav1.Status{Code: 410, Message: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: 410, Message: "gone"}
	if err := w.Unmarshal([]byte(strings.Join(parts, ""))); err != nil || w.Type != "ERROR" || string(w.Object.Raw) != encoded(t, codec, &status) {
		t.Errorf("error %+v %v", w, err)
	}
}

func TestUnknownFieldsAreNotLost(t *testing.T) {
	e := newEncoder()
	for _, o := range []*scan.Object{
		parse(t, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"},"spec":{"newField":1},"status":{}}`),
		parse(t, `{"kind":"NewKind","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`),
		parse(t, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1","newField":1},"spec":{},"status":{}}`),
	} {
		for _, f := range []Form{{Media: Protobuf}, {Media: CBOR}} {
			if body, err := e.Object(f, o); !errors.Is(err, ErrForm) {
				t.Errorf("%v of %s: %q %v", f, o.JSON, body, err)
			}
			if _, err := e.Stream(f, false).Event(kube.Added, o); !errors.Is(err, ErrForm) {
				t.Errorf("%v of %s in a stream: %v", f, o.JSON, err)
			}
		}
	}
}

func TestYAML(t *testing.T) {
	items, want, head := samples(t)
	text, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), listOf(t, newEncoder(), Form{Media: YAML}, head, items)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	big := parse(t, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"},"data":{"x":"`+strings.Repeat("x", maxYAML)+`"}}`)
	if _, err := newEncoder().Object(Form{Media: YAML}, big); !errors.Is(err, ErrForm) {
		t.Errorf("of %d bytes: %v", len(big.JSON), err)
	}
}

func TestCBOR(t *testing.T) {
	items, want, head := samples(t)
	e := newEncoder()
	f := Form{Media: CBOR}
	codec := cbor.NewSerializer(scheme.Scheme, scheme.Scheme)
	decode := func(text string, into runtime.Object) {
		t.Helper()
		if _, _, err := codec.Decode([]byte(text), nil, into); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
	}
	var got corev1.PodList
	decode(listOf(t, e, f, head, items), &got)
	if diff := cmp.Diff(marshal(want), marshal(got)); diff != "" {
		t.Errorf("list (-want +got)\n%s", diff)
	}
	body, err := e.Object(f, items[0])
	if err != nil {
		t.Fatal(err)
	}
	pod := samplePods()[0]
	if body.String() != encoded(t, codec, &pod) {
		t.Errorf("object %q", body)
	}
	custom := parse(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"4"},"spec":{"n":3,"size":1.5}}`)
	var back map[string]any
	if body, err = e.Object(f, custom); err != nil {
		t.Fatal(err)
	}
	if err := direct.Unmarshal([]byte(body.String()), &back); err != nil || marshal(back) != custom.JSON {
		t.Errorf("custom resource %v %v", back, err)
	}
	back = nil
	text := listOf(t, e, f, ListHead{Kind: "WidgetList", APIVersion: "example.com/v1", RV: 9}, []*scan.Object{custom})
	if err := direct.Unmarshal([]byte(text), &back); err != nil ||
		marshal(back) != `{"apiVersion":"example.com/v1","items":[`+custom.JSON+`],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"9"}}` {
		t.Errorf("list of custom resources %s %v", marshal(back), err)
	}
	var partials metav1.PartialObjectMetadataList
	text = listOf(t, e, Form{Media: CBOR, View: Metadata, Version: "v1"}, head, append(items, custom))
	if err := direct.Unmarshal([]byte(text), &partials); err != nil {
		t.Fatal(err)
	}
	if len(partials.Items) != 3 || partials.Items[0].Name != "a" || partials.Items[2].Name != "w" || partials.Items[0].Kind != "PartialObjectMetadata" {
		t.Errorf("metadata %+v", partials)
	}
	frame := event(t, e.Stream(f, false), kube.Deleted, items[0])
	var w metav1.WatchEvent
	decode(frame, &w)
	var deleted corev1.Pod
	if err := json.Unmarshal(w.Object.Raw, &deleted); err != nil || w.Type != "DELETED" || marshal(deleted) != items[0].JSON {
		t.Errorf("frame %s %s %v", w.Type, w.Object.Raw, err)
	}
}

func indent(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
