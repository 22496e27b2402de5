// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"sync"
)

// ErrShutdown is the cause of contexts that end because the gateway shuts down.
var ErrShutdown = errors.New("the gateway is shutting down")

// A Background runs work that may outlast the request that started it, such as a
// request to the API server whose answer several clients share. It is safe for
// concurrent use.
type Background struct {
	ctx  context.Context
	stop context.CancelFunc

	mu     sync.Mutex // guards closed, and wg.Add against Stop
	closed bool
	wg     sync.WaitGroup
}

// NewBackground returns a Background, which [Background.Stop] ends.
func NewBackground() *Background {
	b := &Background{}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// Begin announces work that Stop waits for until end is called. The work must end
// soon after ctx does. ok is false after Close.
func (b *Background) Begin() (ctx context.Context, end func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, false
	}
	b.wg.Add(1)
	return b.ctx, b.wg.Done, true
}

// Close refuses new work.
func (b *Background) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// Stop refuses new work, ends the context of running work, and waits for it.
func (b *Background) Stop() {
	b.Close()
	b.stop()
	b.wg.Wait()
}
