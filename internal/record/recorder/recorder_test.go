// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TestWithoutReaders: a resource without readers is recorded with one watch and one
// list.
func TestWithoutReaders(t *testing.T) {
	api := newFakeAPI(t)
	api.write("a", "1") // 102
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(102)
	api.write("a", "2") // 104
	api.write("b", "1") // 106
	api.write("c", "1") // 108
	g.recorded(108)
	api.write("a", "3")                     // 110
	api.remove("b", "c")                    // 112
	st := g.recorded(api.write("b", "new")) // 114
	want(t, "events", events(t, st), "MODIFIED a@104<102, ADDED b@106, ADDED c@108, MODIFIED a@110<104, DELETED b@112<106, DELETED c@112<108, ADDED b@114")
	want(t, "state", state(t, st), "a=3 b=new")
	if lists, watches := api.counts(); lists != 1 || watches != 1 {
		t.Errorf("%d lists, %d watches", lists, watches)
	}
	if status, _ := g.r.Status(); !status.Recording || status.Resources != 1 {
		t.Errorf("%+v", status)
	}
}

// TestSync: every change before the call is on disk when Sync returns.
func TestSync(t *testing.T) {
	api := newFakeAPI(t)
	r := api.recorder(t, vfs.NewMem())
	r.delay.events, r.delay.head = 1<<40, 1<<40
	g := api.run(t, r)
	rv := api.write("a", "1")
	g.recorded(0)
	until(t, "the event", func() bool {
		if err := r.Sync(t.Context(), pods); err != nil && !errors.Is(err, ErrNotRecorded) {
			t.Fatal(err)
		}
		return g.recorded(0).Head().RV >= rv
	})
	if err := r.Sync(t.Context(), kube.Resource{Version: "v1", Name: "services"}); !errors.Is(err, ErrNotRecorded) {
		t.Error(err)
	}
}

// TestSyncBeforeList: Sync fails with ErrNotRecorded before the first list is recorded.
func TestSyncBeforeList(t *testing.T) {
	api := newFakeAPI(t)
	rv := api.write("a", "1")
	r := api.recorder(t, vfs.NewMem())
	g := api.run(t, r)
	until(t, "a record", func() bool {
		err := r.Sync(t.Context(), pods)
		if err != nil && !errors.Is(err, ErrNotRecorded) {
			t.Fatal(err)
		}
		return err == nil
	})
	if head := g.recorded(0).Head().RV; head < rv {
		t.Errorf("recorded up to %d, the list was at %d", head, rv)
	}
}

// TestRestart: changes while no recorder ran are recorded event by event, without a
// list.
func TestRestart(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	api.write("a", "1")
	g := api.run(t, api.recorder(t, fs))
	g.recorded(102)
	g.recorded(api.write("b", "1")) // 104
	g.stop()
	api.unwatched(t)
	api.counts()
	api.write("a", "2") // 106
	api.remove("b")     // 108
	g = api.run(t, api.recorder(t, fs))
	st := g.recorded(api.write("b", "2")) // 110
	want(t, "state", state(t, st), "a=2 b=2")
	want(t, "the end", lastOf(events(t, st), 4), "MODIFIED a@106<102, DELETED b@108<104, ADDED b@110, late at 104")
	if lists, watches := api.counts(); lists != 0 || watches != 1 {
		t.Errorf("%d lists, %d watches", lists, watches)
	}
}

func lastOf(events string, n int) string {
	all := strings.Split(events, ", ")
	return strings.Join(all[max(0, len(all)-n):], ", ")
}

// TestCrash: from a copy of the disk after each event, as a crash leaves it, recording
// resumes and reaches the same state.
func TestCrash(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewCrashableMem()
	api.write("a", "1")
	g := api.run(t, api.recorder(t, fs))
	g.recorded(102)
	for i, text := range []string{"2", "3", "4", "5"} {
		g.recorded(api.write("a", text))
		copied := fs.CrashClone(vfs.CrashCloneCfg{})
		again := api.run(t, api.recorder(t, copied))
		st := again.recorded(uint64(104 + 2*i))
		want(t, "state", state(t, st), "a="+text)
		again.stop()
	}
	if lists, _ := api.counts(); lists != 1 {
		t.Errorf("%d lists", lists)
	}
}

// TestExpired: if the upstream's history has expired, the difference is recorded as a
// gap.
func TestExpired(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	api.write("a", "1")
	api.write("b", "1")
	g := api.run(t, api.recorder(t, fs))
	g.recorded(104)
	g.stop()
	api.write("a", "2") // 106
	api.write("a", "3") // 108
	api.remove("b")     // 110
	api.forget()
	g = api.run(t, api.recorder(t, fs))
	st := g.recorded(110)
	want(t, "events", events(t, st), "DELETED b@105<104?, MODIFIED a@108<102?, gap 104-110")

	// The same during a watch.
	api.outage(func() {
		api.write("c", "1")
		api.remove("c") // 114
		api.forget()
	})
	g.recorded(114)
	want(t, "gaps", lastOf(events(t, g.recorded(api.write("a", "4"))), 2), "gap 104-110, gap 110-114")
	if st.Epoch() != 0 {
		t.Errorf("epoch %d", st.Epoch())
	}
}

// TestRestored: an upstream that was restored from a backup begins a new epoch, and the
// old one is kept.
func TestRestored(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	api.write("a", "1")
	g := api.run(t, api.recorder(t, fs))
	old := g.recorded(api.write("a", "2"))
	g.stop()
	api.change(func() {
		api.restore(48)
		api.write("a", "0") // 50
		api.api.Compact(api.api.Advance(40))
	})
	g = api.run(t, api.recorder(t, fs))
	until(t, "a new epoch", func() bool { return len(g.r.Store().Streams(pods)) == 2 })
	st := g.recorded(api.write("a", "other"))
	want(t, "state", state(t, st), "a=other")
	if g.r.Store().Streams(pods)[0].Head() != old.Head() || st.Epoch() != 1 {
		t.Errorf("the old one is at %v, the new one is epoch %d", g.r.Store().Streams(pods)[0].Head(), st.Epoch())
	}
}

// TestRestoredPastHead: an upstream that was restored from a backup, and whose RV is
// beyond the recorded head again, begins a new epoch.
func TestRestoredPastHead(t *testing.T) {
	for _, test := range []struct {
		name      string
		compacted uint64
		b         []uint64
	}{
		{"other events before the head", 101, []uint64{103}},
		{"no events, but other objects", 108, []uint64{103}},
		{"no difference up to the head", 101, []uint64{103, 108}},
	} {
		t.Run(test.name, func(t *testing.T) {
			api, fs := newFakeAPI(t), vfs.NewMem()
			api.write("a", "1") // 102
			g := api.run(t, api.recorder(t, fs))
			g.recorded(102)
			old := g.recorded(api.write("a", "2")) // 104
			g.stop()
			api.change(func() {
				api.restore(101)
				for _, rv := range test.b {
					api.api.Advance(rv - 2 - api.api.RV())
					api.write("b", "other")
				}
				api.api.Advance(108 - api.api.RV())
				api.write("c", "other") // 110
				api.api.Compact(test.compacted)
			})
			g = api.run(t, api.recorder(t, fs))
			until(t, "a new epoch", func() bool { return len(g.r.Store().Streams(pods)) == 2 })
			want(t, "state", state(t, g.recorded(110)), "b=other c=other")
			if first := g.r.Store().Streams(pods)[0]; first.Head() != old.Head() {
				t.Errorf("the old one is at %v, and was at %v", first.Head(), old.Head())
			}
		})
	}
}

// TestRestoredMeanwhile: an upstream that was restored from a backup in an outage, and
// has passed the head when it can be reached again, begins a new epoch; so does one with
// a revision bump. The cache ends its watches.
func TestRestoredMeanwhile(t *testing.T) {
	for _, test := range []struct {
		name    string
		restore func(*fakeAPI)
		state   string
	}{
		{"past the head", func(f *fakeAPI) {
			f.restore(101)
			f.write("b", "other") // 103
			f.api.Advance(6)
		}, "b=other c=1"},
		{"past the head, and without the events before it", func(f *fakeAPI) {
			f.restore(99)
			f.write("a", "1") // 101
			f.api.Advance(8)
			f.api.Compact(f.api.RV())
		}, "a=1 c=1"},
		{"with a revision bump", func(f *fakeAPI) {
			f.restore(99)
			f.write("a", "1") // 101
			f.api.Advance(1_000_000_000)
			f.api.Compact(f.api.RV())
		}, "a=1 c=1"},
	} {
		for _, read := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read %v", test.name, read), func(t *testing.T) {
				api := newFakeAPI(t)
				g := api.run(t, api.recorder(t, vfs.NewMem()))
				g.recorded(100)
				g.recorded(api.write("a", "1")) // 102
				old := g.recorded(api.write("a", "2"))
				var cursor *timeline.Cursor
				if read {
					tl := g.served().Timeline
					var err error
					if cursor, err = tl.Watch(tl.Head(), timeline.Interest{}); err != nil {
						t.Fatal(err)
					}
				}
				api.outage(func() { api.change(func() { test.restore(api) }) })
				rv := api.write("c", "1")
				until(t, "a new epoch", func() bool { return len(g.r.Store().Streams(pods)) == 2 })
				want(t, "state", state(t, g.recorded(rv)), test.state)
				if first := g.r.Store().Streams(pods)[0]; first.Head() != old.Head() {
					t.Errorf("the old one is at %v, and was at %v", first.Head(), old.Head())
				}
				if read {
					if _, err := cursor.Next(); !errors.Is(err, timeline.ErrCompacted) {
						t.Errorf("a watch of the cache got %v", err)
					}
				}
			})
		}
	}
}

// TestResumesWithoutList: a resource whose only object changed while no recorder ran is
// resumed without a list if the API server sends the last events again. A resource whose
// events it does not have any more is listed.
func TestResumesWithoutList(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	api.write("a", "1") // 102
	g := api.run(t, api.recorder(t, fs))
	g.recorded(102)
	g.recorded(api.write("a", "2")) // 104
	g.stop()
	api.counts()
	api.write("a", "3") // 106
	g = api.run(t, api.recorder(t, fs))
	g.recorded(api.write("b", "1")) // 108
	if lists, _ := api.counts(); lists != 0 {
		t.Errorf("%d lists", lists)
	}
	g.stop()
	rv := api.write("a", "4") // 110
	api.forget()
	g = api.run(t, api.recorder(t, fs))
	g.recorded(rv)
	if lists, _ := api.counts(); lists != 1 {
		t.Errorf("without the events, %d lists", lists)
	}
	want(t, "events", events(t, g.recorded(0)), "MODIFIED a@104<102, MODIFIED a@106<104, ADDED b@108, MODIFIED a@110<106?, late at 104, gap 108-110")
}

// TestLateStart: while the API server does not identify its cluster, nothing is
// recorded, and the recorder asks again.
func TestLateStart(t *testing.T) {
	api := newFakeAPI(t)
	api.uid = ""
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	status, _ := g.r.Status()
	if status.Recording || !strings.Contains(status.Problem, "kube-system") || g.r.Store() != nil {
		t.Errorf("%+v", status)
	}
	g.served()
	api.change(func() { api.uid = "cluster-1" })
	g.recorded(api.write("a", "1"))
}

// TestDirectories: each cluster has a directory, which only one process uses.
func TestDirectories(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	g := api.run(t, api.recorder(t, fs))
	g.recorded(100)
	err := api.recorder(t, fs).Open(t.Context())
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "another --data-dir") || !strings.Contains(err.Error(), "data/cluster-1") {
		t.Errorf("in use: %v", err)
	}
	api.change(func() { api.uid = "cluster-2" })
	other := api.run(t, api.recorder(t, fs))
	other.recorded(100)
	other.stop()
	g.stop()

	// A directory of another cluster was renamed.
	api.change(func() { api.uid = "cluster-3" })
	if err := fs.Rename("data/cluster-1", "data/cluster-3"); err != nil {
		t.Fatal(err)
	}
	err = api.recorder(t, fs).Open(t.Context())
	if !errors.Is(err, history.ErrOtherCluster) || !strings.Contains(err.Error(), "another --data-dir") {
		t.Errorf("another cluster: %v", err)
	}
}

// TestOtherCluster: another cluster at the same address is recorded in its own
// directory, from its first list on.
func TestOtherCluster(t *testing.T) {
	for _, read := range []bool{false, true} {
		t.Run(fmt.Sprint("read ", read), func(t *testing.T) {
			api, fs := newFakeAPI(t), vfs.NewMem()
			g := api.run(t, api.recorder(t, fs))
			g.recorded(100)
			g.recorded(api.write("a", "1")) // 102
			first := g.r.Store()
			var r *reading
			if read {
				r = g.read(timeline.Options{})
			}
			api.outage(func() {
				api.change(func() {
					api.uid = "cluster-2"
					api.restore(148)
					api.write("b", "other") // 150
					api.api.Compact(api.api.Advance(50))
				})
				if read {
					r.tl.Replace(list(200, pod("b", 150, "other")))
					r.apply(kube.Modified, pod("b", 201, "changed"))
				}
			})
			until(t, "another store", func() bool { s := g.r.Store(); return s != nil && s != first })
			if read {
				want(t, "state", state(t, g.recorded(201)), "b=changed")
				r.end()
			} else {
				want(t, "state", state(t, g.recorded(200)), "b=other")
			}
			if status, _ := g.r.Status(); !strings.HasSuffix(status.Dir, "cluster-2") {
				t.Errorf("%+v", status)
			}
			// The first history is unchanged.
			g.stop()
			api.change(func() { api.uid = "cluster-1" })
			again := api.recorder(t, fs)
			if err := again.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if all := again.Store().Streams(pods); len(all) != 1 || all[0].Head().RV != 102 {
				t.Errorf("%d epochs, the first is at %v", len(all), all[0].Head())
			}
		})
	}
}

// TestUnavailableAtStart: an API server that is down at the start is retried soon.
func TestUnavailableAtStart(t *testing.T) {
	api := newFakeAPI(t)
	api.down = true
	r := api.recorder(t, vfs.NewMem())
	r.retry = time.Hour
	g := api.run(t, r)
	api.change(func() { api.down = false })
	g.recorded(api.write("a", "1"))
}

// TestPatience: a reader does not wait long for a history that does not open, or for a
// disk that hangs; the changes it was served are recorded later.
func TestPatience(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	r := api.recorder(t, fs)
	r.diskTimeout = 20 * time.Millisecond
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	promptly(t, "Ready", func() { r.Ready(t.Context()) }) // Run was not called
	g := api.run(t, r)
	g.recorded(api.write("a", "1")) // 102
	c := r.continuity(pods)
	record, _ := c.current()
	record.w.mu.Lock() // like a write that hangs
	res := g.served()
	rv := api.write("a", "2")
	until(t, "the change", func() bool { return res.Timeline.View().RV >= rv })
	record.w.mu.Unlock()
	want(t, "state", state(t, g.recorded(rv)), "a=2")
}

// TestDiscovery: a new resource is recorded, and a removed one no longer.
func TestDiscovery(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem(), "pods", "gadget*"))
	g.recorded(100)
	api.change(func() { api.served = true })
	until(t, "a second resource", func() bool { return len(g.r.Recorded()) == 2 })
	api.change(func() { api.served = false })
	until(t, "the first one alone", func() bool { return len(g.r.Recorded()) == 1 })
	g.recorded(api.write("a", "1"))
}

// TestDefined: a resource that a recorded definition adds is recorded soon, not at the next
// periodic discovery.
func TestDefined(t *testing.T) {
	api := newFakeAPI(t)
	api.defines = true
	r := api.recorder(t, vfs.NewMem(), "pods", "*definitions", "gadget*")
	r.rediscover = time.Hour
	g := api.run(t, r)
	g.recorded(100)
	until(t, "the definitions", func() bool {
		all := g.r.Store().Streams(kube.Resource{Version: "v1", Name: defining[0]})
		return len(all) == 1 && all[0].Head().RV >= 100
	})
	time.Sleep(50 * time.Millisecond) // the discovery that their list begins
	api.change(func() { api.served = true })
	api.write("gadgets", "1") // its definition
	until(t, "the new resource", func() bool { return len(g.r.Recorded()) == 3 })
}

// TestDefinition: the record of a custom resource is continued while its definition is
// the same; under another one, the same versions of its objects may differ.
func TestDefinition(t *testing.T) {
	gadgets := kube.Resource{Version: "v1", Name: "gadgets"}
	api, fs := newFakeAPI(t), vfs.NewMem()
	api.served, api.gadgets = true, 1
	rv := api.write("a", "1")
	for _, step := range []struct {
		edition, lists, epochs int
		text                   string
	}{{1, 1, 1, "1"}, {1, 0, 1, "1"}, {2, 1, 2, "2"}, {2, 0, 2, "2"}, {3, 1, 2, "2"}, {0, 1, 2, "2"}, {0, 1, 2, "2"}} {
		api.counts()
		api.change(func() {
			head := api.api.RV()
			api.gadgets = step.edition
			api.restore(rv - 2)
			api.write("a", step.text) // rv again
			api.api.Advance(head - rv)
		})
		g := api.run(t, api.recorder(t, fs, "gadgets"))
		api.api.Advance(1)
		until(t, "a record", func() bool {
			all := g.r.Store().Streams(gadgets)
			return len(all) == step.epochs && all[len(all)-1].Head().RV >= api.api.RV()
		})
		want(t, "state", state(t, g.r.Store().Streams(gadgets)[step.epochs-1]), "a="+step.text)
		record, _ := g.r.continuity(gadgets).current()
		if seed := record.Seed(t.Context()); (seed == nil) != (step.edition == 0) {
			t.Errorf("%+v: the seed is %v", step, seed)
		}
		g.stop()
		if lists, _ := api.counts(); lists < step.lists || lists > 0 && step.lists == 0 {
			t.Errorf("%+v: %d lists", step, lists)
		}
	}
}

// TestDefinitionOfList: a definition is recorded with its complete list, and not when
// the list begins.
func TestDefinitionOfList(t *testing.T) {
	gadgets := kube.Resource{Version: "v1", Name: "gadgets"}
	api := newFakeAPI(t)
	api.served, api.gadgets = true, 1
	rv := api.write("a", "1")
	g := api.run(t, api.recorder(t, vfs.NewMem(), "gadgets"))
	until(t, "a record", func() bool {
		all := g.r.Store().Streams(gadgets)
		return len(all) == 1 && all[0].Head().RV >= rv
	})
	record, _ := g.r.continuity(gadgets).current()
	w := record.w
	d := record.Sink(t.Context()).(*historySink)
	d.define = func() string { return "another" }
	d.Begin()
	if err := errors.Join(w.add(nil, rv+1, time.Now()), w.flush()); err != nil {
		t.Fatal(err)
	}
	want(t, "before the list", w.current().Form().Definition, "crd/1")
	d.Replace(list(rv+2, pod("a", rv, "1")), false)
	want(t, "after it", w.current().Form().Definition, "another")
}

// TestRefused: a resource that may not be listed is tried again; a resource that was
// removed is listed.
func TestRefused(t *testing.T) {
	api := newFakeAPI(t)
	api.refuse = 403
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	until(t, "a recorder of Pods", func() bool { return len(g.r.Recorded()) == 1 })
	until(t, "a status", func() bool {
		s, _ := g.r.Status()
		return s.Recording && s.Resources == 1 && slices.Equal(s.Refused, []string{"pods (403)"})
	})
	if why := g.r.Missing(pods); !strings.Contains(why, "refuses to list and watch") {
		t.Errorf("missing: %q", why)
	}
	api.change(func() { api.refuse = 0 })
	g.recorded(api.write("a", "1"))
	until(t, "a status without a refusal", func() bool { s, _ := g.r.Status(); return len(s.Refused) == 0 })
	api.counts()
	api.change(func() { api.refuse = 404 })
	api.disconnect()
	until(t, "the refusal", func() bool {
		return g.r.continuity(pods).is(mustList)
	})
	api.change(func() { api.refuse = 0 })
	st := g.recorded(api.write("a", "2"))
	want(t, "state", state(t, st), "a=2")
	if lists, _ := api.counts(); lists != 1 {
		t.Errorf("%d lists", lists)
	}
	// What changes from here on is not known, and must not be told as nothing.
	record, _ := g.r.continuity(pods).current()
	record.Pause(&reflector.RefusedError{Code: 500, Message: "conversion webhook failed"})
	if err := g.r.Sync(t.Context(), pods); !errors.Is(err, ErrNotRecorded) || !strings.Contains(err.Error(), "refused with 500: conversion webhook failed") {
		t.Errorf("while it is refused: %v", err)
	}
}

// TestUnmatchedIsReported: the first successful discovery reports patterns that match
// nothing, also after a failed one.
func TestUnmatchedIsReported(t *testing.T) {
	api := newFakeAPI(t)
	api.hidden = true
	r := api.recorder(t, vfs.NewMem(), "pods", "gizmos", "*.example.com")
	out, in := io.Pipe()
	defer out.Close()
	r.log = slog.New(slog.NewTextHandler(in, nil))
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	g := api.run(t, r)
	next := func(text string) {
		t.Helper()
		for line := range lines {
			if strings.Contains(line, text) {
				return
			}
		}
		t.Fatalf("the log has no %q", text)
	}
	next("discovery failed")
	api.change(func() { api.hidden = false })
	next("gizmos")
	next("pattern=*.example.com")
	go func() {
		for range lines { // until the recorder has stopped
		}
	}()
	g.stop()
}

// TestNil: a nil Recorder records nothing.
func TestNil(t *testing.T) {
	var r *Recorder
	r.Ready(t.Context())
	if r.Store() != nil || r.Recorded() != nil || !errors.Is(r.Sync(t.Context(), pods), ErrNotRecorded) {
		t.Error("a nil Recorder has a history")
	}
	if _, ok := r.Status(); ok {
		t.Error("a nil Recorder has a status")
	}
	r.Close()
}

// TestFailureIsNoDivergence: when the session has failed, the reflector reports that the
// upstream does not continue what the sink has. The next session decides.
func TestFailureIsNoDivergence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &resourceRecorder{c: &continuity{}, ctx: ctx}
	cancel()
	if r.Continuity(reflector.Diverged); r.c.is(diverged) {
		t.Error("after a failure, the upstream has another history")
	}
	r.ctx = t.Context()
	if r.Continuity(reflector.Diverged); !r.c.is(diverged) {
		t.Error("the upstream has the same history")
	}
}
