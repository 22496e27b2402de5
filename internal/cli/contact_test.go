// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSilenceOfAPIServer: a command says once that the API server does not answer.
func TestSilenceOfAPIServer(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"upstream":{"answers":false,"lastContact":"2026-01-31T15:04:05Z"}}`))
	}))
	defer gateway.Close()
	var out bytes.Buffer
	c := &client{streams: streams{err: &out}, server: gateway.URL}
	for range 2 {
		if _, err := c.history(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "has not answered since 2026-01-31T") && !strings.Contains(got, "has not answered since 2026-02-01T") {
		t.Errorf("stderr %q", got)
	}
}
