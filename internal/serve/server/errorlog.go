// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// acceptPause is longer than any pause of net/http between two attempts to accept.
const acceptPause = 5 * time.Second

// An errorLog takes the errors of net/http's server. Those of single connections are for
// debugging. One that keeps every client out, as too many open files do, is a warning,
// once for as long as it lasts.
type errorLog struct {
	log *slog.Logger

	mu     sync.Mutex // guards failed
	failed time.Time  // when a connection could last not be accepted
}

// Write implements io.Writer. The text is one message.
func (l *errorLog) Write(text []byte) (int, error) {
	message := strings.TrimSpace(string(text))
	level := slog.LevelDebug
	if cause, ok := strings.CutPrefix(message, "http: Accept error: "); ok {
		l.mu.Lock()
		if time.Since(l.failed) > acceptPause {
			level = slog.LevelWarn
		}
		l.failed = time.Now()
		l.mu.Unlock()
		cause, _, _ = strings.Cut(cause, "; retrying")
		message = "no connection can be accepted for now; trying again: " + cause
	}
	l.log.Log(context.Background(), level, message)
	return len(text), nil
}
