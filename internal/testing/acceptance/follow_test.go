// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// A follower keeps a copy of a collection, as a client's informer does: it lists,
// or requests a streaming list, watches from there, and starts over when the
// stream ends.
type follower struct {
	name      string
	client    *http.Client
	url       string // with parameters
	form      followForm
	watchList bool

	mu     sync.Mutex // guards what follows
	state  map[string]string
	code   int // of the last answer
	begins int // completed lists
}

// follow has a follower run until the context ends.
func follow(ctx context.Context, wg *sync.WaitGroup, f *follower) *follower {
	wg.Go(func() {
		for ctx.Err() == nil {
			f.round(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return f
}

func (f *follower) round(ctx context.Context) {
	if f.watchList {
		f.watch(ctx, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", map[string]string{}, false)
		return
	}
	resp := f.open(ctx, f.form.list, "&resourceVersion=0")
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	if state, rv, err := f.form.decode(body); err == nil {
		f.watch(ctx, "&resourceVersion="+rv, state, true)
	}
}

// open sends a request and records the code; it returns nil after an error.
func (f *follower) open(ctx context.Context, accept, query string) *http.Response {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+query, nil)
	if err != nil {
		return nil
	}
	req.Header.Set("Accept", accept)
	resp, err := f.client.Do(req)
	if err != nil {
		return nil
	}
	f.mu.Lock()
	f.code = resp.StatusCode
	f.mu.Unlock()
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil
	}
	return resp
}

func (f *follower) watch(ctx context.Context, query string, state map[string]string, synced bool) {
	resp := f.open(ctx, f.form.watch, query+"&watch=1&allowWatchBookmarks=true")
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	publish := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.state = maps.Clone(state)
	}
	begin := func() {
		publish()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.begins++
	}
	if synced {
		begin()
	}
	frames, err := watchread.New(resp.Header.Get("Content-Type"), resp.Body)
	if err != nil {
		return
	}
	for {
		frame, err := frames.Next()
		if err != nil {
			return
		}
		e, err := f.form.event(frame)
		if err != nil || e.typ == "ERROR" {
			return
		}
		if e.columns != "" {
			state["columns"] = e.columns
		}
		switch e.typ {
		case "ADDED", "MODIFIED":
			state[e.key] = e.value
		case "DELETED":
			delete(state, e.key)
		case "BOOKMARK":
			if !synced && e.end {
				synced = true
				begin()
			}
			continue
		}
		if synced {
			publish()
		}
	}
}

// A pair is the same follower at the API server and at the gateway.
type pair struct{ direct, gateway *follower }

// followBoth follows each path, which has parameters, at the API server and at the
// gateway, with both kinds of list.
func followBoth(ctx context.Context, t *testing.T, g *clustertest.Gateway, wg *sync.WaitGroup, form followForm, paths ...string) (all []pair) {
	t.Helper()
	client, up := direct(t)
	for _, path := range paths {
		for _, streaming := range []bool{false, true} {
			name := path + " " + form.name
			if streaming {
				name += " (streaming list)"
			}
			all = append(all, pair{
				follow(ctx, wg, &follower{name: name, client: client, url: up + path, form: form, watchList: streaming}),
				follow(ctx, wg, &follower{name: name, client: http.DefaultClient, url: g.URL + path, form: form, watchList: streaming}),
			})
		}
	}
	return all
}

// agree waits until the followers of each pair hold the same objects, or are
// refused with the same code.
func agree(t *testing.T, when string, all []pair) {
	t.Helper()
	for _, p := range all {
		var wantCode, gotCode int
		var want, got map[string]string
		deadline := time.Now().Add(3 * time.Minute)
		for {
			wantCode, want = p.direct.holds()
			gotCode, got = p.gateway.holds()
			if wantCode == gotCode && maps.Equal(want, got) {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s: %s holds %v (%d), want %v (%d)\n%s", when, p.gateway.name, got, gotCode, want, wantCode, tail(gw.Log()))
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// holds returns the last response's code, and with 200 the state.
func (f *follower) holds() (int, map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.code != http.StatusOK {
		return f.code, nil
	}
	return f.code, f.state
}

func tail(log string) string {
	lines := strings.Split(log, "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
