// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/watchread"
)

// TestOneUpstreamWatch opens a thousand watches of one resource. The API server
// then counts one watch more; if there are several, one of them does.
func TestOneUpstreamWatch(t *testing.T) {
	ns := namespace(t)
	mine, err := cluster.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Terminate()
	before := settledWatches(t, "configmaps")

	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	const n = 1000
	queries := []string{
		"/api/v1/configmaps?watch=1&resourceVersion=0",
		"/api/v1/configmaps?watch=1",
		"/api/v1/namespaces/" + ns + "/configmaps?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		"/api/v1/configmaps?watch=1&labelSelector=color%3Dred",
	}
	opened, got := make(chan bool, n), make(chan bool, n)
	for i := range n {
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, mine.URL+queries[i%len(queries)], nil)
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				opened <- false
				got <- false
				return
			}
			defer resp.Body.Close()
			opened <- true
			for frames := watchread.Lines(resp.Body); ; {
				f, err := frames.Next()
				if err != nil {
					got <- false
					return
				}
				if f.Type == "ADDED" && bytes.Contains(f.Object, []byte(`"name":"thousand"`)) {
					got <- true
					return
				}
			}
		})
	}
	for range n {
		<-opened
	}
	// A controller that renews its watch is counted twice for a moment.
	eventually(t, fmt.Sprintf("%d watches of configmaps at the API server, after %d were opened", before+1, n), func() bool {
		return upstreamWatches(t, "configmaps") == before+1
	})
	configMap(t, ns, "thousand", "red")
	for i := range n {
		if !<-got {
			t.Fatalf("watch %d of %d ended without the event", i, n)
		}
	}
	t.Logf("%d watches got the event; the API server had %d watches before and %d now", n, before, upstreamWatches(t, "configmaps"))
}

// settledWatches returns upstreamWatches once it has been the same for a while. Watches
// that earlier tests closed may still be counted, and a client whose watch has ended, a
// controller or the shared gateway, opens another after a pause.
func settledWatches(t *testing.T, resource string) int {
	t.Helper()
	n := upstreamWatches(t, resource)
	for since := time.Now(); time.Since(since) < 3*time.Second; {
		if now := upstreamWatches(t, resource); now != n {
			n, since = now, time.Now()
		}
	}
	return n
}

// upstreamWatches returns the API servers' gauge of open watches. It waits before, as callers
// call it until something is so, and each answer with metrics has megabytes.
func upstreamWatches(t *testing.T, resource string) int {
	t.Helper()
	time.Sleep(500 * time.Millisecond)
	client, _ := direct(t)
	total := 0
	for _, up := range apiServers(t) {
		_, body := get(t, client, up+"/metrics")
		total += watchesIn(t, body, resource)
	}
	return total
}

func watchesIn(t *testing.T, metrics, resource string) (total int) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{[^}]*resource="`+resource+`"[^}]*verb="WATCH"[^}]*\} (\d+)`).FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}
