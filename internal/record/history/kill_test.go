// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bufio"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
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
