// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestBookmarksOfSilence: a client gets bookmarks of an idle resource, but not for long
// when the API server is silent: they would hide that from the client.
func TestBookmarksOfSilence(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		from := podsOf(t, g).Timeline.View().RV
		f.write("d", "p00", 10)
		resp, err := client.Get(fmt.Sprintf("http://localhost/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=7200&resourceVersion=%d", from))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var bookmarks atomic.Int32
		go func() {
			for s := bufio.NewScanner(resp.Body); s.Scan(); {
				if strings.HasPrefix(brief(t, s.Text()), "BOOKMARK") {
					bookmarks.Add(1)
				}
			}
		}()
		during := func(d time.Duration) int {
			before := bookmarks.Load()
			time.Sleep(d)
			return int(bookmarks.Load() - before)
		}
		if n := during(20 * time.Minute); n < 19 {
			t.Errorf("%d bookmarks in 20 minutes without any event", n)
		}
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		go func() {
			for {
				select {
				case <-ticks.C:
					f.elsewhere()
				case <-t.Context().Done():
					return
				}
			}
		}()
		if n := during(20 * time.Minute); n < 13 {
			t.Errorf("%d bookmarks in 20 minutes with events of other resources", n)
		}
		f.mute.Store(true) // a list would show the gateway the state
		f.hold(true)
		if n := during(20 * time.Minute); n > 3 {
			t.Errorf("%d bookmarks in 20 minutes in which the API server was silent", n)
		}
		f.mute.Store(false)
		f.hold(false)
		if n := during(10 * time.Minute); n < 7 {
			t.Errorf("%d bookmarks in the 10 minutes after it", n)
		}
	})
}

// TestDeadStream: a watch of the gateway on a connection that is dead but appears open is
// replaced when its bookmarks are missing, long before its timeoutSeconds.
func TestDeadStream(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, _ *http.Client) {
		tl := podsOf(t, g).Timeline
		f.write("d", "p00", 10)
		time.Sleep(150 * time.Second) // two bookmarks show their interval
		f.holdOpen()
		missed := f.write("d", "p01", 10)
		time.Sleep(4 * time.Minute)
		if rv := tl.View().RV; rv < missed {
			t.Errorf("the cache is at %d, the API server at %d", rv, missed)
		}
	})
}

// TestStaleInSilence: when the API server is silent, though its connections are open, a
// multiwatch is told so, and so is it when the API server speaks again.
func TestStaleInSilence(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, _ *http.Client) {
		podsOf(t, g)
		r, _ := http.NewRequest(http.MethodGet, "/api/v1/pods?watch=1", nil)
		stale := func() string { return g.reads.upstreamState(r).Message }
		if message := stale(); message != "" {
			t.Errorf("at the start: %s", message)
		}
		f.hold(true)
		f.mute.Store(true)
		time.Sleep(20 * time.Second)
		if message := stale(); !strings.HasPrefix(message, "no answer from the API server: ") {
			t.Errorf("in the silence: %q", message)
		}
		f.hold(false)
		f.mute.Store(false)
		time.Sleep(20 * time.Second)
		if message := stale(); message != "" {
			t.Errorf("after it: %s", message)
		}
	})
}

// TestStaleInRefusals: while the API server refuses lists and watches, what a multiwatch says
// is stale is so since something was last known of it, also when an outage follows.
func TestStaleInRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, _ *http.Client) {
		podsOf(t, g)
		f.write("d", "p00", 10)
		time.Sleep(time.Second)
		known := time.Now()
		f.refused.Store(true)
		f.write("d", "p00", 10)
		r, _ := http.NewRequest(http.MethodGet, "/api/v1/pods?watch=1", nil)
		check := func(when string) {
			t.Helper()
			if s := g.reads.upstreamState(r); s.Message == "" || s.Since.After(known) || s.Since.Before(known.Add(-time.Second)) {
				t.Errorf("%s: %q since %v, want %v", when, s.Message, s.Since, known)
			}
		}
		time.Sleep(72 * time.Second)
		check("after 429s")
		f.mute.Store(true)
		time.Sleep(time.Minute)
		check("in an outage after them")
	})
}

// TestWarningInSilence: while the API server does not answer, the state of a moment after
// its last contact has a warning; other states have none.
func TestWarningInSilence(t *testing.T) {
	b, _ := newPastBench(t)
	warning := func(path string) string {
		resp := b.open(t.Context(), path)
		defer resp.Body.Close()
		return resp.Header.Get("Warning")
	}
	if w := warning("/at/now/api/v1/pods"); w != "" {
		t.Errorf("at first: %s", w)
	}
	if err := b.reads.up.Check(t.Context()); err == nil {
		t.Fatal("the API server answers")
	}
	if w := warning("/at/now/api/v1/pods"); !strings.HasPrefix(w, `299 - "the API server has not answered since `) {
		t.Errorf("in the outage, %+v: %q", b.reads.up.Contact(), w)
	}
	b.reads.past.CatchUp = b.reads.catchUp
	resp := b.open(t.Context(), "/at/rv:9999/api/v1/pods")
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "the API server has not answered since ") {
		t.Errorf("an RV that nothing is known of: %d %s %v", resp.StatusCode, text, err)
	}
	for _, path := range []string{at(40) + "/api/v1/pods", "/at/rv:40/api/v1/pods", "/api/v1/pods?resourceVersion=0"} {
		if w := warning(path); w != "" {
			t.Errorf("%s: %s", path, w)
		}
	}
}
