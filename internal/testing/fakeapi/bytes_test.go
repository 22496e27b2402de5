// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

// TestBytes compares the hand-made encodings with those of the API server's
// serializers, for objects of a population and for objects that were put.
func TestBytes(t *testing.T) {
	made := New(Options{Population: Population{Pods: 2}})
	put := New(Options{})
	for i := range 2 {
		put.Put("pods", synthetic.Pod(i))
	}
	for name, s := range map[string]*Server{"made": made, "put": put} {
		network := NewNetwork(s)
		defer network.Close()
		ask := func(path, accept string) *bufio.Reader {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/api/v1/pods"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			resp, err := network.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { resp.Body.Close() })
			return bufio.NewReader(resp.Body)
		}
		for _, accept := range []string{
			"application/json", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
			"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		} {
			isProto, isMetadata := strings.Contains(accept, "protobuf"), strings.Contains(accept, "as=")
			same := func(what string, want, got []byte) {
				t.Helper()
				if name == "put" && !isProto { // the members have another order
					want, got = sorted(t, want), sorted(t, got)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("%s as %s, %s: %s", name, accept, what, diff)
				}
			}
			list := wantList(t, s)
			if !isMetadata {
				got, err := io.ReadAll(ask("", accept))
				if err != nil {
					t.Fatal(err)
				}
				same("list", serialized(t, list, isProto), got)
			}
			watch := ask("?watch=1&resourceVersion="+list.ResourceVersion, accept)
			changed := list.Items[1]
			changed.APIVersion, changed.Kind = "v1", "Pod"
			changed.ResourceVersion = strconv.FormatUint(s.Touch("pods", changed.Namespace+"/"+changed.Name), 10)
			var view runtime.Object = &changed
			if isMetadata {
				view = metadataOf(view)
			}
			object := serialized(t, view, isProto)
			want := fmt.Appendf(nil, "{\"type\":\"MODIFIED\",\"object\":%s}\n", bytes.TrimSpace(object))
			if isProto {
				body, err := (&metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: object}}).Marshal()
				if err != nil {
					t.Fatal(err)
				}
				want = append([]byte{0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
			}
			got := make([]byte, len(want))
			if _, err := io.ReadFull(watch, got); err != nil {
				t.Fatal(err)
			}
			same("event", want, got)
		}
	}
}

// wantList returns the list of the two Pods that a server has.
func wantList(t *testing.T, s *Server) *corev1.PodList {
	t.Helper()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.RV(), 10)}}
	list.APIVersion, list.Kind = "v1", "PodList"
	for _, text := range s.All("pods") {
		var has corev1.Pod
		if err := json.Unmarshal([]byte(text), &has); err != nil {
			t.Fatal(err)
		}
		item := synthetic.Pod(slices.IndexFunc([]*corev1.Pod{synthetic.Pod(0), synthetic.Pod(1)}, func(p *corev1.Pod) bool { return p.Name == has.Name }))
		item.TypeMeta = metav1.TypeMeta{}
		item.ResourceVersion = has.ResourceVersion
		list.Items = append(list.Items, *item)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list
}

// serialized returns an object as the API server's serializers write it.
func serialized(t *testing.T, o runtime.Object, isProto bool) []byte {
	t.Helper()
	var out bytes.Buffer
	err := json.NewEncoder(&out).Encode(o)
	if isProto {
		out.Reset()
		err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sorted returns JSON with its members in order.
func sorted(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return mustMarshal(v)
}
