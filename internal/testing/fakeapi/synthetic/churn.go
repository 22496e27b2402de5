// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"bytes"
	"regexp"
	"time"
)

// Churn holds the offsets at which a kubelet's changes are written into a Pod's
// JSON. Each change replaces as many bytes as it has, so that a Pod is encoded only
// once. The zero value writes nothing.
type Churn struct {
	times    []int // of the status
	managed  int   // the time of the kubelet's managedFields
	restarts int   // a digit
	// restartsOnly makes every change include the restart count.
	restartsOnly bool
}

var timeText = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)

// FindChurn finds the offsets in the JSON of a [Pod]. If restartsOnly is set, every
// change changes the container's restart count, otherwise one in ten does. The first
// three times of a Pod are those of its creation, of the controller's managedFields
// and of the kubelet's.
func FindChurn(body []byte, restartsOnly bool) Churn {
	c := Churn{restartsOnly: restartsOnly}
	for i, at := range timeText.FindAllIndex(body, -1) {
		switch {
		case i == 2:
			c.managed = at[0] + 1
		case i > 2:
			c.times = append(c.times, at[0]+1)
		}
	}
	restarts := []byte(`"restartCount":`)
	if at := bytes.Index(body, restarts); at >= 0 {
		c.restarts = at + len(restarts)
	}
	return c
}

// ChangesPerSecond is how many changes Write makes per second of the times that it
// writes.
const ChangesPerSecond = 1000

// Write writes the change at rv over a copy of the JSON. The same rv writes the
// same bytes.
func (c *Churn) Write(body []byte, rv uint64) {
	if c.managed == 0 || len(c.times) == 0 {
		return
	}
	var text [len(time.RFC3339)]byte
	now := time.Date(2026, 6, 1, 0, 0, int((rv-FirstRV)/ChangesPerSecond), 0, time.UTC).AppendFormat(text[:0], time.RFC3339)
	random := rv * 0x9e3779b97f4a7c15
	n := uint64(len(c.times))
	copy(body[c.managed:], now)
	copy(body[c.times[random>>32%n]:], now)
	copy(body[c.times[random>>40%n]:], now)
	switch {
	case c.restarts > 0 && c.restartsOnly:
		body[c.restarts] = byte('0' + rv%10)
	case c.restarts > 0 && random>>48%10 == 0:
		body[c.restarts] = byte('0' + random>>52%10)
	}
}
