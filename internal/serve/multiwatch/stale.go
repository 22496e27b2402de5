// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package multiwatch

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

const (
	// staleInterval is how often the state of the upstream is checked.
	staleInterval = time.Second
	// heartbeat is how often a line of some watch of the response comes at least, while one goes on.
	// A client that misses three knows that the gateway, or the way to it, is silent.
	heartbeat = 10 * time.Second
)

// An UpstreamState says whether the gateway reaches the API server for a resource.
type UpstreamState struct {
	// Since is when the resource was last known: a list, an event or a bookmark came, or the
	// API server last answered, or was ready, in an outage of all resources.
	Since time.Time `json:"since"`
	// Message is why the API server is unreachable; "" while it is reachable.
	Message string `json:"message"`
}

// A staleNotifier writes a line to a watch at its begin, when its upstream becomes unreachable,
// when the reason changes, and when the upstream is reachable again, and one of some watch as the
// heartbeat of the response if there was no other line:
//
//	{"watch":1,"type":"STALE","object":{"since":"…","message":"…"}}
//	{"watch":1,"type":"CURRENT"}
type staleNotifier struct {
	upstream func(*http.Request) UpstreamState
	watches  []notifiedWatch
	beat     time.Time // the last line
}

// A notifiedWatch is a watch and the message of its last STALE line; "" after CURRENT.
type notifiedWatch struct {
	writer   *watchWriter
	request  *http.Request
	notified bool // it has had a line
	stale    string
}

// run notifies until ctx ends or the client is gone.
func (n *staleNotifier) run(ctx context.Context) {
	tick := time.NewTicker(staleInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if n.notify() != nil {
			return
		}
	}
}

func (n *staleNotifier) notify() error {
	var written *sharedLines
	for i := range n.watches {
		w := &n.watches[i]
		now := n.upstream(w.request)
		line := `"type":"CURRENT"}`
		switch {
		case w.notified && now.Message == w.stale && time.Since(n.beat) < heartbeat:
			continue
		case now.Message != "":
			object, err := json.Marshal(now)
			if err != nil {
				return err // a time and a text cannot fail
			}
			line = `"type":"STALE","object":` + string(object) + "}"
		}
		sent, err := w.writer.notify(line)
		if err != nil {
			return err
		}
		if w.notified, w.stale = true, now.Message; sent {
			n.beat, written = time.Now(), w.writer.shared
		}
	}
	if written == nil {
		return nil
	}
	return written.flush()
}
