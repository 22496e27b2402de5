// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// TestDirectoryMoved: recording stops when the directory is moved away beneath it, and
// begins again in a new one.
func TestDirectoryMoved(t *testing.T) {
	api := newFakeAPI(t)
	r := api.recorder(t, vfs.Default)
	r.opts.Dir = filepath.Join(t.TempDir(), "data")
	g := api.run(t, r)
	before := g.recorded(api.write("a", "1"))
	if err := r.checkPlace(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.opts.Dir, r.opts.Dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	until(t, "a failure", func() bool {
		_, _ = r.Status() // as /readyz
		return testutil.ToFloat64(r.metrics.failures) == 1
	})
	until(t, "another history", func() bool {
		s := r.Store()
		return s != nil && len(s.Streams(pods)) > 0 && s.Streams(pods)[0] != before
	})
	if st := g.recorded(api.write("b", "1")); state(t, st) != "a=1 b=1" {
		t.Errorf("state %q", state(t, st))
	}
	if err := r.checkPlace(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(r.opts.Dir); err != nil {
		t.Fatal(err)
	}
	if err := r.checkPlace(); err != nil && !errors.Is(err, errMoved) { // it may have been made again
		t.Error(err)
	}
	g.stop()
}

// TestMissing: a resource that a pattern selects is not said to be unselected before
// discovery has found it.
func TestMissing(t *testing.T) {
	api := newFakeAPI(t)
	r := api.recorder(t, vfs.NewMem(), "pods", "*.example.com")
	if why := r.Missing(kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}); !strings.Contains(why, "next discovery") {
		t.Errorf("selected: %q", why)
	}
	if why := r.Missing(kube.Resource{Version: "v1", Name: "services"}); why != "" {
		t.Errorf("not selected: %q", why)
	}
	r.problem = errors.New("the disk is full")
	if why := r.Missing(kube.Resource{Version: "v1", Name: "pods"}); why != "the disk is full" {
		t.Errorf("nothing is recorded: %q", why)
	}
}

// TestMissingOutOfService: while discovery of a group fails, as when its aggregated API server is
// down, its resources are said to wait for that, and not for the next discovery.
func TestMissingOutOfService(t *testing.T) {
	api := newFakeAPI(t)
	api.things, api.broken = "v1", "v1"
	g := api.run(t, api.recorder(t, vfs.NewMem(), "pods", "*.example.com"))
	g.recorded(api.write("a", "1"))
	missing := func() string { return g.r.Missing(kube.Resource{Group: "example.com", Version: "v1", Name: "gone"}) }
	until(t, "the failure", func() bool {
		return strings.HasPrefix(missing(), "discovery of example.com/v1 fails, and is tried again within ")
	})
	api.change(func() { api.broken = "" })
	until(t, "the discovery", func() bool { return strings.Contains(missing(), "next discovery") })
}

// TestMetricsBeforeTheCluster: the limit is known from the start, the size is not.
func TestMetricsBeforeTheCluster(t *testing.T) {
	api := newFakeAPI(t)
	r := api.recorder(t, vfs.NewMem())
	r.opts.MaxBytes = 1 << 30
	const want = "# HELP watchkeeper_history_max_bytes Maximum size of the history on disk: see --history-max-bytes.\n" +
		"# TYPE watchkeeper_history_max_bytes gauge\nwatchkeeper_history_max_bytes 1.073741824e+09\n"
	if err := testutil.CollectAndCompare(r.metrics, strings.NewReader(want), "watchkeeper_history_max_bytes", "watchkeeper_history_disk_bytes"); err != nil {
		t.Error(err)
	}
}
