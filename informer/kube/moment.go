// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Moment is a point in the history: the one at which RV was the newest or, if RV
// is 0, a time.
type Moment struct {
	RV uint64
	At time.Time
	// Ago is set if At was computed from the present time, by an age or as now. It
	// is then a time of the present clock, which may have been set back.
	Ago bool
}

const momentForms = "use now, an age such as 10m, 1h30m or 2d, a time such as 2026-01-31T15:04:05Z, or rv:N"

// ParseMoment parses "now", an age ("10m", "1h30m", "2d", "1d12h") before now, an
// RFC 3339 time, or "rv:N". A moment may be in the future.
func ParseMoment(text string, now time.Time) (Moment, error) {
	if text == "now" {
		return Moment{At: now, Ago: true}, nil
	}
	if digits, ok := strings.CutPrefix(text, "rv:"); ok {
		rv, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || rv == 0 {
			return Moment{}, fmt.Errorf("%q is not a moment: rv: must be followed by a resourceVersion above 0", text)
		}
		return Moment{RV: rv}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return Moment{At: at}, nil
	}
	if age, ok := parseAge(text); ok {
		return Moment{At: now.Add(-age), Ago: true}, nil
	}
	return Moment{}, fmt.Errorf("%q is not a moment: %s", text, momentForms)
}

const day = 24 * time.Hour

// parseAge parses a Go duration that may begin with days.
func parseAge(text string) (time.Duration, bool) {
	var age time.Duration
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16) // up to 179 years
		if err != nil {
			return 0, false
		}
		age, text = time.Duration(n)*day, rest
		if text == "" {
			return age, true
		}
	}
	if text[:min(len(text), 1)] == "-" || text[:min(len(text), 1)] == "+" {
		return 0, false
	}
	rest, err := time.ParseDuration(text)
	return age + rest, err == nil && age+rest >= 0
}

// String returns the form that [ParseMoment] reads.
func (m Moment) String() string {
	if m.RV != 0 {
		return "rv:" + FormatRV(m.RV)
	}
	return m.At.UTC().Format(time.RFC3339Nano)
}
