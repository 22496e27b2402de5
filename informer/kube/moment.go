// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
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

const momentForms = "use now, an age such as 10m, 1h30m or 2d, a time such as 2026-01-31T15:04:05Z, 2026-01-31 15:04:05 or 15:04, or a resourceVersion such as 12031"

// ParseMoment parses the texts that people and programs write for a moment:
//
//	now
//	10m, 1h30m, 2d, 1d12h, 2y5d    an age before now; " ago" may follow
//	rv:12031, 12031                a resourceVersion
//	2026-01-31T15:04:05.5+01:00    a time, as in RFC 3339
//	2026-01-31 15:04:05, 15:04     parts of it
//	15:04:05 UTC, 15:04 UTC+1      with a zone in words
//
// In a time, the fraction, the seconds, the date or the time of day may be left out, and
// so may the zone: it is then that of now. Between its parts there is a T or a space. A
// date without a time of day is its midnight; a time of day without a date is its last
// occurrence before now. A moment may be in the future.
func ParseMoment(text string, now time.Time) (Moment, error) {
	if text == "now" {
		return Moment{At: now, Ago: true}, nil
	}
	digits, marked := strings.CutPrefix(text, "rv:")
	if rv, err := ParseRV(digits); err == nil && rv != 0 && digits[0] != '0' {
		return Moment{RV: rv}, nil
	}
	if marked {
		return Moment{}, fmt.Errorf("%q is not a moment: rv: must be followed by a resourceVersion above 0", text)
	}
	if at, ok := parseTime(withOffset(text), now); ok {
		return Moment{At: at}, nil
	}
	if age, ok := parseAge(strings.TrimSuffix(text, " ago")); ok {
		return Moment{At: now.Add(-age), Ago: true}, nil
	}
	return Moment{}, fmt.Errorf("%q is not a moment: %s", text, momentForms)
}

// Layouts of times for package time. A fraction may follow the seconds in each.
var (
	dayTimes = []string{"15:04:05", "15:04"}
	zones    = []string{"", "Z07:00", " Z07:00", "-0700", " -0700"}
)

// withOffset replaces a zone as people write it, " UTC", " UTC+1" or " UTC-3:30", by its offset.
func withOffset(text string) string {
	clock, zone, ok := strings.Cut(text, " UTC")
	if !ok {
		return text
	}
	if zone == "" {
		return clock + "Z"
	}
	hours, minutes, _ := strings.Cut(zone[1:], ":")
	if len(hours) == 1 {
		hours = "0" + hours
	}
	return clock + zone[:1] + hours + ":" + cmp.Or(minutes, "00")
}

// parseTime parses a time of which parts may be left out.
func parseTime(text string, now time.Time) (time.Time, bool) {
	if at, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return at, true
	}
	for _, clock := range dayTimes {
		for _, zone := range zones {
			for _, separator := range []string{"T", " "} {
				if at, err := time.ParseInLocation(time.DateOnly+separator+clock+zone, text, now.Location()); err == nil {
					return at, true
				}
			}
			at, err := time.ParseInLocation(clock+zone, text, now.Location())
			if err != nil {
				continue
			}
			return lastAt(at, now), true
		}
	}
	return time.Time{}, false
}

// lastAt returns the last time before now at which a clock in the zone of clock showed
// its time of day.
func lastAt(clock, now time.Time) time.Time {
	local := now.In(clock.Location())
	on := func(day int) time.Time {
		return time.Date(local.Year(), local.Month(), local.Day()+day, clock.Hour(), clock.Minute(), clock.Second(), clock.Nanosecond(), clock.Location())
	}
	if today := on(0); !today.After(now) {
		return today
	}
	return on(-1)
}

const (
	day    = 24 * time.Hour
	year   = 365 * day // as kubectl counts it
	maxAge = 179 * year
)

// parseAge parses a Go duration that may begin with years and days.
func parseAge(text string) (time.Duration, bool) {
	if text == "0" { // which package time reads as a duration: perhaps a resourceVersion is meant
		return 0, false
	}
	var age time.Duration
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"y", year}, {"d", day}} {
		count, rest, ok := strings.Cut(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil || n > uint64((maxAge-age)/unit.length) {
			return 0, false
		}
		if age, text = age+time.Duration(n)*unit.length, rest; text == "" {
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
