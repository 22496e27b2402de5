// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"log/slog"
)

// Quiet returns a logger for a single resource. During an outage, which [Server.Monitor] logs
// in one line, lines about what fails, which have a cause or an err, are for debugging. What
// has succeeded is not part of an outage, though its end may not be known yet.
func (u *Server) Quiet(log *slog.Logger) *slog.Logger {
	return slog.New(&quietHandler{log.Handler(), u})
}

type quietHandler struct {
	slog.Handler
	up *Server
}

// Handle implements slog.Handler.
func (h *quietHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level <= slog.LevelWarn && fails(r) && h.up.Broken() {
		if !h.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

// fails reports whether a line is about a failure.
func fails(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		found = a.Key == "cause" || a.Key == "err"
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (h *quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quietHandler{h.Handler.WithAttrs(attrs), h.up}
}

// WithGroup implements slog.Handler.
func (h *quietHandler) WithGroup(name string) slog.Handler {
	return &quietHandler{h.Handler.WithGroup(name), h.up}
}
