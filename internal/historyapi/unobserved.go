// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
)

// unobserved returns the times in which changes of resources in a range may have been
// missed, the earliest first, and of many the latest: before the record begins (unless the
// range has no begin), whole gaps, and since recording stopped or the API server was last
// heard.
func (c *call) unobserved(resources []kube.Resource, from, to time.Time) (all []api.UnobservedSpan) {
	for _, r := range resources {
		add := func(reason string, since, until time.Time) {
			if since.IsZero() { // nothing was ever recorded of it: not since others are
				if since = from; since.IsZero() {
					since = c.earliest()
				}
			}
			if since.Before(to) && from.Before(until) && since.Before(until) {
				all = append(all, api.UnobservedSpan{Resource: r.GroupResource(), Reason: reason, TimeSpan: api.TimeSpan{From: since.UTC(), To: until.UTC()}})
			}
		}
		streams := c.store.Streams(r)
		for i, st := range streams {
			if i > 0 {
				add(api.InGap, streams[i-1].Head().At, st.Span().From.At)
			}
			for _, g := range st.Gaps() {
				reason := api.InGap
				if g.Late() {
					reason = api.Late
				}
				add(reason, g.Since, g.Until)
			}
			if i == len(streams)-1 && st.Heard() != nil && c.Recording().State != api.RecordingEnded {
				add(api.InGap, st.Head().At, to) // its end is not known yet
			}
		}
		if s, ok := inside(from, c.begin(r), from, to); ok && !from.IsZero() {
			add(api.BeforeRecord, s.From, s.To)
		}
		if since, reason := c.recordEnd(r); reason != "" {
			add(reason, since, to)
		}
	}
	slices.SortStableFunc(all, func(a, b api.UnobservedSpan) int { return a.From.Compare(b.From) })
	if more := len(all) - maxGaps; more > 0 {
		all = all[more:]
	}
	return all
}

// begin returns when the record of a resource begins.
func (c *call) begin(r kube.Resource) (begin time.Time) {
	for _, st := range c.store.Streams(r) {
		for _, span := range st.TimeSpans() {
			if begin.IsZero() || span.From.At.Before(begin) {
				begin = span.From.At
			}
		}
	}
	return begin
}

// earliest returns when the record of any resource begins.
func (c *call) earliest() (begin time.Time) {
	for _, r := range c.store.Resources() {
		if at := c.begin(r); !at.IsZero() && (begin.IsZero() || at.Before(begin)) {
			begin = at
		}
	}
	return begin
}

// knownUntil returns until when the state of a resource is known, at most until the call began.
func (c *call) knownUntil(r kube.Resource) time.Time {
	st := c.Past.Newest(r)
	switch since, reason := c.recordEnd(r); {
	case reason != "":
		return since
	case st.Heard() != nil: // a gap, which has not ended
		return st.Head().At
	}
	return c.now
}

// recordEnd returns the time after which nothing is known of a resource, and why; "" if the
// present is known.
func (c *call) recordEnd(r kube.Resource) (since time.Time, reason string) {
	if c.Recording().State == api.RecordingEnded {
		return c.Past.End(), api.RecordingStopped
	}
	head := c.Past.Newest(r).Head().At
	if c.unsynced[r] != nil {
		return head, api.RecordingStopped
	}
	switch {
	case c.contact.Err == nil:
		return time.Time{}, ""
	case c.contact.Since.IsZero(): // since before the gateway started
		return head, api.NoAnswer
	default:
		return c.contact.Since, api.NoAnswer
	}
}
