// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// TestCheck: a watch that does not send what a second one has is closed, and nothing is lost;
// one that does, or has nothing to send, stays open. If all watches are silent, though there is
// something to send, it is closed until one has proven the history.
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
	held := maxHeld + maxHeld
	all := []string{"list 10 [ns/a@3]", "bookmark 10", "MODIFIED ns/a@12"}
	for name, test := range map[string]struct {
		after      time.Duration
		answers    []script.Answer
		continuity []Continuity
		log        []string
		took       time.Duration // by two calls at once
	}{
		"silent":                               {time.Minute, []script.Answer{list, newer, tried, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, checkWait + checkGrace},
		"late":                                 {time.Minute, []script.Answer{late, newer}, nil, all, checkGrace},
		"idle":                                 {time.Minute, []script.Answer{list, idle}, nil, all[:2], checkWait},
		"recent":                               {minSilence / 2, []script.Answer{list}, nil, all[:2], 0},
		"compacted":                            {time.Minute, []script.Answer{list, expired, tried}, nil, all[:2], checkWait},
		"compacted, silent":                    {time.Minute, []script.Answer{list, expired, fromHead, tried, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, checkWait + checkGrace},
		"events are not sent again":            {time.Minute, []script.Answer{list, nothing, objects}, nil, all[:2], maxHeld + checkWait},
		"all watches are silent":               {time.Minute, []script.Answer{list, nothing, unset, tried, script.At(30), nothing, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, held},
		"all watches are silent, nobody calls": {0, []script.Answer{list, nothing, unset, tried, script.At(30), newer}, []Continuity{Silent, Doubtful, Proven}, all, 0},
		"empty":                                {time.Minute, []script.Answer{empty, tried, script.At(30)}, nil, []string{"list 10 []", "bookmark 10"}, checkWait},
		"empty, all watches are silent":        {time.Minute, []script.Answer{empty, tried, {Want: "limit=1", Body: script.Page(30, "", script.Pod("a", 12))}, tried, script.At(30), created}, []Continuity{Silent, Doubtful, Proven}, []string{"list 10 []", "bookmark 10", "ADDED ns/a@12"}, checkWait + checkGrace},
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
					r.Check(ctx) // which needs no request
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
