// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

const (
	followInterval = time.Second
	// followOverlap is how far before the newest change each request begins. A change
	// that is recorded later than a newer one of another resource is found that way.
	followOverlap = 15 * time.Second
)

// A follower lists changes as they are recorded, each once.
type follower struct {
	from   time.Time // of the next request
	newest time.Time // of the changes so far
	to     time.Time // end of the last request's range
	told   time.Time // end of the gaps that were reported
	seen   map[changeID]time.Time
}

// A changeID identifies a change. Its time does not: after a crash, a gateway may observe
// a change again that it had not yet stored.
type changeID struct {
	path, version, kind string
	epoch               int
}

// follow prints the changes since a time, oldest first, and then new ones until ctx
// ends.
func (o *changesOptions) follow(ctx context.Context, args []string, query url.Values) error {
	h, err := o.history(ctx)
	if err != nil {
		return err
	}
	if h.Recording.State == api.RecordingEnded {
		return errors.New("a recording has ended, and gets no new changes: leave out --watch")
	}
	if rec, err := o.record(ctx); err == nil && len(args) == 0 {
		o.reportLeftOut(rec)
	}
	f := follower{seen: map[changeID]time.Time{}}
	lost := false // the gateway does not answer
	reason := ""  // why new changes are not known
	for {
		fresh, unobserved, err := o.next(ctx, &f, query)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && f.from.IsZero(): // the first request
			return err
		case err != nil && !lost:
			fmt.Fprintf(o.err, "watchkeeper: %v; trying again\n", err)
		}
		if lost = err != nil; !lost {
			reason = o.reportEnd(ctx, unobserved, reason)
			for _, line := range outages(f.gaps(unobserved), o.stamp) {
				fmt.Fprintln(o.err, line)
			}
		}
		for _, c := range fresh {
			if err := o.printNew(c); err != nil {
				return enough(err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
	}
}

// reportEnd says on standard error when new changes are not known any more, and when they are
// again. It returns why they are not; before is what it returned last.
func (o *changesOptions) reportEnd(ctx context.Context, unobserved []api.UnobservedSpan, before string) (reason string) {
	ends := slices.DeleteFunc(slices.Clone(unobserved), func(s api.UnobservedSpan) bool {
		return s.Reason != api.RecordingStopped && s.Reason != api.NoAnswer
	})
	if len(ends) > 0 {
		reason = ends[0].Reason
	}
	switch o.recorded = nil; {
	case reason == before:
	case reason == "":
		fmt.Fprintln(o.err, "new changes are known again")
	default:
		o.reportSilence(ctx, time.Now(), o.stamp)
		o.printUnobserved(ctx, ends, time.Time{}, o.stamp)
	}
	return reason
}

// gaps returns the gaps that have ended, of outages that were not reported.
func (f *follower) gaps(unobserved []api.UnobservedSpan) (ended []api.UnobservedSpan) {
	told := f.told
	for _, s := range unobserved {
		if !isGap(s) || !s.To.Before(f.to) || s.From.Before(told) {
			continue
		}
		if ended = append(ended, s); s.To.After(f.told) {
			f.told = s.To
		}
	}
	return ended
}

// next returns the changes that were not returned before, oldest first, and the spans in
// which changes may have been missed.
func (o *changesOptions) next(ctx context.Context, f *follower, query url.Values) (fresh []api.ObjectChange, unobserved []api.UnobservedSpan, err error) {
	if f.from.IsZero() && query.Get("since") == "now" {
		// The gateway's clock counts, not ours.
		query.Set("since", "1s")
		var now api.Changes
		if err := o.get(ctx, historyAPI+"/changes", query, &now); err != nil {
			return nil, nil, err
		}
		f.from, f.newest = now.To, now.To
	}
	if !f.from.IsZero() {
		query.Set("since", f.from.UTC().Format(time.RFC3339Nano))
	}
	query.Del("continue")
	for first := true; first || query.Has("continue"); first = false {
		var page api.Changes
		if err := o.get(ctx, historyAPI+"/changes", query, &page); err != nil {
			return nil, nil, err
		}
		if f.from.IsZero() {
			f.from, f.newest = page.From, page.From
		}
		unobserved = append(unobserved, page.Unobserved...)
		f.to = page.To
		for _, c := range page.Items {
			id := changeID{c.Path, c.ResourceVersion, c.Type, c.Epoch}
			if _, ok := f.seen[id]; !ok {
				fresh = append(fresh, c)
			}
		}
		if query.Del("continue"); page.Continue != "" {
			query.Set("continue", page.Continue)
		}
	}
	for _, c := range fresh {
		f.seen[changeID{c.Path, c.ResourceVersion, c.Type, c.Epoch}] = c.Time
		if c.Time.After(f.newest) {
			f.newest = c.Time
		}
	}
	if from := f.newest.Add(-followOverlap); from.After(f.from) {
		f.from = from
		maps.DeleteFunc(f.seen, func(_ changeID, at time.Time) bool { return at.Before(from) })
	}
	slices.Reverse(fresh)
	return fresh, unobserved, nil
}

// printNew prints a change without a pager.
func (o *changesOptions) printNew(c api.ObjectChange) error {
	out := o.guarded(o.out)
	if o.format == "text" {
		return o.print(out, c)
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}
