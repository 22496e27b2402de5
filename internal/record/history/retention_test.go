// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// count returns how many keys of a table there are.
func (st *Stream) count(t *testing.T, table byte) (n int) {
	t.Helper()
	err := st.s.each(appendKey(nil, table, st.id), func(_, _ []byte) error {
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTrimByAge: older versions are removed, except the state at the retained start.
func TestTrimByAge(t *testing.T) {
	s := must(Open(t.TempDir(), Options{Cluster: "c", MaxAge: 32 * time.Second}))
	defer s.Close()
	st := must(s.Stream(pods))
	kept, gone, busy := object("n/kept", 50, 5), object("n/gone", 51, 5), object("n/busy", 52, 5)
	if err := st.Begin(podForm, slices.Values([]*scan.Object{kept, gone, busy}), 100, ms(0)); err != nil {
		t.Fatal(err)
	}
	if err := st.Append([]Event{{Type: kube.Deleted, Object: gone.At(101), Prev: gone, At: ms(500)}}, 101, ms(500)); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(100) {
		next := object("n/busy", 200+i, 5)
		if err := st.Append([]Event{{Type: kube.Modified, Object: next, Prev: busy, At: ms(1000 * (i + 1))}}, 200+i, ms(1000*(i+1))); err != nil {
			t.Fatal(err)
		}
		busy = next
	}
	for _, test := range []struct {
		now                                uint64
		from                               uint64
		versions, names, log, times, event int
	}{
		{32_000, 100, 104, 3, 101, 102, 101}, // not a step yet
		{33_000, 200, 101, 2, 99, 100, 99},
		{33_900, 200, 101, 2, 99, 100, 99}, // nor here
		{100_000, 267, 34, 2, 32, 33, 32},
		{1_000_000, 299, 2, 2, 0, 1, 0},
	} {
		// Not Trim: while the head is after now, that would record a step of the clock.
		age := s.opts.MaxAge
		if err := s.trim(t.Context(), ms(test.now).Add(-age), age/32); err != nil {
			t.Fatal(err)
		}
		if from := st.Span().From.RV; from != test.from {
			t.Errorf("at %d: from %d, not %d", test.now, from, test.from)
		}
		if v, n, l, h := st.count(t, tableVersions), st.count(t, tableNames), st.count(t, tableLog), st.count(t, tableTimes); v != test.versions || n != test.names || l != test.log || h != test.times {
			t.Errorf("at %d: %d versions, %d names, %d in the log, %d times: %v", test.now, v, n, l, h, test)
		}
		n := 0
		for e, err := range st.Events(t.Context(), test.from, 299) {
			if err != nil || e.Type == kube.Modified && (e.Prev == nil || e.Prev.RV >= e.Object.RV) {
				t.Fatalf("%v, %v", e, err)
			}
			n++
		}
		if n != test.event {
			t.Errorf("at %d: %d events", test.now, n)
		}
		if o, err := st.Get(t.Context(), test.from, "n/kept"); err != nil || o == nil || o.JSON != kept.JSON {
			t.Errorf("at %d: %v, %v", test.now, o, err)
		}
		if err := st.Check(test.from - 1); !errors.Is(err, ErrBefore) {
			t.Errorf("at %d: %v", test.now, err)
		}
	}
}

// TestTrimOvertakesReader: a reader of a state that is being removed gets ErrBefore,
// never an incomplete list.
func TestTrimOvertakesReader(t *testing.T) {
	s := must(Open(t.TempDir(), Options{Cluster: "c", MaxAge: time.Millisecond}))
	defer s.Close()
	st := must(s.Stream(pods))
	var objects []*scan.Object
	for i := range uint64(3 * maxPage) {
		objects = append(objects, object(kube.Key("n/"+kube.FormatRV(1000+i)), 1000+i, 5))
	}
	if err := st.Begin(podForm, slices.Values(objects), 2000, ms(1)); err != nil {
		t.Fatal(err)
	}
	var events []Event
	for i, o := range objects {
		events = append(events, Event{Type: kube.Deleted, Object: o.At(3000 + uint64(i)), Prev: o, At: ms(5)})
	}
	n, trimmed := 0, false
	for o, err := range st.List(t.Context(), 2000, "", "") {
		if !trimmed {
			trimmed = true
			if err := st.Append(events, 4000, ms(5)); err != nil {
				t.Fatal(err)
			}
			if err := s.Trim(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st.Span().From.RV != 4000 || st.count(t, tableVersions) != 0 {
				t.Fatalf("nothing was removed: %v", st.Span())
			}
		}
		if err != nil {
			if !errors.Is(err, ErrBefore) {
				t.Fatal(err)
			}
			return
		}
		if n++; o.Key != objects[n-1].Key {
			t.Fatalf("%s is missing", objects[n-1].Key)
		}
	}
	t.Errorf("%d of %d objects, and no error", n, len(objects))
}

// TestTrimByBytes: the store stays within its size limit while it is written, and reads
// stay correct.
func TestTrimByBytes(t *testing.T) {
	t.Parallel()
	const most = 512 << 10
	s := must(Open("history", Options{Cluster: "c", FS: vfs.NewMem(), MaxBytes: most, memTableSize: 64 << 10}))
	defer s.Close()
	other := must(s.Stream(kube.Resource{Version: "v1", Name: "nodes"}))
	if err := other.Begin(podForm, slices.Values([]*scan.Object{object("n", 1, 5)}), 90, ms(1)); err != nil {
		t.Fatal(err)
	}
	st := must(s.Stream(pods))
	m := newModel(rand.New(rand.NewPCG(3, 3)), 100, 1_000_000)
	m.noise = 3000
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(m.clock)); err != nil {
		t.Fatal(err)
	}
	clear(m.now)
	m.states = m.states[:0]
	m.known()
	s.now = func() time.Time { return ms(m.clock) }
	trims, largest := 0, int64(0)
	for range 60 {
		from := st.Span().From
		if err := st.Append(m.batch(1), m.rv, ms(m.clock)); err != nil {
			t.Fatal(err)
		}
		if err := s.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := st.Span(); now.From != from {
			trims++
			if kept := now.To.At.Sub(now.From.At); kept < now.To.At.Sub(from.At)/3 {
				t.Fatalf("from %v to %v: only %v are left", from, now.From, kept)
			}
		}
		// Tables replaced by a compaction are deleted a little later, in the background.
		largest = max(largest, must(s.tableBytes()))
	}
	if trims < 3 || largest > most {
		t.Errorf("%d trims; up to %d bytes of %d", trims, largest, most)
	}
	t.Logf("%d trims, at most %d bytes, finally %v, %d events", trims, largest, s.Usage().DiskBytes, len(m.events))
	checkAll(t, m, st)
	if o, err := other.Get(t.Context(), 90, "n"); o == nil || err != nil {
		t.Errorf("the other resource: %v, %v", o, err)
	}
}

// TestTrimEpochs: a stream without a writer is removed once it ends before the
// retained span.
func TestTrimEpochs(t *testing.T) {
	dir := t.TempDir()
	s, old := small(t, dir)
	defer func() { s.Close() }()
	st := must(s.NewEpoch(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object{object("n/z", 7, 5)}), 8, ms(20_000)); err != nil {
		t.Fatal(err)
	}
	s.opts.MaxAge = 5 * time.Second
	for i, left := range []int{2, 1} {
		s.now = func() time.Time { return ms(uint64(15_000 + i)) }
		if err := s.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Streams(pods)); n != left {
			t.Errorf("%d streams, not %d", n, left)
		}
	}
	if err := old.Check(120); !errors.Is(err, ErrBefore) {
		t.Errorf("the old stream: %v", err)
	}
	for _, table := range streamTables {
		if n := old.count(t, table); n > 0 {
			t.Errorf("%d keys in table %c", n, table)
		}
	}
	// The last stream is kept while it has a writer.
	s.now = func() time.Time { return ms(1_000_000) }
	for _, left := range []int{1, 0} {
		if err := s.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Streams(pods)); n != left {
			t.Errorf("%d streams, not %d", n, left)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = must(Open(dir, Options{Cluster: "c", MaxAge: time.Second}))
	}
}

func TestTrimIsInterrupted(t *testing.T) {
	s, st := small(t, t.TempDir())
	defer s.Close()
	s.opts.MaxAge = time.Second
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Trim(ctx); !errors.Is(err, context.Canceled) || st.Span().From.RV != 100 {
		t.Errorf("%v, from %v", err, st.Span().From)
	}
}

func TestDiskFull(t *testing.T) {
	mem := vfs.NewMem()
	s := must(Open("history", Options{Cluster: "c", FS: mem}))
	defer s.Close()
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(1)); err != nil {
		t.Fatal(err)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: minFreeDisk - 1, TotalBytes: 1 << 40})
	if err := st.Append(nil, 110, ms(2)); !errors.Is(err, ErrDiskFull) || st.Head().RV != 100 {
		t.Errorf("an append to a full disk: %v, %v", err, st.Head())
	}
	if err, again := s.Err(), s.Recover(); !errors.Is(err, ErrDiskFull) || !errors.Is(again, ErrDiskFull) {
		t.Errorf("Err and Recover on a full disk: %v, %v", err, again)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: minFreeDisk, TotalBytes: 1 << 40})
	if err := s.Recover(); err != nil {
		t.Error(err)
	}
	if err := st.Append(nil, 110, ms(2)); err != nil || st.Head().RV != 110 {
		t.Errorf("an append with room: %v, %v", err, st.Head())
	}
}

// TestDropOvertakesReader: a reader of a stream that is dropped gets an error, never an
// incomplete list.
func TestDropOvertakesReader(t *testing.T) {
	s := must(Open(t.TempDir(), Options{Cluster: "c", MaxAge: time.Second}))
	defer s.Close()
	st := must(s.Stream(pods))
	var objects []*scan.Object
	for i := range uint64(5 * maxPage) {
		objects = append(objects, object(kube.Key("n/"+kube.FormatRV(1000+i)), 1000+i, 5))
	}
	if err := st.Begin(podForm, slices.Values(objects), 5000, ms(1)); err != nil {
		t.Fatal(err)
	}
	must(s.NewEpoch(pods))
	n, dropped := 0, false
	for _, err := range st.List(t.Context(), 5000, "", "") {
		if err != nil {
			if !errors.Is(err, ErrBefore) {
				t.Error(err)
			}
			return
		}
		if n++; !dropped {
			dropped = true
			if err := s.Trim(t.Context()); err != nil || len(s.Streams(pods)) != 1 {
				t.Fatalf("the stream is not dropped: %v", err)
			}
		}
	}
	t.Errorf("%d of %d objects, and no error", n, len(objects))
}

// TestDiskHangs: while writes hang, calls that ask what is recorded return.
func TestDiskHangs(t *testing.T) {
	fs, hangs, answer := &faultFS{FS: vfs.NewMem()}, atomic.Bool{}, make(chan struct{})
	hung := make(chan struct{}, 100)
	fs.before = func() error {
		if hangs.Load() {
			hung <- struct{}{}
			<-answer
		}
		return nil
	}
	s := must(Open("history", Options{Cluster: "c", FS: fs}))
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(1)); err != nil {
		t.Fatal(err)
	}
	nodes := kube.Resource{Version: "v1", Name: "nodes"}
	old := must(s.Stream(nodes))
	must(s.NewEpoch(nodes))
	if u := s.Usage(); u.DiskBytes == 0 || u.LiveBytes == 0 {
		t.Error("the store has no size")
	}
	hangs.Store(true)
	var writers sync.WaitGroup
	for _, write := range []func() error{
		func() error { return st.Append(nil, 110, ms(2)) },
		func() error { _, err := s.NewEpoch(pods); return err },
		func() error { _, err := old.drop(ms(1000)); return err },
	} {
		writers.Go(func() {
			if err := write(); err != nil {
				t.Error(err)
			}
		})
	}
	<-hung
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for range 100 {
			if s.Usage(); len(s.Streams(pods)) != 1 || len(s.Resources()) != 2 || st.Head().RV != 100 || old.Head().RV != 0 {
				t.Error("a hanging write is visible")
			}
			time.Sleep(time.Millisecond)
		}
	}()
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Error("reads hang, too")
	}
	hangs.Store(false)
	close(answer)
	<-asked
	writers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTrimByDisk: the free disk space bounds the store too, unless other files fill the
// disk.
func TestTrimByDisk(t *testing.T) {
	mem := vfs.NewMem()
	s := must(Open("history", Options{Cluster: "c", FS: mem, memTableSize: 64 << 10}))
	defer s.Close()
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(1)); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(200) {
		o := object("n/a", 101+i, 5000)
		if err := st.Append([]Event{{Type: kube.Added, Object: o, At: ms(1000 + i)}}, o.RV, ms(1000+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Compacted tables are deleted later.
	size := must(s.tableBytes())
	for deadline := time.Now().Add(time.Minute); s.diskBytes() > size*3/2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes for tables of %d", s.diskBytes(), size)
		}
	}
	for _, test := range []struct {
		free    uint64
		trimmed bool
	}{
		{minFreeDisk - 100<<20, false}, // trimming cannot free enough
		{minFreeDisk + 100<<20, false},
		{minFreeDisk - uint64(size)/2, true},
	} {
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: test.free, TotalBytes: 1 << 40})
		if err := s.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if trimmed := st.Span().From.RV > 100; trimmed != test.trimmed {
			t.Errorf("with %d free: kept from %v", test.free, st.Span().From)
		}
	}
	if st.Span().From.RV == 300 {
		t.Error("the whole past is removed")
	}
}
