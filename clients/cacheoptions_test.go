// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// An emptyServer is an API server without objects. It records the watches: URL → media
// type.
type emptyServer struct {
	mu      sync.Mutex
	watched map[string]string
}

func (s *emptyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	if query.Get("watch") == "" {
		fmt.Fprint(w, `{"kind":"AnyList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		return
	}
	selectors := url.Values{}
	for _, key := range []string{"labelSelector", "fieldSelector"} {
		if query.Has(key) {
			selectors.Set(key, query.Get(key))
		}
	}
	s.mu.Lock()
	s.watched[r.URL.Path+"?"+selectors.Encode()] = r.Header.Get("Accept")
	s.mu.Unlock()
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func (s *emptyServer) diff(want map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Diff(want, s.watched)
}

var (
	core        = corev1.SchemeGroupVersion
	hookWidgets = schema.GroupVersionKind{Group: "hook.example.com", Version: "v1", Kind: "Widget"}
)

// objects returns an object for each way to be cached.
func objects() []client.Object {
	widget, secret := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	widget.SetGroupVersionKind(hookWidgets)
	secret.SetGroupVersionKind(core.WithKind("Secret"))
	return []client.Object{widget, secret, &corev1.ConfigMap{}, &corev1.Pod{}, &corev1.Node{}}
}

func newCache(t *testing.T, config *rest.Config, newInformer clientgo.NewInformerFunc) cache.Cache {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{hookWidgets, core.WithKind("Secret"), core.WithKind("ConfigMap"), core.WithKind("Pod")} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(core.WithKind("Node"), meta.RESTScopeRoot)
	c, err := cache.New(config, cache.Options{
		Scheme: scheme.Scheme, Mapper: mapper, NewInformer: newInformer,
		DefaultNamespaces: map[string]cache.Config{"ns": {}},
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
			Label: labels.SelectorFromSet(labels.Set{"a": "b"}),
			Namespaces: map[string]cache.Config{
				"one": {},
				"two": {FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "n")},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCacheOptions: the options of controller-runtime's cache reach an API server
// through the informer library, and every type is requested in its best form. The API
// server only records requests.
func TestCacheOptions(t *testing.T) {
	clustertest.SkipShort(t)
	s := &emptyServer{watched: map[string]string{}}
	server := httptest.NewServer(s)
	defer server.Close()
	plain := &rest.Config{Host: server.URL}
	config, newInformer, err := clientgo.ForManager(plain, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newCache(t, config, newInformer)
	for _, o := range objects() {
		if _, err := c.GetInformer(t.Context(), o, cache.BlockUntilSynced(false)); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Start(ctx) }()
	const protobuf = "application/vnd.kubernetes.protobuf"
	want := map[string]string{
		"/apis/hook.example.com/v1/namespaces/ns/widgets?":                                "application/json",
		"/api/v1/namespaces/ns/secrets?":                                                  protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"/api/v1/namespaces/ns/configmaps?":                                               protobuf,
		"/api/v1/namespaces/one/pods?labelSelector=a%3Db":                                 protobuf,
		"/api/v1/namespaces/two/pods?fieldSelector=spec.nodeName%3Dn&labelSelector=a%3Db": protobuf,
		"/api/v1/nodes?": protobuf,
	}
	for end := time.Now().Add(time.Minute); s.diff(want) != "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		continue
	}
	if diff := s.diff(want); diff != "" {
		t.Error(diff)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	// A client of another configuration is an error.
	c = newCache(t, plain, newInformer)
	for _, o := range objects() {
		_, err := c.GetInformer(t.Context(), o, cache.BlockUntilSynced(false))
		if err == nil || !strings.Contains(err.Error(), "client not created from the configuration that ForManager returned") {
			t.Errorf("%T: %v", o, err)
		}
	}
}
