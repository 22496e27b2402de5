// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// TestSilence: while the API server does not answer, the index says so, and answers warn
// whose range ends after its last contact.
func TestSilence(t *testing.T) {
	f, g := widgets(t)
	if w := f.get("/changes"); w.Code != http.StatusOK || w.Header().Get("Warning") != "" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if up := ask[api.History](f, "").Upstream; up == nil || !up.Answers || up.LastContact.IsZero() {
		t.Errorf("at first: %+v", up)
	}
	last := f.handler.Upstream.LastAnswer()
	g.down.Store(true)
	if err := f.handler.Upstream.Check(t.Context()); err == nil {
		t.Fatal("the API server answers")
	}
	if up := ask[api.History](f, "").Upstream; up == nil || up.Answers || !up.LastContact.Equal(last) {
		t.Errorf("in the outage: %+v, last contact %v", up, last)
	}
	want := `299 - "the API server has not answered since ` + last.UTC().Format(time.RFC3339)
	for to, warned := range map[string]bool{
		"":                                       true,
		last.Add(time.Hour).Format(time.RFC3339): true,
		last.Add(-time.Hour).Format(time.RFC3339): false,
		"110": false,
	} {
		warning := f.get("/changes?to=" + url.QueryEscape(to)).Header().Get("Warning")
		if strings.HasPrefix(warning, want) != warned || !warned && warning != "" {
			t.Errorf("to %q: %q", to, warning)
		}
	}
}
