// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// retryUpstream is after how long a gateway is asked again for what it knows of its API server.
const retryUpstream = 2 * time.Second

// Upstream reports, until ctx ends, what a gateway says of its API server: since when and why
// it has no contact for the collection, or a zero State. The watch of a gateway stays open
// meanwhile, and looks like one without changes; that of a resource that cannot be read ends
// again and again, each time after a line with the state. A gateway that misses three heartbeats is
// reported, too, until it sends something. Of another server nothing is reported.
func (c Collection) Upstream(ctx context.Context, report func(State)) {
	for c.upstream(ctx, report) {
		select {
		case <-ctx.Done():
		case <-time.After(retryUpstream):
		}
	}
}

// upstream reads one answer; again is false if there is no other to ask for.
func (c Collection) upstream(ctx context.Context, report func(State)) (again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the reader of lines
	w := c
	w.Base, w.LabelSelector = &url.URL{Path: "/"}, ""
	if w.FieldSelector == "" { // otherwise perhaps the name without which the caller may not watch
		w.FieldSelector = "metadata.name=-" // no object
	}
	u := c.Base.JoinPath("watchkeeper/v1/multiwatch")
	u.RawQuery = url.Values{"upstream": {"1"}, "watch": {w.URL("").RequestURI() + "&watch=1&resourceVersion=0"}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json")
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		report(State{}) // what is known now, the table itself knows
		return ctx.Err() == nil
	}
	defer resp.Body.Close()
	seconds, err := strconv.Atoi(resp.Header.Get(api.HeartbeatHeader))
	beats := err == nil
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(resp.Body); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	if resp.StatusCode != http.StatusOK {
		report(State{})
		return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
	}
	for heard := time.Now(); ; heard = time.Now() {
		var silent <-chan time.Time
		if beats {
			silent = time.After(3 * time.Duration(seconds) * time.Second)
		}
		var line []byte
		select {
		case line = <-lines:
		case <-silent:
			report(State{Stale, heard, "the gateway does not answer"})
			line = <-lines
		}
		if line == nil {
			return ctx.Err() == nil
		}
		var event struct {
			Type   string
			Object struct {
				Since   time.Time
				Message string
			}
		}
		switch json.Unmarshal(line, &event); event.Type { //nolint:errcheck // then it has no type
		case "STALE":
			report(State{Stale, event.Object.Since.Local(), table.Clean(event.Object.Message)})
		case "CURRENT":
			report(State{})
		}
	}
}
