// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "time"

// A queue has events that are handled one after the other. It exists while it
// has items. A queue is ready, with a worker, or paused.
type queue[T any] struct {
	name     string
	items    []*item[T]          // the first is being handled, or next
	last     map[string]*item[T] // by object, the item that further events are merged into
	failures int                 // of the first item, in a row
	pause    *time.Timer         // until the first item is retried; nil unless paused
	soonest  time.Time           // when a new version of it may end the pause
	retry    time.Time           // when the pause ends
}

// An item has the coalesced events of an object.
type item[T any] struct {
	key string
	coalesced[T]
	started []entry[T] // the rest of the entries, once the first was handled
	since   time.Time  // arrival of the first event
}

// A pending is where an object has items.
type pending[T any] struct {
	queue *queue[T]
	items int
}

// add adds an event to its queue.
func (r *reconciler[T]) add(e entry[T]) {
	key := e.object().key()
	name := key
	if r.opts.QueueBy != nil {
		name = r.opts.QueueBy(e.event())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queueOf(key, name)
	if q.name != name && !r.misnamed {
		r.misnamed = true
		defer r.logMisnamed(e.event().Key, q.name, name)
	}
	it := q.last[key]
	if it == nil || r.opts.EveryEvent && !e.coalesced && len(q.items) <= maxQueueEvents && r.total <= maxTotalEvents {
		it = &item[T]{key: key, since: time.Now()}
		q.items = append(q.items, it)
		q.last[key] = it
		r.count(q, key, 1)
	}
	if it.add(e); e.coalesced {
		it.n++ // so that the result is marked coalesced too
	}
	if it.isEmpty() {
		r.remove(q, it)
	}
	if q.pause != nil && q.items[0].key == key {
		r.hasten(q)
	}
}

// queueOf returns the queue of an object: that in which it has items, so that no two are
// handled at a time, else the one with the name.
func (r *reconciler[T]) queueOf(key, name string) *queue[T] {
	if p := r.pending[key]; p != nil {
		return p.queue
	}
	q := r.queues[name]
	if q == nil {
		q = &queue[T]{name: name, last: map[string]*item[T]{}}
		r.queues[name] = q
		r.makeReady(q)
	}
	return q
}

// count counts an item that was added to a queue, or removed from it.
func (r *reconciler[T]) count(q *queue[T], key string, change int) {
	r.total += change
	if r.pending == nil {
		return
	}
	p := r.pending[key]
	if p == nil {
		p = &pending[T]{queue: q}
		r.pending[key] = p
	}
	if p.items += change; p.items == 0 {
		delete(r.pending, key)
	}
}

// hasten shortens the pause of a queue: its first object has a new version.
func (r *reconciler[T]) hasten(q *queue[T]) {
	if !r.opts.EveryEvent && q.soonest.Before(q.retry) && q.pause.Stop() {
		q.retry = q.soonest
		q.pause.Reset(time.Until(q.retry))
	}
}

func (r *reconciler[T]) makeReady(q *queue[T]) {
	r.ready = append(r.ready, q)
	r.wake.Signal()
}

// remove removes an item from its queue. A queue without items is removed by
// the next worker that takes it.
func (r *reconciler[T]) remove(q *queue[T], it *item[T]) {
	for n, other := range q.items {
		if other == it {
			q.items = append(q.items[:n], q.items[n+1:]...)
			r.count(q, it.key, -1)
			break
		}
	}
	if q.last[it.key] == it {
		delete(q.last, it.key)
	}
}

// mergeLater merges later events of the object into an item that failed, so
// that its retry has the latest state. A failed deletion is retried as it is.
func (r *reconciler[T]) mergeLater(q *queue[T], it *item[T]) {
	failed, later := it.started[0], q.last[it.key]
	if r.opts.EveryEvent || failed.typ == Deleted || later == nil {
		return
	}
	r.remove(q, later)
	later.known = failed.old
	later.n += it.n
	it.coalesced, it.started = later.coalesced, nil
	q.failures = 0 // of a new version
}

// endPause makes a paused queue ready. It does nothing if the queue is not
// paused: the timer and the end of a run may race.
func (r *reconciler[T]) endPause(q *queue[T]) {
	if q.pause == nil {
		return
	}
	q.pause.Stop()
	q.pause = nil
	r.makeReady(q)
}
