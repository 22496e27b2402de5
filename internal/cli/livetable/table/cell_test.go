// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"slices"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"Running":                     "Running",
		"Größe 東京":                    "Größe 東京",
		"two\nlines":                  "two...",
		"a\tb":                        "a b",
		"\x1b[2J\x1b]0;title\x07":     "^[[2J^[]0;title^G",
		"del\x7f":                     "del^?",
		"c1\u009b2J":                  "c1\ufffd2J",
		"bad\xff":                     "bad\ufffd",
		"right\u202eto left\u200bend": "right\ufffdto left\ufffdend",
	} {
		if got := table.Clean(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}

// FuzzClean: no text can control the terminal, and a cut one is not wider than asked for.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"a", "\x1b[31m", "東京", "\u009b", "👩‍👩‍👧", "e\u0301", "\xff\x1b"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width %= 100
		clean := table.Clean(s)
		if !utf8.ValidString(clean) {
			t.Errorf("%q is not UTF-8", clean)
		}
		for _, r := range clean {
			if unicode.IsControl(r) {
				t.Errorf("%q has %q", clean, r)
			}
		}
		if cut := table.Cut(clean, width, "~"); table.Width(cut) > max(width, 0) {
			t.Errorf("%q has width %d, not %d", cut, table.Width(cut), width)
		}
	})
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		in    string
		width int
		want  string
	}{
		{"Running", 7, "Running"}, {"Running", 6, "Runni~"}, {"Running", 1, "~"}, {"Running", 0, ""}, {"Running", -1, ""},
		{"東京東京", 8, "東京東京"}, {"東京東京", 7, "東京東~"}, {"東京東京", 6, "東京~"},
	} {
		if got := table.Cut(test.in, test.width, "~"); got != test.want {
			t.Errorf("%q to %d: %q, not %q", test.in, test.width, got, test.want)
		}
	}
}

func TestCellAt(t *testing.T) {
	since := start.Add(-5 * time.Minute).Unix()
	for _, test := range []struct {
		cell table.Cell
		want string
	}{
		{table.Cell{Text: "Running"}, "Running"}, {table.Cell{Since: since}, "5m"}, {table.Cell{Text: "3", Since: since}, "3 (5m ago)"}, {table.Cell{}, ""},
	} {
		if got := test.cell.At(start); got != test.want {
			t.Errorf("%q, not %q", got, test.want)
		}
	}
}

func TestCompareNatural(t *testing.T) {
	sorted := []string{"", "1/2", "2/2", "10/10", "a", "web-2", "web-10", "web-10a"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := table.CompareNatural(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
	if !slices.IsSortedFunc([]string{"01", "1"}, table.CompareNatural) {
		t.Error("01 and 1")
	}
}
