// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// multiwatch opens a multiwatch of a gateway, for three minutes at most.
func multiwatch(t *testing.T, gateway string, query url.Values) *watchread.Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/watchkeeper/v1/multiwatch?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return watchread.Lines(resp.Body)
}

// TestMultiwatch opens a multiwatch of watches that are served from timelines, one
// that is passed through (of Events, from now on), and one that the API server
// refuses.
func TestMultiwatch(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	in := "/api/v1/namespaces/" + ns
	watches := url.Values{"watch": {
		in + "/configmaps?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Da",
		in + "/services?watch=1",
		in + "/events?watch=1",
		in + "/nothings?watch=1",
	}}
	lines := multiwatch(t, gw.URL, watches)
	// take reads lines up to the one wanted.
	take := func(want string) {
		t.Helper()
		var seen []string
		for {
			f, err := lines.Next()
			if err != nil {
				t.Fatalf("no %q in %q, then %v", want, seen, err)
			}
			short := fmt.Sprint(f.Watch, " ", f.Type, "  ")
			if f.Object != nil {
				m, err := f.Meta()
				if err != nil {
					t.Fatal(err)
				}
				short = fmt.Sprint(f.Watch, " ", f.Type, " ", m.Kind, " ", m.Name)
				if m.Code != 0 {
					short += fmt.Sprint(m.Code)
				}
			}
			if seen = append(seen, short); short == want {
				return
			}
		}
	}
	take("3 ERROR Status 404")
	take("3 END  ")
	// The other watches show that they are open by an event.
	kubectl(t, "-n", ns, "create", "configmap", "b")
	kubectl(t, "-n", ns, "create", "configmap", "a")
	take("0 ADDED ConfigMap a")
	kubectl(t, "-n", ns, "create", "service", "clusterip", "s", "--tcp=80")
	take("1 ADDED Service s")
	apply(t, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"`+ns+`"},"involvedObject":{"namespace":"`+ns+`"},"reason":"Test"}`)
	take("2 ADDED Event e")
	kubectl(t, "-n", ns, "delete", "configmap", "a", "b")
	take("0 DELETED ConfigMap a")

	refused := curl(t, gw.URL+"/watchkeeper/v1/multiwatch?watch=/api/v1/pods")
	var s struct{ Kind, Reason string }
	if err := json.Unmarshal([]byte(refused), &s); err != nil {
		t.Fatal(err)
	}
	if s.Kind != "Status" || s.Reason != "BadRequest" {
		t.Errorf("a list among the watches: %s", refused)
	}
}
