// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// kills returns how many kills a test makes: WATCHKEEPER_KILLS, or 2.
func kills(t *testing.T) int {
	t.Helper()
	return int(clustertest.FromEnv(t, "WATCHKEEPER_KILLS", 2))
}

// TestUpstreamKilled kills the API server repeatedly under open watches and a
// load. No stream may end, no event may come twice or out of order, and in the end
// all clients have to hold the API server's state.
func TestUpstreamKilled(t *testing.T) {
	inStage(t, loadedOutages)
	outages[loadedOutages].Ready()
	stop := load(t)
	get(t, http.DefaultClient, gw.URL+"/api/v1/pods")

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var all []*recording
	starts := map[*recording]map[string]uint64{}
	from := map[*recording]uint64{}
	for i := range 2 {
		for _, q := range podQueries {
			state, rv := listState(t, q)
			r := record(ctx, &wg, &recording{name: fmt.Sprint(i, " ", q), client: http.DefaultClient, url: gw.URL + q}, rv)
			all, starts[r], from[r] = append(all, r), state, rv
		}
	}
	for range kills(t) {
		churned(t, 100)
		outage(t, loadedOutages, func() {
			if code, _ := get(t, http.DefaultClient, gw.URL+"/api/v1/pods?resourceVersion=0"); code != 200 {
				t.Errorf("a cached read while the API server is down: %d", code)
			}
			// A balancer in front of API servers that are down answers itself.
			code, _ := get(t, http.DefaultClient, gw.URL+"/api/v1/pods")
			if balanced := len(apiServers(t)) > 1; code != 503 && !(balanced && code == 502) {
				t.Errorf("a consistent read while the API server is down: %d", code)
			}
		})
	}
	churned(t, 100)
	stop()
	events := 0
	for _, r := range all {
		var want map[string]uint64
		eventually(t, "the same state as the API server's at "+r.name, func() bool {
			want, _ = listState(t, r.url[len(gw.URL):])
			return maps.Equal(want, r.fold(t, starts[r], from[r]))
		})
		if r.ends > 0 || r.err != nil {
			t.Errorf("%s: %d streams ended, %v", r.name, r.ends, r.err)
		}
		events += len(r.frames)
	}
	t.Logf("%d events to %d watches, through %d kills of the API server", events, len(all), kills(t))
}

// TestGatewayKilled kills the gateway repeatedly. Clients that resume from their
// last RV have to receive exactly the events of a watch of the API server: no gap,
// no duplicate.
func TestGatewayKilled(t *testing.T) {
	inStage(t, underLoad)
	mine, err := cluster.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Kill()
	stop := load(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	from, wants, gots := recordBoth(ctx, t, &wg, mine.URL, true)
	for range kills(t) {
		churned(t, 50)
		mine.Kill()
		churned(t, 30)
		if err := mine.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	churned(t, 100)
	stop()
	to := mark(t)
	waitForAll(t, append(wants, gots...), to)
	events := 0
	for i, want := range wants {
		w := want.texts(from, to)
		if d := difference(w, gots[i].texts(from, to)); d != "" {
			t.Errorf("%s: %s", want.name, d)
		}
		if gots[i].err != nil || gots[i].ends < kills(t) {
			t.Errorf("%s: %d ends, %v", gots[i].name, gots[i].ends, gots[i].err)
		}
		events += len(w)
	}
	t.Logf("%d events to %d watches are the same, through %d kills of the gateway", events, len(gots), kills(t))
}
