// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// FuzzUpstream feeds a timeline with what an API server answers, whatever that
// is: one LIST and one stream. The timeline holds well-formed objects, in order.
func FuzzUpstream(f *testing.F) {
	f.Fuzz(func(t *testing.T, list, stream string, columns bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tl := timeline.New(timeline.Options{})
		streams := 0
		upstream := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			body := io.NopCloser(strings.NewReader(list))
			if r.URL.Query().Has("watch") {
				if streams++; streams > 1 {
					cancel()
					return nil, context.Canceled
				}
				body = &endingBody{strings.NewReader(stream), cancel}
			} else if streams > 0 || !strings.Contains(list, "resourceVersion") {
				cancel() // it would be tried again and again
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
		})
		r := informer.NewReflector(informer.Options{
			Transport: upstream, URL: &url.URL{Scheme: "http", Host: "localhost", Path: "/api/v1/pods"}, Kind: "Pod",
			Columns: columns, Sink: tl, Logger: slog.New(slog.DiscardHandler),
		})
		if _, err := kube.ScanList(list, "Pod"); err != nil && !errors.Is(err, kube.ErrNotObject) {
			return // asked for anew after a while
		}
		_ = r.Run(ctx) // why it ended is its own affair

		v := tl.View()
		if v == nil {
			return
		}
		last := kube.Key("")
		for o := range v.All("", "") {
			if o.Key <= last && last != "" || !json.Valid([]byte(o.JSON)) {
				t.Fatalf("%s at %d, behind %s, in a snapshot at %d: %s", o.Key, o.RV, last, v.RV, o.JSON)
			}
			last = o.Key
		}
		cursor, err := tl.WatchFrom(v, v.Start)
		if err != nil {
			return
		}
		events, _, err := cursor.Next()
		if err != nil {
			return
		}
		rv := uint64(0)
		for _, e := range events {
			if e.RV < rv || e.Type == kube.Bookmark || e.Prev != nil && e.Prev.Key != e.Object.Key {
				t.Fatalf("%s of %s at %d, behind %d", e.Type, e.Object.Key, e.RV, rv)
			}
			rv = e.RV
		}
	})
}

// An endingBody tells when it has been read or is not wanted any more.
type endingBody struct {
	*strings.Reader
	ended func()
}

func (b *endingBody) Close() error { b.ended(); return nil }
