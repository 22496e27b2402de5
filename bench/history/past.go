// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/loadgen"
	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

// past measures recording at a high rate, and then reading the record: through the
// gateway, and directly from the store.
func past(r *harness) error {
	c, err := r.load(r.sizes.pods, true)
	if err != nil {
		return err
	}
	defer c.Stop()
	first, err := c.head()
	if err != nil {
		return err
	}
	last, err := c.ingest()
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	for _, step := range []struct {
		name string
		do   func(first, last uint64) error
	}{{"list", c.listPast}, {"versions", c.versions}, {"replay", c.replay}} {
		kept := c.profile(step.name)
		if err := step.do(first, last); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := kept(); err != nil {
			return fmt.Errorf("profile of %s: %w", step.name, err)
		}
	}
	c.Gateway.Terminate()
	if err := c.stored(first, last); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// profile keeps a CPU profile of the gateway's next seconds with -profiles.
func (c *cluster) profile(name string) (kept func() error) {
	if *profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		f, err := os.Create(filepath.Join(*profiles, name+".pprof"))
		if err == nil {
			err = errors.Join(c.fetch(fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", c.Gateway.Admin, profileSeconds), f), f.Close())
		}
		done <- err
	}()
	return func() error { return <-done }
}

// head returns the RV up to which the gateway has recorded everything.
func (c *cluster) head() (uint64, error) {
	var b strings.Builder
	if err := c.fetch(c.Gateway.URL+pods+"?resourceVersion=0&limit=1&fieldSelector=metadata.name=none", &b); err != nil {
		return 0, err
	}
	var list struct {
		Metadata struct {
			ResourceVersion uint64 `json:",string"`
		}
	}
	return list.Metadata.ResourceVersion, json.Unmarshal([]byte(b.String()), &list)
}

// ingest makes the gateway record all events as fast as it can, and returns the RV of
// the last one.
func (c *cluster) ingest() (last uint64, err error) {
	n := c.sizes.events
	c.Say("%d events, %.0f/s", n, c.sizes.rate)
	before, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if last, err = c.generate(n, c.sizes.rate); err != nil {
		return 0, err
	}
	fired := time.Since(start)
	if err := c.WaitMetric("watchkeeper_history_head_rv", float64(last)); err != nil {
		return 0, err
	}
	took := time.Since(start)
	after, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return 0, err
	}
	gaps, err := process.Metrics(http.DefaultClient, c.Gateway.Admin, "watchkeeper_history_gaps_total")
	if err != nil {
		return 0, err
	}
	rss, err := process.RSS(c.Gateway.PID())
	if err != nil {
		return 0, err
	}
	c.report.Add("Ingest", n,
		report.Value{Of: float64(n) / took.Seconds(), Unit: "events/s"},
		report.Value{Of: float64(n) / fired.Seconds(), Unit: "fired/s"},
		report.Value{Of: float64(after-before) / float64(n), Unit: "cpu-ns/event"},
		report.Value{Of: gaps[0], Unit: "gaps"},
		report.Value{Of: rss, Unit: "rss-B"})
	return last, nil
}

// listPast lists the Pods at moments between the first and the last event, and, for
// comparison, the present ones, which are in memory.
func (c *cluster) listPast(first, last uint64) error {
	for _, form := range []struct {
		name, accept string
		past         bool
	}{
		{"json", "application/json", true},
		{"table", "application/json;as=Table;g=meta.k8s.io;v=v1", true},
		{"present", "application/json", false},
	} {
		for i := range 5 {
			url := c.Gateway.URL + pods + "?resourceVersion=0"
			if form.past {
				rv := first + (last-first)*uint64(i+1)/6
				c.Say("list at %d, %s", rv, form.name)
				url = fmt.Sprintf("%s/at/rv:%d%s", c.Gateway.URL, rv, pods)
			}
			before, err := process.CPU(c.Gateway.PID())
			if err != nil {
				return err
			}
			n, wall, err := c.timed(url, form.accept)
			if err != nil {
				return err
			}
			if least := int64(c.sizes.pods * 80); n < least {
				return fmt.Errorf("a list of %d bytes", n)
			}
			after, err := process.CPU(c.Gateway.PID())
			if err != nil {
				return err
			}
			c.report.Add("ListPast/form="+form.name, 1,
				report.Value{Of: float64(wall), Unit: "ns/op"},
				report.Value{Of: float64(after - before), Unit: "cpu-ns/op"},
				report.Value{Of: float64(n), Unit: "B"})
		}
	}
	return nil
}

// versions requests the versions of single Pods.
func (c *cluster) versions(_, _ uint64) error {
	for i := range 20 {
		p := podOf(i * c.sizes.pods / 20)
		n, wall, err := c.timed(fmt.Sprintf("%s/watchkeeper/v1/history/versions/api/v1/namespaces/%s/pods/%s?limit=1000", c.Gateway.URL, p.Namespace(), p.Name()), "application/json")
		if err != nil {
			return err
		}
		c.report.Add("Versions/of=http", 1, report.Value{Of: float64(wall), Unit: "ns/op"}, report.Value{Of: float64(n), Unit: "B"})
	}
	return nil
}

// replay watches from the first event to the last.
func (c *cluster) replay(first, last uint64) error {
	c.Say("a watch from %d", first)
	before, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return err
	}
	start := time.Now()
	set, err := c.watch(c.Gateway.URL, fmt.Sprintf("%s?watch=1&resourceVersion=%d", pods, first), 1, nil)
	if err != nil {
		return err
	}
	defer set.Close()
	if _, err := set.WaitEach(int64(last-first), loadgen.Timeout); err != nil {
		return err
	}
	took := time.Since(start)
	after, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return err
	}
	c.report.Add("Replay/of=http", int(last-first),
		report.Value{Of: float64(last-first) / took.Seconds(), Unit: "events/s"},
		report.Value{Of: float64(after-before) / float64(last-first), Unit: "cpu-ns/event"})
	return nil
}

// stored measures reading from the store after the gateway has ended, and the size on
// disk after compaction.
func (c *cluster) stored(first, last uint64) error {
	dir, cluster, err := c.store()
	if err != nil {
		return err
	}
	before, err := size(dir)
	if err != nil {
		return err
	}
	start := time.Now()
	s, err := history.Open(dir, history.Options{Cluster: cluster})
	if err != nil {
		return err
	}
	opened := time.Since(start)
	err = c.readStore(s, first, last)
	c.Say("compacting")
	if err == nil {
		err = s.Compact(c.ctx)
	}
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	after, err := size(dir)
	if err != nil {
		return err
	}
	n := float64(c.sizes.events)
	c.report.Add("Disk", c.sizes.events,
		report.Value{Of: after / n, Unit: "B/event"},
		report.Value{Of: before / n, Unit: "uncompacted-B/event"},
		report.Value{Of: float64(opened), Unit: "open-ns"})
	return nil
}

func (c *cluster) readStore(s *history.Store, first, last uint64) error {
	streams := s.Streams(kube.Resource{Version: "v1", Name: "pods"})
	if len(streams) != 1 {
		return fmt.Errorf("%d streams", len(streams))
	}
	st := streams[0]
	for i := range 3 {
		start, n := time.Now(), 0
		for _, err := range st.List(c.ctx, first+(last-first)*uint64(i+1)/4, "", "") {
			if err != nil {
				return err
			}
			n++
		}
		if n != c.sizes.pods {
			return fmt.Errorf("%d Pods of %d", n, c.sizes.pods)
		}
		c.report.Add("ListPast/form=store", 1, report.Value{Of: float64(time.Since(start)), Unit: "ns/op"})
	}
	for i := range 20 {
		start := time.Now()
		for _, err := range st.Versions(c.ctx, podOf(i*c.sizes.pods/20), 0) {
			if err != nil {
				return err
			}
		}
		c.report.Add("Versions/of=store", 1, report.Value{Of: float64(time.Since(start)), Unit: "ns/op"})
	}
	start, n := time.Now(), 0
	for _, err := range st.Events(c.ctx, first, last) {
		if err != nil {
			return err
		}
		n++
	}
	if n != int(last-first) {
		return fmt.Errorf("%d events of %d", n, last-first)
	}
	c.report.Add("Replay/of=store", n, report.Value{Of: float64(n) / time.Since(start).Seconds(), Unit: "events/s"})
	return c.ctx.Err()
}

// podOf returns the key of a Pod of the fake API server.
func podOf(i int) kube.Key {
	p := synthetic.Pod(i)
	return kube.MakeKey(p.Namespace, p.Name)
}

// size returns the bytes of the files in a directory.
func size(dir string) (sum float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += float64(info.Size())
		}
		return err
	})
	return sum, err
}
