// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A logModel has objects and publishes their changes to an event log.
type logModel struct {
	r       *rand.Rand
	log     *eventLog[string]
	objects map[string]*record[string]
	deleted map[string]*record[string] // the last deleted object of each name
	rv      uint64
}

func (w *logModel) record(name string, uid int) *record[string] {
	w.rv++
	return &record[string]{id: fmt.Sprintf("%s%d", name, uid), keyLen: uint16(len(name)), rv: w.rv}
}

// step changes an object.
func (w *logModel) step() {
	name := string(rune('a' + w.r.IntN(6)))
	old := w.objects[name]
	switch n := w.r.IntN(10); {
	case old == nil:
		now := w.record(name, int(w.rv))
		w.objects[name] = now
		w.log.publish(entry[string]{typ: Added, now: now})
	case n == 0:
		w.log.publish(entry[string]{err: ErrNoObject})
	case n < 4:
		w.rv++
		last := &record[string]{id: old.id, keyLen: old.keyLen, rv: w.rv}
		delete(w.objects, name)
		if w.deleted != nil {
			w.deleted[name] = last
		}
		w.log.publish(entry[string]{typ: Deleted, old: last})
	default:
		now := &record[string]{id: old.id, keyLen: old.keyLen, rv: w.rv + 1}
		w.rv++
		w.objects[name] = now
		w.log.publish(entry[string]{typ: Updated, old: old, now: now})
	}
}

// A modelReader checks the entries that a subscription takes.
type modelReader struct {
	t      *testing.T
	s      *subscription[string]
	held   map[string]*record[string]
	gone   map[string]*record[string] // the last deleted object of each name, if transient ones are reported
	began  uint64                     // the RV at the beginning
	synced int
	errs   int
}

func (r *modelReader) read(l *eventLog[string], n int) {
	for range n {
		if len(r.s.taken) == 0 {
			l.take(r.s)
		}
		if len(r.s.taken) == 0 {
			return
		}
		e := r.s.taken[0]
		r.s.taken = r.s.taken[1:]
		r.check(e)
	}
}

func (r *modelReader) check(e entry[string]) {
	r.t.Helper()
	if e.err != nil {
		r.errs++
		return
	}
	if e.typ == Synced {
		r.synced++
		return
	}
	key := e.object().key()
	held := r.held[key]
	if r.gone != nil && e.now == nil {
		r.gone[key] = e.old
	}
	if e.typ == transient {
		if held != nil || r.gone == nil || !e.coalesced {
			r.t.Fatalf("%s is transient, but was %v", key, held)
		}
		return
	}
	switch e.typ {
	case Added:
		if held != nil || e.old != nil {
			r.t.Fatalf("%s is added twice", key)
		}
	case Updated:
		if held == nil || e.old != held || e.now.rv <= held.rv || e.now.uid() != held.uid() {
			r.t.Fatalf("%s is updated from %v to %v, but was %v", key, e.old, e.now, held)
		}
	case Deleted:
		if held == nil || held.uid() != e.old.uid() || e.old.rv < held.rv {
			r.t.Fatalf("%s is deleted, but was %v", key, held)
		}
	}
	if r.held[key] = e.now; e.now == nil {
		delete(r.held, key)
	}
}

// TestI5Model: subscriptions of different speeds begin and end. Each takes events
// of an object in order, deletions once and only of objects that it knows, and
// ends with the objects that exist. One that asks for transient objects learns of the last
// deletion of each name. Memory stays bounded.
func TestI5Model(t *testing.T) {
	for seed := range uint64(300) {
		w := &logModel{r: rand.New(rand.NewPCG(seed, 0)), objects: map[string]*record[string]{}, deleted: map[string]*record[string]{},
			log: &eventLog[string]{maxEntries: 1 + int(seed%20), subs: map[*subscription[string]]bool{}}}
		var readers []*modelReader
		for range 500 {
			w.step()
			if len(readers) < 4 && w.r.IntN(20) == 0 {
				s := w.log.subscribe()
				reader := &modelReader{t: t, s: s, held: map[string]*record[string]{}, began: w.rv}
				if s.transient = w.r.IntN(2) == 0; s.transient {
					reader.gone = map[string]*record[string]{}
				}
				s.backlog = &backlog[string]{transient: s.transient}
				for _, o := range w.objects {
					s.backlog.add(entry[string]{typ: Added, now: o, initial: true})
				}
				s.backlog.add(entry[string]{typ: Synced})
				readers = append(readers, reader)
			}
			for n, r := range readers {
				if w.r.IntN(1+10*n) == 0 {
					r.read(w.log, w.r.IntN(20))
				}
				if b := r.s.backlog; b != nil && b.order.Len() > 6*2+2 {
					t.Fatalf("seed %d: a backlog of %d items for 6 names", seed, b.order.Len())
				}
			}
			if len(w.log.entries) > w.log.maxEntries {
				t.Fatalf("seed %d: a log of %d entries, limit %d", seed, len(w.log.entries), w.log.maxEntries)
			}
			if len(readers) == 4 && w.r.IntN(50) == 0 {
				w.log.unsubscribe(readers[0].s)
				readers = readers[1:]
			}
		}
		for _, r := range readers {
			r.read(w.log, 10000)
			if r.synced != 1 || len(r.held) != len(w.objects) {
				t.Fatalf("seed %d: synced %d times, %d objects, want %d", seed, r.synced, len(r.held), len(w.objects))
			}
			for key, o := range w.objects {
				if r.held[key] != o {
					t.Fatalf("seed %d: %s is %v, want %v", seed, key, r.held[key], o)
				}
			}
		}
		for _, r := range readers {
			for key, o := range w.deleted {
				if r.gone != nil && o.rv > r.began && r.gone[key] != o {
					t.Fatalf("seed %d: the last deletion of %s is of %v, want %v", seed, key, r.gone[key], o)
				}
			}
		}
		if n := len(w.log.entries); n > 0 && len(readers) > 0 {
			t.Fatalf("seed %d: %d entries remain that all subscriptions have taken", seed, n)
		}
		for _, r := range readers {
			w.log.unsubscribe(r.s)
		}
		if len(w.log.entries) > 0 || len(w.log.subs) > 0 {
			t.Fatalf("seed %d: %d entries and %d subscriptions remain", seed, len(w.log.entries), len(w.log.subs))
		}
	}
}
