// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// TestUpstream: what a gateway says of its API server is reported, events are not, and another
// server is asked once.
func TestUpstream(t *testing.T) {
	since := time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)
	asked := make(chan string, 10)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.URL.Query().Get("watch") + " " + r.URL.Query().Get("upstream")
		if r.URL.Path != "/base/watchkeeper/v1/multiwatch" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintln(w, `{"watch":0,"type":"ADDED","object":{"kind":"Pod","since":"x"}}`)
		fmt.Fprintln(w, `{"watch":0,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"no answer\u001b[2J"}}`)
		fmt.Fprintln(w, `{"watch":0,"type":"CURRENT"}`)
		http.NewResponseController(w).Flush() //nolint:errcheck // the test fails then
		<-r.Context().Done()
	}))
	defer gateway.Close()
	base, err := url.Parse(gateway.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		c     feed.Collection
		asked string
	}{
		{feed.Collection{Namespace: "shop", LabelSelector: "a=b"}, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3D-&watch=1&resourceVersion=0"},
		{feed.Collection{FieldSelector: "metadata.name=web"}, "/api/v1/pods?fieldSelector=metadata.name%3Dweb&watch=1&resourceVersion=0"},
	} {
		test.c.Base, test.c.Transport, test.c.Resource = base.JoinPath("base"), gateway.Client().Transport, podsResource
		ctx, cancel := context.WithCancel(t.Context())
		var states []feed.State
		test.c.Upstream(ctx, func(s feed.State) {
			if states = append(states, s); s.Phase != feed.Stale {
				cancel()
			}
		})
		cancel()
		if diff := cmp.Diff([]feed.State{{Phase: feed.Stale, Since: since.Local(), Reason: "no answer^[[2J"}, {}}, states); diff != "" {
			t.Error(diff)
		}
		if got := <-asked; got != "/base/watchkeeper/v1/multiwatch "+test.asked+" 1" {
			t.Errorf("it is asked for %s", got)
		}
	}
	// The API server has no such path: the function returns.
	feed.Collection{Base: base, Transport: gateway.Client().Transport, Resource: podsResource}.Upstream(t.Context(), func(s feed.State) {
		if s != (feed.State{}) {
			t.Errorf("%+v", s)
		}
	})
}

// TestUpstreamEnds: a watch of a resource that cannot be read ends again and again, and its state
// does not alternate.
func TestUpstreamEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answers := 0
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers++; answers == 2 {
			fmt.Fprintln(w, `{"watch":0,"type":"CURRENT"}`)
			return
		}
		fmt.Fprintln(w, `{"watch":0,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"unreadable"}}`)
		fmt.Fprintln(w, `{"watch":0,"type":"END"}`)
	}))
	defer gateway.Close()
	base, err := url.Parse(gateway.URL)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	feed.Collection{Base: base, Transport: gateway.Client().Transport, Resource: podsResource}.Upstream(ctx, func(s feed.State) {
		if reasons = append(reasons, s.Reason); len(reasons) == 3 {
			cancel()
		}
	})
	if diff := cmp.Diff([]string{"unreadable", "", "unreadable"}, reasons); diff != "" {
		t.Error(diff)
	}
}

// TestSilentGateway: a gateway that misses its heartbeats is reported until it sends something.
func TestSilentGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := informertest.NewNetwork(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(api.HeartbeatHeader, "10")
			for _, pause := range []time.Duration{10, 10, 40, 10} { // seconds
				fmt.Fprintln(w, `{"watch":0,"type":"CURRENT"}`)
				http.NewResponseController(w).Flush() //nolint:errcheck // the test fails then
				time.Sleep(pause * time.Second)
			}
			<-r.Context().Done()
		}))
		defer network.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		began := time.Now()
		var states []string
		feed.Collection{Base: network.URL(), Transport: network, Resource: podsResource}.Upstream(ctx, func(s feed.State) {
			text := fmt.Sprint(time.Since(began), " current")
			if s.Phase == feed.Stale {
				text = fmt.Sprintf("%v stale since %v: %s", time.Since(began), s.Since.Sub(began), s.Reason)
			}
			states = append(states, text)
		})
		want := []string{"0s current", "10s current", "20s current", "50s stale since 20s: the gateway does not answer", "1m0s current"}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Minute) // until the gateway notices
	})
}
