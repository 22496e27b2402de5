// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package loadgen generates events at a rate that no real API server reaches. It
// starts a fake API server in its own process, and a gateway in front of it.
package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

// Timeout is how long WaitMetric waits.
const Timeout = 3 * time.Minute

// A Generator is a fake API server and a gateway in front of it. Its methods, except
// Stop, may be called concurrently.
type Generator struct {
	URL     string // of the fake API server
	Gateway *clustertest.Gateway
	Dir     string // the gateway's --data-dir; "" without recording

	ctx context.Context
	end func() // of the fake API server
}

// Options configure a Generator.
type Options struct {
	Pods       int
	Record     string   // the gateway's --record; "" records nothing
	ServerArgs []string // additional arguments of the fake API server
}

// Start starts a generator. This program must serve the fake API server when it runs
// with -fakeapi (see fakeprocess.StartSelf). none, a cluster without a control plane,
// starts the gateway. The caller calls Stop.
func Start(ctx context.Context, none *clustertest.Cluster, o Options) (*Generator, error) {
	addresses, end, err := fakeprocess.StartSelf(append([]string{"-fakeapi", strconv.Itoa(o.Pods)}, o.ServerArgs...)...)
	if err != nil {
		return nil, err
	}
	g := &Generator{URL: addresses["http"].URL, ctx: ctx, end: end}
	flags := []string{"--server", g.URL, "--shutdown-grace", "1s"}
	if o.Record != "" {
		if g.Dir, err = os.MkdirTemp("", "watchkeeper-bench-"); err != nil {
			end()
			return nil, err
		}
		flags = append(flags, "--record", o.Record, "--history-max-age", "24h")
	}
	if g.Gateway, err = none.Gateway(append(flags, "--data-dir", g.Dir)...); err != nil {
		g.Stop()
		return nil, err
	}
	return g, nil
}

// Stop ends both processes and deletes the history.
func (g *Generator) Stop() {
	if g.Gateway != nil {
		g.Gateway.Terminate()
	}
	g.end()
	if g.Dir != "" {
		os.RemoveAll(g.Dir)
	}
}

// WaitMetric waits until a metric of the gateway has at least a value.
func (g *Generator) WaitMetric(metric string, minValue float64) error {
	var last float64
	for start := time.Now(); ; time.Sleep(25 * time.Millisecond) {
		v, err := process.Metrics(http.DefaultClient, g.Gateway.Admin, metric)
		if err == nil {
			if last = v[0]; last >= minValue {
				return nil
			}
		}
		if time.Since(start) > Timeout || g.ctx.Err() != nil {
			return fmt.Errorf("%s is %.0f after %v, less than %.0f: %w", metric, last, Timeout, minValue, err)
		}
	}
}

// Generate makes the fake API server at a URL change n Pods, rate per second, or all at
// once if the rate is 0. It returns the RV of the last change.
func Generate(ctx context.Context, server string, n int, rate float64) (uint64, error) {
	url := fmt.Sprintf("%s/bench/events?n=%d", server, n)
	if rate > 0 {
		url += fmt.Sprintf("&rate=%g", rate)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return 0, fmt.Errorf("fake API server: %s %s", resp.Status, text)
	}
	var mark fakeapi.Mark
	if err := json.NewDecoder(resp.Body).Decode(&mark); err != nil {
		return 0, err
	}
	return strconv.ParseUint(mark.ResourceVersion, 10, 64)
}
