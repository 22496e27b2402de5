// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// The other scenarios run even if one fails.
func TestRunAll(t *testing.T) {
	ran := 0
	all := []Scenario[*int]{
		{"first", func(*int) error { return errors.New("it is broken") }},
		{"second", func(n *int) error { *n++; return nil }},
		{"other", func(*int) error { return errors.New("it was not asked for") }},
	}
	chosen, err := Chosen(all, "first|second")
	if err != nil || len(chosen) != 2 {
		t.Fatal(chosen, err)
	}
	var out bytes.Buffer
	log := NewLog(io.Discard)
	err = RunAll(t.Context(), &out, &log, "round 1, ", chosen, &ran)
	if err == nil || err.Error() != "round 1, first: it is broken" {
		t.Errorf("error %v", err)
	}
	if ran != 1 || !strings.Contains(out.String(), "FAIL round 1, first: it is broken\n") {
		t.Errorf("the second ran %d times, in\n%s", ran, out.Bytes())
	}
	if _, err := Chosen(all, "("); err == nil {
		t.Error("a wrong regular expression is no error")
	}
}
