// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"io"
	"time"
)

// A Log reports the progress of a benchmark.
type Log struct {
	Scenario string // that runs now

	out   io.Writer
	start time.Time
}

// NewLog returns a log whose times count from now.
func NewLog(out io.Writer) Log { return Log{out: out, start: time.Now()} }

// Say reports progress.
func (l *Log) Say(format string, args ...any) {
	fmt.Fprintf(l.out, "%5.0fs  %s: %s\n", time.Since(l.start).Seconds(), l.Scenario, fmt.Sprintf(format, args...))
}

// Run runs a scenario, and writes an error to the benchmark's output, too.
func (l *Log) Run(out io.Writer, name string, run func() error) error {
	start := time.Now()
	l.Scenario = name
	err := run()
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
		fmt.Fprintln(out, "FAIL", err)
		l.Say("failed: %v", err)
	}
	l.Say("took %v", time.Since(start).Round(time.Second))
	return err
}

// Sleep waits while work ends that is not measured.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
