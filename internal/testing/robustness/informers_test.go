// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
)

// An informed client is a Go informer with one subscriber. Its copy, after each list and
// about every second, is judged as a list at any RV. What the subscriber receives between
// two lists is judged as a watch that continues the first one:
//
//	informer    list ── change ── change ── change ── changes by a list ── list
//	copy        sample            sample                                   sample
//	subscriber  list    event     event     event     (of no watch)        list
//
// A sample is exact: the informer calls Metrics before each change and after each list,
// and waits meanwhile.
type informed struct {
	informer *informer.Informer[json.RawMessage]
	name     string
	direct   bool
	texts    *texts

	mu      sync.Mutex // guards what follows
	samples []sample
	changes int     // of the copy so far
	listing bool    // a list has made changes, and is not complete
	watched int     // changes before that list
	events  []event // of the subscriber so far: one per change
}

// A sample is the copy of an informer at one moment.
type sample struct {
	at      time.Time
	rv      uint64
	objects []event
	changes int    // before it
	relist  string // the reason of the list that is complete; "" if none is
	watched int    // changes before that list
}

func newInformed(name string, source *informer.Source, isDirect bool, t *texts) *informed {
	c := &informed{name: name, direct: isDirect, texts: t}
	c.informer = informer.New(source, informer.Resource{Version: "v1", Name: "configmaps"}, informer.Raw(), informer.Options{
		KeepManagedFields: true,
		Backlog:           1 << 20, // nothing is coalesced
		Metrics: func(informer.Collection, func() informer.Status) informer.Metrics {
			return informer.Metrics{Changed: c.changed, Listed: c.listed}
		},
	})
	c.informer.Handle(informer.Handler[json.RawMessage]{Event: c.receive})
	return c
}

// makeInformers makes the informers of a round, one of them of the API server itself.
func (r *round) makeInformers() error {
	direct, base, err := r.cluster.Client()
	if err != nil {
		return err
	}
	of, err := url.Parse(base)
	if err != nil {
		return err
	}
	toGateway, err := r.gateway.source()
	if err != nil {
		return err
	}
	r.informers = []*informed{
		newInformed("informer", toGateway, false, &r.texts),
		newInformed("informer of the API server", informer.NewSource(of, direct.Transport), true, &r.texts),
	}
	r.browser, err = newBrowser(r.cluster.Dir, r.gateway, &r.texts)
	return err
}

// everyone returns all clients that are to receive everything: those that stand for
// informers, too.
func (r *round) everyone() []*client {
	all := append(slices.Clip(r.clients), r.browser.clients()...)
	for _, c := range r.informers {
		_, subscriber := c.clients()
		all = append(all, subscriber)
	}
	return all
}

// run runs the informer until ctx ends.
func (c *informed) run(ctx context.Context) {
	for ctx.Err() == nil { // Run also returns a refusal, see history.refusing
		_ = c.informer.Run(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) > 0 && !c.listing {
		c.sampleLocked("")
	}
}

// waits reports whether the informer has no watch.
func (c *informed) waits() bool { return c.informer.Status().Phase != informer.Watching }

// changed counts a change, as [informer.Metrics] say.
func (c *informed) changed(informer.EventType) {
	byList := c.waits()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := len(c.samples); {
	case byList && !c.listing:
		c.listing, c.watched = true, c.changes
	case !byList && n > 0 && time.Since(c.samples[n-1].at) > time.Second:
		c.sampleLocked("")
	}
	c.changes++
}

// listed takes a sample after a list, as [informer.Metrics] say.
func (c *informed) listed(reason string, _ int, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleLocked(reason)
	c.listing = false
}

// sampleLocked takes a sample. The informer is not to change its copy meanwhile.
func (c *informed) sampleLocked(relist string) {
	s := sample{at: time.Now(), rv: c.informer.Status().RV, changes: c.changes, watched: c.changes, relist: relist}
	if c.listing {
		s.watched = c.watched
	}
	for _, ref := range c.informer.All() {
		s.objects = append(s.objects, c.event("ADDED", ref))
	}
	slices.SortFunc(s.objects, func(a, b event) int { return listOrder(a.Key, b.Key) })
	c.samples = append(c.samples, s)
}

// receive takes an event as that of a watch.
func (c *informed) receive(e informer.Event[json.RawMessage]) {
	typ := string(e.Type)
	if e.Type == informer.Updated {
		typ = "MODIFIED"
	}
	got := c.event(typ, e.Ref())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, got)
}

func (c *informed) event(typ string, ref informer.Ref[json.RawMessage]) event {
	raw, err := ref.Raw()
	if bytes.HasPrefix(raw, []byte(`{"metadata":`)) { // an item of a list
		raw = append([]byte(`{"kind":"ConfigMap","apiVersion":"v1",`), raw[1:]...)
	}
	rv, _ := strconv.ParseUint(ref.RV(), 10, 64)
	if err != nil {
		typ = "MALFORMED"
	}
	return event{typ, rv, ref.Key().String(), ref.UID(), c.texts.intern(raw)}
}

// clients returns clients that have done so far what the informer and its subscriber have.
func (c *informed) clients() (copies, subscriber *client) {
	rv := c.informer.Status().RV // before the counts: the changes up to it are among them
	c.mu.Lock()
	defer c.mu.Unlock()
	copies, subscriber = c.client("copy"), c.client("subscriber")
	copies.again = true // each sample is its own list
	stream, taken := &exchange{}, 0
	empty := true                        // the last list was
	advance := func(to int, rv uint64) { // the stream, to a number of changes, and to their RV
		for ; taken < min(to, len(c.events)); taken++ {
			stream.Events = append(stream.Events, c.events[taken])
		}
		if taken == to && rv > stream.place() {
			stream.Events = append(stream.Events, event{Type: "BOOKMARK", RV: rv})
		}
	}
	began := time.Time{}
	for _, s := range c.samples {
		s.list(copies, began)
		began = s.at
		if s.relist == "" {
			advance(s.changes, s.rv)
			continue
		}
		advance(s.watched, 0)
		stream.Ended, stream.End = s.at, "the informer lists again: "+s.relist
		if !empty || slices.ContainsFunc(stream.Events, func(e event) bool { return e.Type != "BOOKMARK" }) {
			// A gateway with its whole history gives no reason to list again, be it 410 or another.
			stream.Error = http.StatusGone
		} // Otherwise no event can prove to the informer that the history is the same.
		empty = len(s.objects) == 0
		s.list(subscriber, began)
		stream = subscriber.begin(resumed, s.rv)
		stream.Began, stream.Code, stream.Joined = s.at, http.StatusOK, true
		subscriber.end(stream, "so far")
		taken = s.changes
	}
	if c.listing {
		advance(c.watched, 0)
	} else {
		advance(c.changes, rv)
	}
	subscriber.move(stream.place(), len(c.samples) > 0 && !c.listing)
	return copies, subscriber
}

func (c *informed) client(what string) *client {
	return &client{
		name: c.name + "-" + what, resource: "configmaps", path: "/api/v1/configmaps", sel: newSelector("", "", ""),
		direct: c.direct, bookmarks: true, start: byList0, texts: c.texts,
	}
}

// list adds the sample to a client, as a list at any RV.
func (s sample) list(c *client, began time.Time) {
	x := c.begin(byList0, 0)
	x.Code, x.RV, x.Items = http.StatusOK, s.rv, s.objects
	c.end(x, "the copy")
	x.Began, x.Ended = began, s.at
}

// judged returns the clients to judge. A copy at an RV inside a gap has a part of the
// difference: it is no state. The gap may be one that a restore has rolled back since.
func (c *informed) judged(h *history) []*client {
	copies, subscriber := c.clients()
	copies.exchanges = slices.DeleteFunc(copies.exchanges, func(x *exchange) bool {
		gaps := h.gapsOf(x.Resource, func(_ gap, ended time.Time) bool { return !ended.After(x.Ended) })
		_, in := around(gaps, x.RV)
		copies.partial = in && !c.direct && !h.explains(h.truth(x), x) // of the last one, in the end
		return copies.partial
	})
	return []*client{copies, subscriber}
}
