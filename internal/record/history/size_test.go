// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !race

package history

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestCompact: compaction moves all tables to the lowest level and keeps the content; it
// fails on a closed store.
func TestCompact(t *testing.T) {
	s := must(Open(t.TempDir(), Options{Cluster: "c"}))
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(100_000)); err != nil {
		t.Fatal(err)
	}
	var prev *scan.Object
	for rv := uint64(101); rv <= 300; rv++ {
		e := Event{Type: kube.Modified, Object: object("ns/a", rv, 500), Prev: prev, At: ms(rv * 1000)}
		if prev == nil {
			e.Type = kube.Added
		}
		if err := st.Append([]Event{e}, rv, e.At); err != nil {
			t.Fatal(err)
		}
		prev = e.Object
	}
	read := func() (texts []string) {
		for e, err := range st.Events(t.Context(), 100, 300) {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, e.Object.JSON+e.Object.Row)
		}
		return texts
	}
	before := read()
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := read(); len(after) != 200 || !slices.Equal(after, before) {
		t.Errorf("%d events after, which differ from the %d before", len(after), len(before))
	}
	levels := s.db.Metrics().Levels
	for i, l := range levels {
		if bottom := i == len(levels)-1; bottom != (l.TablesSize > 0) {
			t.Errorf("%d bytes in level %d", l.TablesSize, i)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Compact(ended); err == nil {
		t.Error("no error with a canceled context")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context()); err == nil {
		t.Error("no error with a closed store")
	}
}

// du returns what the disk has of a directory, as du does.
func du(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Stat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		sum += st.Blocks * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestUsage: the size of a store is what the disk has, with what Pebble reserves for its
// write-ahead logs, and stays within a small limit.
func TestUsage(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const most = 64 << 20
	dir := t.TempDir()
	clock := ms(0)
	s := must(Open(dir, Options{Cluster: "c", MaxBytes: most, Now: func() time.Time { return clock }}))
	defer s.Close()
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, clock); err != nil {
		t.Fatal(err)
	}
	agrees := func(limit int64) {
		t.Helper()
		// Replaced files are deleted in the background.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			before, u, after := du(t, dir), s.Usage(), du(t, dir)
			if before == after && u.DiskBytes == before && u.LiveBytes <= u.DiskBytes && u.DiskBytes <= limit {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the disk has %d, then %d bytes; %+v; at most %d", before, after, u, limit)
			}
		}
	}
	agrees(most)
	if u := s.Usage(); u.LiveBytes > 1<<20 {
		t.Errorf("an empty store: %+v", u)
	}
	for rv := uint64(101); rv <= 900; {
		var batch []Event
		for range 25 {
			clock = ms(rv * 1000)
			batch = append(batch, Event{Type: kube.Added, Object: object("n/a", rv, 128<<10), At: clock})
			rv++
		}
		if err := st.Append(batch, rv-1, clock); err != nil {
			t.Fatal(err)
		}
		if err := s.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	agrees(most)
	if st.Span().From.RV == 100 {
		t.Error("nothing was trimmed")
	}
}
