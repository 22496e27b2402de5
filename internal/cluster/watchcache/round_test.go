// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

var pods = kube.Resource{Version: "v1", Name: "pods"}

// A memoryRecord is a Record in memory, which a test can make slow. It keeps what it
// records in a timeline.
type memoryRecord struct {
	sink    *timelineSink
	damaged chan struct{}
	ended   chan struct{} // closed when recording ends
	failed  atomic.Bool   // what is recorded is lost

	mu       sync.Mutex // guards what follows
	seed     func()     // is called by Seed, without mu
	unusable bool       // Seed returns nil
	follow   func()     // is called at the end of a timeline, without mu
	log      []string   // the calls, in short
}

func newMemoryRecord() *memoryRecord {
	t := timeline.New(timeline.Options{})
	return &memoryRecord{sink: &timelineSink{Timeline: t}, damaged: make(chan struct{}), ended: make(chan struct{}), seed: func() {}, follow: func() {}}
}

func (m *memoryRecord) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// calls returns the calls since calls was last used.
func (m *memoryRecord) calls() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.log = nil }()
	return strings.Join(m.log, ", ")
}

func (m *memoryRecord) Resume(context.Context) (*reflector.Resume, string, error) {
	m.note("resume")
	if v := m.sink.View(); v != nil {
		return &reflector.Resume{List: m.list(v, nil)}, "Pod", nil
	}
	return nil, "Pod", nil
}

func (m *memoryRecord) list(v *timeline.View, items []*scan.Object) *scan.List {
	return &scan.List{Kind: v.ListKind, APIVersion: "v1", ItemKind: "Pod", Typed: true, Columns: v.BookmarkTemplate.Columns, RV: v.RV, Items: items}
}

func (m *memoryRecord) Sink(context.Context) Sink {
	m.note("feed")
	return &failingSink{m.sink, &m.failed}
}

// A failingSink ignores lists and bookmarks, and refuses events, after the record has failed.
type failingSink struct {
	*timelineSink
	failed *atomic.Bool
}

func (s *failingSink) Replace(list *scan.List, diverged bool) (continued bool) {
	return !s.failed.Load() && s.timelineSink.Replace(list, diverged)
}

func (s *failingSink) Apply(typ kube.EventType, o *scan.Object) error {
	if s.failed.Load() {
		return errors.New("the record has failed")
	}
	return s.timelineSink.Apply(typ, o)
}

func (s *failingSink) Bookmark(rv uint64, o *scan.Object) {
	if !s.failed.Load() {
		s.timelineSink.Bookmark(rv, o)
	}
}

func (m *memoryRecord) Continuity(c reflector.Continuity) {
	if c == reflector.Diverged {
		m.note("diverged")
	}
}

func (m *memoryRecord) Seed(context.Context) *Seed {
	m.mu.Lock()
	seed, unusable := m.seed, m.unusable
	m.mu.Unlock()
	m.sink.Flush()
	v := m.sink.View()
	if unusable || v == nil {
		m.note("no seed")
		return nil
	}
	list := m.list(v, slices.Collect(v.All("", "")))
	m.note("seed")
	seed()
	return &Seed{List: list, Template: v.BookmarkTemplate, Resume: reflector.Resume{List: m.list(v, nil)}}
}

func (m *memoryRecord) Follow(t *timeline.Timeline, epoch uint64) func() bool {
	m.note("follow")
	var cursor *timeline.Cursor
	if epoch != 0 {
		cursor, _ = t.Watch(m.sink.Head(), timeline.Interest{})
	}
	return func() bool {
		<-t.Synced()
		if v := t.View(); cursor == nil {
			m.note("compare")
			m.sink.Replace(m.list(v, slices.Collect(v.All("", ""))), false)
			cursor, _ = t.WatchFrom(v, v.RV, timeline.Interest{})
		}
		for cursor != nil {
			b, err := cursor.Next()
			if err != nil {
				m.mu.Lock()
				follow := m.follow
				m.mu.Unlock()
				follow()
				return true
			}
			for _, e := range b.Events {
				m.sink.Apply(e.Type, e.Object)
			}
			m.sink.Flush()
			m.sink.Advance(m.sink.View(), cursor.RV())
			if !b.More && !t.View().Closed() {
				select {
				case <-cursor.Ready():
				case <-m.ended:
					return false
				}
			}
		}
		return false // the timeline was already closed
	}
}

func (m *memoryRecord) Damaged() <-chan struct{} { return m.damaged }
func (m *memoryRecord) RequireList()             { m.note("require list") }

func (m *memoryRecord) Pause(err error) time.Duration {
	if err != nil {
		m.note("ended: %v", err)
	}
	return 0
}

// A testbed is a cache in front of a fake API server of Pods.
type testbed struct {
	t        *testing.T
	api      *fakeapi.Server
	cache    *Cache
	record   *memoryRecord
	unrecord func()       // ends the recording
	watches  atomic.Int64 // requested upstream
	lists    atomic.Int64 // of more than one object
}

// inBubble runs a test with a cache that records Pods, in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, b *testbed)) {
	synctest.Test(t, func(t *testing.T) {
		b := &testbed{t: t, api: fakeapi.New(fakeapi.Options{NoWatchList: true, Resources: []fakeapi.Resource{fakeapi.Pods, fakeapi.Nodes}}), record: newMemoryRecord()}
		b.api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
			switch {
			case r.Verb == "watch" && !r.Query.Has("sendInitialEvents"):
				b.watches.Add(1)
			case r.Verb == "list" && r.Query.Get("limit") != "1":
				b.lists.Add(1)
			}
			next(w)
		})
		network := fakeapi.NewNetwork(b.api)
		up, err := upstream.New(&rest.Config{Host: "http://api", Dial: network.Dial}, upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		background := upstream.NewBackground()
		b.cache = New(Options{
			Upstream: up, Background: background, Discovery: upstream.NewDiscovery(up, background),
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), IdleTimeout: time.Second,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.cache.Run(ctx) })
		b.unrecord = b.recording(b.record)
		defer func() {
			b.unrecord()
			cancel()
			running.Wait()
			background.Stop()
			up.Close()
			network.Close()
		}()
		synctest.Wait()
		test(t, b)
	})
}

// recording records Pods until the returned function is called.
func (b *testbed) recording(m *memoryRecord) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(b.cache.Record(ctx, pods, m))
	return sync.OnceFunc(func() {
		close(m.ended)
		cancel()
		running.Wait()
	})
}

func (b *testbed) put(name, text string) uint64 {
	return b.api.Put("pods", map[string]any{"metadata": map[string]any{"namespace": "ns", "name": name}, "spec": map[string]any{"nodeName": text}})
}

// read holds Pods until the returned function is called.
func (b *testbed) read() (res *Resource, end func()) {
	b.t.Helper()
	res = b.cache.Acquire(b.t.Context(), pods)
	if res == nil {
		b.t.Fatal("Pods are not watched")
	}
	if s := res.StateFor(b.t.Context(), request.List); !s.Readable {
		b.t.Fatalf("Pods cannot be read: %+v", s.Status)
	}
	return res, func() {
		res.Release()
		time.Sleep(4 * time.Second)
		synctest.Wait()
	}
}

// same fails the test unless a timeline has the API server's objects.
func (b *testbed) same(what string, t *timeline.Timeline) {
	b.t.Helper()
	synctest.Wait()
	var got []string
	for o := range t.View().All("", "") {
		got = append(got, fmt.Sprintf("%s@%d", o.Key, o.RV))
	}
	var want []string
	for key, text := range b.api.All("pods") {
		o, err := scan.ParseObject(text)
		if err != nil {
			b.t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%s@%d", key, o.RV))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || t.View().RV != b.api.RV() {
		b.t.Errorf("%s: %v at %d, want %v at %d", what, got, t.View().RV, want, b.api.RV())
	}
}

func (b *testbed) asked(watches, lists int64) {
	b.t.Helper()
	if w, l := b.watches.Load(), b.lists.Load(); w != watches || l != lists {
		b.t.Errorf("%d watches and %d lists upstream, want %d and %d", w, l, watches, lists)
	}
}

func (b *testbed) called(want string) {
	b.t.Helper()
	if got := b.record.calls(); got != want {
		b.t.Errorf("the record: %s; want %s", got, want)
	}
}

// damage has the record turn out to be damaged.
func (b *testbed) damage() {
	damaged := b.record.damaged
	b.record.damaged = make(chan struct{})
	close(damaged)
}

// TestOneWatch: readers come and go, and the upstream watch continues.
func TestOneWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		b.same("the record", b.record.sink.Timeline)
		b.called("resume, feed")
		for range 3 {
			res, end := b.read()
			b.put("b", "1")
			b.same("the timeline", res.Timeline)
			b.same("the record", b.record.sink.Timeline)
			end()
			b.called("seed, follow, feed")
			b.put("a", "2")
			b.api.Delete("pods", "ns/b")
			b.same("the record", b.record.sink.Timeline)
		}
		b.asked(1, 1)
	})
}

// TestReaderAfterReader: a reader that arrives while the previous reader's timeline is
// being detached gets its own, and the upstream watch continues.
func TestReaderAfterReader(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		first, _ := b.read()
		b.record.follow = sync.OnceFunc(func() { time.Sleep(time.Second) }) // detaching takes a second
		first.Release()
		time.Sleep(1500 * time.Millisecond) // until Pods are idle
		if b.cache.Watched(pods) != nil {
			t.Fatal("the first reader's timeline is open")
		}
		second, end := b.read()
		b.put("a", "2")
		b.same("the second timeline", second.Timeline)
		end()
		b.put("a", "3")
		b.same("the record", b.record.sink.Timeline)
		b.asked(1, 1)
	})
}

// TestEventsWhileSeeding: events that arrive while the timeline is loaded are in it
// once, and the reader's watch sees those after its RV.
func TestEventsWhileSeeding(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		b.put("b", "1")
		synctest.Wait()
		b.record.seed = func() {
			b.put("a", "2")
			b.api.Delete("pods", "ns/b")
			b.put("c", "1")
			synctest.Wait()
		}
		res, end := b.read()
		b.same("the timeline", res.Timeline)
		v := res.Timeline.View()
		if got := v.RV - v.Start; got != 3 {
			t.Errorf("%d events in the timeline's window", got)
		}
		end()
		b.same("the record", b.record.sink.Timeline)
		b.asked(1, 1)
	})
}

// TestListWhileSeeding: a list makes the seed obsolete, and another one is loaded.
func TestListWhileSeeding(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		synctest.Wait()
		once := sync.OnceFunc(func() {
			b.api.Expire()
			b.put("b", "1")
			time.Sleep(time.Second)
			synctest.Wait()
		})
		b.record.seed = once
		b.record.calls()
		res, end := b.read()
		b.called("seed, seed, follow")
		b.same("the timeline", res.Timeline)
		end()
		b.same("the record", b.record.sink.Timeline)
		b.asked(2, 2)
	})
}

// TestFailedList: a timeline does not begin with a recorded state that lacks the reflector's
// list, because the list could not be recorded.
func TestFailedList(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		synctest.Wait()
		b.record.failed.Store(true)
		b.api.Expire()
		b.put("b", "1")
		time.Sleep(time.Second)
		synctest.Wait()
		res, end := b.read()
		b.put("c", "1")
		b.same("the timeline", res.Timeline)
		b.record.failed.Store(false)
		end()
	})
}

// TestNoSeed: without a seed the reflector starts over with a list, and the record is
// compared with it.
func TestNoSeed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		synctest.Wait()
		b.record.unusable = true
		b.record.calls()
		res, end := b.read()
		synctest.Wait()
		b.called("no seed, no seed, follow, compare")
		b.put("a", "2")
		b.same("the timeline", res.Timeline)
		end()
		b.put("a", "3")
		b.same("the record", b.record.sink.Timeline)
		b.asked(2, 2)
	})
}

// TestReadBeforeList: a reader that arrives before the first list is complete uses it.
func TestReadBeforeList(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		nodes := kube.Resource{Version: "v1", Name: "nodes"}
		gate := make(chan struct{})
		defer b.api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
			if r.Verb == "list" {
				<-gate
			}
			next(w)
		})()
		b.api.Put("nodes", map[string]any{"metadata": map[string]any{"name": "one"}})
		ctx, cancel := context.WithCancel(t.Context())
		record := newMemoryRecord()
		var recording sync.WaitGroup
		recording.Go(b.cache.Record(ctx, nodes, record))
		synctest.Wait()
		res := b.cache.Acquire(t.Context(), nodes)
		synctest.Wait()
		close(gate)
		if s := res.StateFor(t.Context(), request.List); !s.Readable || s.View.Len() != 1 {
			t.Errorf("%+v", s)
		}
		synctest.Wait()
		if got := record.calls(); got != "resume, feed, follow, compare" {
			t.Errorf("the record: %s", got)
		}
		b.asked(2, 2) // one each of Pods and Nodes
		res.Release()
		cancel()
		recording.Wait()
	})
}

// TestSlowRecord: a record that does not reach the end of the timeline in time is fed
// by another reflector, which resumes from the record.
func TestSlowRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		_, end := b.read()
		b.record.follow = func() { time.Sleep(5 * time.Minute) }
		b.put("a", "2")
		synctest.Wait()
		b.record.calls()
		end()
		b.called("")
		b.put("b", "1")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		b.called("resume, feed")
		b.same("the record", b.record.sink.Timeline)
		b.asked(2, 1)
	})
}

// TestReadWhileRecordIsSlow: a reader does not wait for a record that is blocked on
// the previous timeline.
func TestReadWhileRecordIsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		_, end := b.read()
		b.record.follow = sync.OnceFunc(func() { time.Sleep(time.Hour) })
		end()
		b.record.calls()
		began := time.Now()
		res, end := b.read()
		if waited := time.Since(began); waited > 3*time.Second {
			t.Errorf("waited for %v", waited)
		}
		b.put("a", "2")
		b.same("the timeline", res.Timeline)
		b.called("follow")
		time.Sleep(2 * time.Hour)
		b.same("the record", b.record.sink.Timeline)
		b.called("compare")
		end()
	})
}

// TestDropped: a dropped resource is listed again.
func TestDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		res, _ := b.read()
		b.record.calls()
		b.cache.drop(res)
		synctest.Wait()
		if !res.Timeline.View().Closed() {
			t.Error("the timeline is open")
		}
		b.called("require list, resume, feed")
		b.put("a", "2")
		b.same("the record", b.record.sink.Timeline)
	})
}

// TestDroppedWhileSeeding: the resource is dropped before its timeline is loaded.
func TestDroppedWhileSeeding(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		synctest.Wait()
		b.record.calls()
		b.record.seed = sync.OnceFunc(func() { b.cache.drop(b.cache.Watched(pods)) })
		res := b.cache.Acquire(t.Context(), pods)
		synctest.Wait()
		if !res.Timeline.View().Closed() || !isClosed(res.done) {
			t.Error("the timeline is open")
		}
		b.called("seed, follow, require list, resume, feed")
		b.put("a", "2")
		b.same("the record", b.record.sink.Timeline)
	})
}

// TestDamagedRecord: a record that turns out to be damaged is fed by another
// reflector; readers are not affected.
func TestDamagedRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		synctest.Wait()
		b.record.calls()
		b.damage()
		synctest.Wait()
		b.called("ended: " + ErrDamaged.Error() + ", resume, feed")
		res, end := b.read()
		b.damage()
		b.put("a", "2")
		b.same("the timeline", res.Timeline)
		b.called("seed, follow")
		end()
		b.asked(2, 1)
	})
}

// TestDamageBeforeAttach: a reader that arrives when a resumed record turns out to be
// empty gets a list.
func TestDamageBeforeAttach(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		b.put("b", "1")
		synctest.Wait()
		b.damage() // the next reflector resumes
		synctest.Wait()
		b.record.unusable = true
		b.record.sink.Timeline = timeline.New(timeline.Options{})
		res, end := b.read()
		b.put("b", "2")
		b.same("the timeline", res.Timeline)
		end()
		b.asked(3, 2)
	})
}

// TestRefusedWatch: a refusal ends the timeline and pauses the record.
func TestRefusedWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		res, _ := b.read()
		b.record.calls()
		remove := b.api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
			fakeapi.WriteStatus(w, 404, "NotFound", "gone")
		})
		b.api.CutWatches()
		<-res.done
		if b.cache.Refused(pods) == nil {
			t.Error("Refused returns nil")
		}
		remove()
		time.Sleep(time.Minute)
		b.put("a", "2")
		b.same("the record", b.record.sink.Timeline)
		if got := b.record.calls(); !strings.HasPrefix(got, "ended: ") || !strings.HasSuffix(got, ", resume, feed") {
			t.Errorf("the record: %s", got)
		}
	})
}

// TestSessions: readers of a resource continue when its recording ends, and the next
// record follows the timeline from its start.
func TestSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.put("a", "1")
		res, end := b.read()
		b.unrecord()
		b.put("a", "2")
		b.same("the timeline", res.Timeline)
		later := newMemoryRecord()
		unrecord := b.recording(later)
		b.put("a", "3")
		b.same("the later record", later.sink.Timeline)
		if got := later.calls(); got != "follow, compare" {
			t.Errorf("the later record: %s", got)
		}
		end()
		b.put("a", "4")
		b.same("the later record", later.sink.Timeline)
		unrecord()
		b.asked(1, 1)
		if res, end := b.read(); res != nil {
			b.same("another timeline", res.Timeline)
			end()
		}
		b.asked(2, 2)
		if n := len(b.cache.watches); n != 0 {
			t.Errorf("%d watches that are not needed", n)
		}
	})
}

// TestOtherHistory: while the upstream is known to have another history, or may have one that
// clients know, nothing is served from the timeline.
func TestOtherHistory(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		lists := make(chan struct{}, 100) // how many more are answered
		let := func(n int) {
			for len(lists) > 0 {
				<-lists
			}
			for range n {
				lists <- struct{}{}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		defer b.api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
			if r.Verb == "list" {
				<-lists
			}
			next(w)
		})()
		let(100)
		b.put("a", "1")
		res, end := b.read()
		defer end()
		before := b.api.Backup()
		b.put("b", "1")
		synctest.Wait()
		is := func(what string, readable bool, trust Trust) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if s := res.State(); s.Readable != readable || s.Trust != trust {
				t.Errorf("%s: readable %v, trust %v", what, s.Readable, s.Trust)
			}
		}
		res.Passed()
		is("an answer was passed through", true, Trusted)
		let(0)
		b.api.CutWatches()
		is("the watch broke off", true, Doubtful)
		res.Passed()
		is("an answer was passed through since", false, Suspect)
		let(100)
		is("the history is proven", true, Trusted)

		let(0)
		b.api.Restore(before, 0)
		is("the watch broke off again", true, Doubtful)
		let(1) // the list of the proof
		is("another history", false, Diverged)
		let(100)
		is("listed", true, Trusted)
		b.same("the timeline", res.Timeline)
	})
}
