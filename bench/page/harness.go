// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/loadgen"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A harness has the state that the scenarios share.
type harness struct {
	ctx      context.Context
	sizes    sizes
	report   *report.Report
	progress io.Writer
	start    time.Time
	none     *clustertest.Cluster // starts gateways; it has no control plane
	browser  *browser
	failed   []error
}

func (r *harness) close() {
	if r.none != nil {
		r.none.Close()
	}
}

// say reports progress.
func (r *harness) say(format string, args ...any) {
	fmt.Fprintf(r.progress, "%5.0fs  %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}

// A cluster is a fake API server, a gateway in front of it, and a meter in front of that.
type cluster struct {
	*harness
	*loadgen.Generator
	meter *meter
}

// load starts a cluster, and waits until the gateway has cached it. The gateway records
// it if record is set. The caller calls stop.
func (r *harness) load(nodes, pods int, record bool) (c *cluster, err error) {
	if r.none == nil {
		if r.none, err = clustertest.Without(); err != nil {
			return nil, err
		}
	}
	o := loadgen.Options{Pods: pods, ServerArgs: []string{"-nodes", strconv.Itoa(nodes)}}
	if record {
		o.Record = "pods,nodes"
	}
	g, err := loadgen.Start(r.ctx, r.none, o)
	if err != nil {
		return nil, err
	}
	c = &cluster{harness: r, Generator: g}
	if c.meter, err = newMeter(strings.TrimPrefix(g.Gateway.URL, "http://")); err == nil {
		err = c.warm()
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
	c.Stop()
}

// warm makes the gateway watch both resources.
func (c *cluster) warm() error {
	for _, resource := range []string{"nodes", "pods"} {
		// The gateway passes the request through until it has synced, and the fake
		// API server serves Tables only.
		req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.Gateway.URL+"/api/v1/"+resource+"?resourceVersion=0&limit=1&includeObject=Object", nil)
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
	return c.WaitMetric("watchkeeper_resource_synced", 2)
}

// generate makes the fake API server change Pods at a rate until stop is called.
func (c *cluster) generate(rate int) (stop func() error) {
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := loadgen.Generate(ctx, c.URL, 1<<30, float64(rate))
		done <- err
	}()
	return func() error {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the fake API server stopped changing Pods: %w", err)
		}
		return nil
	}
}

// shot saves a screenshot if -shots is set.
func (r *harness) shot(name string) error {
	if *shots == "" {
		return nil
	}
	file, err := filepath.Abs(filepath.Join(*shots, name+".png"))
	if err != nil {
		return err
	}
	return r.browser.do("shot", map[string]any{"file": file}, &struct{}{})
}

// scenario runs a scenario if -run selects it.
func (r *harness) scenario(wanted *regexp.Regexp, name string, run func() error) {
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
