// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a server and its client in one: the client has a change at once; the handler is
// called a little later, and for half of the changes only.
type fake struct {
	t *testing.T

	mu       sync.Mutex
	handled  int64
	rv       string
	decode   bool
	commands []string // and whether the handler decoded
	pods     int
	garbage  []byte
	done     sync.WaitGroup
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	command := r.URL.RequestURI()
	if f.decode {
		command += " decoding"
	}
	f.commands = append(f.commands, command)
	f.rv += "1"
	f.done.Go(func() {
		time.Sleep(50 * time.Millisecond)
		for range 5 {
			f.mu.Lock()
			f.handled++
			f.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
		}
	})
	json.NewEncoder(w).Encode(mark{"a", "b", f.rv})
}

func (f *fake) Start(context.Context, Target) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled = 10
	// The heap has only the kept bytes; the garbage is only in the peak.
	f.garbage = bytes.Repeat([]byte("x"), 64<<20)
	f.garbage = bytes.Repeat([]byte("x"), 1<<20)
	return nil
}

func (f *fake) Synced() bool { return true }

func (f *fake) Handled() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handled
}

func (f *fake) Len() int { return f.pods }

func (f *fake) ResourceVersion(namespace, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if namespace != "a" || name != "b" {
		f.t.Errorf("the resourceVersion of %s/%s was requested", namespace, name)
	}
	return f.rv
}

func (f *fake) Decode(d bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decode = d
}

func measureFake(t *testing.T, f *fake) (Result, error) {
	t.Helper()
	f.t = t
	server := httptest.NewServer(f)
	defer server.Close()
	defer f.done.Wait()
	return Run(Order{Target: Target{URL: server.URL}, Pods: 10, Events: 10}, f)
}

func TestPhases(t *testing.T) {
	f := &fake{pods: 10}
	r, err := measureFake(t, f)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(f.commands, ", "), "/bench/events?n=10, /bench/events?n=10 decoding, /bench/expire"; got != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
	if r.Sync.Handled != 10 || r.Events.Handled != 5 || r.Decoded.Handled != 5 || r.Relist.Handled != 5 {
		t.Errorf("calls of the handler: %d, %d, %d, %d", r.Sync.Handled, r.Events.Handled, r.Decoded.Handled, r.Relist.Handled)
	}
	// The fake's garbage is collected, and a tenth of a mebibyte is kept per object. The
	// rest of the heap changes by less.
	if r.HeapPerObject < 100_000 || r.HeapPerObject > 1_000_000 {
		t.Errorf("%.0f bytes of heap per object", r.HeapPerObject)
	}
	if r.Sync.RSSPeak-r.Sync.RSSBefore < 50<<20 {
		t.Errorf("peak at sync %.0f, before %.0f: 64 MiB are missing", r.Sync.RSSPeak, r.Sync.RSSBefore)
	}
	if r.Events.RSSBefore > r.Sync.RSSPeak-50<<20 {
		t.Errorf("%.0f before the events, peak at sync %.0f: the garbage was not collected", r.Events.RSSBefore, r.Sync.RSSPeak)
	}
	if r.Events.RSSPeak > r.Sync.RSSPeak-30<<20 {
		t.Errorf("peak of the events %.0f, at sync %.0f: the peak was not reset", r.Events.RSSPeak, r.Sync.RSSPeak)
	}
}

func TestPodsMissing(t *testing.T) {
	if _, err := measureFake(t, &fake{pods: 9}); err == nil || err.Error() != "9 Pods are kept of 10" {
		t.Errorf("error %v", err)
	}
}

// TestSample: samples replace the kernel's peak where it cannot be reset.
func TestSample(t *testing.T) {
	before, err := status("VmRSS:")
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{stop: make(chan struct{})}
	m.sampler.Go(m.sample)
	used := bytes.Repeat([]byte("x"), 64<<20)
	peak, err := m.peak()
	if err != nil || peak < before+50<<20 {
		t.Errorf("peak %.0f, before %.0f, error %v", peak, before, err)
	}
	runtime.KeepAlive(used)
}

func TestUnknownMode(t *testing.T) {
	in, out := io.Pipe() // stays open: its end would end the process
	go json.NewEncoder(out).Encode(Order{Mode: "nope"})
	if err := run(nil, []Mode{{Name: "yes"}}, in, io.Discard); err == nil || err.Error() != `no mode "nope"` {
		t.Errorf("error %v", err)
	}
}
