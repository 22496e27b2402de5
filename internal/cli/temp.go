// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"sync"
)

// A temporary is a file or directory that is removed with the command, even while
// a goroutine writes to it. The zero value has no file yet. Any goroutine may use
// it.
type temporary struct {
	mu   sync.Mutex // guards the fields below
	path string
	gone bool
}

// make creates it, unless it was removed before.
func (t *temporary) make(create func() (path string, err error)) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return context.Canceled
	}
	t.path, err = create()
	return err
}

// remove removes it, if it was created.
func (t *temporary) remove() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone = true; t.path == "" {
		return nil
	}
	// A running goroutine may create files while the directory is removed.
	err := os.RemoveAll(t.path)
	for tries := 0; err != nil && tries < 100; tries++ {
		err = os.RemoveAll(t.path)
	}
	return err
}
