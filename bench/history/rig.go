// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/fanout/process"
	"github.com/watchkeeper/watchkeeper/bench/fanout/streams"
	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
	"github.com/watchkeeper/watchkeeper/bench/informer/apiserver"
	"github.com/watchkeeper/watchkeeper/internal/clustertest"
)

// patience is how long anything is waited for.
const patience = 2 * time.Minute

const pods = "/api/v1/pods"

// fromNow is the query of a watch that begins now.
const fromNow = "?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

// A rig is what the scenarios share.
type rig struct {
	ctx      context.Context
	sizes    sizes
	tally    *tally.Tally
	progress io.Writer
	start    time.Time
	scenario string
	none     *clustertest.Cluster // of the gateways in front of cannons
}

func (r *rig) close() {
	if r.none != nil {
		r.none.Close()
	}
}

// say reports progress.
func (r *rig) say(format string, args ...any) {
	fmt.Fprintf(r.progress, "%5.0fs  %s: %s\n", time.Since(r.start).Seconds(), r.scenario, fmt.Sprintf(format, args...))
}

// A gun is a synthetic API server in a process of its own, and a gateway in
// front of it.
type gun struct {
	*rig
	url     string // of the cannon
	gateway *clustertest.Gateway
	dir     string // --data-dir; "" without recording
	end     func() // of the cannon
}

// load starts a cannon, and a gateway that records or does not. The caller calls
// stop.
func (r *rig) load(pods int, record bool) (g *gun, err error) {
	if r.none == nil {
		if r.none, err = clustertest.Without(); err != nil {
			return nil, err
		}
	}
	addresses, end, err := apiserver.StartSelf(pods)
	if err != nil {
		return nil, err
	}
	g = &gun{rig: r, url: addresses["http"].URL, end: end}
	flags := []string{"--server", g.url, "--shutdown-grace", "1s", "--data-dir"}
	if record {
		if g.dir, err = os.MkdirTemp("", "watchkeeper-bench-"); err != nil {
			end()
			return nil, err
		}
		flags = append(flags, g.dir, "--record", "pods", "--history-max-age", "24h")
	} else {
		flags = append(flags, "")
	}
	if g.gateway, err = r.none.Gateway(flags...); err != nil {
		end()
		return nil, err
	}
	if err := g.warm(); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

// stop ends both and removes what was recorded.
func (g *gun) stop() {
	g.gateway.Terminate()
	g.end()
	if g.dir != "" {
		os.RemoveAll(g.dir)
	}
}

// warm waits until the gateway has the Pods, and records them.
func (g *gun) warm() error {
	if err := g.fetch(g.gateway.URL+pods+"?resourceVersion=0", io.Discard); err != nil {
		return err
	}
	if err := g.until("watchkeeper_resource_synced", 1); err != nil {
		return err
	}
	if g.dir == "" {
		return nil
	}
	return g.until("watchkeeper_history_head_rv", 1)
}

// until waits for a metric of the gateway's to have a value, or more.
func (g *gun) until(metric string, least float64) error {
	var last float64
	for start := time.Now(); ; time.Sleep(25 * time.Millisecond) {
		v, err := process.Metrics(http.DefaultClient, g.gateway.Admin, metric)
		if err == nil {
			if last = v[0]; last >= least {
				return nil
			}
		}
		if time.Since(start) > patience || g.ctx.Err() != nil {
			return fmt.Errorf("%s is %.0f after %v, and not %.0f: %w", metric, last, patience, least, err)
		}
	}
}

// fetch copies the answer to a GET.
func (g *gun) fetch(url string, to io.Writer) error { return g.get(url, "application/json", to) }

// timed reads past the answer to a GET, and returns its size and how long it
// took to the end.
func (g *gun) timed(url, accept string) (n int64, wall time.Duration, err error) {
	var size counter
	start := time.Now()
	err = g.get(url, accept, &size)
	return int64(size), time.Since(start), err
}

// A counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func (g *gun) get(url, accept string, to io.Writer) error {
	req, err := http.NewRequestWithContext(g.ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s: %s %s", url, resp.Status, text)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}

// fire has the cannon make n changes, rate in a second, and returns the RV of
// the last when they are made.
func (g *gun) fire(n int, rate float64) (uint64, error) {
	req, err := http.NewRequestWithContext(g.ctx, http.MethodPost, fmt.Sprintf("%s/bench/events?n=%d&rate=%g", g.url, n, rate), nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("cannon: %s", resp.Status)
	}
	var mark apiserver.Mark
	if err := json.NewDecoder(resp.Body).Decode(&mark); err != nil {
		return 0, err
	}
	return strconv.ParseUint(mark.ResourceVersion, 10, 64)
}

// lists returns how often the Pods were listed at the cannon.
func (g *gun) lists() (n int, err error) {
	var b strings.Builder
	if err := g.fetch(g.url+"/bench/lists", &b); err != nil {
		return 0, err
	}
	return n, json.Unmarshal([]byte(b.String()), &n)
}

// watch opens watches at a server.
func (g *gun) watch(url, path string, n int, observe func(int, uint64, time.Time)) (*streams.Set, error) {
	o := streams.Options{Observe: observe}
	for range n {
		o.Paths = append(o.Paths, path)
	}
	return streams.Open(g.ctx, streams.Target{Address: strings.TrimPrefix(url, "http://"), Protocol: streams.HTTP1}, o)
}

// store is the directory of the one cluster that was recorded.
func (g *gun) store() (dir, cluster string, err error) {
	found, err := filepath.Glob(filepath.Join(g.dir, "*-*-*"))
	if err != nil || len(found) != 1 {
		return "", "", fmt.Errorf("%d clusters in %s: %w", len(found), g.dir, err)
	}
	return found[0], filepath.Base(found[0]), nil
}
