// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

// A gate refuses requests with its code, or passes them on if that is 0.
type gate struct {
	http.RoundTripper
	code    atomic.Int32
	refused atomic.Int32
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	code := int(g.code.Load())
	if code == 0 {
		return g.RoundTripper.RoundTrip(r)
	}
	g.refused.Add(1)
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(script.Status(code))), Request: r}, nil
}

// gated returns an informer behind a gate.
func gated(t *testing.T, code int32, opts Options, answers ...script.Answer) (*Informer[testPod], *gate) {
	t.Helper()
	g := &gate{RoundTripper: &script.Upstream{T: t, Answers: answers}}
	g.code.Store(code)
	return New(NewSource(&url.URL{Scheme: "https", Host: "upstream:6443"}, g), pods, JSON[testPod](), opts), g
}

// TestI13Restart: a wait that begins after Start is for the run that Start has begun.
func TestI13Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, g := gated(t, 403, Options{}, script.Synced)
		if err := i.Wait(); !errors.Is(err, ErrStopped) {
			t.Errorf("never started: %v", err)
		}
		for range 5 {
			if err := i.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := i.Start(t.Context()); !errors.Is(err, ErrRunning) {
				t.Errorf("started twice: %v", err)
			}
			if err := i.WaitSynced(t.Context()); !refusedWith(403)(err) || !errors.Is(err, ErrNotSynced) || !errors.Is(err, ErrStopped) {
				t.Errorf("refused: %v", err)
			}
			if err := i.Wait(); !refusedWith(403)(err) {
				t.Errorf("Wait: %v", err)
			}
		}
		g.code.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		if err := i.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if err := i.WaitSynced(t.Context()); err != nil {
			t.Errorf("the refusal is of the run before: %v", err)
		}
		cancel()
		if err := i.Wait(); err != nil {
			t.Errorf("its context ended: %v", err)
		}
	})
}

// TestI13Pace: calling Run in a loop does not flood the API server that refuses it.
func TestI13Pace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, g := gated(t, 404, Options{}, script.Synced)
		for began := time.Now(); time.Since(began) < minute; {
			if err := i.Run(t.Context()); !refusedWith(404)(err) {
				t.Fatal(err)
			}
		}
		if n := g.refused.Load() / 3; n < 8 || n > 30 { // each with two for what is missing
			t.Errorf("%d runs in a minute", n)
		}
		g.code.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		if err := i.Start(ctx); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := i.WaitSynced(t.Context()); err != nil || time.Since(began) > reflector.MaxBackoff {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		cancel()
		if err := i.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := i.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); i.Status().Phase == Starting {
			t.Error("a run after one that was not refused waits")
		}
	})
}

// TestI13WaitSyncedAgain: WaitSynced in a loop is as slow as the requests that fail, and ends
// with the list.
func TestI13WaitSyncedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, g := gated(t, 503, Options{}, script.Probe, script.Synced)
		stop := start(t, i)
		calls := 0
		for range 3 { // the first call waits for three failures
			var err error
			for began := time.Now(); time.Since(began) < minute; calls++ {
				if err = i.WaitSynced(t.Context()); !errors.Is(err, ErrNotSynced) {
					t.Fatal(err)
				} else if calls > 1000 {
					t.Fatal("a loop does not wait")
				}
			}
			if answer, ok := errors.AsType[*StatusError](err); !ok || answer.Code != 503 {
				t.Error(err)
			}
		}
		if n := int(g.refused.Load()); calls < 10 || calls != n-2 {
			t.Errorf("%d calls have failed with %d requests", calls, n)
		}
		waits := make(chan error)
		go func() { waits <- i.WaitSynced(t.Context()) }()
		g.code.Store(0)
		if err := <-waits; err != nil {
			t.Error(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestI13WaitRV: WaitRV ends when the RV cannot be reached.
func TestI13WaitRV(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, g := gated(t, 0, Options{Namespaces: []string{"ns"}}, script.Probe, script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 5) + script.Bookmark(10, true), Lasts: minute})
		stop := start(t, i)
		if err := i.WaitRV(t.Context(), "10", "ns"); err != nil {
			t.Error(err)
		}
		if err := i.WaitRV(t.Context(), "10", "other"); !errors.Is(err, ErrNotWatched) || !strings.Contains(err.Error(), `"other"`) {
			t.Errorf("in a namespace that is not watched: %v", err)
		}
		if err := i.WaitSynced(t.Context(), "other"); !errors.Is(err, ErrNotWatched) || !errors.Is(err, ErrNotSynced) {
			t.Errorf("in a namespace that is not watched: %v", err)
		}
		g.code.Store(403)
		if err := i.WaitRV(t.Context(), "11", "ns"); !errors.Is(err, ErrStopped) || !refusedWith(403)(err) {
			t.Errorf("when the API server refuses the namespace: %v", err)
		}
		if err := i.WaitRV(t.Context(), "11"); !errors.Is(err, ErrStopped) {
			t.Errorf("after Run: %v", err)
		}
		if err := i.WaitRV(t.Context(), "10"); err != nil {
			t.Errorf("the copy is kept: %v", err)
		}
		if err := stop(); !refusedWith(403)(err) {
			t.Error(err)
		}
	})
}

// TestI13Events: a sequence ends, with the reason, if its run has ended or is refused.
func TestI13Events(t *testing.T) {
	read := func(t *testing.T, i *Informer[testPod]) (lines []string, errs []error) {
		for e, err := range i.Events(t.Context()) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			lines = append(lines, describe(e))
		}
		return lines, errs
	}
	synctest.Test(t, func(t *testing.T) {
		existing := script.Event("ADDED", "a", 5) + script.Bookmark(10, true)
		i, g := gated(t, 403, Options{}, script.Probe, script.Answer{Want: script.Streaming, Body: existing, Stall: true})
		if err := i.Run(t.Context()); err == nil {
			t.Fatal("not refused")
		}
		if lines, errs := read(t, i); len(lines) > 0 || len(errs) != 1 || !refusedWith(403)(errs[0]) || !errors.Is(errs[0], ErrStopped) {
			t.Errorf("after a refusal: %q, %v", lines, errs)
		}
		if err := i.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lines, errs := read(t, i); len(lines) > 0 || len(errs) != 1 || !refusedWith(403)(errs[0]) {
			t.Errorf("when it is refused: %q, %v", lines, errs)
		}
		g.code.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), minute)
		defer cancel()
		if err := i.Start(ctx); err != nil {
			t.Fatal(err)
		}
		for _, why := range [][]error{nil, {ErrStopped}} { // during the run, and after it
			lines, errs := read(t, i)
			want(t, lines, "ADDED ns/a →5 initial", "SYNCED→")
			if !slices.Equal(errs, why) {
				t.Errorf("%v, want %v", errs, why)
			}
		}
	})
	// The subscription begins after the refusal is published, and before the run ends, which
	// waits for its task.
	synctest.Test(t, func(t *testing.T) {
		i, _ := gated(t, 403, Options{}, script.Synced)
		var got []error
		i.addTask(&task{do: func(ctx context.Context) {
			<-ctx.Done()
			go func() { _, got = read(t, i) }()
			time.Sleep(minute)
		}})
		if err := i.Run(t.Context()); err == nil {
			t.Fatal("not refused")
		}
		if synctest.Wait(); len(got) != 1 || !refusedWith(403)(got[0]) {
			t.Errorf("the sequence ended with %v", got)
		}
	})
}

// TestNamespaceRefused: a refusal in a namespace that was added is of that namespace
// alone.
func TestNamespaceRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := func(ns string, rv int) *script.Upstream {
			body := strings.ReplaceAll(script.Event("ADDED", "a", rv)+script.Bookmark(10, true), `"ns"`, `"`+ns+`"`)
			return &script.Upstream{T: t, Answers: []script.Answer{script.At(5), {Want: script.Streaming, Stall: true, Body: body}}}
		}
		g := &gate{RoundTripper: answers("y", 6)}
		g.code.Store(403)
		up := byNamespace{"x": answers("x", 5), "y": g}
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream", Path: "/prefix"}, up), Resource{"apps", "v1", "deployments"}, Raw(), Options{Namespaces: []string{"x"}})
		if err := i.AddNamespace("y"); err != nil {
			t.Fatal(err)
		}
		d := follow(t, i)
		stop := start(t, i)
		forbidden := func() {
			t.Helper()
			if err := i.WaitSynced(t.Context(), "y"); !refusedWith(403)(err) || !errors.Is(err, ErrNotSynced) || errors.Is(err, ErrStopped) {
				t.Errorf("y: %v", err)
			}
			if err := i.WaitRV(t.Context(), "3", "y"); !refusedWith(403)(err) {
				t.Errorf("y: %v", err)
			}
			if err := i.WaitSynced(t.Context()); !refusedWith(403)(err) {
				t.Errorf("all: %v", err)
			}
			if s := i.Status(); s.Phase != Refused || len(s.Refused) != 1 || !refusedWith(403)(s.Refused["y"]) {
				t.Errorf("%+v", s)
			}
			if err := i.WaitSynced(t.Context(), "x"); err != nil {
				t.Errorf("x: %v", err)
			}
		}
		forbidden()
		want(t, slices.Sorted(slices.Values(d.read())), "ADDED x/a →5 initial", "SYNCED→", "error")
		time.Sleep(minute)
		if n := g.refused.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
		if err := i.AddNamespace("y"); err != nil { // is tried again
			t.Fatal(err)
		}
		forbidden()
		g.code.Store(0)
		if err := i.AddNamespace("y"); err != nil {
			t.Fatal(err)
		}
		if err := i.WaitSynced(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait() // the phase follows the list
		if s := i.Status(); s.Phase != Watching || s.Refused != nil {
			t.Errorf("%+v", s)
		}
		want(t, d.read()[3:], "error", "ADDED y/a →6 initial")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestErrors: an error says what was asked for and what the API server answered.
func TestErrors(t *testing.T) {
	discovery := map[string]string{
		"/apis/apps":     `{"versions":[{"version":"v1"},{"version":"v1beta2"}]}`,
		"/apis/apps/v1":  `{"resources":[{"name":"deployments"},{"name":"deployments/scale"}]}`,
		"/api":           `{"versions":["v1"]}`,
		"/api/v1":        `{"resources":[{"name":"pods"}]}`,
		"/apis/huge":     `{"versions":[`,
		"/apis/apps/bad": `}`,
	}
	for _, test := range []struct {
		res  Resource
		code int
		want string
	}{
		{Resource{"apps", "v1", "deployments"}, 403, "list https://upstream:6443/apis/apps/v1/deployments: refused with 403: no"},
		{Resource{"apps", "v1", "deployments"}, 400, "list https://upstream:6443/apis/apps/v1/deployments: 400: no"},
		{Resource{"apps", "v1", "deployments"}, 406, "list https://upstream:6443/apis/apps/v1/deployments: 406: no"},
		{Resource{"apps", "v1", "deployments"}, 404, "refused with 404: no"},
		{Resource{"apps", "v1", "deployment"}, 404, `(group "apps" has no resource "deployment" in version v1)`},
		{Resource{"apps", "v2", "deployments"}, 404, `(group "apps" has no version v2, but v1, v1beta2)`},
		{Resource{"example.com", "v2", "widgets"}, 404, `(the API server does not serve group "example.com")`},
		{Resource{"", "v1", "deployments"}, 404, `(the core group has no resource "deployments" in version v1)`},
		{Resource{"", "v2", "pods"}, 404, "(the core group has no version v2, but v1)"},
		{Resource{"huge", "v1", "pods"}, 404, "refused with 404: no"},
		{Resource{"apps", "bad", "pods"}, 404, "refused with 404: no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			up := answering(func(r *http.Request) (int, string) {
				if body, ok := discovery[r.URL.Path]; ok {
					return 200, body
				} else if r.URL.RawQuery == "" {
					return 404, "404 page not found"
				}
				return test.code, script.Status(test.code)
			})
			i := New(NewSource(&url.URL{Scheme: "https", Host: "upstream:6443"}, up), test.res, Raw(), Options{})
			stop := start(t, i)
			err := i.WaitSynced(t.Context())
			if answer, ok := errors.AsType[*StatusError](err); !ok || answer.Code != test.code || answer.Message != "no" {
				t.Errorf("%v", err)
			}
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
			if refused := stop(); isRefusal(err) != (refused != nil) {
				t.Errorf("Run returns %v", refused)
			}
		})
	}
}

// answering is an upstream that answers with a code and a body.
type answering func(*http.Request) (int, string)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := a(r)
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}
