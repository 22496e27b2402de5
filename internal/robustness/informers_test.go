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

// An informed client is a Go informer. Every second, if it is watching, its copy is taken
// for a list at any RV. What a subscriber receives is taken for a watch that continues
// such a list, until the informer lists again. So the validators judge both.
type informed struct {
	informer           *informer.Informer[json.RawMessage]
	copies, subscriber *client

	mu     sync.Mutex // guards what follows
	events []event    // of the subscriber, since the last sample

	stream *exchange // of the subscriber; belongs to run
}

func newInformed(name string, to http.Handler, buffer int, life func() int, isDirect bool, t *texts) *informed {
	of := func(what string) *client {
		return &client{name: name + "-" + what, resource: "configmaps", path: "/api/v1/configmaps", sel: newSelector("", "", ""), direct: isDirect, bookmarks: true, start: byList0, texts: t}
	}
	source := informer.NewSource(&url.URL{Scheme: "http", Host: "127.0.0.1"}, local{handler: to, buffer: buffer, life: life})
	c := &informed{
		informer: informer.New(source, informer.Resource{Version: "v1", Name: "configmaps"}, informer.Raw(), informer.Options{}),
		copies:   of("copy"), subscriber: of("subscriber"),
	}
	c.copies.again = true // each list begins a chain
	return c
}

// run runs the informer and takes samples until ctx ends.
func (c *informed) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = c.informer.Run(ctx) }) // an API server that answers does not refuse ConfigMaps
	wg.Go(func() {
		for e, err := range c.informer.Events(ctx) {
			if err == nil && e.Type != informer.Synced {
				c.receive(e)
			}
		}
	})
	lists, last := 0, time.Now()
	for ctx.Err() == nil {
		// When time has come to an odd nanosecond, everything else is at rest.
		now := time.Now().Truncate(time.Second).Add(time.Second + 1)
		select {
		case <-time.After(time.Until(now)):
		case <-ctx.Done():
			return
		}
		status := c.informer.Status()
		if status.Phase != informer.Watching || status.RV == 0 {
			continue
		}
		n := 0
		for _, count := range status.Relists {
			n += count
		}
		c.sample(last, status.RV, n != lists)
		lists, last = n, time.Now()
	}
}

// waits reports whether the informer has no watch.
func (c *informed) waits() bool { return c.informer.Status().Phase != informer.Watching }

// receive takes an event as that of a watch.
func (c *informed) receive(e informer.Event[json.RawMessage]) {
	typ := string(e.Type)
	if e.Type == informer.Updated {
		typ = "MODIFIED"
	}
	got := c.event(typ, e.Object())
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
	return event{typ, rv, ref.Key().String(), ref.UID(), c.copies.texts.intern(raw)}
}

// sample takes a sample at an RV; since is the time of the one before.
func (c *informed) sample(since time.Time, rv uint64, listed bool) {
	var items []event
	for _, ref := range c.informer.All() {
		items = append(items, c.event("ADDED", ref))
	}
	slices.SortFunc(items, func(a, b event) int { return listOrder(a.Key, b.Key) })
	list := func(of *client) {
		x := of.begin(byList0, 0)
		x.Began, x.Code, x.RV, x.Items = since, 200, rv, items
		of.end(x, "the copy")
		of.move(rv, true)
	}
	list(c.copies)
	c.mu.Lock()
	events := c.events
	c.events = nil
	c.mu.Unlock()
	if listed {
		list(c.subscriber)
		c.stream = c.subscriber.begin(resumed, rv)
		c.stream.Code, c.stream.Joined = 200, true
		c.subscriber.end(c.stream, "the last sample")
		return
	}
	x := c.stream
	x.Events, x.Ended = append(x.Events, events...), time.Now()
	if rv > x.place() {
		x.Events = append(x.Events, event{Type: "BOOKMARK", RV: rv})
	}
	c.subscriber.move(rv, true)
}

// clients returns the clients that stand for the informer. A copy at an RV inside a gap has a
// part of the difference: it is no state.
func (c *informed) clients(h *history) []*client {
	c.copies.exchanges = slices.DeleteFunc(c.copies.exchanges, func(x *exchange) bool {
		_, in := h.gapAround(c.copies, x.RV)
		return in && !h.explains(h.truth(x), x)
	})
	return []*client{c.copies, c.subscriber}
}
