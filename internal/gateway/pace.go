// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// speedParameter asks for a replay: a WATCH of the past in so many times real
	// time, which goes on live when it has caught up.
	speedParameter = "speed"
	mostSpeed      = 10_000
	// replayBookmarkEvery is the period of the bookmarks of a replay, which say
	// how far it is.
	replayBookmarkEvery = time.Second
	// momentAnnotation is where they say it, in RFC 3339.
	momentAnnotation = "watchkeeper/moment"
)

// asksSpeed reports whether a request is for a replay.
func asksSpeed(r *http.Request) bool {
	return mentions(r, speedParameter) && r.URL.Query().Has(speedParameter)
}

// readSpeed reads the parameter. It returns why it cannot be served.
func (rd *read) readSpeed(r *http.Request) *metav1.Status {
	if !asksSpeed(r) {
		return nil
	}
	text := r.URL.Query().Get(speedParameter)
	speed, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil, math.IsNaN(speed), speed <= 0, speed > mostSpeed:
		return badRequest(fmt.Sprintf("speed: %q is not a number above 0 and up to %d", text, mostSpeed))
	case rd.verb != verbWatch:
		return badRequest("speed: only a watch can be replayed")
	}
	rd.speed = speed
	return nil
}

// A pace is how a replay goes through the past.
type pace struct {
	speed float64
	from  time.Time // the moment that it began with
	began time.Time
}

// now returns the moment that the replay is at.
func (p *pace) now() time.Time {
	now := time.Now()
	at := p.from.Add(time.Duration(float64(now.Sub(p.began)) * p.speed))
	if at.After(now) {
		return now
	}
	return at
}

// until returns how long it takes until the replay is at a moment.
func (p *pace) until(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(p.from))/p.speed) - time.Since(p.began)
}

// caughtUp reports whether the replay is at the present.
func (p *pace) caughtUp() bool { return !p.now().Before(time.Now().Add(-time.Millisecond)) }
