// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// unobserved returns the times in which changes of resources in a range may have been
// missed, the earliest first, and of many the latest: before the record begins (unless the
// range has no begin), whole gaps, and since recording stopped or the API server was last
// heard.
func (c *call) unobserved(resources []kube.Resource, from, to time.Time) (all []api.UnobservedSpan) {
	outages, _ := c.store.Outages()
	for _, r := range resources {
		add := func(reason string, since, until time.Time) {
			if since.IsZero() { // nothing was ever recorded of it: not since others are
				if since = from; since.IsZero() {
					since = c.earliest()
				}
			}
			if since.Before(to) && from.Before(until) && since.Before(until) {
				silent := (reason == api.InGap || reason == api.Late) && slices.ContainsFunc(outages, func(o history.Outage) bool { return mostOf(since, until, o.Since, o.Until) })
				all = append(all, api.UnobservedSpan{Resource: r.GroupResource(), Reason: reason, NoAnswer: silent, TimeSpan: api.TimeSpan{From: since.UTC(), To: until.UTC()}})
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

// mostOf reports whether another span has more than half of a span.
func mostOf(from, to, otherFrom, otherTo time.Time) bool {
	both, ok := inside(from, to, otherFrom, otherTo)
	return ok && 2*both.To.Sub(both.From) > to.Sub(from)
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
	head := c.Past.Newest(r).Head().At
	if err := c.unsynced[r]; err != nil {
		return past.KnownUntil(head, err), api.RecordingStopped
	}
	switch {
	case c.Recording().State == api.RecordingEnded:
		return c.Past.End(), api.RecordingStopped
	case c.contact.Err == nil:
		return time.Time{}, ""
	case c.contact.Since.IsZero(): // since before the gateway started
		return head, api.NoAnswer
	default:
		return c.contact.Since, api.NoAnswer
	}
}

// ofAll joins the errors of several resources of which nothing is known at a moment: their gaps are
// one, and not of the first of them.
func ofAll(errs []error) error {
	first, ok := errors.AsType[*history.RangeError](errs[0])
	if !ok || len(errs) == 1 {
		return errs[0]
	}
	all := *first
	all.Resource = kube.Resource{}
	for _, err := range errs[1:] {
		one, ok := errors.AsType[*history.RangeError](err)
		if !ok || errors.Is(one, history.ErrGap) != errors.Is(first, history.ErrGap) {
			return errs[0]
		}
		if one.From.At.Before(all.From.At) {
			all.From = one.From
		}
		if one.To.At.After(all.To.At) {
			all.To = one.To
		}
	}
	return &all
}

// noAnswer is the finding that the API server does not answer: of which time the others are.
func (f *finder) noAnswer() *findings.Finding {
	since := f.contact.Since
	for _, state := range f.states {
		if f.contact.Since.IsZero() && (since.IsZero() || state.Since.Before(since)) {
			since = state.Since // it has not answered since the gateway started
		}
	}
	return findings.NoAnswer(f.contact.Fault(), f.contact.Answers(), upstream.Cause(f.contact.Err), since, slices.Sorted(maps.Keys(f.states)))
}

// unrecorded returns the resources that findings are read from, and that would be recorded if
// recording did not fail, and those of them that the caller may list.
func (f *finder) unrecorded() (all, allowed []kube.Resource, err error) {
	f.cluster = map[kube.Resource]bool{}
	for _, name := range readFrom {
		r := kube.Resource{Version: "v1"}
		r.Name, r.Group, _ = strings.Cut(name, ".")
		if r.Name == "horizontalpodautoscalers" {
			r.Version = "v2"
		}
		f.cluster[r] = slices.Contains([]string{"apiservices", "namespaces", "nodes"}, r.Name)
		if f.Past.Missing(r) != "" && (f.namespace == "" || r.Name != "apiservices") {
			all = append(all, r)
		}
	}
	refused, err := f.decide(all, f.namespace)
	for i, r := range all {
		if err == nil && refused[i] == nil {
			allowed = append(allowed, r)
		}
	}
	return all, allowed, err
}

// present reads the present of a resource from the cache, if it is not recorded because of why,
// as on a full disk. The state is then the end of the record, for what the history knows; it has no
// Stream if there is no record. If it is not recorded because it is not watched, the cache does not
// know more.
func (f *finder) present(r kube.Resource, why error) (past.State, error) {
	state, ok := f.lastState(r)
	if _, refused := errors.AsType[*reflector.RefusedError](why); refused || errors.Is(why, past.ErrUnwatched) || f.Live == nil || f.Recording().State == api.RecordingEnded || !ok && f.Past.Newest(r) != nil {
		return past.State{}, why
	}
	snapshot := f.Live(f.page.ctx, r)
	if snapshot == nil {
		return past.State{}, why
	}
	f.live[r.GroupResource()] = snapshot
	if ok && (f.recordedUntil.IsZero() || state.At.Before(f.recordedUntil)) {
		f.recordedUntil = state.At
	}
	return state, nil
}

// lastState returns the last recorded state of a resource.
func (f *finder) lastState(r kube.Resource) (state past.State, ok bool) {
	st := f.Past.Newest(r)
	if st == nil {
		return past.State{}, false
	}
	head := st.Head()
	at := past.KnownUntil(head.At, f.unsynced[r])
	return past.State{Stream: st, RV: head.RV, At: at, Since: at, Newest: true}, head.RV != 0
}

// unknown describes a resource whose state at a moment is not known because of why.
func (f *finder) unknown(r kube.Resource, at time.Time, why error) findings.Unknown {
	u := findings.Unknown{Resource: r.GroupResource()}
	switch {
	case errors.Is(why, history.ErrBefore) && f.begin(r).IsZero():
		u.Reason = "nothing of them is recorded"
		if why := f.Past.Missing(r); why != "" {
			u.Reason += ": " + why
		}
	case errors.Is(why, history.ErrBefore):
		u.Reason, u.Before, u.Until = "the record begins later", true, f.begin(r)
	case errors.Is(why, history.ErrGap):
		u.Reason = "the moment is in a gap of the record"
		for _, span := range f.unobserved([]kube.Resource{r}, at, at.Add(time.Millisecond)) {
			if span.Reason == api.InGap || span.Reason == api.Late {
				u.Since, u.Until = span.From, span.To
				if span.NoAnswer {
					u.Reason = "the API server did not answer then"
				}
			}
		}
	default:
		u.Reason = f.nothingNewer()
		if st := f.Past.Newest(r); st != nil {
			u.Since = past.KnownUntil(st.Head().At, f.unsynced[r])
		}
	}
	return u
}

// nothingNewer is why the present is not known.
func (f *finder) nothingNewer() string {
	if why := f.Recording().Reason; why != "" {
		return "nothing newer is recorded (" + why + ")"
	}
	return "nothing newer is recorded"
}

// upstreamState says whether the API server answers; nil for a finished recording.
func (c *call) upstreamState() *api.Upstream {
	if c.Upstream == nil || c.Recording().State == api.RecordingEnded {
		return nil
	}
	if c.contact.Err != nil {
		return &api.Upstream{Reason: upstream.Cause(c.contact.Err), LastContact: c.contact.Since.UTC()}
	}
	return &api.Upstream{Answers: true, LastContact: c.contact.Last.UTC()}
}

// lastKnown returns the last time until one at which the API server answered: what has not
// failed since may have, so that nothing recovers by waiting.
func (c *call) lastKnown(at time.Time) time.Time {
	if since := c.contact.Since; c.contact.Err != nil && !since.IsZero() && since.Before(at) {
		return since
	}
	return at
}

// ends are the parameters that name a moment or the end of a range.
var ends = []string{"until", "to", "at"}

// contact returns what is known of the API server up to the end of the range of a request. It
// has no error if the range ended before that of what is known.
func (h *Handler) contact(r *http.Request, now time.Time) upstream.Contact {
	if h.Upstream == nil {
		return upstream.Contact{}
	}
	known, end, query := h.Upstream.Contact(), now, r.URL.Query()
	for _, parameter := range ends {
		text := query.Get(parameter)
		if text == "" {
			continue
		}
		when, err := kube.ParseMoment(text, now)
		if err != nil || when.RV != 0 { // what was recorded then is final
			return upstream.Contact{Last: known.Last}
		}
		end = when.At
	}
	if end.After(now) {
		end = now
	}
	if known = h.Upstream.ContactUntil(r.Context(), end); !known.Unknown(end) {
		return upstream.Contact{Last: known.Last}
	}
	return known
}

// warnSilence adds a warning if the API server has not answered until the end of the range of
// the request. The index has it in its body.
func warnSilence(header http.Header, r *http.Request, contact upstream.Contact) {
	if name, _ := cutPath(r.URL.Path); contact.Err != nil && !contact.Since.IsZero() && len(endpoints[name].parameters) > 0 {
		status.Warn(header, contact.Warning())
	}
}
