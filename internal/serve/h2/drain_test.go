// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// TestDrainsLoseNothing ends connections in order, again and again, while a client of
// net/http sends requests in parallel, also with bodies. Every request is answered: those
// that cross with the GOAWAY are served or can be sent again.
func TestDrainsLoseNothing(t *testing.T) {
	const clients, requests = 10, 20
	var seen, drains atomic.Int64
	for name, client := range serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1)%17 == 0 {
			w.Header().Set("Connection", "close")
			drains.Add(1)
		}
		_, _ = io.Copy(w, r.Body)
	})) {
		t.Run(name, func(t *testing.T) {
			seen.Store(0)
			drains.Store(0)
			var running sync.WaitGroup
			for range clients {
				running.Go(func() {
					for i := range requests {
						body := pattern(i * 1000)
						resp, err := client.Post("http://h/", "text/plain", bytes.NewReader(body))
						if err != nil {
							t.Errorf("after %d requests: %v", i, err)
							return
						}
						got, err := io.ReadAll(resp.Body)
						resp.Body.Close()
						if err != nil || !bytes.Equal(got, body) {
							t.Errorf("after %d requests: %d bytes, %v", i, len(got), err)
							return
						}
					}
				})
			}
			running.Wait()
			if n := seen.Load(); n != clients*requests || drains.Load() == 0 {
				t.Errorf("%d requests were served, for %d; %d drains", n, clients*requests, drains.Load())
			}
		})
	}
}
