// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/loadgen"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const pods = "/api/v1/pods"

// fromNow is the query of a watch that begins now.
const fromNow = "?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

// A harness has the state that the scenarios share.
type harness struct {
	ctx    context.Context
	sizes  sizes
	report *report.Report
	report.Log
	none *clustertest.Cluster // starts gateways in front of fake API servers; it has no control plane
}

func (r *harness) close() {
	if r.none != nil {
		r.none.Close()
	}
}

// A cluster is a fake API server and a gateway in front of it, with or without
// recording.
type cluster struct {
	*harness
	*loadgen.Generator
}

// load starts a cluster, and waits until the gateway has cached the Pods. The caller
// calls Stop.
func (r *harness) load(n int, record bool) (c *cluster, err error) {
	if r.none == nil {
		if r.none, err = clustertest.Without(); err != nil {
			return nil, err
		}
	}
	o := loadgen.Options{Pods: n}
	if record {
		o.Record = "pods"
	}
	g, err := loadgen.Start(r.ctx, r.none, o)
	if err != nil {
		return nil, err
	}
	c = &cluster{harness: r, Generator: g}
	if err := c.warm(); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// warm waits until the gateway has cached the Pods and, if it records, recorded them.
func (c *cluster) warm() error {
	if err := c.fetch(c.Gateway.URL+pods+"?resourceVersion=0", io.Discard); err != nil {
		return err
	}
	if err := c.WaitMetric("watchkeeper_resource_synced", 1); err != nil {
		return err
	}
	if c.Dir == "" {
		return nil
	}
	return c.WaitMetric("watchkeeper_history_head_rv", 1)
}

// fetch copies the body of the answer to a GET.
func (c *cluster) fetch(url string, to io.Writer) error { return c.get(url, "application/json", to) }

// timed reads and drops the body of the answer to a GET. It returns the size, and the
// time until its end.
func (c *cluster) timed(url, accept string) (n int64, wall time.Duration, err error) {
	var size counter
	start := time.Now()
	err = c.get(url, accept, &size)
	return int64(size), time.Since(start), err
}

// A counter counts the bytes that are written to it.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

// plain accepts no compression: the client would decompress on the cores that the
// gateway uses.
var plain = &http.Client{Transport: &http.Transport{DisableCompression: true}}

func (c *cluster) get(url, accept string, to io.Writer) error {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", accept)
	resp, err := plain.Do(req)
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

// generate makes the fake API server change n Pods, rate per second, and returns the RV
// of the last change.
func (c *cluster) generate(n int, rate float64) (uint64, error) {
	return loadgen.Generate(c.ctx, c.URL, n, rate)
}

// lists returns the number of LISTs of Pods that the fake API server received.
func (c *cluster) lists() (n int, err error) {
	var b strings.Builder
	if err := c.fetch(c.URL+"/bench/lists", &b); err != nil {
		return 0, err
	}
	return n, json.Unmarshal([]byte(b.String()), &n)
}

// watch opens watches at a server.
func (c *cluster) watch(url, path string, n int, observe func(int, uint64, time.Time)) (*streams.Set, error) {
	o := streams.Options{Observe: observe}
	for range n {
		o.Paths = append(o.Paths, path)
	}
	return streams.Open(c.ctx, streams.Target{Address: strings.TrimPrefix(url, "http://"), Protocol: streams.HTTP1}, o)
}

// store returns the directory and the name of the only recorded cluster.
func (c *cluster) store() (dir, cluster string, err error) {
	found, err := filepath.Glob(filepath.Join(c.Dir, "*-*-*"))
	if err != nil || len(found) != 1 {
		return "", "", fmt.Errorf("%d clusters in %s: %w", len(found), c.Dir, err)
	}
	return found[0], filepath.Base(found[0]), nil
}
