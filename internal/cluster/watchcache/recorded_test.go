// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

var pods = kube.Resource{Version: "v1", Name: "pods"}

// A churn changes Pods all the time, and logs each change.
type churn struct {
	api *fakeapi.Server
	mu  sync.Mutex
	log []string // "ADDED ns/a@101"
}

func (c *churn) run(ctx context.Context) {
	there := map[string]bool{}
	for ctx.Err() == nil {
		key := fmt.Sprintf("ns/p%d", rand.IntN(10))
		c.mu.Lock()
		switch {
		case there[key] && rand.IntN(4) == 0:
			c.log = append(c.log, fmt.Sprintf("DELETED %s@%d", key, c.api.Delete("pods", key)))
			there[key] = false
		default:
			typ := kube.Added
			if there[key] {
				typ = kube.Modified
			}
			rv := c.api.Put("pods", fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q},"spec":{"nodeName":"n%d"}}`, key[3:], rand.IntN(100)))
			c.log = append(c.log, fmt.Sprintf("%s %s@%d", typ, key, rv))
			there[key] = true
		}
		c.mu.Unlock()
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
	}
}

// contains reports whether the events are a contiguous part of the log.
func (c *churn) contains(events []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(events) == 0 {
		return true
	}
	n := slices.Index(c.log, events[0])
	return n >= 0 && n+len(events) <= len(c.log) && slices.Equal(c.log[n:n+len(events)], events)
}

// TestRecordedWhileReadersComeAndGo: every reader sees every event after its RV once,
// the history has every event, and the upstream has one watch, even if the process
// ends in any state and restarts.
func TestRecordedWhileReadersComeAndGo(t *testing.T) {
	api, fs := fakeapi.New(fakeapi.Options{NoWatchList: true}), vfs.NewMem()
	var lists, watches atomic.Int64
	api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
		switch {
		case r.Resource.Name != "pods":
		case r.Verb == "watch" && !r.Query.Has("sendInitialEvents"):
			watches.Add(1)
		case r.Verb == "list" && r.Query.Get("limit") != "1":
			lists.Add(1)
		}
		next(w)
	})
	network := fakeapi.NewNetwork(api)
	defer network.Close()
	c := &churn{api: api}
	ctx, cancel := context.WithCancel(t.Context())
	var changing sync.WaitGroup
	changing.Go(func() { c.run(ctx) })
	defer changing.Wait()
	defer cancel()

	selected, err := recorder.Select([]string{"pods"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	process := func(cycles int, last bool) {
		up, err := upstream.New(&rest.Config{Host: "http://api", Dial: network.Dial}, upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer up.Close()
		rec, err := recorder.New(recorder.Options{Dir: "data", FS: fs, Select: selected, Upstream: up, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := rec.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		background := upstream.NewBackground()
		cache := watchcache.New(watchcache.Options{
			Upstream: up, Background: background, Discovery: upstream.NewDiscovery(up, background),
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), IdleTimeout: 5 * time.Millisecond, Await: rec.Ready,
		})
		caching, stopCaching := context.WithCancel(context.Background())
		recording, stopRecording := context.WithCancel(context.Background())
		var first, second sync.WaitGroup
		first.Go(func() { cache.Run(caching) })
		second.Go(func() { rec.Run(recording, cache) })
		defer func() {
			stopCaching()
			first.Wait()
			background.Stop()
			stopRecording()
			second.Wait()
		}()
		for range cycles {
			read(t, cache, c)
			time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		}
		if !last {
			return
		}
		cancel()
		changing.Wait()
		deadline, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		stream := rec.Store().Streams(pods)[0]
		for stream.Head().RV < api.RV() && deadline.Err() == nil {
			_ = rec.Sync(deadline, pods) // record what was received
			time.Sleep(time.Millisecond)
		}
		var events []string
		span := stream.Span()
		for e, err := range stream.Events(t.Context(), span.From.RV, span.To.RV) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key, e.Object.RV))
		}
		if missing := c.log[len(c.log)-min(len(c.log), len(events)):]; !slices.Equal(events, missing) || uint64(len(events)) != api.RV()-span.From.RV {
			t.Errorf("%d events recorded from %d to %d, of %d", len(events), span.From.RV, span.To.RV, api.RV())
		}
		gaps := slices.DeleteFunc(stream.Gaps(), history.Gap.Late) // of the restarts
		if epochs := len(rec.Store().Streams(pods)); len(gaps) > 0 || epochs != 1 {
			t.Errorf("gaps %v, %d epochs", gaps, epochs)
		}
	}
	process(20, false)
	if n := watches.Load(); n != 1 {
		t.Errorf("%d watches upstream", n)
	}
	for range 3 {
		process(rand.IntN(3), false)
	}
	process(5, true)
	if n := lists.Load(); n != 1 {
		t.Errorf("%d lists", n)
	}
}

// read reads Pods until some events have arrived.
func read(t *testing.T, cache *watchcache.Cache, c *churn) {
	t.Helper()
	res := cache.Acquire(t.Context(), pods)
	if res == nil {
		t.Fatal("Pods are not watched")
	}
	defer res.Release()
	s := res.StateFor(t.Context(), request.List)
	if !s.Readable {
		t.Fatalf("Pods cannot be read: %+v", s.Status)
	}
	cursor, err := res.Timeline.WatchFrom(s.View, s.View.RV, timeline.Interest{})
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	var events []string
	for len(events) < 20 {
		b, err := cursor.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			events = append(events, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key, e.Object.RV))
		}
		select {
		case <-cursor.Ready():
		case <-time.After(20 * time.Second):
			t.Fatal("no events")
		}
	}
	if !c.contains(events) {
		t.Errorf("the reader from %d saw %v", s.View.RV, events)
	}
}
