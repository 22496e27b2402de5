// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"regexp"
	"time"
)

// churn is where in a Pod's JSON something can be written over that a kubelet
// changes, without a change of length. The zero value is nowhere.
type churn struct {
	times    []int // of the status
	managed  int   // that of the kubelet's managedFields
	restarts int   // a digit
	// restarting has every change be one of restarts.
	restarting bool
}

var timeText = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)

// findChurn finds the places. The first three times of a Pod are those of its
// creation, of the controller that made it, and of the kubelet.
func findChurn(body []byte) churn {
	var c churn
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

// perSecond is how many changes there are in a second of the times that are
// written.
const perSecond = 1000

// write writes over a copy of the body what the change at rv brought. The same
// rv brings the same.
func (c churn) write(body []byte, rv int64) {
	if c.managed == 0 || len(c.times) == 0 {
		return
	}
	var text [len(time.RFC3339)]byte
	now := time.Date(2026, 6, 1, 0, 0, int((rv-firstRV)/perSecond), 0, time.UTC).AppendFormat(text[:0], time.RFC3339)
	random := uint64(rv) * 0x9e3779b97f4a7c15
	n := uint64(len(c.times))
	copy(body[c.managed:], now)
	copy(body[c.times[random>>32%n]:], now)
	copy(body[c.times[random>>40%n]:], now)
	switch {
	case c.restarts > 0 && c.restarting:
		body[c.restarts] = byte('0' + rv%10)
	case c.restarts > 0 && random>>48%10 == 0:
		body[c.restarts] = byte('0' + random>>52%10)
	}
}
