// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

func TestResource(t *testing.T) {
	for _, test := range []struct {
		object runtime.Object
		want   informer.Resource
	}{
		{&corev1.Pod{}, informer.Resource{Version: "v1", Name: "pods"}},
		{&discoveryv1.EndpointSlice{}, informer.Resource{Group: "discovery.k8s.io", Version: "v1", Name: "endpointslices"}},
		{&appsv1.Deployment{}, informer.Resource{Group: "apps", Version: "v1", Name: "deployments"}},
		{&networkingv1.Ingress{}, informer.Resource{Group: "networking.k8s.io", Version: "v1", Name: "ingresses"}},
		{&networkingv1.NetworkPolicy{}, informer.Resource{Group: "networking.k8s.io", Version: "v1", Name: "networkpolicies"}},
	} {
		if got, err := resource(test.object); err != nil || got != test.want {
			t.Errorf("%T: %v, %v", test.object, got, err)
		}
	}
	if _, err := resource(&metav1.PartialObjectMetadata{}); err == nil {
		t.Error("no error for a type that is not in the scheme")
	}
}

// TestTyped: objects in protobuf are the same from a streaming list and from a
// LIST, and events follow.
func TestTyped(t *testing.T) {
	for name, streams := range map[string]bool{"streaming list": true, "list": false} {
		t.Run(name, func(t *testing.T) {
			a, b := newPod("a", "3"), newPod("b", "4")
			later := newPod("b", "12")
			later.Status.Phase = corev1.PodFailed
			server := httptest.NewServer(&protobufServer{t: t, streams: streams, pods: []corev1.Pod{*a, *b}, then: later})
			defer server.Close()
			src, err := informer.FromURL(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			pods := New[*corev1.Pod](src, informer.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			result := make(chan error, 1)
			go func() { result <- pods.Run(ctx) }()
			if err := pods.WaitRV(ctx, "12"); err != nil {
				t.Fatal(err)
			}
			for _, want := range []*corev1.Pod{a, later} {
				want = want.DeepCopy()
				want.TypeMeta, want.ManagedFields = metav1.TypeMeta{}, nil
				ref, _ := pods.Get(informer.Key{Namespace: "ns", Name: want.Name})
				got, err := ref.Object()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if v, ok := ref.Label("app"); v != "x" || !ok {
					t.Errorf("label %q", v)
				}
			}
			cancel()
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}

// A protobufServer serves a list of pods and one event.
type protobufServer struct {
	t       *testing.T
	streams bool
	pods    []corev1.Pod
	then    *corev1.Pod
}

func (s *protobufServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: s.pods}
	if query.Get("limit") == "1" {
		_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}`))
		return
	}
	if accept := r.Header.Get("Accept"); accept != "application/vnd.kubernetes.protobuf" {
		s.t.Errorf("requested %s", accept)
	}
	event := func(typ string, o runtime.Object) {
		b := frame(s.t, typ, o)
		_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
		w.(http.Flusher).Flush()
	}
	switch {
	case !query.Has("watch"):
		_, _ = w.Write(encode(s.t, &list))
		return
	case query.Has("sendInitialEvents") && !s.streams:
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write(encode(s.t, &metav1.Status{Status: "Failure", Message: "no", Code: 422}))
		return
	case query.Has("sendInitialEvents"):
		for i := range s.pods {
			event("ADDED", &s.pods[i])
		}
		event("BOOKMARK", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10", Annotations: map[string]string{"k8s.io/initial-events-end": "true"}}})
	}
	event("MODIFIED", s.then)
	<-r.Context().Done()
}

// TestMetadata: only metadata is requested, of a list and of a watch.
func TestMetadata(t *testing.T) {
	const accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata"
	object := metav1.PartialObjectMetadata{ObjectMeta: newPod("a", "3").ObjectMeta}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := accept + "List;g=meta.k8s.io;v=v1"
		switch query := r.URL.Query(); {
		case query.Get("limit") == "1":
			_, _ = w.Write([]byte(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"10"},"items":[]}`))
			return
		case query.Has("sendInitialEvents"):
			http.Error(w, "", http.StatusUnprocessableEntity)
			return
		case query.Has("watch"):
			want = accept + ";g=meta.k8s.io;v=v1"
			defer func() { <-r.Context().Done() }()
		default:
			_, _ = w.Write(encode(t, &metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
				ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []metav1.PartialObjectMetadata{object},
			}))
		}
		if got := r.Header.Get("Accept"); got != want {
			t.Errorf("%s: requested %s", r.URL, got)
		}
		w.(http.Flusher).Flush()
	}))
	defer server.Close()
	src, err := informer.FromURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	widgets := NewMetadata(src, informer.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, informer.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := widgets.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := widgets.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	ref, _ := widgets.Get(informer.Key{Namespace: "ns", Name: "a"})
	got, err := ref.Object()
	if object.ManagedFields = nil; err != nil || !reflect.DeepEqual(got.ObjectMeta, object.ObjectMeta) {
		t.Error(err, cmp.Diff(&object, got))
	}
	cancel()
	if err := widgets.Wait(); err != nil {
		t.Error(err)
	}
}

// A widget is a type as kubebuilder makes them.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object { c := *w; return &c }

// TestScheme: the mapper names the resource of a type in a scheme.
func TestScheme(t *testing.T) {
	src, err := informer.FromURL("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	types, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	if _, err := NewFromScheme[*widget](src, types, mapper, informer.Options{}); !runtime.IsNotRegisteredError(errors.Unwrap(err)) {
		t.Errorf("not in the scheme: %v", err)
	}
	kind := version.WithKind("Widget")
	types.AddKnownTypeWithName(kind, &widget{})
	if _, err := NewFromScheme[*widget](src, types, mapper, informer.Options{}); !meta.IsNoMatchError(errors.Unwrap(err)) {
		t.Errorf("not in the API server: %v", err)
	}
	mapper.AddSpecific(kind, version.WithResource("widgetry"), version.WithResource("widget"), meta.RESTScopeNamespace)
	var of informer.Collection
	_, err = NewFromScheme[*widget](src, types, mapper, informer.Options{Metrics: func(c informer.Collection, _ func() informer.Status) informer.Metrics {
		of = c
		return informer.Metrics{}
	}})
	if want := (informer.Resource{Group: "example.com", Version: "v1", Name: "widgetry"}); err != nil || of.Resource != want {
		t.Errorf("%+v, %v", of, err)
	}
	forgetful := &cachedMapper{RESTMapper: meta.NewDefaultRESTMapper(nil), newer: mapper}
	if _, err := NewFromScheme[*widget](src, types, forgetful, informer.Options{}); err != nil {
		t.Errorf("a definition that the mapper has not seen: %v", err)
	}
}

// A cachedMapper knows the present resources when it is reset.
type cachedMapper struct {
	meta.RESTMapper
	newer meta.RESTMapper
}

func (m *cachedMapper) Reset() { m.RESTMapper = m.newer }

// TestJSON: an API server that has no protobuf is asked for JSON.
func TestJSON(t *testing.T) {
	api := informertest.New(informertest.Options{Resources: []informertest.Resource{informertest.ConfigMaps}})
	network := informertest.NewNetwork(api)
	defer network.Close()
	api.Put("configmaps", `{"metadata":{"name":"a","namespace":"ns","labels":{"x":"y"}},"data":{"k":"v"}}`)
	i := New[*corev1.ConfigMap](informer.NewSource(network.URL(), network), informer.Options{JSON: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := i.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := i.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	ref, _ := i.Get(informer.Key{Namespace: "ns", Name: "a"})
	m, err := ref.Object()
	if label, ok := ref.Label("x"); err != nil || m.Data["k"] != "v" || m.Kind != "" || label != "y" || !ok {
		t.Errorf("%+v, %v, label %q", m, err, label)
	}
	cancel()
	if err := i.Wait(); err != nil {
		t.Error(err)
	}
}

// TestWrongTypes: an argument that is nil, and a type that is not that of an object, are
// named at the call.
func TestWrongTypes(t *testing.T) {
	src, err := informer.FromURL("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	pods := schema.GroupVersionKind{Version: "v1", Kind: "PodList"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(pods, pods.GroupVersion().WithResource("pods"), pods.GroupVersion().WithResource("pod"), meta.RESTScopeNamespace)
	opts := informer.Options{}
	for want, err := range map[string]error{
		"typed: scheme is nil":                          second(NewFromScheme[*corev1.Pod](src, nil, mapper, opts)),
		"typed: mapper is nil":                          second(NewFromScheme[*corev1.Pod](src, scheme.Scheme, nil, opts)),
		"typed: runtime.Object is not a pointer: name":  second(NewFromScheme[runtime.Object](src, scheme.Scheme, mapper, opts)),
		"typed: *v1.PodList is not the type of an obje": second(NewFromScheme[*corev1.PodList](src, scheme.Scheme, mapper, opts)),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, call := range map[string]func(){
		"New":      func() { New[Object](src, opts) },
		"Protobuf": func() { Protobuf[Object]() },
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || !strings.HasPrefix(err.Error(), "typed: typed.Object is not a pointer") {
					t.Errorf("%s: %v", name, err)
				}
			}()
			call()
		}()
	}
}

func second[A any](_ A, err error) error { return err }

func TestUnstructured(t *testing.T) {
	u, err := Unstructured().Decode([]byte(`{"apiVersion":"x/v1","kind":"Widget","spec":{"size":3}}`))
	if err != nil || Unstructured().Protobuf() {
		t.Fatal(err)
	}
	if spec := u.Object["spec"]; u.GetKind() != "Widget" || !reflect.DeepEqual(spec, map[string]any{"size": int64(3)}) {
		t.Errorf("%v", u)
	}
	if _, err := Unstructured().Decode([]byte(`{"spec":`)); err == nil || strings.Contains(err.Error(), "panic") {
		t.Error(err)
	}
}
