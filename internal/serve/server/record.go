// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
)

// newRecorder returns the recorder, nil if recording is disabled.
func newRecorder(opts RecordOptions, up *upstream.Server, log *slog.Logger, registry prometheus.Registerer) (*recorder.Recorder, error) {
	if opts.Missing != nil {
		log.Warn("nothing is recorded", "cause", opts.Missing)
	}
	if opts.Dir == "" {
		return nil, nil
	}
	return recorder.New(recorder.Options{
		Dir: opts.Dir, Select: opts.Select, MaxAge: opts.MaxAge, MaxBytes: opts.MaxBytes,
		Upstream: up, Logger: log, Registerer: registry,
	})
}

// openHistory opens the cluster's history if the API server identifies the cluster
// in time. It fails if the directory must not be used.
func openHistory(ctx context.Context, rec *recorder.Recorder) error {
	if rec == nil {
		return nil
	}
	return rec.Open(ctx)
}
