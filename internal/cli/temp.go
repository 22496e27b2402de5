// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"sync"
)

// A temporary is a file or a directory that does not outlive the command, whatever
// is still at work in it. The zero value is none yet. It may be used by any
// goroutine.
type temporary struct {
	mu   sync.Mutex // guards what follows
	path string
	gone bool
}

// make makes it, unless it has been removed before.
func (t *temporary) make(create func() (path string, err error)) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return context.Canceled
	}
	t.path, err = create()
	return err
}

// remove removes it, if it has been made.
func (t *temporary) remove() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone = true; t.path == "" {
		return nil
	}
	// Whoever is at work can make one more file in a directory that is being
	// emptied, but not for ever.
	err := os.RemoveAll(t.path)
	for tries := 0; err != nil && tries < 100; tries++ {
		err = os.RemoveAll(t.path)
	}
	return err
}
