// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A traced error has a stack trace, as those of Pebble have.
type traced struct{ error }

func (e traced) Format(s fmt.State, verb rune) {
	fmt.Fprint(s, e.Error())
	if s.Flag('+') {
		fmt.Fprint(s, "\nattached stack trace\n| main.main")
	}
}

// TestLogErrors: the log has errors in one line, without the stack traces of libraries.
func TestLogErrors(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log, err := newLogger(&out, format, 0)
		if err != nil {
			t.Fatal(err)
		}
		log.Warn("nothing is recorded", "cause", fmt.Errorf("open: %w", errors.Join(traced{errors.New("no directory")}, traced{errors.New("no file")})))
		log.Warn("nothing is recorded", "cause", traced{errors.New("no directory")})
		if got := out.String(); strings.Contains(got, "trace") || !strings.Contains(got, "open: no directory no file") || strings.Count(got, "\n") != 2 {
			t.Errorf("%s: %s", format, got)
		}
	}
}

// TestLogLibraries: no verbosity makes client-go log requests and responses, which have the
// tokens of TokenReviews.
func TestLogLibraries(t *testing.T) {
	for _, verbosity := range []int{0, 4, 6, 10, 1000} {
		log, err := newLogger(&bytes.Buffer{}, "text", verbosity)
		if err != nil {
			t.Fatal(err)
		}
		if log.Enabled(t.Context(), -6) {
			t.Errorf("-v %d enables what client-go logs from 6 on", verbosity)
		}
	}
}
