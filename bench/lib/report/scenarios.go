// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// Main runs a benchmark until it ends or is interrupted. The status is 1 if it fails.
func Main(run func(ctx context.Context, out, progress io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	Exit(run(ctx, os.Stdout, os.Stderr))
}

// Exit ends the process with status 1 if there is an error.
func Exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A Scenario measures one thing with a harness.
type Scenario[H any] struct {
	Name string
	Run  func(H) error
}

// Chosen returns the scenarios whose name matches a regular expression.
func Chosen[H any](all []Scenario[H], which string) (chosen []Scenario[H], err error) {
	wanted, err := regexp.Compile(which)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if wanted.MatchString(s.Name) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// RunAll runs scenarios in order, also after one that fails, until ctx ends. The prefix begins
// their names in the log.
func RunAll[H any](ctx context.Context, out io.Writer, log *Log, prefix string, all []Scenario[H], h H) error {
	var failed []error
	for _, s := range all {
		if ctx.Err() != nil {
			break
		}
		failed = append(failed, log.Run(out, prefix+s.Name, func() error { return s.Run(h) }))
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// MakeDir makes a directory for profiles, unless the name is empty.
func MakeDir(name string) error {
	if name == "" {
		return nil
	}
	return os.MkdirAll(name, 0o777)
}
