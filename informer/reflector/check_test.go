// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// TestCheck: a watch that does not send what a second one has is closed, and nothing is lost;
// one that does, or has nothing to send, stays open. If all watches are silent, though there is
// something to send, it is closed until one has proven the history. So is a watch that sends
// events, but comes no closer to what a second one has.
func TestCheck(t *testing.T) {
	list := script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true)}
	late := list
	late.Late, late.Every = []string{script.Event("MODIFIED", "a", 12)}, time.Minute+checkWait+checkGrace/2
	known := script.Event("ADDED", "a", 3)
	idle := script.Answer{Want: script.From(2), Stall: true, Body: known}
	newer, expired, nothing, objects := idle, idle, idle, idle
	newer.Body += script.Event("MODIFIED", "a", 12)
	expired.Body = `{"type":"ERROR","object":` + script.Status(410) + "}\n"
	nothing.Body = ""
	objects.Want = "watch=true"
	unset := nothing
	unset.Want = "watch=true"
	fromHead := script.Answer{Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 12)}
	tried := script.Answer{Want: script.From(10), Stall: true} // on a new connection
	empty := script.Answer{Want: script.Streaming, Stall: true, Body: script.Bookmark(10, true)}
	created := script.Answer{Want: script.From(10), Stall: true, Body: script.Event("ADDED", "a", 12)}
	// changes are events of a.
	changes := func(from, to int) (text []string, log []string) {
		for rv := from; rv <= to; rv++ {
			text, log = append(text, script.Event("MODIFIED", "a", rv)), append(log, fmt.Sprintf("MODIFIED ns/a@%d", rv))
		}
		return text, log
	}
	// sends answers a watch with them.
	sends := func(since, from, to int) script.Answer {
		text, _ := changes(from, to)
		return script.Answer{Want: script.From(since), Stall: true, Body: strings.Join(text, "")}
	}
	slow := list
	var delivered []string
	slow.Late, delivered = changes(11, 30)
	slow.Every = 2 * time.Second
	delivered = append([]string{"list 10 [ns/a@3]", "bookmark 10"}, delivered...)
	slower := slow
	slower.Every = 10 * time.Second
	began := func(rv int) script.Answer { return script.Answer{Want: script.From(rv), Stall: true} }
	held := maxHeld + maxHeld
	all := []string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@12"}
	for name, test := range map[string]struct {
		after      time.Duration
		answers    []script.Answer
		continuity []Continuity
		log        []string
		took       time.Duration // by two calls at once
	}{
		"silent":                               {time.Minute, []script.Answer{list, newer, tried, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, 2*checkWait + checkGrace},
		"late":                                 {time.Minute, []script.Answer{late, newer}, nil, all, checkGrace},
		"idle":                                 {time.Minute, []script.Answer{list, idle}, nil, all[:2], checkWait},
		"recent":                               {time.Second, []script.Answer{list, idle}, nil, all[:2], checkWait},
		"busy":                                 {5 * time.Second, []script.Answer{slow, sends(11, 12, 13)}, nil, delivered, checkWait + checkGrace},
		"slow":                                 {5 * time.Second, []script.Answer{slow, sends(11, 12, 30), began(13), script.At(40), sends(10, 11, 30)}, []Continuity{Silent, Doubtful, Proven}, delivered, 2*checkWait + checkGrace},
		"slow, nobody calls":                   {0, []script.Answer{slower, sends(16, 17, 30), began(17), script.At(40), sends(10, 11, 30)}, []Continuity{Silent, Doubtful, Proven}, delivered, 0},
		"slow, all watches are silent":         {5 * time.Second, []script.Answer{slow, began(11), unset, began(13), script.At(40), sends(10, 11, 30)}, []Continuity{Silent, Doubtful, Proven}, delivered, held + checkWait},
		"compacted":                            {time.Minute, []script.Answer{list, expired, tried}, nil, all[:2], checkWait},
		"compacted, silent":                    {time.Minute, []script.Answer{list, expired, fromHead, tried, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, 2*checkWait + checkGrace},
		"events are not sent again":            {time.Minute, []script.Answer{list, nothing, objects}, nil, all[:2], maxHeld + checkWait},
		"all watches are silent":               {time.Minute, []script.Answer{list, nothing, unset, tried, script.At(30), nothing, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, held},
		"all watches are silent, nobody calls": {0, []script.Answer{list, nothing, unset, tried, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, 0},
		"empty":                                {time.Minute, []script.Answer{empty, tried, script.At(30)}, nil, []string{"list 10 []", "bookmark 10"}, checkWait},
		"empty, all watches are silent":        {time.Minute, []script.Answer{empty, tried, {Want: "limit=1", Body: script.Page(30, "", script.Pod("a", 12))}, tried, script.At(30), created}, []Continuity{Silent, Doubtful, Proven}, []string{"list 10 []", "bookmark 10", "ADDED ns/a@12"}, 2*checkWait + checkGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := script.NewConnections(&script.Upstream{T: t, Answers: append([]script.Answer{script.Probe}, test.answers...)})
				u, _ := url.Parse("http://upstream/api/v1/pods")
				sink := &recordingSink{}
				var got []Continuity
				var silent atomic.Bool
				settle := settles(&got)
				r := New(Objects(false), sink, Options{Transport: up, URL: u, Watchdog: true, Continuity: func(c Continuity) {
					silent.CompareAndSwap(false, c == Silent)
					settle(c)
				}})
				r.Check(t.Context()) // there is no watch yet
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				time.AfterFunc(test.after, func() {
					if test.after == 0 {
						return
					}
					began := time.Now()
					go r.Check(ctx)
					r.Check(ctx)
					if !silent.Load() {
						r.Check(ctx) // which needs no request
					}
					if took := time.Since(began); took > test.took {
						t.Errorf("it took %v, want at most %v", took, test.took)
					}
					if silent.Load() != (len(test.continuity) > 0) {
						t.Errorf("silent: %t, when Check has returned", silent.Load())
					}
				})
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if d := difference.Of(test.continuity, got); d != "" {
					t.Errorf("continuity %s", d)
				}
				if d := difference.Of(test.log, sink.log); d != "" {
					t.Errorf("the sink: %s", d)
				}
				if len(up.Answers) > 0 {
					t.Errorf("%d answers were not requested", len(up.Answers))
				}
				time.Sleep(10 * time.Minute) // until the upstream has written what nobody reads
			})
		})
	}
}

// TestSuspect: after a watch that was behind, the next one is believed when a check has found nothing
// missing: until then, the status has an error, and what was known.
func TestSuspect(t *testing.T) {
	var events []string
	for rv := 11; rv <= 30; rv++ {
		events = append(events, script.Event("MODIFIED", "a", rv))
	}
	from := func(since int, now, late []string) script.Answer {
		return script.Answer{Want: script.From(since), Stall: true, Body: strings.Join(now, ""), Late: late, Every: 3 * time.Second}
	}
	first := from(0, []string{script.Event("ADDED", "a", 3), script.Bookmark(10, true)}, events)
	first.Want = script.Streaming
	synctest.Test(t, func(t *testing.T) {
		up := script.NewConnections(&script.Upstream{T: t, Answers: []script.Answer{script.Probe,
			first, from(10, events, nil), from(12, nil, nil), // a check after five seconds; a new connection
			script.At(40), from(10, events[:2], events[2:]), from(11, events[1:], nil), from(12, nil, nil), // which is behind, too
			script.At(40), from(10, events, nil), from(29, events[19:], nil)}})
		u, _ := url.Parse("http://upstream/api/v1/pods")
		began := time.Now()
		var watched []time.Duration
		r := New(Objects(false), &recordingSink{}, Options{Transport: up, URL: u, Watchdog: true, Continuity: func(c Continuity) {
			if c == Watched {
				watched = append(watched, time.Since(began))
			}
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			time.Sleep(5 * time.Second)
			r.Check(ctx)
		}()
		go func() {
			var errs []error // by the second
			for ; ctx.Err() == nil; time.Sleep(time.Second) {
				s := r.Status()
				if errs = append(errs, s.LastError); s.LastError != nil && s.LastKnown.Sub(began) > time.Second {
					t.Errorf("after %v, known until %v", time.Since(began), s.LastKnown.Sub(began))
				}
			}
			failing := 0
			for i, err := range errs {
				if err != nil {
					failing++
				}
				if i > 0 && errs[i-1] == nil && err != nil && failing > 1 {
					t.Errorf("it was believed after %d seconds: %v", i, errs)
				}
			}
			if failing < 3 || errs[len(errs)-1] != nil {
				t.Errorf("by the second: %v", errs)
			}
		}()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if n := len(watched); n < 2 || watched[n-1] < 5*time.Second || watched[n-2] > 5*time.Second {
			t.Errorf("watched after %v, want at the begin, and once that has passed a check", watched)
		}
		synctest.Wait()
		if len(up.Answers) > 0 {
			t.Errorf("%d answers were not requested", len(up.Answers))
		}
		time.Sleep(10 * time.Minute) // until the upstream has written what nobody reads
	})
}

// TestSharedSuspicion: a reflector that takes the place of one with a silent watch does not report
// that it watches before a check.
func TestSharedSuspicion(t *testing.T) {
	for _, suspected := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			list := script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true)}
			up := script.NewConnections(&script.Upstream{T: t, Answers: []script.Answer{script.Probe, list}})
			u, _ := url.Parse("http://upstream/api/v1/pods")
			var suspect atomic.Bool
			suspect.Store(suspected)
			began, watched := time.Now(), time.Duration(-1)
			r := New(Objects(false), &recordingSink{}, Options{Transport: up, URL: u, Watchdog: true, Suspect: &suspect, Continuity: func(c Continuity) {
				if c == Watched && watched < 0 {
					watched = time.Since(began)
				}
			}})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
			if watched < 0 || suspected != (watched >= checkWait) {
				t.Errorf("suspected %v: watched after %v", suspected, watched)
			}
			time.Sleep(10 * time.Minute) // until the upstream has written what nobody reads
		})
	}
}
