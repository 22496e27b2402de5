// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// TestWaiting: a command says that an answer takes long, and of which gateway; of a fast one it
// says nothing.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delay time.Duration
		network := informertest.NewNetwork(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(delay)
			_, _ = w.Write([]byte("{}"))
		}))
		defer network.Close()
		transport := &http.Transport{DialContext: network.Dial}
		defer transport.CloseIdleConnections()
		var out bytes.Buffer
		c := &client{streams: streams{err: &out}, server: network.URL().String(), http: http.Client{Transport: transport}}
		for _, test := range []struct {
			delay time.Duration
			want  string
		}{{waitingAfter / 2, ""}, {4 * waitingAfter, "waiting for " + c.server + findingsAPI + ": "}} {
			delay = test.delay
			if err := c.get(t.Context(), findingsAPI, nil, &struct{}{}); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.HasPrefix(got, test.want) || strings.Count(got, "\n") > 1 || (got == "") != (test.want == "") {
				t.Errorf("after %s: %q", test.delay, got)
			}
		}
	})
}
