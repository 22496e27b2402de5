// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"context"
	"time"
)

// frameInterval is the least time between two frames.
const frameInterval = 40 * time.Millisecond

// A pacer says when a frame is due: soon after something woke it, and at the time that was
// asked for, but never sooner than frameInterval after the last one.
type pacer struct {
	waking chan struct{}
	asked  chan time.Duration
}

func newPacer() *pacer {
	return &pacer{make(chan struct{}, 1), make(chan time.Duration, 1)}
}

// wake asks for a frame. Any goroutine may call it; it does not wait.
func (p *pacer) wake() {
	select {
	case p.waking <- struct{}{}:
	default:
	}
}

// next sets how long after this the next frame is due at the latest.
func (p *pacer) next(d time.Duration) {
	select {
	case <-p.asked:
	default:
	}
	p.asked <- d // only one goroutine sends
}

// run calls draw for each frame until ctx ends.
func (p *pacer) run(ctx context.Context, draw func()) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-p.asked:
			timer.Reset(d)
			continue
		case <-timer.C:
		case <-p.waking:
		}
		began := time.Now()
		draw()
		select {
		case <-ctx.Done():
			return
		case <-time.After(frameInterval - time.Since(began)):
		}
	}
}
