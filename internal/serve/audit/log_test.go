// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// killedEnv names the mode of a process that TestKill kills.
const killedEnv = "WATCHKEEPER_TEST_AUDIT_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(killedEnv); mode != "" {
		writeUntilKilled(mode)
	}
	// lumberjack's goroutine for old files ends with the process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"))
}

// metric returns the value of one of the auditor's metrics.
func (rg *rig) metric(t *testing.T, name string) float64 {
	t.Helper()
	v, err := metricOf(rg.auditor, name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func metricOf(a *audit.Auditor, name string) (float64, error) {
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(a); err != nil {
		return 0, err
	}
	families, err := reg.Gather()
	if err != nil {
		return 0, err
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue(), nil
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

func TestRotation(t *testing.T) {
	o := options(t, metadataPolicy)
	o.LogMaxSize, o.LogMaxBackup, o.LogCompress = 1, 2, true
	rg := newRig(t, o, ok)
	long := strings.Repeat("x", 15<<10)
	const requests = 200 // 6 MB
	for i := range requests {
		rg.do(t, "GET", "/"+long, "Audit-ID", fmt.Sprint(i))
	}
	rg.stop()
	dir := filepath.Dir(o.LogPath)
	var files []string
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) { // lumberjack removes and compresses in the background
		var err error
		if files, err = filepath.Glob(filepath.Join(dir, "*")); err != nil {
			t.Fatal(err)
		}
		old := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == o.LogPath })
		if len(old) == 2 && !slices.ContainsFunc(old, func(f string) bool { return !strings.HasSuffix(f, ".gz") }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("files %q", files)
		}
	}
	var ids []string
	slices.Sort(files) // the old ones have their time, the current one is the last
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info.Mode(), err)
		}
		text := read(t, f)
		if len(text) > 1<<20 {
			t.Errorf("%s has %d bytes", f, len(text))
		}
		for _, e := range decode(t, text) {
			if e.Stage == "ResponseComplete" {
				ids = append(ids, string(e.AuditID))
			}
		}
	}
	if len(ids) < 60 {
		t.Errorf("only %d events are left", len(ids))
	}
	for i, id := range ids { // none is lost at a rotation
		if want := fmt.Sprint(requests - len(ids) + i); id != want {
			t.Fatalf("event %s, want %s", id, want)
		}
	}
	if lost := rg.metric(t, "watchkeeper_audit_lost_events_total"); lost != 0 {
		t.Errorf("%v events are lost", lost)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestFullDisk: only blocking-strict refuses requests, and only while they cannot be
// recorded as received.
func TestFullDisk(t *testing.T) {
	for _, mode := range audit.Modes {
		for _, size := range []int{0, 100} { // without and with rotation
			t.Run(fmt.Sprint(mode, size), func(t *testing.T) {
				o := options(t, metadataPolicy)
				o.LogPath, o.LogMode, o.LogMaxSize = "/dev/full", mode, size
				rg := newRig(t, o, ok)
				const requests = 5
				wantCode, lost, refused := http.StatusOK, 2*requests, 0
				if mode == audit.ModeBlockingStrict {
					wantCode, lost, refused = http.StatusInternalServerError, requests, requests
				}
				for range requests {
					if res := rg.do(t, "GET", "/x"); res.StatusCode != wantCode {
						t.Errorf("status %s", res.Status)
					}
				}
				rg.stop()
				if got := rg.metric(t, "watchkeeper_audit_lost_events_total"); got != float64(lost) {
					t.Errorf("%v events are lost, want %d", got, lost)
				}
				if got := rg.metric(t, "watchkeeper_audit_refused_requests_total"); got != float64(refused) {
					t.Errorf("%v requests are refused, want %d", got, refused)
				}
				if log := rg.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "no space left on device") || !strings.Contains(log, "path=/dev/full") {
					t.Errorf("log: %s", log)
				}
			})
		}
	}
}

func TestStdout(t *testing.T) {
	o := options(t, metadataPolicy)
	var out logtest.Log
	o.LogPath, o.Stdout = "-", &out
	rg := newRig(t, o, ok)
	rg.do(t, "GET", "/x")
	rg.stop()
	wantSummaries(t, decode(t, []byte(out.String())), "RequestReceived get /x", "ResponseComplete get /x OK")
}

// A gate is a log that waits.
type gate struct {
	logtest.Log
	open chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.Log.Write(p)
}

// TestBatch: a log that does not write holds up no request, the buffer is bounded, and
// what is in it is written at the end.
func TestBatch(t *testing.T) {
	o := options(t, strings.Replace(metadataPolicy, "rules:", "omitStages: [RequestReceived]\nrules:", 1))
	out := &gate{open: make(chan struct{})}
	o.LogPath, o.Stdout, o.LogMode, o.LogBatchBufferSize = "-", out, audit.ModeBatch, 10
	rg := newRig(t, o, ok)
	const requests = 25
	for i := range requests {
		if res := rg.do(t, "GET", "/x", "Audit-ID", fmt.Sprint(i)); res.StatusCode != http.StatusOK {
			t.Error(res.Status)
		}
	}
	rg.Close() // the last handler has ended
	if got := rg.metric(t, "watchkeeper_audit_lost_events_total"); got != requests-10 {
		t.Errorf("%v events are lost", got)
	}
	if log := rg.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "audit-log-batch-buffer-size") {
		t.Errorf("log: %s", log)
	}
	close(out.open)
	rg.stop()
	var ids []string
	for _, e := range decode(t, []byte(out.String())) {
		ids = append(ids, string(e.AuditID))
	}
	if got := strings.Join(ids, " "); got != "0 1 2 3 4 5 6 7 8 9" {
		t.Errorf("written: %s", got)
	}
}

// TestAfterShutdown: events that end after Run are counted, in every mode.
func TestAfterShutdown(t *testing.T) {
	for _, mode := range audit.Modes {
		t.Run(mode, func(t *testing.T) {
			o := options(t, metadataPolicy)
			o.LogMode = mode
			kept := make(chan *audit.Event, 1)
			rg := newRig(t, o, ok)
			rg.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r = rg.auditor.Identify(w, r)
				e, err := rg.auditor.Begin(r, attributes(r, nil), false)
				if err != nil {
					t.Error(err)
				}
				kept <- e
			})
			rg.do(t, "GET", "/x")
			rg.stop()
			e := <-kept
			e.Complete()
			wantSummaries(t, rg.events(t), "RequestReceived get /x")
			if lost := rg.metric(t, "watchkeeper_audit_lost_events_total"); lost != 1 {
				t.Errorf("%v events are lost", lost)
			}
		})
	}
}

// TestConcurrent: lines of requests at the same time do not mix.
func TestConcurrent(t *testing.T) {
	for _, mode := range audit.Modes {
		t.Run(mode, func(t *testing.T) {
			o := options(t, metadataPolicy)
			o.LogMode = mode
			rg := newRig(t, o, func(e *audit.Event, w http.ResponseWriter, _ *http.Request) {
				var wg sync.WaitGroup
				for i := range 4 {
					wg.Go(func() { e.Annotate(fmt.Sprint("test/", i), "x") })
				}
				w.WriteHeader(http.StatusOK)
				wg.Wait()
			})
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 25 {
						rg.do(t, "GET", "/api/v1/pods?watch=1")
					}
				})
			}
			wg.Wait()
			stages := map[string]int{}
			for _, e := range rg.events(t) {
				stages[string(e.Stage)]++
				if e.Stage == "ResponseComplete" && len(e.Annotations) != 4 {
					t.Errorf("annotations %v", e.Annotations)
				}
			}
			for _, s := range []string{"RequestReceived", "ResponseStarted", "ResponseComplete"} {
				if stages[s] != 200 {
					t.Errorf("%d events %s", stages[s], s)
				}
			}
		})
	}
}

// killedBuffer is the buffer of the process that is killed.
const killedBuffer = 50

// writeUntilKilled prints the ID of each request that has been answered, and how many
// events did not fit into the buffer until then.
func writeUntilKilled(mode string) {
	o := audit.DefaultOptions()
	o.PolicyFile, o.LogPath = os.Args[1], os.Args[2]
	o.LogMode, o.LogBatchBufferSize = mode, killedBuffer
	a, err := audit.New(o, nil)
	if err != nil {
		panic(err)
	}
	go a.Run(context.Background()) //nolint:errcheck // it is killed
	for i := 0; ; i++ {
		r := httptest.NewRequest(http.MethodGet, "/x", http.NoBody)
		r.Header.Set("Audit-ID", fmt.Sprint(i))
		w := httptest.NewRecorder()
		r = a.Identify(w, r)
		e, err := a.Begin(r, attributes(r, nil), false)
		if err != nil {
			panic(err)
		}
		e.Complete()
		lost, err := metricOf(a, "watchkeeper_audit_lost_events_total")
		if err != nil {
			panic(err)
		}
		fmt.Println(i, lost)
	}
}

func TestKill(t *testing.T) {
	for _, mode := range audit.Modes {
		t.Run(mode, func(t *testing.T) {
			o := options(t, metadataPolicy)
			p := exec.CommandContext(t.Context(), os.Args[0], o.PolicyFile, o.LogPath)
			p.Env = append(os.Environ(), killedEnv+"="+mode)
			p.Stderr = os.Stderr
			out, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			var answered []string
			lost := 0
			lines := bufio.NewScanner(out)
			scan := func() bool {
				if !lines.Scan() {
					return false
				}
				id := ""
				if _, err := fmt.Sscan(lines.Text(), &id, &lost); err != nil {
					t.Error(err)
				}
				answered = append(answered, id)
				return true
			}
			for len(answered) < 500 && scan() {
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for scan() { // answered before the kill
			}
			p.Wait() //nolint:errcheck // it was killed
			if len(answered) < 500 {
				t.Fatalf("only %d requests", len(answered))
			}
			text := read(t, o.LogPath)
			if i := strings.LastIndexByte(string(text), '\n'); i >= 0 {
				text = text[:i+1]
			}
			written := map[string]bool{}
			for _, e := range decode(t, text) {
				if e.Stage == "ResponseComplete" {
					written[string(e.AuditID)] = true
				}
			}
			missing := 0
			for _, id := range answered {
				if !written[id] {
					missing++
				}
			}
			allowed := 0
			if mode == audit.ModeBatch {
				allowed = killedBuffer + lost
			}
			if missing > allowed {
				t.Errorf("%d of %d events are missing, allowed are %d", missing, len(answered), allowed)
			}
		})
	}
}
