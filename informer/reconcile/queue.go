// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"container/heap"
	"container/list"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/internal/attempt"
)

// A queue has the keys of a run. A key is in it while there is something to do for it:
//
//	               take
//	 add ──► ready ────► running ──► not in the queue
//	          ▲ ▲          │ │
//	due, or   │ └──────────┘ │ failure, or Result.After
//	an event  │   an event   ▼
//	          └─────────── waiting
//
// The function is never called concurrently for a key, because only a ready key is
// taken, and a running one does not become ready.
type queue struct {
	minBackoff, maxBackoff time.Duration

	mu      sync.Mutex // guards all below
	wake    sync.Cond  // a key has become ready, the time of alarm has come, or closed is set
	items   map[informer.Key]*item
	ready   [lanes]list.List // of *item, in the order in which they became ready
	waiting waiting
	running int
	taken   int // keys in a row from the live lane, while the initial one had some
	limit   limiter
	alarm   *time.Timer // rings when the first waiting key is due, or the limit allows a call
	closed  bool
}

// A lane is the priority of a key.
type lane int

const (
	initial lane = iota // objects that existed at the beginning, and what follows from a list
	live
	lanes
)

// initialShare is the share of calls that initial keys get while live ones wait: one of
// so many. Without it, a busy cluster would delay them forever.
const initialShare = 8

// An item is a key in the queue.
type item struct {
	key      informer.Key
	lane     lane
	since    time.Time // when it became ready, or will
	failures int       // in a row
	soonest  time.Time // when an event may end the pause after a failure

	at      *list.Element // in its lane; nil unless ready
	index   int           // in waiting; notWaiting otherwise
	again   bool          // an event has come while it was running
	againBy lane          // the lane of that event
	eventAt time.Time     // of the first such event
}

const notWaiting = -1

func newQueue(o *Options) *queue {
	q := &queue{minBackoff: o.MinBackoff, maxBackoff: o.MaxBackoff, items: map[informer.Key]*item{}, limit: newLimiter(o.MaxRate)}
	q.wake.L = &q.mu
	q.alarm = time.AfterFunc(time.Hour, q.ring)
	q.alarm.Stop()
	return q
}

// close makes take return false.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.alarm.Stop()
	q.wake.Broadcast()
}

// add adds the keys of an event.
func (q *queue) add(by lane, keys []informer.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	now := time.Now()
	for _, key := range keys {
		switch it := q.items[key]; {
		case it == nil:
			it = &item{key: key, lane: by, index: notWaiting}
			q.items[key] = it
			q.makeReady(it, now)
		case it.at != nil:
			q.promote(it, by)
		case it.index != notWaiting: // an event ends the wait
			it.failures, it.lane = 0, max(it.lane, by)
			q.hasten(it, now)
		case !it.again:
			it.again, it.againBy, it.eventAt = true, by, now
		default:
			it.againBy = max(it.againBy, by)
		}
	}
}

// take waits for a ready key, and makes it running. It returns false if the queue is
// closed.
func (q *queue) take() (it *item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return nil, false
		}
		now := time.Now()
		for len(q.waiting) > 0 && !q.waiting[0].since.After(now) {
			it := heap.Pop(&q.waiting).(*item)
			q.makeReady(it, it.since)
		}
		if q.hasReady() && !q.limit.next().After(now) {
			q.limit.take(now)
			l := q.nextLane()
			it := q.ready[l].Remove(q.ready[l].Front()).(*item)
			it.at = nil
			q.running++
			return it, true
		}
		q.setAlarm(now)
		q.wake.Wait()
	}
}

func (q *queue) hasReady() bool { return q.ready[initial].Len()+q.ready[live].Len() > 0 }

// nextLane returns the lane from which the next key is taken. There is a ready key.
func (q *queue) nextLane() lane {
	if q.ready[initial].Len() == 0 {
		q.taken = 0
		return live
	}
	if q.taken++; q.ready[live].Len() == 0 || q.taken >= initialShare {
		q.taken = 0
		return initial
	}
	return live
}

// done ends the call for a running key, which succeeded or is not to be retried. If
// after is positive, it is called again then.
func (q *queue) done(it *item, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	it.failures, it.soonest = 0, time.Time{}
	now := time.Now()
	switch {
	case it.again:
		it.again, it.lane = false, it.againBy
		q.makeReady(it, it.eventAt)
	case after > 0: // in its lane: many such keys do not delay changes
		q.wait(it, now.Add(after), now)
	default:
		delete(q.items, it.key)
	}
}

// retry ends the call for a running key, which failed. It returns how many calls have
// failed in a row, and the pause before the next one.
func (q *queue) retry(it *item) (failures int, pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	it.failures++
	failures = it.failures
	pause = attempt.Backoff(failures, q.minBackoff, q.maxBackoff)
	now := time.Now()
	it.soonest = now.Add(q.minBackoff)
	if it.again { // the pauses begin again
		it.again, it.lane, it.failures = false, max(it.lane, it.againBy), 0
		pause = min(pause, q.minBackoff)
	}
	q.wait(it, now.Add(pause), now)
	return failures, pause
}

// makeReady makes a key ready that is neither waiting nor ready.
func (q *queue) makeReady(it *item, since time.Time) {
	it.since = since
	it.at = q.ready[it.lane].PushBack(it)
	q.wake.Signal()
}

// promote moves a ready key to a lane with a higher priority.
func (q *queue) promote(it *item, to lane) {
	if to <= it.lane {
		return
	}
	q.ready[it.lane].Remove(it.at)
	it.lane = to
	it.at = q.ready[to].PushBack(it)
}

// wait makes a key ready at a time, also if it is waiting for another one.
func (q *queue) wait(it *item, due, now time.Time) {
	it.since = due
	if it.index == notWaiting {
		heap.Push(&q.waiting, it)
	} else {
		heap.Fix(&q.waiting, it.index)
	}
	q.setAlarm(now)
}

// hasten makes a waiting key ready, or shortens the pause after a failure.
func (q *queue) hasten(it *item, now time.Time) {
	switch {
	case !it.soonest.After(now):
		heap.Remove(&q.waiting, it.index)
		q.makeReady(it, now)
	case it.since.After(it.soonest):
		q.wait(it, it.soonest, now)
	}
}

// setAlarm makes workers look again when the first waiting key is due, or the limit
// allows a call.
func (q *queue) setAlarm(now time.Time) {
	var at time.Time
	if len(q.waiting) > 0 {
		at = q.waiting[0].since
	}
	if next := q.limit.next(); q.hasReady() && next.After(now) && (at.IsZero() || next.Before(at)) {
		at = next
	}
	if !at.IsZero() && !q.closed {
		q.alarm.Reset(at.Sub(now))
	}
}

func (q *queue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake.Broadcast()
}

func (q *queue) status() Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Status{Live: q.ready[live].Len(), Initial: q.ready[initial].Len(), Waiting: len(q.waiting), Running: q.running}
}
