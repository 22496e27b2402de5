// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

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
