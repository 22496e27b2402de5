// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clocktest has a clock that a test sets forward and back, as an administrator or
// NTP does. In contrast to a clock that only adds a difference to the time, its monotonic
// reading goes on, so that the code under test can measure a step as in production.
package clocktest

import (
	"slices"
	"sync"
	"time"
	"unsafe"
)

// A Setting is how far a clock is ahead of the system's, from a time of the system's on.
type Setting struct {
	At    time.Time
	Ahead time.Duration
}

// Shows returns what the clock shows with the setting at a time of the system's.
func (s Setting) Shows(t time.Time) time.Time { return t.Add(s.Ahead) }

// A Clock is a clock that is set now and then. The nil Clock is the system's. Any goroutine
// may call its methods.
type Clock struct {
	mu       sync.Mutex // guards settings
	settings []Setting
}

// New returns a clock that shows the system's time.
func New() *Clock { return &Clock{settings: []Setting{{At: time.Now()}}} }

// Now returns the time by the clock.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return WithMonotonic(c.settings[len(c.settings)-1].Shows(now).Round(0), now.Sub(c.settings[0].At)+1)
}

// Set sets the clock forward, or back.
func (c *Clock) Set(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.settings[len(c.settings)-1]
	c.settings = append(c.settings, Setting{time.Now(), last.Ahead + by})
}

// Settings returns how the clock was set, beginning with New.
func (c *Clock) Settings() []Setting {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.settings)
}

// WithMonotonic returns the time with a reading of the monotonic clock, which package time
// does not let a program choose. The time has to be after 1885 and before 2157.
func WithMonotonic(t time.Time, reading time.Duration) time.Time {
	const hasMonotonic = 1 << 63
	const seconds1885 = 2_682_288_000 // from 1885 to 1970
	out := t
	parts := (*struct { // time.Time
		wall     uint64
		ext      int64
		location *time.Location
	})(unsafe.Pointer(&out))
	parts.wall = hasMonotonic | uint64(t.Unix()+seconds1885)<<30 | uint64(t.Nanosecond())
	parts.ext = int64(reading)
	return out
}
