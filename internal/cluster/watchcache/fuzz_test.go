// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// FuzzUpstream feeds a timeline with arbitrary responses of an API server: one for
// each LIST, and one for each WATCH. The timeline has to hold well-formed objects, in
// order, and its events have to be in order.
func FuzzUpstream(f *testing.F) {
	f.Fuzz(func(t *testing.T, list, stream string, columns bool) {
		synctest.Test(t, func(t *testing.T) { fuzzUpstream(t, list, stream, columns) }) // its pauses take no time
	})
}

func fuzzUpstream(t *testing.T, list, stream string, columns bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	requests := 0
	transport := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		if requests++; requests > 12 {
			cancel()
			return nil, context.Canceled
		}
		body := list
		if r.URL.Query().Has("watch") {
			body = stream
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
	tl := timeline.New(timeline.Options{})
	r := reflector.New(reflector.Objects(columns), newFeed(&timelineSink{Timeline: tl}), reflector.Options{
		Transport: transport, URL: &url.URL{Scheme: "http", Host: "localhost", Path: "/api/v1/pods"}, Kind: "Pod",
		Logger: slog.New(slog.DiscardHandler),
	})
	_ = r.Run(ctx) // the reason does not matter

	v := tl.View()
	if v == nil {
		return
	}
	last := kube.Key("")
	for o := range v.All("", "") {
		if o.Key <= last && last != "" || !json.Valid([]byte(o.JSON)) {
			t.Fatalf("%s at %d, after %s, in a snapshot at %d: %s", o.Key, o.RV, last, v.RV, o.JSON)
		}
		last = o.Key
	}
	cursor, err := tl.WatchFrom(v, v.Start, timeline.Interest{})
	if err != nil {
		return
	}
	b, err := cursor.Next()
	if err != nil {
		return
	}
	rv := uint64(0)
	for _, e := range b.Events {
		if e.RV < rv || e.Type == kube.Bookmark || e.Prev != nil && e.Prev.Key != e.Object.Key {
			t.Fatalf("%s of %s at %d, after %d", e.Type, e.Object.Key, e.RV, rv)
		}
		rv = e.RV
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
