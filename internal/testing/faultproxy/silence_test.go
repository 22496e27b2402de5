// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestSilence: a watch gets bookmarks, and nothing once it is silent; a later
// watch is served; and Heal cuts the silent one.
func TestSilence(t *testing.T) {
	more := make(chan int) // events of the first watch
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var events chan int
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			events = more
			fmt.Fprint(w, line("ADDED", 25), line("ADDED", 11), endBookmark(30))
		} else {
			fmt.Fprint(w, line("MODIFIED", 40))
		}
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case rv := <-events:
				fmt.Fprint(w, line("MODIFIED", rv))
			}
		}
	}))
	defer s.Close()
	p, err := Start(Options{Upstream: &rest.Config{Host: s.URL}, Bookmarks: 20 * time.Millisecond,
		Draw: func(string, Kind, int) Fault { return Fault{Name: None} }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	open := func(query string) *bufio.Reader {
		resp, err := http.Get(p.URL() + "/api/v1/pods?watch=1" + query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return bufio.NewReader(resp.Body)
	}
	next := func(r *bufio.Reader, want string) {
		t.Helper()
		if got, err := r.ReadString('\n'); err != nil || got != want {
			t.Fatalf("%q %v, want %q", got, err, want)
		}
	}
	// mark returns a bookmark as the proxy adds it.
	mark := func(rv int) string {
		return strings.Replace(line("BOOKMARK", rv), `"kind":"Pod","metadata":{"name":"a",`, `"kind":"Pod","apiVersion":"","metadata":{`, 1)
	}
	one := open("&sendInitialEvents=true")
	for _, want := range []string{line("ADDED", 25), line("ADDED", 11), endBookmark(30), mark(30), mark(30)} {
		next(one, want)
	}
	more <- 31
	for got := mark(30); got == mark(30); {
		if got, err = one.ReadString('\n'); err != nil || got != mark(30) && got != line("MODIFIED", 31) {
			t.Fatalf("%q %v", got, err)
		}
	}
	next(one, mark(31))
	if n := p.Silence(); n != 1 {
		t.Errorf("%d watches are silent", n)
	}
	more <- 50
	two := open("&resourceVersion=31")
	next(two, line("MODIFIED", 40))
	next(two, mark(40))
	if n := p.Bookmarked(); n < 4 {
		t.Errorf("%d bookmarks", n)
	}
	p.Heal()
	for got := mark(31); ; { // one may have been in flight
		if got != mark(31) {
			t.Errorf("%q on the silent watch", got)
		}
		if got, err = one.ReadString('\n'); err != nil {
			break
		}
	}
}
