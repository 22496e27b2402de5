// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A clockRead is a list of the past, with the response.
type clockRead struct {
	*exchange
	// Asked is the requested RV; 0 if an age or a time was requested.
	Asked uint64
	// Ago is set for an age. When is the requested time; that of an age is relative to the
	// gateway's clock at the request.
	Ago  bool
	Age  time.Duration
	When time.Time
}

func (r *clockRead) String() string {
	return fmt.Sprintf("%s, true time %s: %d, state %d, %s", r.Path, stamp(r.Began), r.Code, r.RV, r.End)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// A clockReader reads lists of the past at random moments.
type clockReader struct {
	pastReader
	round *clockRound
	reads []*clockRead
}

func newClockReader(r *clockRound) *clockReader {
	r.texts.all = map[string]string{}
	return &clockReader{
		pastReader: pastReader{
			http: &http.Client{Transport: local{handler: r.simulation, buffer: 1 << 20}}, base: "http://127.0.0.1", texts: &r.texts,
		},
		round: r,
	}
}

// read reads one list.
func (c *clockReader) read(r *rand.Rand) {
	one := &clockRead{When: c.round.clock.Now().Round(0)}
	when := ""
	switch r.IntN(8) {
	case 0, 1, 2:
		one.Ago, when = true, "now"
	case 3:
		one.Ago, one.Age = true, c.drawAge(r)
		when = one.Age.String()
	case 4:
		one.Asked = c.drawRV(r)
		when = "rv:" + strconv.FormatUint(one.Asked, 10)
	default:
		one.When = c.drawTime(r)
		when = one.When.UTC().Format(time.RFC3339Nano)
	}
	one.When = one.When.Add(-one.Age).Truncate(time.Millisecond)
	client := c.client(when, "past", resource{name: "configmaps", path: "/api/v1/configmaps"}, newSelector("", "", ""))
	one.exchange = client.begin("past", 0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := client.page(ctx, one.exchange, url.Values{}); err != nil {
		one.End = err.Error()
	}
	one.Path, one.Ended = client.base[len(c.base):], time.Now()
	if one.Code != 0 { // else no gateway is running
		c.reads = append(c.reads, one)
	}
}

// drawAge draws an age that the round may have seen, sometimes one that exceeds it.
func (c *clockReader) drawAge(r *rand.Rand) time.Duration {
	lived := time.Since(c.round.clock.Settings()[0].At)
	return upTo(r, lived*5/4+1).Truncate(time.Millisecond)
}

// drawRV draws an RV of a version, or one near it.
func (c *clockReader) drawRV(r *rand.Rand) uint64 {
	c.round.server.mu.Lock()
	defer c.round.server.mu.Unlock()
	t := &c.round.server.truth
	if len(t.versions) == 0 {
		return t.base
	}
	return t.versions[r.IntN(len(t.versions))].RV + r.Uint64N(3) - 1
}

// drawTime draws a time that the clock has shown, near a read, a write, or a moment at
// which it was set.
func (c *clockReader) drawTime(r *rand.Rand) time.Time {
	server := c.round.server
	settings := c.round.clock.Settings()
	i := r.IntN(len(settings))
	at, ahead := settings[i].At, settings[i].Ahead
	switch r.IntN(4) {
	case 0:
		if i > 0 && r.IntN(2) == 0 {
			ahead = settings[i-1].Ahead // just before it was set
		}
	case 1:
		if len(c.reads) > 0 {
			return c.reads[r.IntN(len(c.reads))].When.Add(near(r))
		}
	default:
		server.mu.Lock()
		defer server.mu.Unlock()
		if n := len(server.truth.versions); n > 0 {
			at = server.truth.versions[r.IntN(n)].seen
			for _, s := range settings {
				if !s.At.After(at) {
					ahead = s.Ahead
				}
			}
		}
	}
	return at.Add(ahead + near(r))
}

// near draws a small difference of time.
func near(r *rand.Rand) time.Duration {
	switch r.IntN(3) {
	case 0:
		return time.Duration(r.IntN(3)-1) * time.Millisecond
	case 1:
		return upTo(r, 4*time.Second) - 2*time.Second
	}
	return upTo(r, time.Minute) - 30*time.Second
}
