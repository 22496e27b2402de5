// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve starts a server for each of the protocols and runs the test at it.
func serve(t *testing.T, handler http.Handler, test func(*testing.T, Target)) {
	t.Run("http1", func(t *testing.T) {
		s := httptest.NewServer(handler)
		defer s.Close()
		test(t, Target{Address: s.Listener.Addr().String(), Protocol: HTTP1})
	})
	for _, p := range []Protocol{HTTP2, GoHTTP2} {
		t.Run(string(p), func(t *testing.T) {
			s := httptest.NewUnstartedServer(handler)
			s.EnableHTTP2 = true
			s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 7}
			s.StartTLS()
			defer s.Close()
			roots := x509.NewCertPool()
			roots.AddCert(s.Certificate())
			test(t, Target{Address: s.Listener.Addr().String(), Protocol: p, TLS: &tls.Config{RootCAs: roots}})
		})
	}
}

// feed is a server that answers each request with the same pieces, each flushed when it
// is released; the response then stays open.
type feed struct {
	pieces  chan []string // for each request
	release chan struct{}
	end     bool // the body ends after the pieces
}

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/watch" || r.Header.Get("Accept") != "application/json" {
		http.NotFound(w, r)
		return
	}
	flush := http.NewResponseController(w).Flush
	flush()
	<-f.release
	for _, p := range <-f.pieces {
		fmt.Fprint(w, p)
		flush()
	}
	if !f.end {
		<-r.Context().Done()
	}
}

func newFeed(requests int, pieces ...string) *feed {
	f := &feed{pieces: make(chan []string, requests), release: make(chan struct{})}
	for range requests {
		f.pieces <- pieces
	}
	return f
}

func repeat(n int, path string) []string { return slices.Repeat([]string{path}, n) }

func TestCounts(t *testing.T) {
	const watches = 20 // more than one HTTP/2 connection may have
	long := strings.Repeat("x", 40_000)
	var f *feed
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.ServeHTTP(w, r) }), func(t *testing.T, target Target) {
		f = newFeed(watches, "one\ntwo", "\n", long+"\n", "\r\n0\r\n\r\n", "not ended")
		set, err := Open(t.Context(), target, Options{Paths: repeat(watches, "/watch")})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		if c := set.Counts(); c != (Counts{}) {
			t.Errorf("before anything is sent: %+v", c)
		}
		close(f.release)
		const lines = 6
		c, err := set.WaitEach(lines, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if want := (Counts{Total: lines * watches, Min: lines, Max: lines}); c != want {
			t.Errorf("%+v, want %+v", c, want)
		}
		if _, err := set.Wait(lines*watches-1, time.Second); err == nil {
			t.Error("more lines than waited for are no error")
		}
		set.Close()
		if c := set.Counts(); c.Cut != 0 || c.Err != nil {
			t.Errorf("closing counts as a cut: %+v", c)
		}
	})
}

func TestCut(t *testing.T) {
	var f *feed
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.ServeHTTP(w, r) }), func(t *testing.T, target Target) {
		f = newFeed(3, "one\n")
		f.end = true
		set, err := Open(t.Context(), target, Options{Paths: repeat(3, "/watch")})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		close(f.release)
		if _, err := set.Wait(1<<40, 10*time.Second); err == nil || !strings.Contains(err.Error(), "cut") {
			t.Errorf("a watch that ends: %v", err)
		}
	})
}

// Each watch has its own header, and its end is told with its index.
func TestHeaderAndEnd(t *testing.T) {
	const watches = 20
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		if r.Header.Get("Authorization") != "Bearer 13" || r.Header.Get("Accept") != "application/json" {
			<-r.Context().Done()
		}
	})
	serve(t, handler, func(t *testing.T, target Target) {
		ended := make(chan int, watches)
		set, err := Open(t.Context(), target, Options{
			Paths:  repeat(watches, "/watch"),
			Header: func(i int) map[string]string { return map[string]string{"Authorization": fmt.Sprint("Bearer ", i)} },
			Ended: func(i int, at time.Time, err error) {
				if err != nil || time.Since(at) > time.Minute {
					t.Errorf("watch %d ended at %v with %v", i, at, err)
				}
				ended <- i
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case i := <-ended:
			if i != 13 {
				t.Errorf("watch %d ended", i)
			}
		case <-time.After(10 * time.Second):
			t.Error("no watch ended")
		}
		set.Close() // which ends the others, and does not tell
		if len(ended) > 0 {
			t.Errorf("watch %d ended too", <-ended)
		}
	})
}

func TestRefused(t *testing.T) {
	serve(t, http.NotFoundHandler(), func(t *testing.T, target Target) {
		if _, err := Open(t.Context(), target, Options{Paths: repeat(2, "/watch")}); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("a status of 404: %v", err)
		}
		c, err := Dial(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Get("/watch", nil); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("a status of 404: %v", err)
		}
	})
}

func TestObserve(t *testing.T) {
	var f *feed
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.ServeHTTP(w, r) }), func(t *testing.T, target Target) {
		// The second resourceVersion of a line is that of something else.
		f = newFeed(2, `{"metadata":{"resourceVersion":"17","a":"`+strings.Repeat("x", 2*headSize)+"\"}}\n{\"metadata\":{\"resourceV",
			`ersion":"18"},"b":{"resourceVersion":"3"}}`, "\n", "{}\n")
		var mu sync.Mutex
		got := map[int][]uint64{}
		set, err := Open(t.Context(), target, Options{Paths: repeat(2, "/watch"), Observe: func(watch int, rv uint64, at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			got[watch] = append(got[watch], rv)
		}})
		if err != nil {
			t.Fatal(err)
		}
		close(f.release)
		if _, err := set.WaitEach(3, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		set.Close()
		for watch := range 2 {
			if !slices.Equal(got[watch], []uint64{17, 18, 0}) {
				t.Errorf("watch %d: %d", watch, got[watch])
			}
		}
	})
}

func TestGet(t *testing.T) {
	// More than the window a server begins with.
	body := strings.Repeat("a list of many things, ", 200_000)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			fmt.Fprint(w, body)
		case "/chunks":
			fmt.Fprint(w, body)
		case "/header":
			fmt.Fprint(w, r.Header.Get("Accept"), r.Header.Get("Authorization"), r.URL.RawQuery)
		case "/empty":
		}
	})
	serve(t, handler, func(t *testing.T, target Target) {
		target.Header = map[string]string{"Authorization": "Bearer x"}
		c, err := Dial(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for path, want := range map[string]int{
			"/length": len(body), "/chunks": len(body), "/empty": 0, "/header?q=1": len("text/plainBearer xq=1"),
		} {
			for range 2 {
				a, err := c.Get(path, map[string]string{"Accept": "text/plain"})
				if err != nil {
					t.Fatal(err)
				}
				if a.Bytes != int64(want) || a.Wall <= 0 {
					t.Errorf("%s: %+v, want %d bytes", path, a, want)
				}
			}
		}
	})
}

// The end of a connection ends its watches.
func TestConnectionLost(t *testing.T) {
	f := newFeed(5, "one\n")
	s := httptest.NewServer(f)
	defer s.Close()
	set, err := Open(t.Context(), Target{Address: s.Listener.Addr().String(), Protocol: HTTP1}, Options{Paths: repeat(5, "/watch")})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	close(f.release)
	if _, err := set.WaitEach(1, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	s.CloseClientConnections()
	for start := time.Now(); set.Counts().Cut < 5; time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%+v", set.Counts())
		}
	}
}
