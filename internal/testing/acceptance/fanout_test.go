// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// TestOneUpstreamWatch opens a thousand watches of one resource. The API server then has one
// watch.
func TestOneUpstreamWatch(t *testing.T) {
	ns := namespace(t)
	upstream := countingProxy(t)
	mine, err := cluster.Gateway("--kubeconfig", upstream.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Terminate()

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
	// One that began with a list is replaced by one that continues it.
	eventually(t, fmt.Sprintf("one watch of configmaps at the API server, after %d were opened", n), func() bool {
		return upstream.Watches("configmaps") == 1
	})
	configMap(t, ns, "thousand", "red")
	for i := range n {
		if !<-got {
			t.Fatalf("watch %d of %d ended without the event", i, n)
		}
	}
	if watches := upstream.Watches("configmaps"); watches != 1 {
		t.Errorf("%d watches of configmaps at the API server", watches)
	}
}

// An upstreamProxy is a proxy in front of the API server. It counts, where the API server's own
// figures have the watches of everybody in the cluster, which come and go.
type upstreamProxy struct {
	*faultproxy.Proxy
	kubeconfig string
}

func countingProxy(t *testing.T) upstreamProxy {
	t.Helper()
	return proxyOf(t, func(string, faultproxy.Kind, int) faultproxy.Fault { return faultproxy.Fault{Name: faultproxy.None} })
}

func proxyOf(t *testing.T, draw func(resource string, kind faultproxy.Kind, n int) faultproxy.Fault) upstreamProxy {
	t.Helper()
	p, err := faultproxy.Start(faultproxy.Options{Upstream: cluster.Config, Draw: draw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	return upstreamProxy{p, path}
}
