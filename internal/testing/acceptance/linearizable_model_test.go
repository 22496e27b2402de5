// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A store is a resource with all writes to it.
type store struct {
	name, prefix, form string
	namespaces         []string // none: cluster-scoped
	field              string   // a field selector that all its objects match
	fat                []*key

	mu   sync.Mutex // guards keys, and the ops of each
	keys []*key
}

// A key is an object, which one client writes. ops are its writes in order,
// begun before they are acknowledged.
type key struct {
	store           *store
	namespace, name string
	ops             []op
}

// An op is a write, and the state after it.
type op struct {
	color   string // its label
	deleted bool
	acked   bool
	rv      uint64 // once acknowledged; 0 for a deletion
}

func (s *store) newKey(rnd *rand.Rand, name string) *key {
	k := &key{store: s, name: name}
	if len(s.namespaces) > 0 {
		k.namespace = s.namespaces[rnd.IntN(len(s.namespaces))]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, k)
	return k
}

func (k *key) id() string { return k.namespace + "/" + k.name }

// alive reports whether the object exists according to its writer.
func (k *key) alive() bool {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	return len(k.ops) > 0 && !k.ops[len(k.ops)-1].deleted
}

func (s *store) path(namespace string) string {
	if namespace == "" {
		return s.prefix + "/" + s.name
	}
	return s.prefix + "/namespaces/" + namespace + "/" + s.name
}

// write carries out an op. After an error the outcome is unknown.
func (l *linearizable) write(ctx context.Context, client *http.Client, base string, k *key, next op) error {
	alive := k.alive()
	k.store.mu.Lock()
	k.ops = append(k.ops, next)
	n := len(k.ops)
	k.store.mu.Unlock()

	filling := ""
	if next.color == "fat" {
		filling = strings.Repeat("x", 4<<10)
	}
	meta := fmt.Sprintf(`"metadata":{"name":%q,"labels":{"color":%q},"annotations":{"n":"%d","filling":%q}}`, k.name, next.color, n, filling)
	method, url, body := http.MethodPatch, base+k.store.path(k.namespace)+"/"+k.name, "{"+meta+"}"
	switch {
	case next.deleted:
		method, body = http.MethodDelete, `{"gracePeriodSeconds":0}`
	case !alive:
		method, url, body = http.MethodPost, base+k.store.path(k.namespace), "{"+k.store.form+","+meta+"}"
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s %.300s %v", method, url, resp.Status, answer, err)
	}
	if !next.deleted {
		var o frame
		if err := json.Unmarshal(slices.Concat([]byte(`{"object":`), answer, []byte("}")), &o); err != nil {
			return err
		}
		next.rv = o.rv()
	}
	next.acked = true
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	k.ops[n-1] = next
	return nil
}

// A query is a collection to read.
type query struct {
	store               *store
	namespace, selector string
	match               func(*key, op) bool
	// narrowed is set if the namespace is only in the selector. The API server's
	// pages of such a list omit objects.
	narrowed bool
}

func (q query) selects(k *key, state op) bool {
	return !state.deleted && (q.namespace == "" || q.namespace == k.namespace) && q.match(k, state)
}

// A reading is the result of a read.
type reading struct {
	how   string
	items map[string]uint64 // key → RV
	rv    uint64
}

// A floor is the writes that had been acknowledged when a read began.
type floor struct {
	acked map[*key]int // the last op, -1 for none
	rv    uint64       // the highest
}

func (s *store) floor() floor {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := floor{acked: map[*key]int{}}
	for _, k := range s.keys {
		f.acked[k] = -1
		for i, o := range k.ops {
			if o.acked {
				f.acked[k] = i
				f.rv = max(f.rv, o.rv)
			}
		}
	}
	return f
}

// wrong describes how a reading contradicts the floor, "" if it does not. Each
// object has to be in the state after its last acknowledged write or a later
// write, which may be in flight.
func (f floor) wrong(q query, got *reading) string {
	if got.rv < f.rv {
		return fmt.Sprintf("it is at %d, but RV %d had been acknowledged", got.rv, f.rv)
	}
	q.store.mu.Lock()
	defer q.store.mu.Unlock()
	for k, from := range f.acked {
		rv, present := got.items[k.id()]
		if !f.allowed(q, k, from, rv, present) {
			return fmt.Sprintf("%s is present: %v, at %d; its writes are %+v, the first %d had been acknowledged", k.id(), present, rv, k.ops, from+1)
		}
	}
	return ""
}

// allowed reports whether a read may find the object so; store.mu is held.
func (f floor) allowed(q query, k *key, from int, rv uint64, present bool) bool {
	least := uint64(0) // later writes have RVs above it
	for _, o := range k.ops[:from+1] {
		least = max(least, o.rv)
	}
	if from < 0 && !present {
		return true
	}
	for i, o := range k.ops[max(from, 0):] {
		switch {
		case !q.selects(k, o):
			if !present {
				return true
			}
		case o.acked:
			if present && rv == o.rv {
				return true
			}
		case present && (rv > least || i == 0 && rv >= least):
			return true // the write is in flight, or its response was lost
		}
	}
	return false
}

// backwards describes how a client's reading contradicts its earlier one of the
// same query, "" if it does not: the earlier one has to have each object that has
// not changed since.
func backwards(earlier, later *reading) string {
	if later.rv < earlier.rv {
		return fmt.Sprintf("at %d, after %d", later.rv, earlier.rv)
	}
	for id, rv := range later.items {
		if was, ok := earlier.items[id]; rv <= earlier.rv && (!ok || was != rv) {
			return fmt.Sprintf("%s at %d: the earlier reading, at %d, had it: %v, at %d", id, rv, earlier.rv, ok, was)
		}
	}
	return ""
}

func parseRV(text string) uint64 {
	rv, _ := strconv.ParseUint(text, 10, 64) // 0 is below every floor
	return rv
}
