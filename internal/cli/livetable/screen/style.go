// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"time"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A Style says what the terminal can show.
type Style struct {
	// NoColor marks changes by characters.
	NoColor bool
	// ASCII avoids characters that are not in ASCII, for locales without UTF-8.
	ASCII bool
}

// Attributes of text, as in ECMA-48 (SGR).
const (
	plain     = ""
	reset     = "\x1b[m"
	bold      = "\x1b[1m"
	dim       = "\x1b[2m"
	inverse   = "\x1b[7m"
	fresh     = "\x1b[30;43m" // black on yellow
	faded     = "\x1b[33m"
	freshNew  = "\x1b[1;32m"
	fadedNew  = "\x1b[32m"
	struck    = "\x1b[9;31m"
	struckOut = "\x1b[9m" // without colour
)

// freshFor is how long a change is shown at its brightest.
const freshFor = time.Second

// Steps are the times after a change at which its mark looks different.
var Steps = []time.Duration{freshFor, table.Fade}

// mark returns the attributes of what changed at a time.
func mark(changed, now time.Time, fresh, faded string) string {
	switch age := now.Sub(changed); {
	case changed.IsZero() || age >= table.Fade:
		return plain
	case age < freshFor:
		return fresh
	}
	return faded
}

func (s Style) tail() string {
	if s.ASCII {
		return "~"
	}
	return "…"
}

// Separator stands between the parts of the status line.
func (s Style) Separator() string {
	if s.ASCII {
		return " | "
	}
	return " · "
}

func (s Style) arrow(descending bool) string {
	switch {
	case s.ASCII && descending:
		return "v"
	case s.ASCII:
		return "^"
	case descending:
		return "↓"
	}
	return "↑"
}

// gutter is the width of the marks before rows.
func (s Style) gutter() int {
	if s.NoColor {
		return 2
	}
	return 0
}
