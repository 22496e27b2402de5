// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package history

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// spoil overwrites the entries of a stream in a table.
func (st *Stream) spoil(t *testing.T, table byte) {
	t.Helper()
	var keys [][]byte
	err := st.s.each(appendKey(nil, table, st.id), func(key, _ []byte) error {
		keys = append(keys, slices.Clone(key))
		return nil
	})
	if err != nil || len(keys) == 0 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, key := range keys {
		if err := st.s.db.Set(key, []byte{0}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrimDamaged: Trim skips a damaged stream and trims the others; once the stream has
// ended and is old enough, Trim removes it without reading it.
func TestTrimDamaged(t *testing.T) {
	t.Parallel()
	for _, table := range []byte{tableVersions, tableLog, tableTimes} {
		for _, byBytes := range []bool{false, true} {
			s := must(Open("history", Options{Cluster: "c", FS: vfs.NewMem(), MaxAge: 32 * time.Second, memTableSize: 64 << 10}))
			var both []*Stream
			for _, name := range []string{"nodes", "pods"} {
				st := must(s.Stream(kube.Resource{Version: "v1", Name: name}))
				a := object("a", 1, 5)
				if err := st.Begin(podForm, slices.Values([]*scan.Object{a}), 10, ms(0)); err != nil {
					t.Fatal(err)
				}
				for i := range uint64(100) {
					next := object("a", 11+i, 2000)
					if err := st.Append([]Event{{Type: kube.Modified, Object: next, Prev: a, At: ms(1000 * i)}}, 11+i, ms(1000*i)); err != nil {
						t.Fatal(err)
					}
					a = next
				}
				both = append(both, st)
			}
			damaged, well := both[0], both[1]
			damaged.spoil(t, table)
			s.now = func() time.Time { return ms(100_000) }
			trim := func() {
				t.Helper()
				if byBytes {
					if err := s.Compact(t.Context()); err != nil {
						t.Fatal(err)
					}
					s.opts.MaxAge, s.opts.MaxBytes = 0, must(s.tableBytes())
				}
				if err := s.Trim(t.Context()); err != nil {
					t.Fatalf("table %c, by bytes %v: %v", table, byBytes, err)
				}
			}
			if trim(); well.Span().From.RV == 10 || well.Damage() != nil {
				t.Errorf("table %c, by bytes %v: the other stream is kept from %v, %v", table, byBytes, well.Span().From, well.Damage())
			}
			if !errors.Is(damaged.Damage(), ErrCorrupt) {
				t.Errorf("table %c, by bytes %v: the damage is not reported", table, byBytes)
			}
			next := must(s.NewEpoch(damaged.Resource()))
			if err := next.Begin(podForm, slices.Values([]*scan.Object(nil)), 1000, ms(101_000)); err != nil {
				t.Fatal(err)
			}
			if s.opts.MaxBytes == 0 {
				s.now = func() time.Time { return ms(140_000) }
				if trim(); len(s.Streams(damaged.Resource())) != 1 || damaged.count(t, tableVersions) != 0 {
					t.Error("the damaged stream is not removed")
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOpenDamaged: if the head, form or gaps of a stream cannot be read, other streams can
// be, and the writer of the damaged stream begins a new epoch.
func TestOpenDamaged(t *testing.T) {
	for _, table := range []byte{tableHead, tableForm, tableGaps} {
		dir := t.TempDir()
		s, st := small(t, dir)
		other := must(s.Stream(kube.Resource{Version: "v1", Name: "nodes"}))
		if err := other.Begin(podForm, slices.Values([]*scan.Object{object("n", 1, 5)}), 90, ms(1)); err != nil {
			t.Fatal(err)
		}
		st.spoil(t, table)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		s, err := Open(dir, Options{Cluster: "c", Logger: testLog(&log)})
		if err != nil {
			t.Fatalf("table %c: %v", table, err)
		}
		if o, err := s.Streams(other.Resource())[0].Get(t.Context(), 90, "n"); o == nil || err != nil {
			t.Errorf("table %c: the other stream: %v, %v", table, o, err)
		}
		if again := must(s.Stream(pods)); again.Epoch() != 1 || !errors.Is(s.Streams(pods)[0].Damage(), ErrCorrupt) || !strings.Contains(log.String(), "damaged") {
			t.Errorf("table %c: epoch %d, %v, %s", table, again.Epoch(), s.Streams(pods)[0].Damage(), log.String())
		}
		if err := s.Trim(t.Context()); err != nil || len(s.Streams(pods)) != 2 {
			t.Errorf("table %c: the damaged stream is removed at once: %v", table, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlippedBits flips one bit of a file: a reader gets what was written, or
// ErrCorrupt, and the process continues.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	s := newSession(t, vfs.NewCrashableMem(), seed)
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	for n := range sessionSteps {
		if err := s.step(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.s.Close(); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, e := range s.m.events {
		want[brief(e)] = true
	}
	rnd, flips, found := rand.New(rand.NewPCG(seed, 2)), rounds(t, 10), 0
	for n := 0; n < flips || 20*found < flips; n++ {
		if n == 100+flips {
			t.Fatalf("%d of %d flips were found", found, n)
		}
		disk := s.opts.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
		name := flip(t, disk, rnd)
		opts := s.opts
		opts.FS = disk
		again, err := Open("history", opts)
		if err != nil {
			found++
			continue // the store cannot be opened
		}
		for _, st := range again.Streams(pods) {
			if err := readAll(st, want, t); err != nil {
				if found++; !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s: not ErrCorrupt: %v", name, err)
				}
			}
		}
		if err := again.Trim(t.Context()); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err := again.Close(); err != nil && !errors.Is(damage(err), ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readAll reads the events and both ends of a stream.
func readAll(st *Stream, want map[string]bool, t *testing.T) error {
	span := st.Span()
	for e, err := range st.Events(t.Context(), span.From.RV, span.To.RV) {
		if err != nil {
			return err
		}
		if !want[brief(e)] {
			t.Errorf("this event was never written: %s", brief(e))
		}
	}
	for _, rv := range []uint64{span.From.RV, span.To.RV} {
		for _, err := range st.List(t.Context(), rv, "", "") {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// flip flips a bit of a file of the database, and returns its name.
func flip(t *testing.T, disk vfs.FS, rnd *rand.Rand) string {
	t.Helper()
	for {
		names := must(disk.List("history"))
		name := names[rnd.IntN(len(names))]
		file := must(disk.Open(disk.PathJoin("history", name)))
		text := must(io.ReadAll(file))
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			continue
		}
		text[rnd.IntN(len(text))] ^= 1 << rnd.IntN(8)
		file = must(disk.Create(disk.PathJoin("history", name), vfs.WriteCategoryUnspecified))
		must(file.Write(text))
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			t.Fatal(err)
		}
		return name
	}
}

// TestMissingFile removes one file of a history, as an incomplete copy does: everything that
// was written is read, or the history is not opened and its files stay as they are. Pebble
// cannot know that the log of a killed program is missing: the history then ends earlier.
func TestMissingFile(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		for _, steps := range []int{1, 8} { // before and after tables were written
			mem := vfs.NewCrashableMem()
			s := newSession(t, mem, newSeed(t))
			if err := s.open(); err != nil {
				t.Fatal(err)
			}
			for n := range steps {
				if err := s.step(n); err != nil {
					t.Fatal(err)
				}
			}
			disk := mem.CrashClone(vfs.CrashCloneCfg{})
			if err := s.s.Close(); err != nil {
				t.Fatal(err)
			}
			if !killed {
				disk = mem
			}
			for _, name := range must(disk.List("history")) {
				missingFile(t, s, disk.CrashClone(vfs.CrashCloneCfg{}), name, killed && strings.HasSuffix(name, ".log"))
			}
		}
	}
}

// missingFile opens the history of a session without a file.
func missingFile(t *testing.T, s *session, disk vfs.FS, name string, mayEndEarlier bool) {
	t.Helper()
	if err := disk.Remove(disk.PathJoin("history", name)); err != nil {
		t.Fatal(err)
	}
	before := hashOf(t, disk, "history")
	opts := s.opts
	opts.FS = disk
	again, err := Open("history", opts)
	if err != nil {
		if hashOf(t, disk, "history") != before {
			t.Errorf("without %s: %v, but the files have changed: %v", name, err, must(disk.List("history")))
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("without %s: not ErrCorrupt: %v", name, err)
		}
		return
	}
	st := must(again.Stream(pods))
	if head := st.Head().RV; head == s.m.rv || mayEndEarlier && head > 0 {
		checkAll(t, s.m, st)
	} else if !mayEndEarlier {
		t.Errorf("without %s: the head is %d, not %d", name, head, s.m.rv)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
