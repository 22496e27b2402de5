// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
)

// TestI15Panics: a panic, or a function that ends its goroutine, is a failure of its key.
// It is logged and retried, and as many workers as before go on.
func TestI15Panics(t *testing.T) {
	for name, misbehave := range map[string]func(){
		"panic":        func() { panic("no") },
		"panic(error)": func() { panic(errNo) },
		"Goexit":       runtime.Goexit,
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			var failures []error
			opts := Options{Workers: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			opts.Metrics.Reconciled = func(_, _ time.Duration, err error) {
				if err != nil {
					failures = append(failures, err)
				}
			}
			left := 3
			b := newBench(t, opts, func(_ context.Context, key informer.Key) (Result, error) {
				if key.Name == "a" && left > 0 {
					left--
					misbehave()
				}
				return Result{}, nil
			})
			b.event(live, "a", "b")
			time.Sleep(time.Minute)
			var keys []string
			for _, c := range b.read() {
				keys = append(keys, c.name)
			}
			if got := fmt.Sprint(keys); got != "[a b a a a]" || len(failures) != 3 {
				t.Fatalf("%s: calls %v, failures %v", name, got, failures)
			}
			p, isPanic := errors.AsType[*informer.PanicError](failures[0])
			if isPanic != (name != "Goexit") || errors.Is(failures[0], errNo) != (name == "panic(error)") || isPanic && !bytes.Contains(p.Stack, []byte("TestI15Panics")) {
				t.Errorf("%s: %v", name, failures[0])
			}
			for _, line := range []string{
				`level=WARN msg="reconciling failed" controller=test key=a attempt=1 retry_in=`,
				`level=WARN msg="reconciling failed" controller=test key=a attempt=3 retry_in=`,
			} {
				if !strings.Contains(log.String(), line) {
					t.Errorf("%s: no line %s in\n%s", name, line, log.String())
				}
			}
			b.stop()
		})
	}
}

// TestMetrics: calls are reported with how long their keys have waited and how long they
// took, and terminal errors are logged.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var got []string
		opts := Options{Workers: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		opts.Metrics.Reconciled = func(waited, took time.Duration, err error) {
			got = append(got, fmt.Sprint(waited, took, err))
		}
		b := newBench(t, opts, func(_ context.Context, key informer.Key) (Result, error) {
			time.Sleep(time.Second)
			if key.Name == "b" {
				return Result{}, &TerminalError{errNo}
			}
			return Result{}, nil
		})
		b.event(live, "a", "b")
		time.Sleep(time.Minute)
		synctest.Wait()
		if fmt.Sprint(got) != "[0s 1s <nil> 1s 1s terminal: no]" {
			t.Errorf("%v", got)
		}
		if !strings.Contains(log.String(), `level=ERROR msg="reconciling failed, and is not retried" controller=test key=b err="terminal: no"`) {
			t.Error(log.String())
		}
		b.stop()
	})
}
