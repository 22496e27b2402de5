// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// errDamaged means that the record is damaged. A new epoch has begun, and needs a list.
var errDamaged = errors.New("the record is damaged: a new epoch begins")

// damaged converts an error of reading a stream: if the stream is damaged, a new epoch
// begins and the result is errDamaged.
func (w *writer) damaged(stream *history.Stream, err error) error {
	if !errors.Is(err, history.ErrCorrupt) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.startEpoch(stream, err)
}

// startEpoch is damaged for a caller that holds mu.
func (w *writer) startEpoch(stream *history.Stream, err error) error {
	if !errors.Is(err, history.ErrCorrupt) {
		return err
	}
	if stream != w.stream { // the new epoch has already begun
		return errDamaged
	}
	next, failed := w.store.NewEpoch(w.resource)
	if failed != nil {
		return failed
	}
	w.log.Error("the record of the resource is damaged: a new epoch begins, and the damaged one is kept unchanged", "cause", err)
	w.count.damaged.Inc()
	w.silence.clear(time.Time{})
	w.stream, w.head, w.pending, w.size, w.oldest = next, history.Moment{}, nil, 0, time.Time{}
	close(w.lost)
	w.lost = make(chan struct{})
	w.publish()
	return errDamaged
}

// loss returns a channel that is closed when the record turns out to be damaged.
func (w *writer) loss() <-chan struct{} { return *w.published.lost.Load() }
