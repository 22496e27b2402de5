// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/fanout/process"
	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
	"github.com/watchkeeper/watchkeeper/bench/informer/apiserver"
	"github.com/watchkeeper/watchkeeper/internal/clustertest"
)

// patience is how long anything is waited for.
const patience = 3 * time.Minute

// A rig is what the scenarios share.
type rig struct {
	ctx      context.Context
	sizes    sizes
	tally    *tally.Tally
	progress io.Writer
	start    time.Time
	none     *clustertest.Cluster // of the gateways
	browser  *browser
	failed   []error
}

func (r *rig) close() {
	if r.none != nil {
		r.none.Close()
	}
}

// say reports progress.
func (r *rig) say(format string, args ...any) {
	fmt.Fprintf(r.progress, "%5.0fs  %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}

// A cluster is a synthetic API server, a gateway in front of it, and a meter in
// front of that.
type cluster struct {
	*rig
	cannon  string // its URL
	gateway *clustertest.Gateway
	meter   *meter
	dir     string // of what is recorded; "" for nothing
	end     func() // of the cannon
}

// load starts a cluster, recorded or not, and waits until the gateway has it.
// The caller calls stop.
func (r *rig) load(nodes, pods int, record bool) (c *cluster, err error) {
	if r.none == nil {
		if r.none, err = clustertest.Without(); err != nil {
			return nil, err
		}
	}
	addresses, end, err := apiserver.StartSelf(pods, "-nodes", strconv.Itoa(nodes))
	if err != nil {
		return nil, err
	}
	c = &cluster{rig: r, cannon: addresses["http"].URL, end: end}
	flags := []string{"--server", c.cannon, "--shutdown-grace", "1s", "--data-dir"}
	if record {
		if c.dir, err = os.MkdirTemp("", "watchkeeper-bench-"); err != nil {
			end()
			return nil, err
		}
		flags = append(flags, c.dir, "--record", "pods,nodes", "--history-max-age", "24h")
	} else {
		flags = append(flags, "")
	}
	if c.gateway, err = r.none.Gateway(flags...); err == nil {
		if c.meter, err = newMeter(strings.TrimPrefix(c.gateway.URL, "http://")); err == nil {
			err = c.warm()
		}
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *cluster) stop() {
	if c.meter != nil {
		c.meter.stop()
	}
	if c.gateway != nil {
		c.gateway.Terminate()
	}
	c.end()
	if c.dir != "" {
		os.RemoveAll(c.dir)
	}
}

// warm has the gateway watch both resources.
func (c *cluster) warm() error {
	for _, resource := range []string{"nodes", "pods"} {
		// What the gateway does not have yet it passes through, and the cannon has Tables only.
		req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.gateway.URL+"/api/v1/"+resource+"?resourceVersion=0&limit=1&includeObject=Object", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", resource, resp.Status)
		}
	}
	return c.until("watchkeeper_resource_synced", 2)
}

// until waits for a metric of the gateway's to have a value, or more.
func (c *cluster) until(metric string, least float64) error {
	var last float64
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		v, err := process.Metrics(http.DefaultClient, c.gateway.Admin, metric)
		if err == nil {
			if last = v[0]; last >= least {
				return nil
			}
		}
		if time.Since(start) > patience || c.ctx.Err() != nil {
			return fmt.Errorf("%s is %.0f after %v, and not %.0f: %w", metric, last, patience, least, err)
		}
	}
}

// fire has the cannon make changes at a rate until the returned function is
// called, which returns how many were asked for.
func (c *cluster) fire(rate int) (stop func() error) {
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error, 1)
	go func() { done <- c.shoot(ctx, 1<<30, rate) }()
	return func() error {
		cancel()
		if err := <-done; ctx.Err() == nil {
			return err
		}
		return nil
	}
}

// shoot makes n changes at a rate.
func (c *cluster) shoot(ctx context.Context, n, rate int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/bench/events?n=%d&rate=%d", c.cannon, n, rate), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannon: %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// shot keeps a picture, if pictures are kept.
func (r *rig) shot(name string) error {
	if *shots == "" {
		return nil
	}
	file, err := filepath.Abs(filepath.Join(*shots, name+".png"))
	if err != nil {
		return err
	}
	return r.browser.do("shot", map[string]any{"file": file}, &struct{}{})
}

// scenario runs one, if it is wanted.
func (r *rig) scenario(wanted *regexp.Regexp, name string, run func() error) {
	if !wanted.MatchString(name) || r.ctx.Err() != nil {
		return
	}
	r.say("%s", name)
	if err := run(); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
		r.say("FAIL %v", err)
		r.failed = append(r.failed, err)
	}
}
