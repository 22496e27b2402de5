// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// A secretServer is an API server below /prefix that has one Secret. It answers a
// request for one page in JSON, and a streaming list in protobuf.
type secretServer struct {
	t      *testing.T
	secret *corev1.Secret

	mu      sync.Mutex // guards accepts
	accepts []string
}

// requested returns the Accept headers of the requests since its last call.
func (s *secretServer) requested() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.accepts
	s.accepts = nil
	return all
}

func (s *secretServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	accept, query := r.Header.Get("Accept"), r.URL.Query()
	s.mu.Lock()
	s.accepts = append(s.accepts, accept)
	s.mu.Unlock()
	if r.URL.Path != "/prefix/api/v1/namespaces/ns/secrets" || query.Get("labelSelector") != "a=b" {
		s.t.Errorf("%s is asked for", r.URL)
	}
	if query.Get("limit") == "1" {
		_, _ = w.Write([]byte(`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[]}`))
		return
	}
	if !query.Has("sendInitialEvents") {
		s.t.Errorf("%s is no streaming list", r.URL)
	}
	end := metav1.ObjectMeta{ResourceVersion: "3", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	if strings.Contains(accept, "as=PartialObjectMetadata") {
		kind := metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()}
		s.send(w, watch.Added, &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: s.secret.ObjectMeta})
		s.send(w, watch.Bookmark, &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: end})
	} else {
		s.send(w, watch.Added, s.secret)
		s.send(w, watch.Bookmark, &corev1.Secret{TypeMeta: s.secret.TypeMeta, ObjectMeta: end})
	}
	<-r.Context().Done()
}

// send writes an event of a watch in protobuf.
func (s *secretServer) send(w http.ResponseWriter, typ watch.EventType, o runtime.Object) {
	var object bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &object); err != nil {
		s.t.Error(err)
	}
	event, err := (&metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: object.Bytes()}}).Marshal()
	if err != nil {
		s.t.Error(err)
	}
	_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...))
	w.(http.Flusher).Flush()
}

// synced runs an informer, and waits until it is in sync.
func synced(t *testing.T, a cache.SharedIndexInformer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.RunWithContext(ctx)
	}()
	if !cache.WaitForCacheSync(ctx.Done(), a.HasSynced) {
		t.Fatal("not synced")
	}
	return func() {
		cancel()
		<-done
	}
}

func selected(o *metav1.ListOptions) { o.LabelSelector = "a=b" }

// clientsOf returns a client of typed objects and one of metadata.
func clientsOf(t *testing.T, config *rest.Config) (kubernetes.Interface, metadata.Interface) {
	t.Helper()
	objects, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return objects, meta
}

// TestForManager: objects and their metadata are requested in protobuf, with the
// namespace and the selectors of the lister-watcher.
func TestForManager(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "3", Labels: map[string]string{"a": "b"}},
		Data:       map[string][]byte{"k": []byte("v")},
	}
	secrets := &secretServer{t: t, secret: secret}
	server := httptest.NewServer(secrets)
	defer server.Close()
	config, newInformer, err := ForManager(&rest.Config{Host: server.URL + "/prefix", ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, meta := clientsOf(t, config)
	defer server.CloseClientConnections()
	secretMeta := &metav1.PartialObjectMetadata{}
	secretMeta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	wantMeta := secretMeta.DeepCopy()
	wantMeta.ObjectMeta = secret.ObjectMeta
	wantSecret := secret.DeepCopy()
	wantSecret.TypeMeta = metav1.TypeMeta{} // as with client-go
	for _, test := range []struct {
		lw      cache.ListerWatcher
		example runtime.Object
		want    any
		accept  string // of the streaming list
	}{
		{
			cache.NewFilteredListWatchFromClient(objects.CoreV1().RESTClient(), "secrets", "ns", selected), &corev1.Secret{}, wantSecret,
			"application/vnd.kubernetes.protobuf",
		},
		{
			&cache.ListWatch{ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				selected(&opts)
				return meta.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("ns").List(ctx, opts)
			}}, secretMeta, wantMeta,
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		},
	} {
		secrets.requested()
		a := newInformer(test.lw, test.example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := a.SetTransform(nil); err != nil {
			t.Fatal(err)
		}
		if got := secrets.requested(); len(got) > 0 {
			t.Errorf("requested %v before the start", got)
		}
		stop := synced(t, a)
		got, _, err := a.GetStore().GetByKey("ns/a")
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Error(diff)
		}
		stop()
		if got := secrets.requested(); len(got) != 2 || got[1] != test.accept {
			t.Errorf("requested %v", got)
		}
	}
}

// TestForManagerJSON: with informer.Options.JSON, objects are requested in JSON although the
// lister-watcher would request protobuf, and decoded from it.
func TestForManagerJSON(t *testing.T) {
	api := informertest.New(informertest.Options{Resources: []informertest.Resource{informertest.ConfigMaps}})
	network := informertest.NewNetwork(api)
	defer network.Close()
	api.Put("configmaps", `{"metadata":{"name":"a","namespace":"ns"},"data":{"k":"v"}}`)
	config := &rest.Config{Host: network.URL().String(), Transport: network, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}
	config, newInformer, err := ForManager(config, informer.Options{JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	a := newInformer(cache.NewListWatchFromClient(objects.CoreV1().RESTClient(), "configmaps", "", fields.Everything()), &corev1.ConfigMap{}, 0, nil)
	stop := synced(t, a)
	got, _, err := a.GetStore().GetByKey("ns/a")
	if m, ok := got.(*corev1.ConfigMap); err != nil || !ok || m.Data["k"] != "v" {
		t.Errorf("%+v, %v", got, err)
	}
	stop()
}

// TestJSONOnly: from a server that answers a request for protobuf with 406, as an aggregated one
// may, objects and their metadata come in JSON, although the lister-watcher asks for protobuf
// first.
func TestJSONOnly(t *testing.T) {
	api := informertest.New(informertest.Options{Resources: []informertest.Resource{informertest.ConfigMaps}})
	refused := 0
	api.Control(func(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
		if !strings.Contains(r.Header.Get("Accept"), "application/json") {
			refused++
			informertest.WriteStatus(w, http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: application/json")
			return
		}
		next(w)
	})
	network := informertest.NewNetwork(api)
	defer network.Close()
	api.Put("configmaps", `{"metadata":{"name":"a","namespace":"ns","labels":{"k":"v"}},"data":{"k":"v"}}`)
	config, newInformer, err := ForManager(&rest.Config{
		Host: network.URL().String(), Transport: network,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
	}, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, meta := clientsOf(t, config)
	example := &metav1.PartialObjectMetadata{}
	example.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	for _, test := range []struct {
		lw      cache.ListerWatcher
		example runtime.Object
	}{
		{cache.NewListWatchFromClient(objects.CoreV1().RESTClient(), "configmaps", "", fields.Everything()), &corev1.ConfigMap{}},
		{&cache.ListWatch{ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return meta.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(ctx, opts)
		}}, example},
	} {
		before := refused
		a := newInformer(test.lw, test.example, 0, nil)
		stop := synced(t, a)
		got, _, err := a.GetStore().GetByKey("ns/a")
		if o, ok := got.(metav1.Object); err != nil || !ok || o.GetLabels()["k"] != "v" {
			t.Errorf("%T: %+v, %v", test.example, got, err)
		}
		stop()
		if refused-before != 1 {
			t.Errorf("%T: %d requests were refused, want 1", test.example, refused-before)
		}
	}
}

// TestInterceptList: the resource and the options of a lister-watcher are read from
// its request, which is not sent.
func TestInterceptList(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
	}))
	defer server.Close()
	plain := &rest.Config{Host: server.URL + "/some/prefix/"}
	config, newInformer, err := ForManager(plain, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func(client dynamic.Interface, group, resource, namespace string, opts metav1.ListOptions) cache.ListerWatcher {
		r := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
		return &cache.ListWatch{ListWithContextFunc: func(ctx context.Context, limits metav1.ListOptions) (runtime.Object, error) {
			opts := opts
			opts.Limit = limits.Limit
			if namespace == "" {
				return r.List(ctx, opts)
			}
			return r.Namespace(namespace).List(ctx, opts)
		}}
	}
	m := manager{}
	if m.base, _, err = rest.DefaultServerUrlFor(plain); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		lw   cache.ListerWatcher
		want informer.Resource
		opts informer.Options
	}{
		{list(client, "", "pods", "", metav1.ListOptions{}), informer.Resource{Version: "v1", Name: "pods"}, informer.Options{}},
		{list(client, "", "namespaces", "", metav1.ListOptions{}), informer.Resource{Version: "v1", Name: "namespaces"}, informer.Options{}},
		{
			list(client, "", "pods", "ns", metav1.ListOptions{LabelSelector: "a in (b,c),!d", FieldSelector: "spec.nodeName=n"}),
			informer.Resource{Version: "v1", Name: "pods"},
			informer.Options{Namespaces: []string{"ns"}, LabelSelector: "a in (b,c),!d", FieldSelector: "spec.nodeName=n"},
		},
		{
			list(client, "apps", "deployments", "namespaces", metav1.ListOptions{}),
			informer.Resource{Group: "apps", Version: "v1", Name: "deployments"}, informer.Options{Namespaces: []string{"namespaces"}},
		},
	} {
		var opts informer.Options
		request, err := interceptList(test.lw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.parse(request, &opts)
		if err != nil || got != test.want {
			t.Errorf("%+v, %v", got, err)
		}
		if diff := cmp.Diff(test.opts, opts); diff != "" {
			t.Error(diff)
		}
	}
	if requests > 0 {
		t.Errorf("%d requests were sent", requests)
	}

	// A request that cannot be read is an error of every setter.
	other, err := dynamic.NewForConfig(plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		lw   cache.ListerWatcher
		want string
	}{
		"another client":    {list(other, "", "pods", "", metav1.ListOptions{}), "client not created from the configuration"},
		"another parameter": {list(client, "", "pods", "", metav1.ListOptions{ResourceVersion: "3"}), "has the parameter resourceVersion"},
		//lint:ignore SA1019 of controller-runtime before 0.21
		"no context": {&cache.ListWatch{ListFunc: func(metav1.ListOptions) (runtime.Object, error) { return nil, nil }}, "controller-runtime 0.21 or newer"},
		"no client":  {&cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, errTest }}, errTest.Error()},
	} {
		a := newInformer(test.lw, &unstructured.Unstructured{}, 0, nil)
		handler := &diary{}
		for _, err := range []error{
			a.SetTransform(nil), a.SetWatchErrorHandler(nil), a.AddIndexers(nil), second(a.AddEventHandler(handler)),
		} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		a.Run(nil) // returns
		if a.HasSynced() {
			t.Errorf("%s: synced", name)
		}
	}
	if _, _, err := ForManager(plain, informer.Options{LabelSelector: "a"}); err == nil {
		t.Error("no error for a selector in the options")
	}
	if _, _, err := ForManager(&rest.Config{Host: "http://a b"}, informer.Options{}); err == nil {
		t.Error("no error for an invalid host")
	}
}

// TestCodec: a type without protobuf is decoded from JSON, whose field names are
// case-sensitive.
func TestCodec(t *testing.T) {
	c := codecOf(&corev1.Secret{}, false)
	o, err := c.Decode([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"TYPE":"x","data":{"k":"dg=="}}`))
	if err != nil || c.Protobuf() {
		t.Fatal(err)
	}
	want := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"k": []byte("v")}}
	if diff := cmp.Diff(runtime.Object(want), o); diff != "" {
		t.Error(diff)
	}
	u, err := codecOf(&unstructured.Unstructured{}, true).Decode([]byte(`{"kind":"Widget","apiVersion":"x/v1","size":3}`))
	if err != nil || u.(*unstructured.Unstructured).Object["size"] != int64(3) {
		t.Error(u, err)
	}
}
