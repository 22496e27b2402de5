// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// An observer is an informer's event handler. It notes what cannot be.
type observer struct {
	mu     sync.Mutex        // guards what follows
	last   map[string]uint64 // by key: the RV of the last event
	known  map[string]bool
	events int
	wrong  []string
}

func newObserver() *observer {
	return &observer{last: map[string]uint64{}, known: map[string]bool{}}
}

func (o *observer) OnAdd(obj any, _ bool) { o.see("add", false, true, obj) }
func (o *observer) OnUpdate(old, obj any) {
	if key, rv, err := identify(old); err == nil {
		o.mu.Lock()
		if o.last[key] != rv {
			o.wrong = append(o.wrong, fmt.Sprintf("update of %s from %d, which was last seen at %d", key, rv, o.last[key]))
		}
		o.mu.Unlock()
	}
	o.see("update", true, true, obj)
}
func (o *observer) OnDelete(obj any) {
	if unseen, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unseen.Obj
	}
	o.see("delete", true, false, obj)
}

// see notes an event of an object that has to be known before it or not, and
// is known after it or not.
func (o *observer) see(what string, before, after bool, obj any) {
	key, rv, err := identify(obj)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events++
	switch {
	case err != nil:
		o.wrong = append(o.wrong, fmt.Sprintf("%s of %T: %v", what, obj, err))
	case o.known[key] != before:
		o.wrong = append(o.wrong, fmt.Sprintf("%s of %s at %d, known: %v", what, key, rv, o.known[key]))
	case rv < o.last[key]:
		o.wrong = append(o.wrong, fmt.Sprintf("%s of %s at %d, after %d", what, key, rv, o.last[key]))
	}
	o.last[key], o.known[key] = rv, after
}

// result returns the number of events, and what was wrong with them.
func (o *observer) result() (events int, wrong []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events, o.wrong
}

func identify(obj any) (key string, rv uint64, err error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", 0, err
	}
	rv, err = strconv.ParseUint(m.GetResourceVersion(), 10, 64)
	return m.GetNamespace() + "/" + m.GetName(), rv, err
}

// A tally counts a client's requests that were answered with 200.
type tally struct {
	// lists are those from nothing: LIST, and WATCH with the initial events.
	// Watches go on from an RV.
	lists, watches atomic.Int64
}

// of returns the configuration, with its requests counted.
func (n *tally) of(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				return resp, err
			}
			q := r.URL.Query()
			switch {
			case q.Get("watch") == "true" && q.Get("sendInitialEvents") != "true":
				n.watches.Add(1)
			case q.Get("continue") == "": // further pages are of the same list
				n.lists.Add(1)
			}
			return resp, err
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
