// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSilentGateway: every command says that its gateway does not answer.
func TestSilentGateway(t *testing.T) {
	if testing.Short() {
		t.Skip("a server counts as silent after 15 seconds")
	}
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Setenv("WATCHKEEPER_SERVER", gateway.URL)
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(17*time.Second, func() { // kubectl's command does not know ctx
		cancel()
		gateway.CloseClientConnections()
		gateway.Close()
	})
	var commands sync.WaitGroup
	for _, line := range []string{"diagnose -A", "changes -A -w", "get pods -A", "get pods -w --plain", "get pods --at 1m", "sheet " + t.TempDir() + "/pods.xlsx pods"} {
		commands.Go(func() {
			var out, errs bytes.Buffer
			Main(ctx, append([]string{"watchkeeper"}, strings.Fields(line)...), strings.NewReader(""), &out, &errs)
			if want := gateway.URL + " has not answered since "; !strings.HasPrefix(errs.String(), want) {
				t.Errorf("watchkeeper %s: %q does not begin with %q", line, errs.String(), want)
			}
		})
	}
	commands.Wait()
}

// TestSilenceMeanwhile: an outage that begins after a command has asked for the index is
// reported, too.
func TestSilenceMeanwhile(t *testing.T) {
	asked := 0
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == historyAPI+"/changes" {
			w.Header().Set("Warning", `299 - "the API server has not answered since 2026-01-31T15:04:05Z: nothing newer is known"`)
		} else {
			asked++
		}
		_, _ = fmt.Fprintf(w, `{"upstream":{"answers":%t,"lastContact":"2026-01-31T15:04:05Z"}}`, asked == 1)
	}))
	defer gateway.Close()
	var out bytes.Buffer
	c := &client{streams: streams{err: &out}, server: gateway.URL}
	if h, err := c.history(t.Context()); err != nil || !h.Upstream.Answers {
		t.Fatal(h, err)
	}
	if err := c.get(t.Context(), historyAPI+"/changes", nil, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	utc := zone{utc: true}
	c.reportSilence(t.Context(), time.Date(2026, 1, 31, 15, 5, 0, 0, time.UTC), utc.stamp)
	if want := "the API server has not answered since 2026-01-31 15:04:05Z: nothing newer is known\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestSilenceOfAPIServer: a command says that the API server does not answer, if it reads
// what is after the last contact.
func TestSilenceOfAPIServer(t *testing.T) {
	utc := zone{utc: true}
	last := time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)
	for reason, want := range map[string]string{
		"upstream 127.0.0.1:6443: connection refused": "the API server has not answered since 2026-01-31 15:04:05Z: nothing newer is known\n",
		"the API server is not ready: [-]etcd failed": "changes since 2026-01-31 15:04:05Z may be missing: the API server is not ready: [-]etcd failed\n",
	} {
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"upstream":{"answers":false,"reason":"` + reason + `","lastContact":"2026-01-31T15:04:05Z"}}`))
		}))
		defer gateway.Close()
		var out bytes.Buffer
		c := &client{streams: streams{err: &out}, server: gateway.URL}
		c.reportSilence(t.Context(), last, utc.stamp)
		if out.Len() > 0 {
			t.Errorf("up to the last contact: %q", out.String())
		}
		c.reportSilence(t.Context(), last.Add(time.Second), utc.stamp)
		if got := out.String(); got != want {
			t.Errorf("after it: %q, want %q", got, want)
		}
	}
}
