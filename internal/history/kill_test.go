// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writerDir names the variable that makes the test binary the writer of
// TestKilled.
const writerDir = "WATCHKEEPER_HISTORY_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeForever(dir))
		os.Exit(1)
	}
	code := m.Run()
	if benched != "" {
		_ = os.RemoveAll(benched)
	}
	os.Exit(code)
}

// killedModel returns a model that makes the same events each time, advanced to rv.
func killedModel(rv uint64) (m *model, next func() []Event) {
	m = newModel(rand.New(rand.NewPCG(7, 7)), 100, 1_000_000)
	next = func() (events []Event) {
		for len(events) == 0 {
			events = m.batch(1)
		}
		return events
	}
	for m.rv < rv {
		next()
	}
	return m, next
}

var killedOptions = Options{Cluster: "c", memTableSize: 64 << 10}

// writeForever continues at the head of the store, and prints each acknowledged RV.
func writeForever(dir string) error {
	s, err := Open(dir, killedOptions)
	if err != nil {
		return err
	}
	st, err := s.Stream(pods)
	if err != nil {
		return err
	}
	m, next := killedModel(st.Head().RV)
	if st.Head().RV == 0 {
		if err := st.Begin(podForm, maps.Values(m.now), m.rv, ms(m.clock)); err != nil {
			return err
		}
	}
	for {
		events := next()
		if err := st.Append(events, m.rv, ms(m.clock)); err != nil {
			return err
		}
		fmt.Println(m.rv)
	}
}

// TestKilled repeatedly kills a process that writes.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(newSeed(t), 1))
	for round := range rounds(t, 3) {
		writer := exec.CommandContext(t.Context(), os.Args[0])
		writer.Env = append(os.Environ(), writerDir+"="+dir)
		var stderr strings.Builder
		writer.Stderr = &stderr
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		acked := uint64(0)
		lines := bufio.NewScanner(out)
		for n := 1 + rnd.IntN(20); lines.Scan(); n-- {
			if acked, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				if err := writer.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _ = writer.Wait(); stderr.Len() > 0 || acked == 0 {
			t.Fatalf("round %d: %d, %s", round, acked, stderr.String())
		}
		var log strings.Builder
		opts := killedOptions
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s, err := Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		st := must(s.Stream(pods))
		if head := st.Head().RV; head < acked {
			t.Fatalf("round %d: %d was acknowledged, the head is %d", round, acked, head)
		}
		if !strings.Contains(log.String(), "was not closed") {
			t.Errorf("round %d: the kill is not logged: %s", round, log.String())
		}
		m, _ := killedModel(st.Head().RV)
		checkAll(t, m, st)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTornTail: a log that ends inside a record is read up to that record.
func TestTornTail(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := newSession(t, mem, 3)
	s.opts.memTableSize = 0 // everything stays in the log
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.step(0); err != nil {
			t.Fatal(err)
		}
	}
	heads := map[uint64]bool{}
	for cut := 0; !heads[0]; cut++ {
		torn := mem.CrashClone(vfs.CrashCloneCfg{})
		cutLog(t, torn, cut)
		opts := s.opts
		opts.FS = torn
		again, err := Open("history", opts)
		if err != nil {
			t.Fatalf("%d%% less: %v", cut, err)
		}
		st := must(again.Stream(pods))
		head := st.Head().RV
		if heads[head] = true; head > 0 {
			checkAll(t, s.m, st)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(heads) < 4 {
		t.Errorf("only the heads %v", heads)
	}
	if err := s.s.Close(); err != nil {
		t.Fatal(err)
	}
}

// cutLog cuts the last percents off the write-ahead log.
func cutLog(t *testing.T, fs vfs.FS, percent int) {
	t.Helper()
	names := must(fs.List("history"))
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		name = fs.PathJoin("history", name)
		file := must(fs.Open(name))
		text := must(io.ReadAll(file))
		file.Close()
		file = must(fs.Create(name, vfs.WriteCategoryUnspecified))
		must(file.Write(text[:len(text)*(100-percent)/100]))
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
