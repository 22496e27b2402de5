// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A lagging is a timeline of the Pods of an API server which follows only when a test says so,
// and its prover.
type lagging struct {
	t      *testing.T
	api    *fakeapi.Server
	tl     *timeline.Timeline
	p      *prover
	lists  int  // of metadata
	refuse bool // them
	doubts int
}

// newLagging returns a timeline that has the Pod ns/a, and is at the API server's RV.
func newLagging(t *testing.T) *lagging {
	l := &lagging{t: t, api: fakeapi.New(fakeapi.Options{}), tl: timeline.New(timeline.Options{})}
	network := fakeapi.NewNetwork(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			if l.lists++; l.refuse {
				w.WriteHeader(http.StatusNotAcceptable)
				return
			}
		}
		l.api.ServeHTTP(w, r)
	}))
	t.Cleanup(network.Close)
	up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: network}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := upstream.NewBackground()
	t.Cleanup(b.Stop)
	rv := l.api.Put("pods", pod("a"))
	l.tl.Reset(&scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true, RV: rv, Items: []*scan.Object{l.object("a")}})
	watching := func() reflector.Status { return reflector.Status{Phase: reflector.Watching} }
	l.p = newProver(up, kube.Resource{Version: "v1", Name: "pods"}, l.tl, watching, func(error) { l.doubts++ }, func() {}, newCompared(), b)
	return l
}

func (l *lagging) object(name string) *scan.Object {
	o, err := scan.ParseObject(l.api.Get("pods", "ns/"+name))
	if err != nil {
		l.t.Fatal(err)
	}
	return o
}

// apply gives an event to the timeline.
func (l *lagging) apply(typ kube.EventType, o *scan.Object) {
	if err := l.tl.Apply(scan.Frame{Type: typ, Object: o}); err != nil {
		l.t.Fatal(err)
	}
	l.tl.Flush()
}

// many adds more Pods than are compared without looking for an event first.
func (l *lagging) many() {
	for i := range cheapCompared {
		name := fmt.Sprint("p", i)
		l.api.Put("pods", pod(name))
		l.apply(kube.Added, l.object(name))
	}
}

// fresh calls freshState, and returns the names of the view and how long it took.
func (l *lagging) fresh() (v *timeline.View, rv uint64, names string, took time.Duration) {
	began := time.Now()
	v, rv, err := l.p.freshState(l.t.Context())
	if err != nil {
		return nil, 0, err.Error(), time.Since(began)
	}
	for o := range v.All("", "") {
		names += o.Key.Name()
	}
	return v, rv, names, time.Since(began)
}

// TestFreshState: that an idle collection has the objects of the timeline takes no bookmark.
func TestFreshState(t *testing.T) {
	for name, test := range map[string]struct {
		change func(l *lagging)
		names  string // of the view
		above  bool   // the RV is above the head, and no bookmark was waited for
		lists  int
	}{
		"nothing has changed":  {func(*lagging) {}, "a", false, 1},
		"other resources have": {func(l *lagging) { l.api.Advance(20) }, "a", true, 1},
		"came and went": {func(l *lagging) {
			l.api.Put("pods", pod("b"))
			l.api.Delete("pods", "ns/b")
		}, "a", true, 1},
		"the event comes soon": {func(l *lagging) {
			l.api.Put("pods", pod("b"))
			l.api.Advance(20)
			time.AfterFunc(50*time.Millisecond, func() { l.apply(kube.Added, l.object("b")) })
		}, "ab", true, 1},
		"the event does not come": {func(l *lagging) { l.api.Put("pods", pod("b")) }, errNoProof.Error(), false, 1},
		"another version": {func(l *lagging) {
			l.api.Put("pods", `{"metadata":{"namespace":"ns","name":"a"},"spec":{"nodeName":"x"}}`)
			l.api.Advance(20)
		}, errNoProof.Error(), false, 1},
		"no metadata": {func(l *lagging) {
			l.refuse = true
			l.api.Advance(20)
		}, "a", false, 1},
		"after many others": {func(l *lagging) {
			l.p.compared.AllowN(time.Now(), comparedBurst)
			l.api.Advance(20)
		}, "a", false, 0},
		"too many":        {func(l *lagging) { l.p.maxCompared = 0 }, "a", false, 0},
		"many, idle":      {func(l *lagging) { l.many(); time.Sleep(busyTime); l.api.Advance(20) }, "a", true, 1},
		"many, busy":      {func(l *lagging) { l.many() }, "a", false, 0},
		"many, just busy": {func(l *lagging) { l.many(); l.api.Advance(20) }, "a", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLagging(t)
				head := l.tl.View().RV
				test.change(l)
				v, rv, names, took := l.fresh()
				if test.names != "" && !strings.HasPrefix(names, test.names) || l.lists != test.lists {
					t.Errorf("%q, %d lists", names, l.lists)
				}
				if v == nil {
					return
				}
				if rv != l.api.RV() || rv > v.RV != test.above || test.above && took > quickWait {
					t.Errorf("at %d of %d, the head is at %d, was at %d, after %v", rv, l.api.RV(), v.RV, head, took)
				}
			})
		})
	}
}

// TestWatchOfFreshState: a watch from the RV of such a state has each later event, and none of
// before, which the timeline gets afterwards. The head does not move.
func TestWatchOfFreshState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLagging(t)
		l.api.Put("pods", pod("b"))
		b := l.object("b")
		l.api.Delete("pods", "ns/b")
		gone, err := scan.ParseObject(strings.Replace(b.JSON, fmt.Sprintf("%q", fmt.Sprint(b.RV)), fmt.Sprintf("%q", fmt.Sprint(l.api.RV())), 1))
		if err != nil {
			t.Fatal(err)
		}
		l.api.Advance(20)
		v, rv, names, _ := l.fresh()
		if names != "a" || rv != l.api.RV() || v.RV >= b.RV || l.tl.View().RV != v.RV {
			t.Fatal(names, rv, v)
		}
		cursor, err := l.tl.WatchFrom(v, rv, timeline.Interest{})
		if err != nil {
			t.Fatal(err)
		}
		defer cursor.Close()
		l.apply(kube.Added, b)
		l.apply(kube.Deleted, gone)
		l.api.Put("pods", pod("c"))
		l.apply(kube.Added, l.object("c"))
		got, err := cursor.Next()
		if err != nil || len(got.Events) != 1 || got.Events[0].Object.Key.Name() != "c" {
			t.Errorf("%v, %v", got, err)
		}
	})
}
