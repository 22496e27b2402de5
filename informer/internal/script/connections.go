// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package script

import "net/http"

// Connections are an Upstream with a method Fresh, as a [reflector.Freshener] has. They
// record the connection of each request; the first connection is 0.
type Connections struct {
	*Upstream
	By []int // the connection of each request

	first  *Connections
	opened int // of the first: how many there are besides it
	id     int
}

// NewConnections returns the first connection.
func NewConnections(up *Upstream) *Connections {
	c := &Connections{Upstream: up}
	c.first = c
	return c
}

// Fresh returns another connection.
func (c *Connections) Fresh() (http.RoundTripper, error) {
	c.first.opened++
	return &Connections{Upstream: c.Upstream, first: c.first, id: c.first.opened}, nil
}

// RoundTrip answers a request.
func (c *Connections) RoundTrip(r *http.Request) (*http.Response, error) {
	c.first.By = append(c.first.By, c.id)
	return c.Upstream.RoundTrip(r)
}

// WithBookmarks answers with a streaming list and then, half a minute apart, three
// bookmarks and the frames given.
func WithBookmarks(then ...string) Answer {
	return Answer{Want: Streaming, Stall: true, Body: Event("ADDED", "a", 3) + Bookmark(10, true),
		Late: append([]string{Bookmark(11, false), Bookmark(12, false), Bookmark(13, false)}, then...)}
}

// Answered is the answer to the watch with which the watchdog tries a new connection.
var Answered = Answer{Want: From(13), Stall: true}
