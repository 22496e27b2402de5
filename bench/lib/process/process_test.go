// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const stat = "4242 (a name) (of) S 1 4242 4242 0 -1 4194560 2130 0 3 0 1234 567 8 9 20 0 12 0 99 1 2 3\n"
	d, err := parseStat([]byte(stat))
	if want := (1234 + 567) * 10 * time.Millisecond; err != nil || d != want {
		t.Errorf("%v, %v, want %v", d, err, want)
	}
	for _, bad := range []string{"", "1 (x) S 1 2", strings.Replace(stat, "567", "five", 1)} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	d, err := parseSchedstat([]byte("123456789 5 6\n"))
	if err != nil || d != 123456789 {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := parseSchedstat([]byte("\n")); err == nil {
		t.Error("an empty line is no error")
	}
}

func TestMore(t *testing.T) {
	for _, c := range []struct{ sum, whole, want time.Duration }{
		{1234567 * time.Microsecond, 1230 * time.Millisecond, 1234567 * time.Microsecond},
		{1215 * time.Millisecond, 1230 * time.Millisecond, 1215 * time.Millisecond},
		{time.Second, 1230 * time.Millisecond, 1230 * time.Millisecond}, // a thread has ended
		{0, time.Second, time.Second}, // they are not accounted for
	} {
		if got := more(c.sum, c.whole); got != c.want {
			t.Errorf("more(%v, %v) = %v, want %v", c.sum, c.whole, got, c.want)
		}
	}
}

func TestParseStatus(t *testing.T) {
	status := []byte("Name:\tVmRSS:\nVmHWM:\t    9999 kB\nVmRSS:\t    1234 kB\nThreads:\t5\n")
	if v, err := parseStatus(status, "VmRSS:"); err != nil || v != 1234*1024 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := parseStatus(status, "Threads:"); err == nil {
		t.Error("an invalid size is no error")
	}
}

// The CPU time of another process grows only while it works.
func TestOther(t *testing.T) {
	busy := exec.CommandContext(t.Context(), "sh", "-c", "echo; while :; do :; done")
	idle := exec.CommandContext(t.Context(), "sh", "-c", "echo; read x")
	var before [2]time.Duration
	for i, cmd := range []*exec.Cmd{busy, idle} {
		if _, err := cmd.StdinPipe(); err != nil { // read waits for it
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		if _, err := out.Read(make([]byte, 1)); err != nil { // now the shell runs
			t.Fatal(err)
		}
		if before[i], err = CPU(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if rss, err := RSS(cmd.Process.Pid); err != nil || rss < 10<<10 || rss > 1<<30 {
			t.Errorf("RSS of %g, %v", rss, err)
		}
	}
	for {
		now, err := CPU(busy.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if now-before[0] > 50*time.Millisecond {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if now, err := CPU(idle.Process.Pid); err != nil || now-before[1] > 20*time.Millisecond {
		t.Errorf("an idle process has used %v, %v", now-before[1], err)
	}
	if _, err := CPU(os.Getpid()); err != nil {
		t.Error(err)
	}
	if _, err := CPU(1 << 30); err == nil {
		t.Error("a missing process has a CPU time")
	}
}

const metrics = `# HELP some_bytes_total Bytes.
some_bytes_total{resource="pods",x="a b"} 5
some_bytes_total{resource="nodes"} 1.5e+03
some_bytes 7
some 9
`

func TestMetrics(t *testing.T) {
	got, err := parseMetrics(strings.NewReader(metrics), []string{"some", "some_bytes_total"})
	if err != nil || !slices.Equal(got, []float64{9, 1505}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseMetrics(strings.NewReader(metrics), []string{"some_byte"}); err == nil {
		t.Error("a missing metric is no error")
	}
}

func TestMemoryOf(t *testing.T) {
	collected := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RequestURI() {
		case "/debug/pprof/heap?gc=1":
			collected++
		case "/metrics":
			w.Write([]byte("go_memstats_heap_alloc_bytes 100\ngo_memstats_stack_inuse_bytes 20\n"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	m, err := MemoryOf(os.Getpid(), s.Client(), s.URL)
	if err != nil || m.Live != 120 || m.RSS < 1<<20 || collected == 0 {
		t.Errorf("%+v after %d collections, %v", m, collected, err)
	}
	if _, err := MemoryOf(os.Getpid(), s.Client(), s.URL+"/nothing"); err == nil {
		t.Error("a status of 404 is no error")
	}
}
