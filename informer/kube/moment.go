// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Moment names a moment: by the RV that was the newest, if that is not 0, or by
// the time.
type Moment struct {
	RV uint64
	At time.Time
}

// momentForms is what there is to choose from.
const momentForms = "use now, an age such as 10m, 1h30m or 2d, a time such as 2026-01-31T15:04:05Z, or rv:N"

// ParseMoment reads what a person writes for a moment: "now", an age ("10m",
// "1h30m", "2d", "1d12h"), a time of RFC 3339, or "rv:N". Ages are taken from
// now. That a moment is in the future is no error here.
func ParseMoment(text string, now time.Time) (Moment, error) {
	if text == "now" {
		return Moment{At: now}, nil
	}
	if digits, ok := strings.CutPrefix(text, "rv:"); ok {
		rv, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || rv == 0 {
			return Moment{}, fmt.Errorf("%q is no moment: behind rv: comes a resourceVersion above 0", text)
		}
		return Moment{RV: rv}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return Moment{At: at}, nil
	}
	if age, ok := parseAge(text); ok {
		return Moment{At: now.Add(-age)}, nil
	}
	return Moment{}, fmt.Errorf("%q is no moment: %s", text, momentForms)
}

const day = 24 * time.Hour

// parseAge reads a duration as Go writes it, with days in front if need be.
func parseAge(text string) (time.Duration, bool) {
	var age time.Duration
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16) // a longer time than there is history
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
