// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestCompareUnderChurn sends the same lists and watches to the API server and to
// the gateway while Pods change, and compares the responses document by document,
// byte for byte. WATCHKEEPER_COMPARE_ROUNDS is how often it sends the lists.
func TestCompareUnderChurn(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, underLoad)
	stop := load(t)
	client, up := direct(t)
	get(t, http.DefaultClient, gw.URL+"/api/v1/pods") // makes the gateway watch Pods

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	from, wants, gots := recordBoth(ctx, t, &wg, gw.URL, false)

	lists := 0
	for range clustertest.FromEnv(t, "WATCHKEEPER_COMPARE_ROUNDS", 6) {
		churned(t, 30)
		_, rv := listState(t, "/api/v1/pods?limit=1")
		for _, q := range podQueries {
			for _, page := range []string{"", "&limit=7"} {
				query := fmt.Sprintf("%s&resourceVersion=%d&resourceVersionMatch=Exact%s", q, rv, page)
				wantCode, want := get(t, client, up+query)
				gotCode, got := get(t, http.DefaultClient, gw.URL+query)
				if wantCode != gotCode || want != got {
					t.Errorf("%s:\n%d %.300s\n%d %.300s", query, wantCode, want, gotCode, got)
				}
				lists++
			}
		}
	}
	eventually(t, "1,500 events", func() bool { return received(wants) >= 1500 })
	stop()
	to := mark(t)
	waitForAll(t, append(wants, gots...), to)
	events := 0
	for i, want := range wants {
		w, g := want.texts(from, to), gots[i].texts(from, to)
		if d := difference(w, g); d != "" {
			t.Errorf("%s: %s", want.name, d)
		}
		if gots[i].ends > 0 || gots[i].err != nil {
			t.Errorf("%s ended: %v", gots[i].name, gots[i].err)
		}
		events += len(w)
	}
	if events < 1000 {
		t.Errorf("only %d events: too few to show anything", events)
	}
	t.Logf("%d lists and %d watch events are the same", lists, events)
	_, body := get(t, http.DefaultClient, gw.Admin+"/metrics")
	if !strings.Contains(body, `watchkeeper_requests_total{code="200",source="cache",verb="list"}`) {
		t.Error("no list was served from the cache")
	}
}

// received counts the events of recordings.
func received(all []*recording) (n int) {
	for _, r := range all {
		r.mu.Lock()
		n += len(r.frames)
		r.mu.Unlock()
	}
	return n
}
