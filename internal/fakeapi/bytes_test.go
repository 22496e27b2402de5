// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/internal/fakeapi/synthetic"
)

// TestBytes compares the hand-made encodings with those of the API server's
// serializers, for objects of a population and for objects that were put.
func TestBytes(t *testing.T) {
	made := New(Options{Population: Population{Pods: 2}})
	put := New(Options{})
	first, second := synthetic.Pod(0), synthetic.Pod(1)
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1234567890"}}
	list.APIVersion, list.Kind = "v1", "PodList"
	for _, p := range []*corev1.Pod{first, second} {
		put.Put("pods", p)
		item := *p
		item.TypeMeta = metav1.TypeMeta{}
		item.ResourceVersion = "1234567890"
		list.Items = append(list.Items, item)
	}
	second.ResourceVersion = "1234567890"
	proto := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	for name, s := range map[string]*Server{"made": made, "put": put} {
		c := s.collections[0]
		objects := []*object{c.objects[0].object, c.objects[1].object}
		if objects[0].name != first.Name {
			slices.Reverse(objects)
		}
		for _, format := range []Format{JSON, MetadataJSON, Protobuf, MetadataProtobuf} {
			isProto, isMetadata := format == Protobuf || format == MetadataProtobuf, format == MetadataJSON || format == MetadataProtobuf
			var view runtime.Object = second
			if isMetadata {
				view = metadataOf(second)
			}
			var event, whole bytes.Buffer
			var want []byte
			if isProto {
				if err := proto.Encode(view, &event); err != nil {
					t.Fatal(err)
				}
				if err := proto.Encode(list, &whole); err != nil {
					t.Fatal(err)
				}
				body, err := (&metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: event.Bytes()}}).Marshal()
				if err != nil {
					t.Fatal(err)
				}
				want = append([]byte{0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
			} else {
				json.NewEncoder(&event).Encode(view)
				json.NewEncoder(&whole).Encode(list)
				want = fmt.Appendf(nil, "{\"type\":\"MODIFIED\",\"object\":%s}\n", bytes.TrimSpace(event.Bytes()))
			}
			f := c.formats[format]
			var items []*encoded
			size := 0
			for _, o := range objects {
				e, err := o.encoding(c, format, 1234567890)
				if err != nil {
					t.Fatal(err)
				}
				items = append(items, e)
				size += f.itemSize(e)
			}
			same := func(what, want, got string) {
				t.Helper()
				if name == "put" && !isProto { // the members have another order
					want, got = sorted(t, want), sorted(t, got)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, format %d, %s: %s", name, format, what, diff)
				}
			}
			same("event", string(want), string(f.appendEvent(nil, "MODIFIED", items[1], 1234567890, false)))
			if isMetadata {
				continue
			}
			got := f.appendListHead(nil, list.ListMeta, size)
			got = f.appendItem(got, items[0], 1234567890, true)
			got = f.appendItem(got, items[1], 1234567890, false)
			same("list", whole.String(), string(f.appendListTail(got)))
		}
	}
}

// sorted returns JSON with its members in order.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return string(mustMarshal(v))
}
