// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

const (
	// debugVerbosity is the -v from which our own debug lines are shown.
	debugVerbosity = 4

	// maxLibraryVerbosity keeps client-go from logging requests and responses, with the
	// tokens of TokenReviews, as it does from 6 on: by klog's own verbosity, and by the level
	// of the slog handler, which its contextual loggers ask.
	maxLibraryVerbosity = 5
)

// newLogger returns the logger of a long-running command, which client-go uses as
// well. klog has one logger per process, so only the command line may call this.
func newLogger(out io.Writer, format string, verbosity int) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: errorInOneLine}
	if verbosity >= debugVerbosity {
		// logr counts -v downwards from slog's info.
		opts.Level = slog.Level(-min(max(verbosity, -int(slog.LevelDebug)), maxLibraryVerbosity))
	}
	var handler slog.Handler
	switch format {
	case "text":
		handler = slog.NewTextHandler(out, opts)
	case "json":
		handler = slog.NewJSONHandler(out, opts)
	default:
		return nil, fmt.Errorf("--log-format %q is unknown: use text or json", format)
	}
	log := slog.New(handler)

	var flags flag.FlagSet
	klog.InitFlags(&flags)
	if err := flags.Set("v", strconv.Itoa(min(verbosity, maxLibraryVerbosity))); err != nil {
		return nil, fmt.Errorf("klog: %w", err)
	}
	klog.SetSlogLogger(log)
	return log, nil
}

// errorInOneLine is a ReplaceAttr that keeps the stack trace of a library's error out
// of the log: slog formats errors with %+v.
func errorInOneLine(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(oneLine(err.Error()))
	}
	return a
}
