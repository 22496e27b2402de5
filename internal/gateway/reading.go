// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"iter"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/history"
)

// readingPause is for how long a reading is kept that nobody goes on with: that of
// a client which is stuck is not to hold what was read ahead (T10).
const readingPause = 5 * time.Second

// A reading goes through events of the past. It reads ahead some thousands.
type reading struct {
	to uint64 // it is of events up to there

	timer *time.Timer // nil before the first pause

	mu   sync.Mutex // guards what follows
	next func() (history.Event, error, bool)
	stop func()
	head *history.Event // the next event; nil when it is not yet known
	over bool           // it was given up, or is at its end
}

func newReading(st *history.Stream, from, to uint64) *reading {
	r := &reading{to: to}
	r.next, r.stop = iter.Pull2(st.Events(from, to))
	return r
}

// peek returns the next event, nil if there is none up to the end. ok is false if
// the reading has been given up: then another begins at the same place.
func (r *reading) peek() (e *history.Event, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, false, nil
	}
	if r.head == nil {
		e, err, more := r.next()
		if err != nil || !more {
			return nil, true, err
		}
		r.head = &e
	}
	return r.head, true, nil
}

// skip takes the event that peek returned.
func (r *reading) skip() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head = nil
}

// pause has it be given up unless it is gone on with soon.
func (r *reading) pause() { r.timer = time.AfterFunc(readingPause, r.end) }

func (r *reading) resume() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (r *reading) close() {
	r.resume()
	r.end()
}

func (r *reading) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.over, r.head = true, nil
		r.stop()
	}
}
