// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// A Gateway is the history of a Watchkeeper gateway: see docs/extensions.md. Its methods may be
// called by several goroutines.
type Gateway struct {
	Base      *url.URL
	Transport http.RoundTripper
}

// get reads an answer of the history API.
func (g *Gateway) get(ctx context.Context, path string, query url.Values, into any) error {
	u := g.Base.JoinPath("watchkeeper/v1/history", path)
	u.RawQuery = query.Encode()
	body, err := feed.Get(ctx, g.Transport, u, "application/json")
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// Now implements [History].
func (g *Gateway) Now(ctx context.Context) (at time.Time, ended bool, err error) {
	var h api.History
	err = g.get(ctx, "", nil, &h)
	return ceil(h.Now), h.Recording.State == api.RecordingEnded, err
}

const (
	firstSpan = 250 * time.Millisecond // in which the next change is looked for
	growth    = 8                      // each further span is so many times as long
	maxBack   = 50                     // changes that are read to find the last one before a time
)

// Step implements [History]. The API lists the newest change first. So the next one after a
// time is looked for in spans that grow.
func (g *Gateway) Step(ctx context.Context, resources []string, namespace string, from time.Time, forward bool) (time.Time, bool, error) {
	query := url.Values{"resource": resources}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	if !forward {
		query.Set("until", moment(from))
		query.Set("limit", fmt.Sprint(maxBack))
		return g.edge(ctx, query, from, false)
	}
	now, _, err := g.Now(ctx)
	if err != nil {
		return time.Time{}, false, err
	}
	begin := from
	for span := firstSpan; begin.Before(now); span *= growth {
		end := begin.Add(span)
		query.Set("since", moment(begin))
		query.Del("until")
		if end.Before(now) {
			query.Set("until", moment(end))
		}
		query.Set("limit", "1000")
		if at, ok, err := g.edge(ctx, query, from, true); ok || err != nil {
			return at, ok, err
		}
		begin = end
	}
	return time.Time{}, false, nil
}

// edge returns the time of the first change of all pages, or that of the last one.
func (g *Gateway) edge(ctx context.Context, query url.Values, from time.Time, first bool) (at time.Time, ok bool, err error) {
	query.Del("continue")
	for {
		var page api.Changes
		if err := g.get(ctx, "changes", query, &page); err != nil {
			return time.Time{}, false, err
		}
		for _, c := range page.Items {
			t := ceil(c.Time)
			if c.Type == api.Folded || c.Type == api.Initial || first && !t.After(from) || !first && !t.Before(from) {
				continue
			}
			if !ok || first == t.Before(at) {
				at, ok = t, true
			}
		}
		if page.Continue == "" || ok && !first {
			return at, ok, nil
		}
		query.Set("continue", page.Continue)
	}
}

// ceil returns the first time with milliseconds only that is not before t.
func ceil(t time.Time) time.Time { return t.Add(time.Millisecond - 1).Truncate(time.Millisecond) }

// moment writes a time as in /at/<when>.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
