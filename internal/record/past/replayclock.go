// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import "time"

// A replayClock maps the present to a moment of the replayed past.
type replayClock struct {
	speed float64
	from  time.Time // the replayed moment at began
	began time.Time
	// present returns the time by the clock of the recorded times.
	present func() time.Time
}

// now returns the moment that the replay has reached.
func (c *replayClock) now() time.Time {
	now := c.present()
	at := c.from.Add(time.Duration(float64(now.Sub(c.began)) * c.speed))
	if at.After(now) {
		return now
	}
	return at
}

// until returns the time after which the replay reaches a moment.
func (c *replayClock) until(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(c.from))/c.speed) - c.present().Sub(c.began)
}

// caughtUp reports whether the replay has reached the present.
func (c *replayClock) caughtUp() bool { return !c.now().Before(c.present().Add(-time.Millisecond)) }
