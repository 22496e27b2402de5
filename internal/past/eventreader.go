// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/history"
)

// readerTimeout is how long an eventReader that is not used keeps what it has read
// ahead: the one of a stuck client must not hold it (T10).
const readerTimeout = 5 * time.Second

// An eventReader goes through recorded events. It reads ahead some thousands.
type eventReader struct {
	to uint64 // it is of events up to there

	timer *time.Timer // nil before the first pause

	mu   sync.Mutex // guards what follows
	next func() (history.Event, error, bool)
	stop func()
	head *history.Event // the next event; nil when it is not yet known
	over bool           // it was given up, or is at its end
}

func newEventReader(st *history.Stream, from, to uint64) *eventReader {
	r := &eventReader{to: to}
	r.next, r.stop = iter.Pull2(st.Events(context.Background(), from, to))
	return r
}

// peek returns the next event, nil if there is none up to the end. ok is false if
// the reader was given up: then another begins at the same position.
func (r *eventReader) peek() (e *history.Event, ok bool, err error) {
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
func (r *eventReader) skip() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head = nil
}

// pause gives the reader up unless it is used again soon.
func (r *eventReader) pause() { r.timer = time.AfterFunc(readerTimeout, r.end) }

func (r *eventReader) resume() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (r *eventReader) close() {
	r.resume()
	r.end()
}

func (r *eventReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.over, r.head = true, nil
		r.stop()
	}
}
