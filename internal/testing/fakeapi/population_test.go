// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

const (
	pods  = 53
	after = synthetic.FirstRV + pods // the first resourceVersion to watch from
)

// start returns both addresses of a new server.
func start(t *testing.T) map[string]*rest.Config {
	t.Helper()
	s := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: pods}, LastBookmark: 2900 * time.Millisecond})
	plain, secure, stop, err := fakeapi.Listen(fakeprocess.Handler(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	configs := map[string]*rest.Config{}
	for name, a := range map[string]fakeapi.Address{"http": plain, "tls": secure} {
		configs[name] = &rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{CAData: a.CA}}
	}
	return configs
}

// A kind is one of client-go's clients, each with another encoding.
type kind struct {
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
}

func kinds(t *testing.T, config *rest.Config) map[string]kind {
	t.Helper()
	typed := func(contentType string) kind {
		c := rest.CopyConfig(config)
		c.ContentType = contentType
		pods := kubernetes.NewForConfigOrDie(c).CoreV1().Pods("")
		return kind{
			func(o metav1.ListOptions) (runtime.Object, error) { return pods.List(t.Context(), o) },
			func(o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(t.Context(), o) },
		}
	}
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	unstructured := dynamic.NewForConfigOrDie(config).Resource(resource)
	partial := metadata.NewForConfigOrDie(config).Resource(resource)
	return map[string]kind{
		"JSON":     typed(runtime.ContentTypeJSON),
		"protobuf": typed(runtime.ContentTypeProtobuf),
		"dynamic": {
			func(o metav1.ListOptions) (runtime.Object, error) { return unstructured.List(t.Context(), o) },
			func(o metav1.ListOptions) (watch.Interface, error) { return unstructured.Watch(t.Context(), o) },
		},
		"metadata": {
			func(o metav1.ListOptions) (runtime.Object, error) { return partial.List(t.Context(), o) },
			func(o metav1.ListOptions) (watch.Interface, error) { return partial.Watch(t.Context(), o) },
		},
	}
}

func each(t *testing.T, test func(t *testing.T, config *rest.Config, k kind)) {
	for via, config := range start(t) {
		for name, k := range kinds(t, config) {
			t.Run(via+"/"+name, func(t *testing.T) { test(t, config, k) })
		}
	}
}

func command(t *testing.T, config *rest.Config, what string) (m fakeapi.Mark) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Post(config.Host+what, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

func accessor(t *testing.T, o runtime.Object) metav1.Object {
	t.Helper()
	a, err := meta.Accessor(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// next returns the type and the object of the watch's next event.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		return e
	case <-t.Context().Done():
		t.Fatal("no event")
		panic("unreachable")
	}
}

func TestListPages(t *testing.T) {
	each(t, func(t *testing.T, _ *rest.Config, k kind) {
		seen := map[string]bool{}
		options := metav1.ListOptions{Limit: 20}
		for _, want := range []int{20, 20, 13} {
			list, err := k.list(options)
			if err != nil {
				t.Fatal(err)
			}
			items, err := meta.ExtractList(list)
			if err != nil {
				t.Fatal(err)
			}
			if len(items) != want {
				t.Errorf("a page of %d, want %d", len(items), want)
			}
			for _, o := range items {
				seen[accessor(t, o).GetNamespace()+"/"+accessor(t, o).GetName()] = true
			}
			m, err := meta.ListAccessor(list)
			if err != nil {
				t.Fatal(err)
			}
			remaining := int64(0)
			if m.GetRemainingItemCount() != nil {
				remaining = *m.GetRemainingItemCount()
			}
			options.Continue = m.GetContinue()
			if int(remaining) != pods-len(seen) || (remaining == 0) != (options.Continue == "") {
				t.Errorf("after %d: %d remaining, continue %q", len(seen), remaining, options.Continue)
			}
		}
		if len(seen) != pods {
			t.Errorf("%d Pods, want %d", len(seen), pods)
		}
	})
}

func TestListVersions(t *testing.T) {
	config := start(t)["http"]
	list := kinds(t, config)["protobuf"].list
	first, err := list(metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := first.(*corev1.PodList).ListMeta
	mark := command(t, config, "/bench/events?n=3")
	// An old state can be read until it is compacted.
	for _, o := range []metav1.ListOptions{{Continue: m.Continue}, {ResourceVersion: m.ResourceVersion, ResourceVersionMatch: "Exact"}} {
		got, err := list(o)
		if err != nil {
			t.Fatal(err)
		}
		if l := got.(*corev1.PodList); l.ResourceVersion != m.ResourceVersion || slices.ContainsFunc(l.Items, func(p corev1.Pod) bool {
			return len(p.ResourceVersion) != len(m.ResourceVersion) || p.ResourceVersion > m.ResourceVersion
		}) {
			t.Errorf("%+v: a list at %s", o, l.ResourceVersion)
		}
	}
	command(t, config, "/bench/expire")
	head := mark
	rv, err := strconv.Atoi(mark.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	head.ResourceVersion = strconv.Itoa(rv + 1)
	for _, c := range []struct {
		name    string
		options metav1.ListOptions
		is      func(error) bool
	}{
		{"the old continue token", metav1.ListOptions{Continue: m.Continue}, apierrors.IsResourceExpired},
		{"the old state", metav1.ListOptions{ResourceVersion: m.ResourceVersion, ResourceVersionMatch: "Exact"}, apierrors.IsResourceExpired},
		{"the future", metav1.ListOptions{ResourceVersion: mark.ResourceVersion + "0"}, apierrors.IsTimeout},
		{"no number", metav1.ListOptions{ResourceVersion: "x"}, apierrors.IsBadRequest},
	} {
		if _, err := list(c.options); !c.is(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, o := range []metav1.ListOptions{{ResourceVersion: "0", Limit: 5}, {ResourceVersion: m.ResourceVersion}, {ResourceVersion: head.ResourceVersion, ResourceVersionMatch: "Exact"}} {
		got, err := list(o)
		if err != nil {
			t.Fatal(err)
		}
		if l := got.(*corev1.PodList); len(l.Items) != pods || l.ResourceVersion != head.ResourceVersion {
			t.Errorf("%+v: %d Pods at %s, want %d at %s", o, len(l.Items), l.ResourceVersion, pods, head.ResourceVersion)
		}
	}
}

func TestWatchList(t *testing.T) {
	each(t, func(t *testing.T, config *rest.Config, k kind) {
		w, err := k.watch(metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: "NotOlderThan", AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for range pods {
			if e := next(t, w); e.Type != watch.Added {
				t.Fatalf("%s %v", e.Type, e.Object)
			}
		}
		e := next(t, w)
		if e.Type != watch.Bookmark || accessor(t, e.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			t.Fatalf("%s %v", e.Type, e.Object)
		}
		mark := command(t, config, "/bench/events?n=2")
		next(t, w)
		e = next(t, w)
		if o := accessor(t, e.Object); e.Type != watch.Modified || mark != (fakeapi.Mark{o.GetNamespace(), o.GetName(), o.GetResourceVersion()}) {
			t.Errorf("%s %s/%s at %s, want %v", e.Type, o.GetNamespace(), o.GetName(), o.GetResourceVersion(), mark)
		}
	})
}

func TestResumeAndExpire(t *testing.T) {
	each(t, func(t *testing.T, config *rest.Config, k kind) {
		before := command(t, config, "/bench/events?n=1")
		command(t, config, "/bench/events?n=5")
		w, err := k.watch(metav1.ListOptions{ResourceVersion: before.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for i := range 5 {
			var rv int64
			fmt.Sscan(before.ResourceVersion, &rv)
			if e := next(t, w); e.Type != watch.Modified || accessor(t, e.Object).GetResourceVersion() != fmt.Sprint(rv+1+int64(i)) {
				t.Errorf("event %d: %s %v", i, e.Type, e.Object)
			}
		}
		mark := command(t, config, "/bench/expire")
		if e := next(t, w); !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			t.Errorf("%s %v", e.Type, e.Object)
		}
		again, err := k.watch(metav1.ListOptions{ResourceVersion: before.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Stop()
		if e := next(t, again); !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			t.Errorf("%s %v", e.Type, e.Object)
		}
		list, err := k.list(metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := meta.ListAccessor(list)
		if err != nil {
			t.Fatal(err)
		}
		after, err := k.watch(metav1.ListOptions{ResourceVersion: m.GetResourceVersion()})
		if err != nil {
			t.Fatal(err)
		}
		defer after.Stop()
		if o := accessor(t, next(t, after).Object); mark != (fakeapi.Mark{o.GetNamespace(), o.GetName(), o.GetResourceVersion()}) {
			t.Errorf("%s/%s at %s, want %v", o.GetNamespace(), o.GetName(), o.GetResourceVersion(), mark)
		}
	})
}

func TestProtocols(t *testing.T) {
	for via, config := range start(t) {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(config.Host + "/api/v1/pods?limit=1")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if want := map[string]int{"http": 1, "tls": 2}[via]; resp.StatusCode != http.StatusOK || resp.ProtoMajor != want {
			t.Errorf("%s: %s over %s", via, resp.Status, resp.Proto)
		}
	}
}
