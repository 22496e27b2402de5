// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TestHandOver: recorder and reader watch in turn, each from where the other one ended,
// without a list.
func TestHandOver(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(100)
	g.recorded(api.write("a", "1")) // 102
	for i := range 3 {
		r := g.read(timeline.Options{})
		if v := r.tl.View(); v == nil || v.Get("ns/a") == nil || v.RV < 102 {
			t.Fatalf("the timeline begins with %+v", v)
		}
		api.unwatched(t) // the recorder's own watch has ended
		rv := api.write("a", fmt.Sprint("read ", i))
		r.apply(kube.Modified, pod("a", rv, fmt.Sprint("read ", i)))
		if err := g.r.Sync(t.Context(), pods); err != nil {
			t.Fatal(err)
		}
		if head := g.recorded(0).Head().RV; head != rv {
			t.Fatalf("the record is at %d, the timeline at %d", head, rv)
		}
		rv = api.write("b", fmt.Sprint("last ", i))
		r.apply(kube.Added, pod("b", rv, fmt.Sprint("last ", i))) // not awaited
		r.end()
		g.recorded(api.write("a", fmt.Sprint("unread ", i)))
	}
	st := g.recorded(0)
	want(t, "state", state(t, st), "a=unread 2 b=last 2")
	want(t, "events", events(t, st), "ADDED a@102, MODIFIED a@104<102, ADDED b@106, MODIFIED a@108<104, "+
		"MODIFIED a@110<108, MODIFIED b@112<106, MODIFIED a@114<110, MODIFIED a@116<114, MODIFIED b@118<112, MODIFIED a@120<116")
	if lists, watches := api.counts(); lists != 1 || watches != 1 {
		t.Errorf("%d lists, %d watches at a time", lists, watches)
	}
}

// TestSeed: a seed says whether the record ends in a deletion, after which others may
// follow at the same RV.
func TestSeed(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	api.write("a", "1")
	for _, step := range []struct {
		do    func() uint64
		after bool
	}{
		{func() uint64 { return api.write("b", "1") }, false},
		{func() uint64 { return api.remove("a") }, true},
		{func() uint64 { return api.write("b", "2") }, false},
	} {
		g.recorded(step.do())
		r := g.read(timeline.Options{})
		if resume := r.seed.Resume; resume.AfterDelete != step.after || resume.List.Kind != "PodList" || !resume.List.Typed || resume.List.ItemKind != "Pod" {
			t.Errorf("%+v", resume)
		}
		r.end()
	}
	_, record := g.hold()
	record.RequireList()
	if record.Seed(t.Context()) != nil {
		t.Error("a record that requires a list has a seed")
	}
}

// TestFollowGap: the gaps of a timeline are recorded.
func TestFollowGap(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(100)
	api.write("a", "1")             // 102
	g.recorded(api.write("b", "1")) // 104
	r := g.read(timeline.Options{})
	r.apply(kube.Modified, pod("a", 105, "2"))
	big := strings.Repeat("x", 700<<10) // more than a cursor yields at a time, within the gap
	r.tl.Replace(list(120, pod("a", 110, big), pod("c", 112, big), pod("d", 113, big)))
	r.apply(kube.Modified, pod("c", 121, "2"))
	r.tl.Replace(list(130, pod("a", 110, big), pod("c", 121, "2"), pod("d", 113, big))) // without a difference
	if err := g.r.Sync(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	st := g.recorded(130)
	want(t, "events", events(t, st), "ADDED a@102, ADDED b@104, MODIFIED a@105<102, DELETED b@106<104?, MODIFIED a@110<105?, ADDED c@112?, ADDED d@113?, "+
		"MODIFIED c@121<112, gap 105-120, gap 121-130")
	r.end()
}

// TestSlowDisk: a disk that does not keep up with a timeline costs a gap, but no
// memory: the window moves on.
func TestSlowDisk(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(api.write("a", "1")) // 102
	r := g.read(timeline.Options{WindowBytes: 20 << 10})
	if err := g.r.Sync(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	w := r.h.record.w
	w.mu.Lock() // like a slow write
	for rv := uint64(103); rv <= 200; rv++ {
		r.apply(kube.Added, pod(fmt.Sprint("b", rv), 2*rv-1, "new"))
		r.apply(kube.Modified, pod("a", 2*rv, fmt.Sprint(rv)))
	}
	if n := r.tl.Stats().LogEvents; n > 4*20 { // a timeline waits for its record for four windows
		t.Errorf("the window has %d events", n)
	}
	w.mu.Unlock()
	if err := g.r.Sync(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	st := g.recorded(400)
	if gaps := st.Gaps(); len(gaps) == 0 {
		t.Errorf("gaps %v", gaps)
	}
	if got := strings.Fields(state(t, st)); len(got) != 99 || got[0] != "a=200" {
		t.Errorf("%d objects, the first is %s", len(got), got[0])
	}
	r.end()
}

// TestFollowTimes: events that are read late from a timeline keep the time of their
// observation, and so does the end of a gap.
func TestFollowTimes(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(100)
	h, record := g.hold()
	r := &reading{t: t, h: h, tl: timeline.New(timeline.Options{})}
	r.load(record.Seed(t.Context()))
	record.c.follow(r.tl, r.epoch)
	f := &follower{r: record, tl: r.tl}
	if err := f.next(t.Context()); err != nil {
		t.Fatal(err)
	}
	var times []time.Time
	step := func(do func()) {
		do()
		times = append(times, r.tl.View().At)
		time.Sleep(2 * time.Millisecond) // the record has milliseconds
	}
	step(func() { r.apply(kube.Added, pod("a", 102, "1")) })
	step(func() { r.apply(kube.Modified, pod("a", 104, "2")) })
	step(func() { r.tl.Replace(list(110, pod("a", 107, "3"))) })
	step(func() { r.apply(kube.Modified, pod("a", 112, "4")) })
	if err := errors.Join(f.next(t.Context()), record.w.flush()); err != nil {
		t.Fatal(err)
	}
	st := g.recorded(112)
	i := 0
	for e, err := range st.Events(t.Context(), 100, 112) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.At.Equal(times[i].Truncate(time.Millisecond)) {
			t.Errorf("%s at %d: observed at %v, and recorded as of %v", e.Type, e.Object.RV, times[i], e.At)
		}
		i++
	}
	gaps := st.Gaps()
	if len(gaps) != 1 || !gaps[0].Since.Equal(times[1].Truncate(time.Millisecond)) || !gaps[0].Until.Truncate(time.Millisecond).Equal(times[2].Truncate(time.Millisecond)) {
		t.Errorf("%v, want a gap between %v and %v", gaps, times[1], times[2])
	}
	r.end()
}

// TestFollowReset: a timeline that is reset to a lower RV is a new epoch.
func TestFollowReset(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(api.write("a", "1")) // 102
	r := g.read(timeline.Options{})
	r.tl.Replace(list(50, pod("a", 40, "0")))
	until(t, "a new epoch", func() bool { return len(g.r.Store().Streams(pods)) == 2 })
	r.apply(kube.Modified, pod("a", 51, "1"))
	st := g.recorded(51)
	want(t, "state", state(t, st), "a=1")
	want(t, "events", events(t, st), "MODIFIED a@51<40")
	r.end()
}

// TestOtherForm: if objects that have not changed come in another form, what has changed ends
// the epoch as a gap, and the next one begins where it ends.
func TestOtherForm(t *testing.T) {
	again := pod("d", 116, "again")
	again.UID = "another"
	then := list(120, pod("a", 102, "other form"), pod("b", 112, "2"), again, pod("e", 118, "1"))
	for name, replace := range map[string]func(*testing.T, *rig){
		"recorder": func(t *testing.T, g *rig) {
			record, _ := g.r.continuity(pods).current()
			sink := record.Sink(t.Context())
			sink.Begin()
			sink.Replace(then, false)
		},
		"cache": func(_ *testing.T, g *rig) {
			r := g.read(timeline.Options{})
			r.tl.Replace(then)
			until(t, "a new epoch", func() bool { return len(g.r.Store().Streams(pods)) == 2 && g.r.Store().Streams(pods)[1].Head().RV != 0 })
			r.end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(t)
			g := api.run(t, api.recorder(t, vfs.NewMem()))
			for _, name := range []string{"a", "b", "c", "d"} {
				g.recorded(api.write(name, "1"))
			}
			replace(t, g)
			all := g.r.Store().Streams(pods)
			if len(all) != 2 || all[0].Head() != all[1].Span().From {
				t.Fatalf("%d epochs, the first ends at %v, the second begins at %v", len(all), all[0].Head(), all[len(all)-1].Span().From)
			}
			want(t, "events", lastOf(events(t, all[0]), 6), "DELETED d@109<108?, DELETED c@110<106?, MODIFIED b@112<104?, ADDED d@116?, ADDED e@118?, gap 108-120")
			want(t, "the first state", state(t, all[0]), "a=1 b=2 d=again e=1")
			want(t, "the second state", state(t, all[1]), "a=other form b=2 d=again e=1")
		})
	}
}

// TestReadDiverged: a list of another history begins an epoch, even if it could
// continue the record.
func TestReadDiverged(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(100)
	g.recorded(api.write("a", "1")) // 102
	h, record := g.hold()
	record.c.begin(record) // as after a restart
	r := &reading{t: t, h: h, tl: timeline.New(timeline.Options{})}
	r.load(record.Seed(t.Context()))
	r.follow()
	record.Continuity(reflector.Diverged) // as the reflector does
	r.tl.Replace(list(110, pod("b", 108, "other")))
	r.apply(kube.Modified, pod("b", 112, "2"))
	st := g.recorded(112)
	want(t, "state", state(t, st), "b=2")
	if all := g.r.Store().Streams(pods); len(all) != 2 || all[0].Head().RV != 102 {
		t.Errorf("%d epochs, the first is at %v", len(all), all[0].Head())
	}
	r.end()
}

// TestReadFromList: a timeline that did not begin with the record does not continue it,
// though it has the RV in its window.
func TestReadFromList(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(100)
	g.recorded(api.write("a", "1")) // 102
	h, _ := g.hold()
	r := &reading{t: t, h: h, tl: timeline.New(timeline.Options{})}
	r.tl.Replace(list(101, pod("a", 99, "other")))
	r.apply(kube.Added, pod("b", 103, "1"))
	r.follow()
	until(t, "a new epoch", func() bool { return len(g.r.Store().Streams(pods)) == 2 })
	r.apply(kube.Added, pod("c", 104, "1"))
	want(t, "state", state(t, g.recorded(104)), "a=other b=1 c=1")
	r.end()
}

// TestReadWindow: what a timeline has observed while nothing was recorded is no gap. The gap
// ends where the timeline begins, so that no client can continue from inside it; what
// followed is observed when the record gets it.
func TestReadWindow(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	g.recorded(100)
	g.recorded(api.write("a", "1")) // 102
	h, _ := g.hold()
	r := &reading{t: t, h: h, tl: timeline.New(timeline.Options{})}
	r.tl.Replace(list(110, pod("a", 107, "2"), pod("b", 108, "1")))
	r.apply(kube.Modified, pod("b", 112, "2"))
	r.apply(kube.Deleted, pod("a", 114, "2"))
	time.Sleep(2 * time.Millisecond) // the record has milliseconds
	began := time.Now().Truncate(time.Millisecond)
	r.follow()
	r.apply(kube.Modified, pod("b", 116, "3"))
	st := g.recorded(116)
	want(t, "events", events(t, st), "ADDED a@102, MODIFIED a@107<102?, ADDED b@108?, MODIFIED b@112<108, DELETED a@114<107, MODIFIED b@116<112, gap 102-110")
	for e, err := range st.Events(t.Context(), 102, 116) {
		if err != nil || e.At.Before(began) {
			t.Errorf("%s at %d is observed at %v, recording began at %v, %v", e.Type, e.Object.RV, e.At, began, err)
		}
	}
	r.end()
}

// TestReadFirst: a resource that the gateway already watches when recording begins is
// recorded.
func TestReadFirst(t *testing.T) {
	api := newFakeAPI(t)
	api.uid = ""
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	r := g.read(timeline.Options{})
	r.tl.Replace(list(150, pod("a", 140, "1")))
	api.change(func() { api.uid = "cluster-1" })
	r.apply(kube.Modified, pod("a", 151, "2"))
	want(t, "state", state(t, g.recorded(151)), "a=2")
	if lists, watches := api.counts(); lists != 0 || watches != 0 {
		t.Errorf("%d lists, %d watches besides the gateway's", lists, watches)
	}
	r.end()
}

// TestDiskFails: a failed write stops recording, and nothing else; when the disk works
// again, recording resumes.
func TestDiskFails(t *testing.T) {
	for _, read := range []bool{false, true} {
		t.Run(fmt.Sprint("read ", read), func(t *testing.T) {
			var broken atomic.Bool
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpCreate) {
					return syscall.ENOSPC
				}
				return nil
			}))
			api := newFakeAPI(t)
			g := api.run(t, api.recorder(t, fs))
			g.recorded(api.write("a", "1")) // 102
			var r *reading
			if read {
				r = g.read(timeline.Options{WindowBytes: 10 << 10})
			}
			happen := func(name, text string) (rv uint64) {
				rv = api.write(name, text)
				if read {
					r.apply(kube.Modified, pod(name, rv, text))
				}
				return rv
			}
			broken.Store(true)
			happen("a", "2")
			until(t, "the end of recording", func() bool {
				status, _ := g.r.Status()
				return !status.Recording && strings.Contains(status.Problem, "no space left")
			})
			if err := g.r.Sync(t.Context(), pods); !errors.Is(err, ErrNotRecorded) || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("Sync: %v", err)
			}
			want(t, "what can be read meanwhile", state(t, g.r.Store().Streams(pods)[0]), "a=1")
			for i := range 30 { // more than fit in the window
				happen("b", fmt.Sprint(i))
			}
			if !read {
				api.forget()
			}
			broken.Store(false)
			st := g.recorded(happen("a", "3"))
			want(t, "state", state(t, st), "a=3 b=29")
			if gaps := st.Gaps(); len(gaps) != 1 {
				t.Errorf("gaps: %v", gaps)
			}
			until(t, "a status without a problem", func() bool {
				status, _ := g.r.Status()
				return status.Recording && status.Problem == ""
			})
			if read {
				r.end()
			}
		})
	}
}

// TestStartFull: on a disk that was full before the start, the record can be read;
// recording resumes when there is room.
func TestStartFull(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate && !strings.HasSuffix(op.Path, "LOCK")) {
			return syscall.ENOSPC
		}
		return nil
	}))
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, fs))
	g.recorded(api.write("a", "1"))
	g.stop()
	full.Store(true)
	g = api.run(t, api.recorder(t, fs))
	until(t, "the problem in the status", func() bool {
		status, _ := g.r.Status()
		return !status.Recording && strings.Contains(status.Problem, "no space left")
	})
	if g.r.Store() == nil {
		t.Fatal("the history is not open")
	}
	want(t, "what can be read", state(t, g.r.Store().Streams(pods)[0]), "a=1")
	r := g.read(timeline.Options{})
	if r.tl.View() != nil {
		t.Error("the timeline begins with a seed")
	}
	r.end()
	full.Store(false)
	want(t, "state", state(t, g.recorded(api.write("a", "2"))), "a=2")
}

// TestRecoverAtOnce: after a first failure, recording is tried again at once.
func TestRecoverAtOnce(t *testing.T) {
	var fail atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && fail.CompareAndSwap(true, false) {
			return syscall.EIO
		}
		return nil
	}))
	api := newFakeAPI(t)
	r := api.recorder(t, fs)
	r.retry = time.Hour
	g := api.run(t, r)
	g.recorded(100)
	fail.Store(true)
	want(t, "state", state(t, g.recorded(api.write("a", "1"))), "a=1")
}
