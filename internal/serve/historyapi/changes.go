// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// changes returns the changes in a range of time, the newest first.
func (c *call) changes() (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	resources, err := c.readable()
	if err != nil {
		return nil, err
	}
	from, to, err := c.span(resources)
	if err != nil {
		return nil, err
	}
	bounds, err := parseBounds(c.query.Get("continue"))
	if err != nil {
		return nil, err
	}
	selected, err := c.filter()
	if err != nil {
		return nil, err
	}
	author, err := c.authorship()
	if err != nil {
		return nil, err
	}
	var sources, crossings []*backward
	for _, r := range resources {
		streams := c.store.Streams(r)
		for i, st := range streams {
			b, err := c.backward(st, i == len(streams)-1, from, to, bounds)
			if err != nil {
				return nil, err
			}
			if b != nil {
				b.match, b.ordered = selected.match(c.cluster[r]), i == len(streams)-1 && r.Name != "events"
				sources = append(sources, b)
			}
			if x, ok := crossingTo(streams, i); ok && x.within(i == len(streams)-1, from, to) {
				if b := across(x, bounds); b != nil {
					b.match = selected.match(c.cluster[r])
					crossings = append(crossings, b)
				}
			}
		}
	}
	for _, b := range sources {
		b.scan = max(1, maxScanned/len(sources)) // so that each page gets further in each of them
	}
	for _, b := range crossings {
		b.scan = max(1, maxCrossed/len(crossings))
	}
	sources = append(sources, crossings...)
	out := api.Changes{From: from.At, To: to.At, Items: []api.ObjectChange{}, Denied: c.denied}
	if bounds == nil {
		out.Unobserved = c.unobserved(resources, from.At, to.At)
	}
	for {
		if err := p.ended(); err != nil {
			return nil, err
		}
		next, err := newestOf(p.ctx, sources)
		switch {
		case errors.Is(err, errScanned):
			if next = withinRV(sources); next == nil {
				out.Continue = formatBounds(sources)
				return out, nil
			}
		case err != nil:
			return nil, err
		case next == nil:
			return out, nil
		case p.full() && next.canEndPage():
			out.Continue = formatBounds(sources)
			return out, nil
		}
		e := next.pop()
		p.crossing = next.crossing
		item, _, err := p.change(next.Stream, e)
		if err != nil {
			return nil, err
		}
		if item == nil {
			out.Folded++
			continue
		}
		if author.leavesOut(item, p.onlyStatus) {
			out.LeftOut++
			continue
		}
		p.items++
		key := e.Object.Key
		out.Items = append(out.Items, api.ObjectChange{
			Resource: next.Resource().GroupResource(), Path: next.Resource().ObjectPath(key), Kind: e.Object.Kind,
			Namespace: key.Namespace(), Name: key.Name(), Change: *item,
		})
	}
}

// A backward reads the events of a stream, the newest first, or the changes of a crossing.
type backward struct {
	eventRange
	crossing *crossing       // nil for the events of the stream
	key      kube.Key        // of the next object of the crossing
	read     bool            // all of the crossing
	match    history.Match   // nil selects everything
	scan     int             // how many entries of the log the page may still read, with a match
	events   []history.Event // read, but not yet returned, in RV order
	last     uint64          // the RV of the last returned event
	lastOf   kube.Key        // its object
	// ordered is set if the RVs are likely those of the API server's store as it is now:
	// Events often have another one, and an epoch ends when the store is restored.
	ordered bool
}

// bounds has where the next page continues.
type bounds struct {
	Below map[string]uint64   `json:"below"`          // RVs, by the name of a stream
	Keys  map[string]kube.Key `json:"keys,omitempty"` // in crossings, by the name of the second stream
}

// backward returns the events of a stream in a range, nil if there are none.
func (c *call) backward(st *history.Stream, newest bool, from, to kube.Moment, b *bounds) (*backward, error) {
	r, ok, err := rangeOf(c.r.Context(), st, newest, from, to)
	if !ok || err != nil || len(st.ClockSteps()) == 0 && st.Head().At.Before(from.At) {
		return nil, err
	}
	if b != nil {
		below, ok := b.Below[streamName(st)]
		if !ok {
			return nil, nil // the pages before had all of its events
		}
		r.to = min(r.to, below-1)
	}
	return &backward{eventRange: r}, nil
}

// across returns the changes of a crossing, nil if the pages before had all of them.
func across(x crossing, b *bounds) *backward {
	key := kube.Key("")
	if b != nil {
		var ok bool
		if key, ok = b.Keys[streamName(x.second)]; !ok {
			return nil
		}
	}
	return &backward{eventRange: eventRange{Stream: x.second}, crossing: &x, key: key}
}

// streamName returns a unique name of a stream.
func streamName(st *history.Stream) string {
	return st.Resource().String() + "#" + kube.FormatRV(uint64(st.Epoch()))
}

// maxScanned bounds the entries of the log that are read for a page with a filter. It
// takes about half a second. Tests change it.
var maxScanned = 500_000

// errScanned: the page has read as many entries of the log as it may.
var errScanned = errors.New("the page has read enough of the log")

// peek returns the newest remaining event, nil if there is none.
func (b *backward) peek(ctx context.Context) (*history.Event, error) {
	for b.match != nil && len(b.events) == 0 && b.from < b.to {
		if b.scan <= 0 {
			return nil, errScanned
		}
		found, err := b.Search(ctx, history.Search{Match: b.match, From: b.from, To: b.to, Since: b.since, Events: eventChunk / 4, Scan: b.scan})
		if err != nil {
			return nil, err
		}
		b.scan -= found.Scanned
		b.events, b.to = found.Events, found.Rest
	}
	if len(b.events) == 0 && b.from < b.to {
		events, err := b.LastEvents(ctx, b.from, b.to, eventChunk/4) // few: there are many streams
		if err != nil {
			return nil, err
		}
		if b.events, b.to = events, b.from; len(events) > 0 {
			b.to = events[0].Object.RV - 1
		}
	}
	for b.crossing != nil && len(b.events) == 0 && !b.read {
		if b.scan <= 0 {
			return nil, errScanned
		}
		if err := b.fill(ctx); err != nil {
			return nil, err
		}
	}
	n := len(b.events)
	if n == 0 {
		return nil, nil
	}
	if b.events[n-1].At.Before(b.since) {
		b.events, b.to = nil, b.from
		return nil, nil
	}
	return &b.events[n-1], nil
}

// pop removes and returns the event that peek returned.
func (b *backward) pop() history.Event {
	n := len(b.events) - 1
	e := b.events[n]
	b.events, b.last, b.lastOf = b.events[:n], e.Object.RV, e.Object.Key
	return e
}

// canEndPage reports whether a page may end before the event that peek returned. The
// next page continues below an RV, so the events of one RV must be on one page; in a
// crossing, those of one object.
func (b *backward) canEndPage() bool {
	o := b.events[len(b.events)-1].Object
	if b.crossing != nil {
		return o.Key != b.lastOf
	}
	return o.RV != b.last
}

// withinRV returns the source that has returned only a part of the events of one RV, nil if
// there is none.
func withinRV(sources []*backward) *backward {
	for _, b := range sources {
		if len(b.events) > 0 && !b.canEndPage() {
			return b
		}
	}
	return nil
}

const (
	// maxSkew is by how much the watches of two resources may observe changes of one time
	// apart, and maxSkewRVs how many RVs an etcd may need in that time: those of two stores
	// are seldom so close.
	maxSkew    = time.Second
	maxSkewRVs = 10_000
)

// newestOf returns the source whose next event is the newest: a cause is older than its
// effects. The RVs of a store say what is newer of what was observed in about the same
// moment, the times of observation the rest. The choice depends on nothing but the next
// events, so that the next page goes on with the same one.
func newestOf(ctx context.Context, sources []*backward) (*backward, error) {
	var best *backward
	var newest *history.Event
	for _, b := range sources { // crossings are the last ones
		if b.crossing != nil && best != nil && newest.At.After(b.crossing.begin().At) {
			continue // it may be large, and is not needed yet
		}
		e, err := b.peek(ctx)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		if best == nil || e.At.After(newest.At) || e.At.Equal(newest.At) && e.Object.RV > newest.Object.RV {
			best, newest = b, e
		}
	}
	if b := withinRV(sources); b != nil || best == nil || !best.ordered {
		return cmp.Or(b, best), nil
	}
	rv := newest.Object.RV
	for _, b := range sources {
		if len(b.events) == 0 || !b.ordered {
			continue
		}
		e := b.events[len(b.events)-1]
		if e.Object.RV > rv && e.Object.RV-newest.Object.RV <= maxSkewRVs && newest.At.Sub(e.At) <= maxSkew {
			best, rv = b, e.Object.RV
		}
	}
	return best, nil
}

// formatBounds encodes where the next page continues in each source.
func formatBounds(sources []*backward) string {
	b := bounds{map[string]uint64{}, map[string]kube.Key{}}
	for _, s := range sources {
		name, n := streamName(s.Stream), len(s.events)
		switch {
		case s.crossing != nil && n > 0:
			b.Keys[name] = s.events[n-1].Object.Key
		case s.crossing != nil && !s.read:
			b.Keys[name] = s.key
		case n > 0:
			b.Below[name] = s.events[n-1].Object.RV + 1
		case s.from < s.to: // not read yet
			b.Below[name] = s.to + 1
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // a map of strings to numbers cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseBounds(text string) (b *bounds, err error) {
	if text == "" {
		return nil, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &b)
	}
	if err != nil || b == nil || b.Below == nil {
		return nil, refuseBad("continue is %q: use the member continue of the page before", text)
	}
	return b, nil
}
