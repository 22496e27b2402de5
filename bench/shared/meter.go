// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// A meter measures the CPU of a gateway and of the API server, and the API server's
// reviews, over a time.
type meter struct {
	r          *harness
	front      *endpoint // nil for none
	start      time.Time
	counts     counts
	api, gates time.Duration // of CPU, before
}

func (r *harness) meter(front *endpoint) (m *meter, err error) {
	m = &meter{r: r, front: front, start: time.Now()}
	if m.counts, err = r.counts(); err != nil {
		return nil, err
	}
	m.api, m.gates, err = m.cpu()
	return m, err
}

func (m *meter) cpu() (api, front time.Duration, err error) {
	if api, err = m.r.api.cpu(); err == nil && m.front != nil {
		front, err = m.front.cpu()
	}
	return api, front, err
}

// A reading is what a meter measured.
type reading struct {
	took       time.Duration
	counts     counts
	api, front time.Duration // of CPU
}

func (m *meter) read() (reading, error) {
	api, front, err := m.cpu()
	if err != nil {
		return reading{}, err
	}
	took := time.Since(m.start)
	c, err := m.r.counts()
	return reading{took, c.since(m.counts), api - m.api, front - m.gates}, err
}

// perMinute returns a number of the reading as a rate, for each of n.
func (d reading) perMinute(count float64, n int) float64 {
	return count / d.took.Minutes() / float64(n)
}
