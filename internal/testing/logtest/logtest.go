// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package logtest has a log that a test reads while other goroutines, or a process, write it.
package logtest

import (
	"bytes"
	"sync"
)

// A Log keeps what is written to it. The zero value is an empty one. Its methods may be called
// by several goroutines at once.
type Log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write implements io.Writer. It does not fail.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns all that was written since the last Take.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Take returns the same as String, and empties the log.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}
