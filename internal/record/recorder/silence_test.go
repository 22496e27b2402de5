// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// checkLate checks the only gap of a stream, which may be in parts: a late one at an RV,
// inside which no state is known, and at whose end the state is that at another RV.
func checkLate(t *testing.T, st *history.Stream, from, to uint64) history.Gap {
	t.Helper()
	gaps := st.Gaps()
	for len(gaps) > 1 && gaps[1].Late() && gaps[1].Since.Equal(gaps[0].Until) {
		gaps[1].From, gaps[1].To, gaps[1].Since = gaps[0].From, gaps[0].To, gaps[0].Since
		gaps = gaps[1:]
	}
	if len(gaps) != 1 || !gaps[0].Late() || gaps[0].From != from || !gaps[0].Since.Before(gaps[0].Until) {
		t.Fatalf("gaps %v, want a late one at %d", gaps, from)
	}
	gap := gaps[0]
	if m, err := st.At(t.Context(), gap.Since.Add(gap.Until.Sub(gap.Since)/2)); !errors.Is(err, history.ErrGap) {
		t.Errorf("inside the gap: %v, %v", m, err)
	}
	for at, rv := range map[time.Time]uint64{gap.Since: from, gap.Until: to} {
		if m, err := st.At(t.Context(), at); err != nil || m.RV != rv {
			t.Errorf("at an end of the gap: %v, %v, want %d", m, err, rv)
		}
	}
	for _, rv := range []uint64{from, to} {
		if err := st.Check(rv); err != nil {
			t.Error(err)
		}
	}
	return gap
}

// TestLateGap: a time in which the recorder did not run, or had no connection, is a late gap
// if the API server then sends the events of that time: they have the time of its end. It is
// so for a resource that is only recorded, and for one that is also read.
func TestLateGap(t *testing.T) {
	interruptions := map[string]func(t *testing.T, api *fakeAPI, g *rig, r *Recorder, change func()) *rig{
		"restart": func(t *testing.T, api *fakeAPI, g *rig, r *Recorder, change func()) *rig {
			g.stop()
			time.Sleep(20 * time.Millisecond)
			change()
			return api.run(t, r)
		},
		"outage": func(t *testing.T, api *fakeAPI, g *rig, _ *Recorder, change func()) *rig {
			api.outage(func() {
				time.Sleep(20 * time.Millisecond) // the silence is recorded, as it is longer than minSilence
				change()
			})
			return g
		},
	}
	for name, interrupt := range interruptions {
		for mode, read := range modes {
			inBubble(t, name+", "+mode, func(t *testing.T) {
				api, fs := newFakeAPI(t), vfs.NewMem()
				recorder := func() *Recorder {
					r := api.recorder(t, fs)
					r.minSilence, r.delay.events = 10*time.Millisecond, 50*time.Millisecond
					return r
				}
				api.write("a", "1")
				g := api.run(t, recorder())
				if read {
					g.served()
				}
				before := api.write("a", "2")
				g.recorded(before)
				g = interrupt(t, api, g, recorder(), func() {
					api.write("a", "3")
					api.write("b", "1")
				})
				after := api.write("c", "1")
				st := g.recorded(after)
				g.watched()
				gap := checkLate(t, st, before, after)
				for e, err := range st.Events(t.Context(), before, after) {
					if err != nil || !e.At.Equal(gap.Until) && !e.At.After(gap.Until) {
						t.Errorf("%v at %v, %v: want the end of the gap, %v", e.Object.Key, e.At, err, gap.Until)
					}
				}
			})
		}
	}
}

// TestLateGapOfQuiet: a resource that has not changed while the recorder did not run has a
// late gap once a watch is open. Until then, Heard says that nothing is known.
func TestLateGapOfQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, fs := newFakeAPI(t), vfs.NewMem()
		rv := api.write("a", "1")
		g := api.run(t, api.recorder(t, fs))
		g.recorded(rv)
		g.stop()
		time.Sleep(time.Second) // history has milliseconds
		api.change(func() { api.refuse = 503 })
		g = api.run(t, api.recorder(t, fs))
		var st *history.Stream
		until(t, "the writer", func() bool {
			st = g.recorded(rv)
			return st.Heard() != nil
		})
		if gaps := st.Gaps(); len(gaps) != 0 {
			t.Errorf("gaps %v before a watch is open", gaps)
		}
		api.change(func() { api.refuse = 0 })
		until(t, "the gap", func() bool { return st.Heard() == nil && len(st.Gaps()) > 0 })
		checkLate(t, st, rv, rv)
	})
}

// TestShortInterruption: a watch that is replaced at once leaves no gap.
func TestShortInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		r := api.recorder(t, vfs.NewMem())
		r.minSilence = time.Hour
		g := api.run(t, r)
		g.recorded(api.write("a", "1"))
		api.outage(func() { api.write("a", "2") })
		st := g.recorded(api.write("a", "3"))
		g.watched()
		if gaps := st.Gaps(); len(gaps) != 0 {
			t.Errorf("gaps %v", gaps)
		}
	})
}

// watched waits until no silence of Pods is left to be recorded.
func (g *rig) watched() {
	g.t.Helper()
	until(g.t, "the end of the silence", func() bool { return g.writer().silence.get().since.IsZero() })
}

// writer returns the writer of Pods.
func (g *rig) writer() *writer { return g.writing().w }

// writing returns the recorder of Pods.
func (g *rig) writing() *resourceRecorder {
	g.t.Helper()
	var r *resourceRecorder
	until(g.t, "a recorder of Pods", func() bool {
		r, _ = g.r.continuity(pods).current()
		return r != nil
	})
	return r
}

// TestEndOfWatch: the record says until when a quiet resource was watched.
func TestEndOfWatch(t *testing.T) {
	for name, read := range modes {
		inBubble(t, name, func(t *testing.T) {
			api, fs := newFakeAPI(t), vfs.NewMem()
			g := api.run(t, api.recorder(t, fs))
			if read {
				g.served()
			}
			st := g.recorded(api.write("a", "1"))
			g.watched()
			time.Sleep(20 * time.Millisecond)
			api.touch(t, g.r)
			before := st.Head()
			heard := g.r.opts.Upstream.LastAnswer().Truncate(time.Millisecond)
			g.stop()
			if after := st.Head(); after.RV != before.RV || after.At.Before(heard) {
				t.Errorf("the head was %v, and is %v; the API server answered at %v", before, after, heard)
			}
		})
	}
}

// TestOutageOutlived: if a watch outlives an outage of the API server, what it sends at the
// end comes late. That the API server did not answer is recorded.
func TestOutageOutlived(t *testing.T) {
	for name, read := range modes {
		inBubble(t, name, func(t *testing.T) {
			api := newFakeAPI(t)
			r := api.recorder(t, vfs.NewMem())
			r.minSilence, r.delay.events = 10*time.Millisecond, 50*time.Millisecond
			g, up := api.run(t, r), r.opts.Upstream
			if read {
				g.served()
			}
			before := api.write("a", "1")
			st := g.recorded(before)
			api.change(func() { api.down = true })
			if _, err := up.Transport.RoundTrip(up.NewRequest(t.Context(), http.MethodGet, "/broken", "")); err == nil {
				t.Fatal("no connection broke")
			}
			time.Sleep(20 * time.Millisecond) // longer than minSilence
			if err := up.Check(t.Context()); err == nil {
				t.Fatal("the API server answers")
			}
			until(t, "a silence", func() bool { return !g.writer().silence.get().since.IsZero() })
			time.Sleep(time.Millisecond) // what is observed later is of the silence
			after := api.write("a", "2")
			api.change(func() { api.down = false })
			if err := up.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.recorded(after)
			g.watched()
			gap := checkLate(t, st, before, after)
			until(t, "an outage", func() bool { all, _ := r.Store().Outages(); return len(all) == 1 })
			if all, err := r.Store().Outages(); err != nil || !all[0].Since.Before(gap.Until) || !all[0].Until.After(gap.Since) || all[0].Until.Sub(all[0].Since) < 20*time.Millisecond {
				t.Errorf("outages %v, %v, and the gap is %v", all, err, gap)
			}
		})
	}
}

// TestUnwatched: if the API server answers lists and no watch, the record gets what a list
// has, after a gap of what was not observed before it. What the watch sends that continues
// the list comes late.
func TestUnwatched(t *testing.T) {
	for name, read := range modes {
		inBubble(t, name, func(t *testing.T) {
			api := newFakeAPI(t)
			r := api.recorder(t, vfs.NewMem())
			r.listenEvery, r.trimEvery, r.rediscover = time.Second, time.Minute, time.Minute
			g := api.run(t, r)
			if read {
				g.served()
			}
			before := api.write("a", "1")
			g.recorded(before)
			g.watched()
			api.change(func() { api.listed = true })
			api.api.CutWatches()
			api.write("a", "2")
			listed := api.write("b", "1")
			time.Sleep(time.Minute)
			st := g.recorded(before)
			if rv := st.Head().RV; rv != before || len(st.Gaps()) != 0 {
				t.Errorf("after a minute, at %d with gaps %v", rv, st.Gaps())
			}
			time.Sleep(time.Minute)
			st = g.recorded(listed)
			gaps := st.Gaps()
			if len(gaps) != 1 || gaps[0].Late() || gaps[0].From != before || gaps[0].To < listed || gaps[0].Until.Sub(gaps[0].Since) < time.Minute {
				t.Fatalf("gaps %v, want one from %d to %d", gaps, before, listed)
			}
			if m, err := st.At(t.Context(), gaps[0].Since.Add(time.Minute)); !errors.Is(err, history.ErrGap) {
				t.Errorf("inside the gap: %v, %v", m, err)
			}
			if since := g.writer().silence.get().since; since.IsZero() || since.Before(gaps[0].Until) {
				t.Errorf("nothing is observed since %v, want after the list, %v", since, gaps[0].Until)
			}
			after := api.write("c", "1")
			time.Sleep(20 * time.Second)
			api.change(func() { api.listed = false })
			time.Sleep(20 * time.Second)
			g.recorded(after)
			g.watched()
			if gaps = st.Gaps(); len(gaps) != 2 || !gaps[1].Late() || gaps[1].Until.Sub(gaps[1].Since) < 20*time.Second {
				t.Errorf("gaps %v, want a late one after the first", gaps)
			}
		})
	}
}

// TestObserved: the record of a quiet resource says until when it was observed, and a start
// after a crash knows it.
func TestObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, fs := newFakeAPI(t), vfs.NewCrashableMem()
		r := api.recorder(t, fs)
		g := api.run(t, r)
		st := g.recorded(api.write("a", "1"))
		g.watched()
		before := st.Head()
		until(t, "a later head", func() bool {
			api.touch(t, r)
			return st.Head().At.After(before.At.Add(50 * time.Millisecond))
		})
		head := st.Head()
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		if head.RV != before.RV {
			t.Errorf("the head was %v, and is %v", before, head)
		}
		if m, err := st.At(t.Context(), head.At); err != nil || m.RV != head.RV {
			t.Errorf("at %v: %v, %v", head.At, m, err)
		}
		g.stop()
		g = api.run(t, api.recorder(t, crashed))
		st = g.recorded(before.RV)
		g.watched()
		if gap := checkLate(t, st, before.RV, before.RV); gap.Since.Before(head.At) {
			t.Errorf("the gap begins at %v, the head was at %v", gap.Since, head.At)
		}
	})
}

// TestObservedWithoutWatch: where a watch only appeared to be open, the record takes back that the
// resource was observed, and the gap begins at the last observation, also if a list ends it.
func TestObservedWithoutWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		r := api.recorder(t, vfs.NewMem())
		g := api.run(t, r)
		g.recorded(api.write("a", "1")) // 102
		reading := g.read(timeline.Options{})
		st := g.recorded(102)
		g.watched()
		before, gaps, record := st.Head(), len(st.Gaps()), reading.h.record
		until(t, "a later head", func() bool {
			api.touch(t, r)
			return st.Head().At.After(before.At.Add(50 * time.Millisecond))
		})
		record.Continuity(reflector.Silent)
		until(t, "the head before", func() bool { return st.Head() == before })
		if since := record.w.silence.get().since; !since.Truncate(time.Millisecond).Equal(before.At) {
			t.Errorf("silent since %v, the head was at %v", since, before.At)
		}
		reading.tl.Replace(list(120, pod("a", 110, "2")))
		record.Continuity(reflector.Watched)
		g.recorded(120)
		if gaps := st.Gaps()[gaps:]; len(gaps) != 1 || gaps[0].From != 102 || gaps[0].To != 120 || !gaps[0].Since.Equal(before.At) {
			t.Errorf("gaps %v; the head was %v", gaps, before)
		}
		g.watched()
		reading.end()
	})
}

// TestWatchBehind: the events that a watch sent since it was last known to lack nothing, until it
// was found to be behind, came late, and so do those of the next ones, until one is watched.
func TestWatchBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		r := api.recorder(t, vfs.NewMem())
		g := api.run(t, r)
		st := g.recorded(api.write("a", "1")) // 102
		g.watched()
		before := len(st.Gaps())
		time.Sleep(5 * time.Second)
		g.recorded(api.write("a", "2"))
		late, record, current := st.Head(), g.writing(), g.cache.Current(pods)
		record.Continuity(reflector.Silent)
		until(t, "a gap", func() bool { return len(st.Gaps()) > before })
		want := history.Gap{From: 102, To: 102, Since: current.Truncate(time.Millisecond), Until: late.At}
		if gap := st.Gaps()[before]; gap != want {
			t.Errorf("the gap %v, want %v", gap, want)
		}
		if m, err := st.At(t.Context(), late.At.Add(-time.Second)); !errors.Is(err, history.ErrGap) {
			t.Errorf("before the event came: %v, %v", m, err)
		}
		if until := past.KnownUntil(late.At, r.Sync(t.Context(), pods)); !until.Truncate(time.Millisecond).Equal(want.Since) {
			t.Errorf("known until %v, want %v", until, want.Since)
		}
		time.Sleep(3 * time.Second) // until a watch has passed a check
		record.Continuity(reflector.Watched)
		g.watched()
		if gaps := st.Gaps()[before:]; len(gaps) != 1 || gaps[0].Since != want.Since || gaps[0].Until.Sub(late.At) < 3*time.Second {
			t.Errorf("the gaps %v, want one from %v to now, %v", gaps, current, time.Now())
		}
	})
}

// TestSyncWithoutWatch: a read waits for a watch that has ended, for a while, but not if another
// one has just done so in vain.
func TestSyncWithoutWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		r := api.recorder(t, vfs.NewMem())
		g := api.run(t, r)
		g.recorded(api.write("a", "1"))
		reading := g.read(timeline.Options{})
		g.watched()
		record := reading.h.record
		record.Continuity(reflector.Doubtful)
		sync := func(within, took time.Duration, want error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			began := time.Now()
			if err := r.Sync(ctx, pods); !errors.Is(err, want) || time.Since(began).Round(100*time.Millisecond) != took {
				t.Errorf("%v after %v, want %v after %v", err, time.Since(began), want, took)
			}
		}
		sync(time.Second, time.Second, past.ErrUnwatched)
		sync(time.Minute, catchUpTimeout, past.ErrUnwatched)
		sync(time.Minute, 0, past.ErrUnwatched)
		time.Sleep(vainPause)
		time.AfterFunc(time.Second, func() { record.Continuity(reflector.Watched) })
		sync(time.Minute, time.Second, nil)
		reading.end()
	})
}

// TestListEndsSilence: if a list ends a silence, the record has one gap, also when it follows
// the list long after. No late gap says that all events had come.
func TestListEndsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		r := api.recorder(t, vfs.NewMem())
		r.minSilence = time.Millisecond
		g := api.run(t, r)
		g.recorded(api.write("a", "1")) // 102
		reading := g.read(timeline.Options{})
		st := g.recorded(102)
		g.watched()
		head, before, record := st.Head(), len(st.Gaps()), reading.h.record
		record.Continuity(reflector.Doubtful)
		time.Sleep(20 * time.Millisecond) // longer than minSilence
		identified, wanted := make(chan struct{}), make(chan struct{})
		api.change(func() {
			api.identify = sync.OnceFunc(func() {
				close(wanted)
				<-identified
			})
		})
		reading.tl.Replace(list(120, pod("a", 110, "2")))
		<-wanted // the follower asks whether it is the same cluster
		record.Continuity(reflector.Watched)
		time.Sleep(50 * time.Millisecond) // longer than delay.events
		if err := record.w.flush(); err != nil {
			t.Fatal(err)
		}
		close(identified)
		if err := r.Sync(t.Context(), pods); err != nil {
			t.Fatal(err)
		}
		gaps := st.Gaps()[before:]
		if len(gaps) != 1 || gaps[0].From != 102 || gaps[0].To != 120 || gaps[0].Since.Before(head.At) || !gaps[0].Since.Before(gaps[0].Until) {
			t.Errorf("gaps %v; the head was %v", gaps, head)
		}
		g.watched()
		reading.end()
	})
}

// touch makes the API server answer a request.
func (f *fakeAPI) touch(t *testing.T, r *Recorder) {
	t.Helper()
	res, err := r.opts.Upstream.Transport.RoundTrip(r.opts.Upstream.NewRequest(t.Context(), http.MethodGet, "/api", ""))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}
