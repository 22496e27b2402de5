// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

const (
	// maxBins is how many bins an answer can have, and defaultBins about how many
	// it has if the request has no bin.
	maxBins     = 2000
	defaultBins = 200
	// minBin is the resolution of event times.
	minBin = time.Millisecond
	maxBin = 366 * 24 * time.Hour
)

// counts returns the number of events per bin.
func (c *call) counts() (any, error) {
	first, last, err := c.span(nil)
	if err != nil {
		return nil, err
	}
	from, to := first.At, last.At
	bin, err := c.bin(to.Sub(from))
	if err != nil {
		return nil, err
	}
	// Bins begin at multiples of their length, so that they stay the same when a
	// client moves its range.
	from = from.Truncate(bin)
	if from.Unix() < 0 {
		return nil, refuseBad("from: %s is before there were clusters", from.Format(time.RFC3339))
	}
	out := api.Counts{From: from, To: to, BinSeconds: bin.Seconds(), Bins: int((to.Sub(from)-1)/bin) + 1, Resources: []api.ResourceCounts{}}
	if out.Bins > maxBins+1 {
		return nil, refuseBad("bin: %v is %d times in that range, of %d at the most: use a longer one", bin, out.Bins, maxBins)
	}
	resources, err := c.readable()
	if err != nil {
		return nil, err
	}
	out.Denied = c.denied
	selected, err := c.filter()
	if err != nil {
		return nil, err
	}
	large := sync.OnceValue(c.large)
	for _, r := range resources {
		one := api.ResourceCounts{
			Resource: r.GroupResource(), Path: r.Path(),
			Added: make([]int, out.Bins), Modified: make([]int, out.Bins), Deleted: make([]int, out.Bins),
			Spans: []api.TimeSpan{}, Gaps: []api.TimeSpan{},
		}
		if err := c.count(&one, r, from, to, bin, selected.match(c.cluster[r]), large); err != nil {
			return nil, err
		}
		out.Resources = append(out.Resources, one)
	}
	return out, nil
}

// count adds the counts of all epochs of a resource, and of the times between them. It calls large
// before it compares two states.
func (c *call) count(one *api.ResourceCounts, r kube.Resource, from, to time.Time, bin time.Duration, match history.Match, large func() error) error {
	streams := c.store.Streams(r)
	for i, st := range streams {
		if err := context.Cause(c.r.Context()); err != nil {
			return err
		}
		recorded := false
		for _, span := range st.TimeSpans() {
			if s, ok := inside(span.From.At, span.To.At, from, to); ok {
				one.Spans, recorded = append(one.Spans, s), true
			}
		}
		if !recorded {
			continue
		}
		if i > 0 && streams[i-1].Head().At.Before(st.Span().From.At) {
			if s, ok := inside(streams[i-1].Head().At, st.Span().From.At, from, to); ok {
				one.Gaps = append(one.Gaps, s)
			}
		}
		if x, ok := crossingTo(streams, i); ok && !x.begin().At.Before(from) && x.begin().At.Before(to) {
			if err := cmp.Or(large(), x.count(c.r.Context(), one, int(x.begin().At.Sub(from)/bin), match)); err != nil {
				return err
			}
		}
		for _, g := range st.Gaps() {
			if s, ok := inside(g.Since, g.Until, from, to); ok {
				one.Gaps = append(one.Gaps, s)
			}
		}
		counts, err := st.EventCounts(c.r.Context(), from, to, bin, match)
		if err != nil {
			return err
		}
		for i, n := range counts {
			one.Added[i] += n.Added
			one.Modified[i] += n.Modified
			one.Deleted[i] += n.Deleted
		}
	}
	if more := len(one.Gaps) - maxGaps; more > 0 {
		one.Gaps = slices.Delete(one.Gaps, 0, more)
	}
	return nil
}

// count adds the changes of a crossing to a bin.
func (x crossing) count(ctx context.Context, one *api.ResourceCounts, bin int, match history.Match) error {
	byType := map[kube.EventType][]int{kube.Added: one.Added, kube.Modified: one.Modified, kube.Deleted: one.Deleted}
	for o, err := range x.all(ctx, "") {
		if err != nil {
			return err
		}
		for _, e := range o.events {
			if match == nil || match(o.key, e.Type) {
				byType[e.Type][bin]++
			}
		}
	}
	return nil
}

// inside returns the part of a span that is inside a range.
func inside(from, to, lower, upper time.Time) (api.TimeSpan, bool) {
	if from.Before(lower) {
		from = lower
	}
	if to.After(upper) {
		to = upper
	}
	return api.TimeSpan{From: from.UTC(), To: to.UTC()}, !to.Before(from)
}

// span returns the range that the parameters since and until name, by default the last hour.
// Resourceversions are those of one resource, and the times are then those of its state.
func (c *call) span(resources []kube.Resource) (from, to kube.Moment, err error) {
	if from, err = c.when("since", "1h"); err != nil {
		return from, to, err
	}
	if to, err = c.when("until", "now"); err != nil {
		return from, to, err
	}
	for _, w := range []*kube.Moment{&from, &to} {
		if w.RV == 0 {
			continue
		}
		if len(resources) != 1 {
			return from, to, refuseBad("since and until: a range of several resources has times, not resourceVersions")
		}
		state, err := c.locate(resources[0], *w)
		if err != nil {
			return from, to, err
		}
		w.At = state.Since
	}
	if from.RV != 0 && to.RV != 0 && from.RV < to.RV {
		return from, to, nil // even if the clock was set back
	}
	if !from.At.Before(to.At) {
		return from, to, refuseBad("since (%s) is not before until (%s)", from, to)
	}
	from.At, to.At = from.At.UTC(), to.At.UTC()
	return from, to, nil
}

// niceBins are the lengths that a default bin may have.
var niceBins = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// bin returns the length of a bin.
func (c *call) bin(length time.Duration) (time.Duration, error) {
	text := c.query.Get("bin")
	if text == "" {
		for _, nice := range niceBins {
			if length/nice <= defaultBins {
				return nice, nil
			}
		}
		return (length/defaultBins + 24*time.Hour).Truncate(24 * time.Hour), nil
	}
	bin, err := time.ParseDuration(text)
	if err != nil || bin < minBin || bin > maxBin {
		return 0, refuseBad("bin is %q: it has to be a duration such as 10s or 5m, of a millisecond at least and a year at the most", text)
	}
	return bin, nil
}
