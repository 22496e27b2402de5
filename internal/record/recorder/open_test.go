// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// TestDirectoryMistakes: a directory that will not be usable later either is refused at
// the start, in one line. A disk that is full or fails does not prevent the start.
func TestDirectoryMistakes(t *testing.T) {
	on := func(err error, path string, kinds ...errorfs.OpKind) func(errorfs.Op) error {
		return func(op errorfs.Op) error {
			for _, kind := range kinds {
				if op.Kind == kind && strings.Contains(op.Path, path) {
					return &fs.PathError{Op: "open", Path: op.Path, Err: err}
				}
			}
			return nil
		}
	}
	for _, test := range []struct {
		name     string
		recorded bool // before
		fault    func(errorfs.Op) error
		mistake  error // nil if the start must succeed
	}{
		{"no permission", false, on(syscall.EACCES, "cluster-1", errorfs.OpMkdirAll), ErrDirectory},
		{"no permission to look", false, on(syscall.EACCES, "data", errorfs.OpStat), ErrDirectory},
		{"read-only", false, on(syscall.EROFS, "cluster-1", errorfs.OpMkdirAll), ErrDirectory},
		{"no directory", false, on(syscall.ENOENT, "cluster-1", errorfs.OpMkdirAll), ErrDirectory},
		{"another user's", true, on(syscall.EACCES, "cluster-1/", errorfs.OpCreate, errorfs.OpReuseForWrite), ErrDirectory},
		{"another user's, without a right to read", true, on(syscall.EPERM, "cluster-1/", errorfs.OpCreate, errorfs.OpOpen), ErrDirectory},
		{"full at first", false, on(syscall.ENOSPC, "cluster-1", errorfs.OpMkdirAll), nil},
		{"full", true, on(syscall.ENOSPC, "cluster-1/", errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpFileWrite), nil},
		{"read-only after a failure", true, on(syscall.EROFS, "cluster-1/", errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpFileWrite), nil},
		{"failing", true, on(syscall.EIO, "cluster-1/", errorfs.OpCreate, errorfs.OpOpen), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := newFakeAPI(t)
			var broken atomic.Bool
			disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() {
					return test.fault(op)
				}
				return nil
			}))
			if test.recorded {
				g := api.run(t, api.recorder(t, disk))
				g.recorded(api.write("a", "1"))
				g.stop()
			}
			broken.Store(true)
			r := api.recorder(t, disk)
			defer r.Close()
			err := r.Open(t.Context())
			if !errors.Is(err, test.mistake) {
				t.Errorf("got %v", err)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), "--data-dir: ") || !strings.Contains(err.Error(), "or --data-dir= to record nothing") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

// TestRecordDuringOutage: a gateway that starts while the API server does not answer says that
// the record is kept, if there is one.
func TestRecordDuringOutage(t *testing.T) {
	const kept = "; what is recorded in data is kept, and is served when the API server answers"
	api, disk := newFakeAPI(t), vfs.NewMem()
	for _, recorded := range []bool{false, true} {
		if recorded {
			g := api.run(t, api.recorder(t, disk))
			g.recorded(api.write("a", "1"))
			g.stop()
		}
		api.change(func() { api.down = true })
		r := api.recorder(t, disk)
		if err := r.Open(t.Context()); err != nil {
			t.Error(err)
		}
		if s, _ := r.Status(); s.Recording || strings.HasSuffix(s.Problem, kept) != recorded {
			t.Errorf("recorded %v: %q", recorded, s.Problem)
		}
		r.Close()
		api.change(func() { api.down = false })
	}
}

// closedRecord records on a disk, closes the record, and changes each of its files.
func closedRecord(t *testing.T, api *fakeAPI, disk vfs.FS, change func(path string) error) {
	t.Helper()
	g := api.run(t, api.recorder(t, disk))
	g.recorded(api.write("a", "1"))
	g.stop()
	names, err := disk.List("data/cluster-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := change("data/cluster-1/" + name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewerDirectory: a directory of a newer version is refused, also if only the
// storage library's format is newer.
func TestNewerDirectory(t *testing.T) {
	api, disk := newFakeAPI(t), vfs.NewMem()
	closedRecord(t, api, disk, func(path string) error {
		if !strings.Contains(path, "/marker.format-version.") {
			return nil
		}
		return disk.Rename(path, "data/cluster-1/marker.format-version.000099.999")
	})
	err := api.recorder(t, disk).Open(t.Context())
	if !errors.Is(err, history.ErrNewerFormat) || !strings.Contains(err.Error(), "another --data-dir") {
		t.Errorf("got %v", err)
	}
}

// TestIncompleteDirectory: a copy without empty files is not recorded into, and the error says
// what to do.
func TestIncompleteDirectory(t *testing.T) {
	api, disk := newFakeAPI(t), vfs.NewMem()
	closedRecord(t, api, disk, func(path string) error {
		if !strings.Contains(path, "/marker.") {
			return nil
		}
		return disk.Remove(path)
	})
	r := api.recorder(t, disk)
	defer r.Close()
	err := r.Open(t.Context())
	if s, _ := r.Status(); err != nil || s.Recording || !strings.Contains(s.Problem, "put back a whole copy") {
		t.Errorf("%v, %+v", err, s)
	}
}

// TestOldestMetric: the metrics show since when a resource is recorded.
func TestOldestMetric(t *testing.T) {
	api := newFakeAPI(t)
	g := api.run(t, api.recorder(t, vfs.NewMem()))
	from := g.recorded(api.write("a", "1")).Span().From.At
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(g.r.metrics); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "watchkeeper_history_oldest_timestamp_seconds" {
			m := family.GetMetric()[0]
			if at := int64(math.Round(m.GetGauge().GetValue() * 1000)); at != from.UnixMilli() || m.GetLabel()[0].GetValue() != "pods.v1" {
				t.Errorf("%v, recorded from %v", m, from)
			}
			return
		}
	}
	t.Error("there is no such metric")
}
