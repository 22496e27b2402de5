// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// testFull fills a disk with full, opens the store on it, and frees space with room.
func testFull(t *testing.T, dir string, opts Options, full, room func()) {
	t.Helper()
	m := newModel(rand.New(rand.NewPCG(9, 9)), 100, 1_000_000)
	s := must(Open(dir, opts))
	st := must(s.Stream(pods))
	var first []*scan.Object
	for _, o := range m.now {
		first = append(first, o)
	}
	if err := st.Begin(podForm, slices.Values(first), m.rv, ms(m.clock)); err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		for range 20 {
			if err := st.Append(m.batch(1), m.rv, ms(m.clock)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	full()
	var log strings.Builder
	opts.Logger = testLog(&log)
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatalf("the store cannot be opened on a full disk: %v", err)
	}
	st = must(s.Stream(pods))
	for range 2 {
		checkAll(t, m, st)
		if err := s.Err(); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(log.String(), "opened read-only") {
			t.Errorf("Err is %v, and the log %s", err, log.String())
		}
		if err := st.Append(nil, m.rv, ms(m.clock)); !errors.Is(err, ErrFailed) {
			t.Errorf("an append: %v", err)
		}
		if err := s.Recover(); !errors.Is(err, ErrFailed) {
			t.Errorf("recovered on a full disk: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing a read-only store: %v", err)
	}
	s = must(Open(dir, opts))
	st = must(s.Stream(pods))
	room()
	if err := s.Recover(); err != nil {
		t.Fatalf("not writable with free space: %v", err)
	}
	write()
	checkAll(t, m, st)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenFull: a store on a full disk is opened read-only, and becomes writable when
// there is space.
func TestOpenFull(t *testing.T) {
	t.Parallel()
	var isFull atomic.Bool
	fs := &faultFS{FS: vfs.NewMem(), before: func() error {
		if isFull.Load() {
			return syscall.ENOSPC
		}
		return nil
	}}
	testFull(t, "history", Options{Cluster: "c", FS: fs}, func() { isFull.Store(true) }, func() { isFull.Store(false) })

	dir, unmount, err := smallDisk(8 << 20)
	if err != nil {
		t.Logf("tested with injected failures only, since no small disk can be mounted: %v", err)
		return
	}
	defer unmount()
	t.Log("tested with injected failures, and on a small disk")
	ballast := filepath.Join(dir, "ballast")
	fill := func() {
		f := must(os.Create(ballast))
		defer f.Close()
		for size := 1 << 20; size > 0; {
			if _, err := f.Write(make([]byte, size)); err != nil {
				size /= 2
			}
		}
	}
	testFull(t, filepath.Join(dir, "history"), Options{Cluster: "c", memTableSize: 64 << 10, minFreeDisk: 512 << 10}, fill, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
	testSmallDisk(t, filepath.Join(dir, "bounded"))
}

// smallDisk mounts a disk of that many bytes.
func smallDisk(bytes int) (dir string, unmount func(), err error) {
	if dir, err = os.MkdirTemp("", "history"); err != nil {
		return "", nil, err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprint("size=", bytes), "tmpfs", dir).CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("%w: %s", errors.Join(err, os.Remove(dir)), out)
	}
	return dir, func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v: %s", err, out))
		}
		_ = os.Remove(dir)
	}, nil
}

// testSmallDisk writes several times the size of a disk, without another bound: Trim
// removes old events to make room.
func testSmallDisk(t *testing.T, dir string) {
	t.Helper()
	s := must(Open(dir, Options{Cluster: "c", memTableSize: 64 << 10, minFreeDisk: 6 << 20}))
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(1)); err != nil {
		t.Fatal(err)
	}
	for rv, i := uint64(100), 0; i < 50; i++ {
		var events []Event
		for range 20 {
			rv++
			events = append(events, Event{Type: kube.Added, Object: object(kube.Key("n/"+kube.FormatRV(rv%40)), rv, 6000), At: ms(rv)})
		}
		// During a compaction, the rewritten tables take their space twice.
		err := st.Append(events, rv, ms(rv))
		for deadline := time.Now().Add(time.Minute); errors.Is(err, ErrDiskFull) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if err = s.Trim(t.Context()); err == nil {
				err = st.Append(events, rv, ms(rv))
			}
		}
		if err == nil {
			err = s.Trim(t.Context())
		}
		if err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
	if span := st.Span(); span.From.RV == 100 || span.To.RV-span.From.RV < 100 {
		t.Errorf("the retained span is %v", span)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullTemporary: the error of a temporary store names no flag of recording, which its
// command does not have.
func TestFullTemporary(t *testing.T) {
	mem := vfs.NewMem()
	s := must(Open("store", Options{Cluster: "c", FS: mem, Temporary: true}))
	defer s.Close()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: minFreeDisk - 1, TotalBytes: 1 << 40})
	if err := s.checkDiskSpace(); !errors.Is(err, ErrDiskFull) || strings.Contains(err.Error(), "--") {
		t.Errorf("%v", err)
	}
}
