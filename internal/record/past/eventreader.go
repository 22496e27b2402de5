// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// readerTimeout is how long an unused eventReader keeps the events that it has read
// ahead. A stuck client must not hold that memory (T10).
const readerTimeout = 5 * time.Second

// An eventReader iterates over recorded events. It reads some thousands ahead.
type eventReader struct {
	to uint64 // the RV of the last event

	timer *time.Timer // nil before the first pause

	mu   sync.Mutex // guards the fields below
	next func() (history.Event, error, bool)
	stop func()
	head *history.Event // the next event; nil if it is not read yet
	over bool           // closed, by close or by readerTimeout
}

// newEventReader returns a reader of the events after the RV from, up to the RV to. It
// does not use the context of a request, because a watch outlives its request when its
// connection is hijacked. The size of a batch bounds each read instead.
func newEventReader(st *history.Stream, from, to uint64) *eventReader {
	r := &eventReader{to: to}
	r.next, r.stop = iter.Pull2(st.Events(context.Background(), from, to))
	return r
}

// peek returns the next event, nil at the end. ok is false if the reader is closed:
// the caller then opens another one at the same position.
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

// skip moves past the event that peek returned.
func (r *eventReader) skip() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head = nil
}

// pause closes the reader after readerTimeout unless resume is called before.
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
