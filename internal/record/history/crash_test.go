// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A faultFS calls before ahead of every operation that changes the disk. If before
// returns an error, the operation fails with it; a write is then half done. After
// each operation that changes a directory it calls entered, if that is set.
type faultFS struct {
	vfs.FS
	before  func() error
	entered func()
}

func (f *faultFS) do(op func() error) error {
	if err := f.before(); err != nil {
		return err
	}
	return op()
}

func (f *faultFS) file(open func() (vfs.File, error)) (file vfs.File, err error) {
	err = f.do(func() error {
		file, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.entered != nil {
		f.entered()
	}
	return &faultFile{file, f}, nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *faultFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f}, nil
}

func (f *faultFS) Remove(name string) error {
	return f.do(func() error { return f.FS.Remove(name) })
}

func (f *faultFS) Rename(oldname, newname string) error {
	return f.do(func() error { return f.FS.Rename(oldname, newname) })
}

func (f *faultFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.do(func() error { return f.FS.MkdirAll(dir, perm) })
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

type faultFile struct {
	vfs.File
	fs *faultFS
}

func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.fs.before(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *faultFile) Sync() error     { return f.fs.do(f.File.Sync) }
func (f *faultFile) SyncData() error { return f.fs.do(f.File.SyncData) }

func (f *faultFile) SyncTo(length int64) (full bool, err error) {
	err = f.fs.do(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// upTo returns the model as it was when the head was at rv; false if it never
// was.
func (m *model) upTo(rv uint64) (*model, bool) {
	i := slices.IndexFunc(m.states, func(s state) bool { return s.RV == rv })
	if i < 0 {
		return nil, false
	}
	past := *m
	past.rv, past.states = rv, m.states[:i+1]
	past.events = slices.DeleteFunc(slices.Clone(m.events), func(e Event) bool { return e.Object.RV > rv })
	past.gaps = slices.DeleteFunc(slices.Clone(m.gaps), func(g Gap) bool { return g.To > rv || g.To == rv && g.Late() })
	return &past, true
}

// statesRead is how many states checkAll lists: each list opens all files.
const statesRead = 10

// checkAll compares a stream with the model: the gaps, all events, the first and
// the last state, and about statesRead of the others.
func checkAll(t *testing.T, m *model, st *Stream) {
	t.Helper()
	span := st.Span()
	m, ok := m.upTo(span.To.RV)
	if !ok {
		t.Fatalf("the head is inside a batch: %v", span.To)
	}
	gaps := slices.DeleteFunc(slices.Clone(m.gaps), func(g Gap) bool { return g.before(span.From) })
	if diff := gocmp.Diff(gaps, st.Gaps(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("gaps (-model +history)\n%s", diff)
	}
	step := 1 + len(m.states)/statesRead
	offset := m.rnd.IntN(step)
	for i, s := range m.states {
		if s.RV < span.From.RV || i%step != offset && s.RV != span.From.RV && s.RV != span.To.RV {
			continue
		}
		got := map[kube.Key]*scan.Object{}
		for o, err := range st.List(t.Context(), s.RV, "", "") {
			if err != nil {
				t.Fatal(err)
			}
			got[o.Key] = o
		}
		if diff := gocmp.Diff(texts(s.objects), texts(got)); diff != "" {
			t.Fatalf("at %d (-model +history)\n%s", s.RV, diff)
		}
	}
	var want, have []string
	for _, e := range m.events {
		if e.Object.RV > span.From.RV {
			want = append(want, brief(e))
		}
	}
	for e, err := range st.Events(t.Context(), span.From.RV, span.To.RV) {
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, brief(e))
	}
	if diff := gocmp.Diff(want, have); diff != "" {
		t.Fatalf("events (-model +history)\n%s", diff)
	}
}

// A session writes the events of a model to a store, and keeps the acknowledged
// head.
type session struct {
	t     *testing.T
	m     *model
	s     *Store
	st    *Stream
	opts  Options
	acked atomic.Uint64 // the head
}

func newSession(t *testing.T, fs vfs.FS, seed uint64) *session {
	return &session{
		t: t, m: newModel(rand.New(rand.NewPCG(seed, 1)), 100, 1_000_000),
		opts: Options{Cluster: "c", FS: fs, memTableSize: 32 << 10, MaxAge: 4 * time.Second},
	}
}

func (s *session) open() (err error) {
	if s.s, err = Open("history", s.opts); err != nil {
		return err
	}
	s.s.now = func() time.Time { return ms(s.m.clock) }
	if err = s.s.Err(); err != nil { // it was opened read-only
		return errors.Join(err, s.s.Close())
	}
	if s.st, err = s.s.Stream(pods); err == nil && s.st.Head().RV == 0 {
		first := s.m.states[0]
		err = s.st.Begin(podForm, maps.Values(first.objects), first.RV, first.At)
	}
	if err != nil {
		return errors.Join(err, s.s.Close())
	}
	s.acked.Store(s.st.Head().RV)
	return nil
}

// step runs the nth operation.
func (s *session) step(n int) (err error) {
	switch m := s.m; n % 8 {
	case 5:
		events, since := m.late(true)
		err = s.st.AppendLate(events, m.rv, since, ms(m.clock))
	case 3:
		err = s.st.AppendGap(m.miss(), m.rv, ms(m.clock))
	case 6:
		if err = s.s.Trim(s.t.Context()); err == nil {
			err = s.s.db.Flush()
		}
		if err == nil {
			err = s.s.Err()
		}
		return err
	case 7:
		if err = s.s.Close(); err == nil {
			err = s.open()
		}
		return err
	default:
		var events []Event
		for len(events) == 0 {
			events = m.batch(1)
		}
		err = s.st.Append(events, m.rv, ms(m.clock))
	}
	if err == nil {
		s.acked.Store(s.m.rv)
	}
	return err
}

const sessionSteps = 24

// TestCrash ends the program before an operation on the disk: afterwards the store has
// every acknowledged write, and no part of another. It tries one operation in twelve,
// or all of them.
func TestCrash(t *testing.T) {
	t.Run("all unsynced data is lost", func(t *testing.T) {
		testCrash(t, newSeed(t), func(*faultFS, *vfs.MemFS) {}, vfs.CrashCloneCfg{})
	})
	t.Run("some unsynced data is kept", func(t *testing.T) {
		// Changes of directories are kept in order, as by a journal: Pebble relies on
		// that.
		ordered := func(fs *faultFS, mem *vfs.MemFS) {
			fs.entered = func() {
				dir, err := mem.OpenDir("history")
				if err != nil {
					return // not created yet
				}
				if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
					t.Error(err)
				}
			}
		}
		seed := newSeed(t)
		testCrash(t, seed, ordered, vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 2))})
	})
}

func testCrash(t *testing.T, seed uint64, prepare func(*faultFS, *vfs.MemFS), cfg vfs.CrashCloneCfg) {
	t.Parallel()
	type crash struct {
		fs    *vfs.MemFS
		acked uint64
	}
	var mu sync.Mutex
	var crashes []crash
	mem := vfs.NewCrashableMem()
	fs := &faultFS{FS: mem}
	prepare(fs, mem)
	s := newSession(t, fs, seed)
	rnd, every := rand.New(rand.NewPCG(seed, 3)), max(1, 24/rounds(t, 1))
	fs.before = func() error {
		mu.Lock()
		defer mu.Unlock()
		if rnd.IntN(every) > 0 {
			return nil
		}
		acked := s.acked.Load()
		crashes = append(crashes, crash{mem.CrashClone(cfg), acked})
		return nil
	}
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	for n := range sessionSteps {
		if err := s.step(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.s.Close(); err != nil {
		t.Fatal(err)
	}
	known, heads := 0, map[uint64]uint64{}
	for i, c := range crashes {
		// An image equal to an earlier one has the same content: only the acknowledged
		// head may differ.
		image := hashOf(t, c.fs, "history")
		if head, ok := heads[image]; ok {
			if head < c.acked {
				t.Fatalf("crash %d: %d was acknowledged, the head is %d", i, c.acked, head)
			} else if head > 0 {
				known++
			}
			continue
		}
		opts := s.opts
		opts.FS = c.fs
		again, err := Open("history", opts)
		if err != nil {
			t.Fatalf("crash %d: %v", i, err)
		}
		st := must(again.Stream(pods))
		head := st.Head().RV
		if heads[image] = head; head < c.acked {
			t.Fatalf("crash %d: %d was acknowledged, the head is %d", i, c.acked, head)
		} else if head > 0 {
			known++
			checkAll(t, s.m, st)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d crashes, %d different images", len(crashes), len(heads))
	if known == 0 || known < len(crashes)/2 {
		t.Errorf("%d of %d crashes left a history", known, len(crashes))
	}
}

// hashOf returns a hash of the names and contents of the files in a directory.
func hashOf(t *testing.T, fs vfs.FS, dir string) uint64 {
	t.Helper()
	var h maphash.Hash
	h.SetSeed(seed)
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		file := must(fs.Open(fs.PathJoin(dir, name)))
		text := must(io.ReadAll(file))
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&h, "%q %d ", name, len(text))
		_, _ = h.Write(text)
	}
	return h.Sum64()
}

// TestFaults lets one operation on the disk fail, alone or with all later ones, as on a
// full disk. The store reports the failure, can be read, and recovers with every
// acknowledged write.
func TestFaults(t *testing.T) {
	for name, lasting := range map[string]bool{"full": true, "once": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := newSeed(t)
			rnd := rand.New(rand.NewPCG(seed, 2))
			total, _ := testFault(t, seed, math.MaxInt64, lasting)
			usual := 6
			if testing.Short() {
				usual = 2
			}
			faults, recoveries := int64(rounds(t, usual)), 0
			for i := int64(0); i < faults || recoveries < int(faults/4); i++ {
				if i == 10*faults {
					t.Fatalf("%d recoveries from %d faults", recoveries, i)
				}
				first := 1 + i%faults*total/faults
				nth := first + rnd.Int64N(max(1, total/faults))
				if _, recovered := testFault(t, seed, nth, lasting); recovered {
					recoveries++
				}
			}
			t.Logf("%d operations, %d recoveries", total, recoveries)
		})
	}
}

// testFault lets the nth operation on the disk fail. It returns the number of
// operations, and whether the store had to recover while it was open.
func testFault(t *testing.T, seed uint64, nth int64, lasting bool) (total int64, recovered bool) {
	fs := &faultFS{FS: vfs.NewMem()}
	var ops atomic.Int64
	var healed atomic.Bool
	fs.before = func() error {
		if n := ops.Add(1); n < nth || n > nth && !lasting || healed.Load() {
			return nil
		}
		return syscall.ENOSPC
	}
	s := newSession(t, fs, seed)
	for s.open() != nil { // as if the program had failed to start
		healed.Store(true)
	}
	for n := range sessionSteps {
		err := s.step(n)
		if err == nil {
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("fault %d: %v", nth, err)
		}
		if n%8 == 7 { // the store was being closed or opened
			for healed.Store(true); s.open() != nil; {
			}
			continue
		}
		if !errors.Is(s.s.Err(), ErrFailed) {
			t.Fatalf("fault %d: Err does not report %v", nth, err)
		}
		if err := s.st.Append(nil, s.m.rv, ms(s.m.clock)); !errors.Is(err, ErrFailed) {
			t.Fatalf("fault %d: an append after %v: %v", nth, err, err)
		}
		checkAll(t, s.m, s.st) // the content in memory
		if lasting && s.s.Recover() == nil {
			t.Fatalf("fault %d: recovered on a full disk", nth)
		}
		checkAll(t, s.m, s.st) // the content on disk
		healed.Store(true)
		if err := s.s.Recover(); err != nil {
			t.Fatalf("fault %d: %v", nth, err)
		}
		recovered = true
		head := s.st.Head().RV
		if head < s.acked.Load() {
			t.Fatalf("fault %d: %d was acknowledged, the head is %d", nth, s.acked.Load(), head)
		}
		// An unacknowledged write is there, or is written again.
		past, ok := s.m.upTo(head)
		if !ok {
			t.Fatalf("fault %d: the head is inside a batch: %d", nth, head)
		}
		events := s.m.events[len(past.events):]
		switch missing := s.m.gaps[len(past.gaps):]; {
		case len(missing) > 0 && missing[0].Late():
			err = s.st.AppendLate(events, s.m.rv, missing[0].Since, ms(s.m.clock))
		case len(missing) > 0:
			err = s.st.AppendGap(events, s.m.rv, ms(s.m.clock))
		default:
			err = s.st.Append(events, s.m.rv, ms(s.m.clock))
		}
		if err != nil {
			t.Fatalf("fault %d: %v", nth, err)
		}
		s.acked.Store(s.m.rv)
	}
	checkAll(t, s.m, s.st)
	for range 2 {
		if err := s.s.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		healed.Store(true)
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
	}
	checkAll(t, s.m, s.st)
	if err := s.s.Close(); err != nil {
		t.Fatal(err)
	}
	return ops.Load(), recovered
}
