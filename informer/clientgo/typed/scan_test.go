// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

func newPod(name, rv string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), ResourceVersion: rv,
			Labels: map[string]string{"app": "x", "tier": "back"}, Annotations: map[string]string{"a": "b"},
			Finalizers: []string{"f"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "m", FieldsV1: fieldsV1(`{"f:a":{}}`)}, {Manager: "n"}},
		},
		Spec:   corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// fieldsV1 is metav1.NewFieldsV1, which apimachinery has since 0.36.
func fieldsV1(text string) *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	_ = f.UnmarshalJSON([]byte(text)) // fails only for nil
	return f
}

func encode(t *testing.T, o runtime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// frame encodes an event of a watch.
func frame(t *testing.T, typ string, o runtime.Object) []byte {
	t.Helper()
	b, err := (&metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: encode(t, o)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestScanEvent: scanning an event gives the same values as decoding it, and removes
// managedFields only.
func TestScanEvent(t *testing.T) {
	pod := newPod("a", "42")
	var e scan.ItemEvent
	if err := e.ScanProtobuf(frame(t, "MODIFIED", pod)); err != nil {
		t.Fatal(err)
	}
	it := &e.Item
	if e.Type != kube.Modified || it.Namespace != "ns" || it.Name != "a" || it.UID != "uid-a" || it.RV != 42 || it.InitialEventsEnd() {
		t.Errorf("%+v", e)
	}
	trimmed := it.Append(nil, false)
	for key, want := range map[string]string{"app": "x", "tier": "back", "none": ""} {
		if v, ok := scan.ProtobufLabel(trimmed, key); v != want || ok != (want != "") {
			t.Errorf("label %s: %q", key, v)
		}
	}
	pod.TypeMeta = metav1.TypeMeta{} // not in the message
	for _, keep := range []bool{true, false} {
		want := pod.DeepCopy()
		if !keep {
			want.ManagedFields = nil
		}
		var got corev1.Pod
		object := it.Append(nil, keep)
		if err := got.Unmarshal(object); err != nil || len(object) != it.Size(keep) {
			t.Fatalf("%d bytes, want %d, %v", len(object), it.Size(keep), err)
		}
		if diff := cmp.Diff(want, &got); diff != "" {
			t.Error(diff)
		}
	}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{"k8s.io/initial-events-end": "true"}}}
	if err := e.ScanProtobuf(frame(t, "BOOKMARK", end)); err != nil || e.Type != kube.Bookmark || e.Item.RV != 9 || !e.Item.InitialEventsEnd() {
		t.Errorf("%v, %+v", err, e)
	}
	gone := &metav1.Status{Status: "Failure", Message: "too old", Code: 410, Details: &metav1.StatusDetails{RetryAfterSeconds: 7}}
	if err := e.ScanProtobuf(frame(t, "ERROR", gone)); err != nil || e.Type != kube.Error {
		t.Errorf("%v, %+v", err, e)
	}
	if s, err := scan.ParseStatus(e.Status); err != nil || s != (scan.Status{Message: "too old", Code: 410, RetryAfter: 7}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestScanList(t *testing.T) {
	list := encode(t, &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "next"},
		Items:    []corev1.Pod{*newPod("a", "1"), *newPod("b", "2")},
	})
	read := func(in []byte) (names string, head *scan.List, err error) {
		r := scan.NewProtobufReader(iotest.OneByteReader(bytes.NewReader(in)), &scan.List{Kind: "PodList"})
		var it scan.Item
		ok, err := r.Next(&it)
		for ; ok && err == nil; ok, err = r.Next(&it) {
			names += string(it.AppendKey(nil))
		}
		return names, r.List(), err
	}
	if names, head, err := read(list); names != "ns/ans/b" || head.RV != 77 || head.Continue != "next" || head.Kind != "PodList" || err != nil {
		t.Errorf("%s %+v %v", names, head, err)
	}
	trailer := 4 // empty fields of the envelope
	for n := range len(list) - trailer {
		if _, _, err := read(list[:n]); err == nil {
			t.Errorf("no error for a list cut at %d of %d bytes", n, len(list))
		}
	}
}

// TestScanListLengths: inconsistent lengths are errors.
func TestScanListLengths(t *testing.T) {
	item, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}).Marshal()
	if err != nil || len(item) > 127 {
		t.Fatal(len(item), err)
	}
	for name, list := range map[string][]byte{
		"an item longer than the list": append([]byte{'k', '8', 's', 0, 0x12, 4, 0x12, byte(len(item))}, item...),
		"a number without an end":      []byte("k8s\x00\x12\x02\x12\xff\xff\xff"),
		"no envelope":                  []byte("{\"kind\":\"List\"}"),
		"a huge item":                  []byte("k8s\x00\x12\xff\xff\xff\xff\xff\xff\x01\x12\xff\xff\xff\xff\xff\x01"),
	} {
		var it scan.Item
		if _, err := scan.NewProtobufReader(bytes.NewReader(list), &scan.List{}).Next(&it); !errors.Is(err, scan.ErrProtobuf) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzProtobuf compares the scan of a pod with the generated decoder.
func FuzzProtobuf(f *testing.F) {
	for _, p := range []*corev1.Pod{newPod("a", "42"), {}} {
		b, err := p.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(binary.AppendUvarint(b, 8))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e scan.ItemEvent
		_ = e.ScanProtobuf(b) // must not panic
		r := scan.NewProtobufReader(bytes.NewReader(b), &scan.List{})
		var it scan.Item
		for ok, err := r.Next(&it); ok && err == nil; ok, err = r.Next(&it) {
			continue
		}
		var pod corev1.Pod
		if it.ScanProtobuf(b) != nil || pod.Unmarshal(b) != nil {
			return
		}
		if it.Name != pod.Name || it.Namespace != pod.Namespace || it.UID != string(pod.UID) {
			t.Fatalf("%+v, decoded %+v", it, pod.ObjectMeta)
		}
		for key, want := range pod.Labels {
			if v, ok := scan.ProtobufLabel(b, key); !ok || v != want {
				t.Fatalf("label %q is %q, %v", key, v, ok)
			}
		}
		var trimmed corev1.Pod
		object := it.Append(nil, false)
		if err := trimmed.Unmarshal(object); err != nil || len(object) != it.Size(false) {
			t.Fatalf("%d bytes, want %d, %v", len(object), it.Size(false), err)
		}
		pod.ManagedFields = nil
		// Compare bytes: NaN is not equal to itself.
		got, _ := trimmed.Marshal()
		want, _ := pod.Marshal()
		if !bytes.Equal(got, want) {
			t.Fatalf("trimmed %v, want %v", trimmed, pod)
		}
	})
}

// TestScanMetadata: what is read without decoding is what the decoded object has.
func TestScanMetadata(t *testing.T) {
	no, yes := false, true
	pod := newPod("a", "42")
	pod.Annotations, pod.Finalizers = map[string]string{"x": "1", "y": "2"}, []string{"a/b", "c"}
	deleted := metav1.Unix(1_700_000_000, 0)
	pod.DeletionTimestamp = &deleted
	pod.Generation = 1 << 40
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1"},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "no", UID: "2", Controller: &no},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "3", Controller: &yes, BlockOwnerDeletion: &yes},
	}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	want := []scan.Owner{
		{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1"},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "no", UID: "2"},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "3", Controller: true},
	}
	if got := slices.Collect(scan.ProtobufOwners(raw)); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if n := scan.ProtobufGeneration(raw); n != pod.Generation {
		t.Errorf("generation %d", n)
	}
	if at := scan.ProtobufDeletion(raw); !at.Equal(deleted.Time) {
		t.Errorf("deletion %v", at)
	}
	if all := scan.ProtobufFinalizers(raw); !slices.Equal(all, pod.Finalizers) {
		t.Errorf("finalizers %q", all)
	}
	for key, want := range map[string]string{"x": "1", "y": "2", "app": ""} {
		if v, ok := scan.ProtobufAnnotation(raw, key); v != want || ok != (want != "") {
			t.Errorf("annotation %s: %q", key, v)
		}
	}
	for n := range raw { // none of the truncated messages leads to a panic
		_ = slices.Collect(scan.ProtobufOwners(raw[:n]))
		scan.ProtobufGeneration(raw[:n])
		scan.ProtobufDeletion(raw[:n])
		scan.ProtobufFinalizers(raw[:n])
		scan.ProtobufAnnotation(raw[:n], "y")
	}
	pod.DeletionTimestamp = nil
	pod.OwnerReferences = pod.OwnerReferences[:2]
	if raw, err = pod.Marshal(); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(scan.ProtobufOwners(raw)); !slices.Equal(got, want[:2]) {
		t.Errorf("%+v", got)
	}
	if at := scan.ProtobufDeletion(raw); !at.IsZero() {
		t.Errorf("deletion %v", at)
	}
}
