// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import "time"

// A replayClock is the moment that a replay is at.
type replayClock struct {
	speed float64
	from  time.Time // the moment at which it began
	began time.Time
}

// now returns the moment that the replay is at.
func (c *replayClock) now() time.Time {
	now := time.Now()
	at := c.from.Add(time.Duration(float64(now.Sub(c.began)) * c.speed))
	if at.After(now) {
		return now
	}
	return at
}

// until returns how long it takes the replay to reach a moment.
func (c *replayClock) until(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(c.from))/c.speed) - time.Since(c.began)
}

// caughtUp reports whether the replay has reached the present.
func (c *replayClock) caughtUp() bool { return !c.now().Before(time.Now().Add(-time.Millisecond)) }
