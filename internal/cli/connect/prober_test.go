// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// A freezer is a gateway whose watch has a line each time the test wants one, and which answers
// nothing while it is frozen.
type freezer struct {
	frozen atomic.Bool
	line   chan string
}

func (f *freezer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for f.frozen.Load() && r.Context().Err() == nil {
		time.Sleep(time.Second)
	}
	switch {
	case r.URL.Path == "/slow":
		time.Sleep(time.Minute)
	case r.URL.Query().Get("watch") != "" || r.URL.Path == "/cut":
		for w.WriteHeader(http.StatusOK); ; {
			w.(http.Flusher).Flush()
			select {
			case line := <-f.line:
				fmt.Fprintln(w, line)
			case <-r.Context().Done():
				return
			}
		}
	}
}

// newFreezer returns a gateway, its network, what the commands say of it, and a function that asks it.
func newFreezer(t *testing.T) (*freezer, *informertest.Network, *logtest.Log, func(path string) (*http.Response, error)) {
	gateway := &freezer{line: make(chan string)}
	network := informertest.NewNetwork(gateway)
	transport := http.DefaultTransport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = network.Dial
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		transport.DialContext = dial
		network.Close()
		time.Sleep(time.Second) // of a handler that was frozen
	})
	said := &logtest.Log{}
	flags := connect.NewFlags()
	flags.Err = said
	flags.Use(network.URL().String())
	client, err := flags.HTTPClient()
	if err != nil {
		t.Fatal(err)
	}
	return gateway, network, said, func(path string) (*http.Response, error) { return client.Get(network.URL().String() + path) }
}

// TestSilentAfterPause: the time in which nothing was asked is none without an answer.
func TestSilentAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway, _, _, get := newFreezer(t)
		answer, err := get("/pods")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		time.Sleep(time.Minute)
		gateway.frozen.Store(true)
		defer gateway.frozen.Store(false)
		frozen := time.Now()
		if _, err := get("/pods"); !errors.Is(err, connect.ErrSilent) || time.Since(frozen) < 30*time.Second {
			t.Errorf("after %s: %v", time.Since(frozen), err)
		}
	})
}

// TestSilentGateway: a gateway that is slow, or has no events, is waited for. One that answers
// nothing is named after 15 seconds, and fails what waits for it after 30, except open watches.
func TestSilentGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway, network, said, get := newFreezer(t)
		watch, err := get("/pods?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Body.Close()
		lines := bufio.NewScanner(watch.Body)
		unended, err := get("/cut")
		if err != nil {
			t.Fatal(err)
		}
		defer unended.Body.Close()
		slow, err := get("/slow")
		if err != nil {
			t.Fatal(err)
		}
		slow.Body.Close()
		if text := said.Take(); text != "" {
			t.Errorf("of a gateway that answers: %q", text)
		}

		gateway.frozen.Store(true)
		frozen := time.Now()
		for _, fails := range []func() error{
			func() error { _, err := get("/pods"); return err },
			func() error { _, err := get("/pods?watch=true"); return err },
			func() error { _, err := io.ReadAll(unended.Body); return err },
		} {
			if err := fails(); !errors.Is(err, connect.ErrSilent) {
				t.Error(err)
			}
		}
		if took := time.Since(frozen); took < 30*time.Second || took > 45*time.Second {
			t.Errorf("the requests failed after %s", took)
		}
		since := said.Take()
		if strings.Count(since, "\n") != 1 || !strings.HasPrefix(since, network.URL().String()+" has not answered since ") {
			t.Errorf("%q", since)
		}

		gateway.frozen.Store(false)
		gateway.line <- "an event"
		if !lines.Scan() || lines.Text() != "an event" {
			t.Errorf("%q %v", lines.Text(), lines.Err())
		}
		if want := network.URL().String() + " answers again\n"; said.String() != want {
			t.Errorf("%q, want %q", said.String(), want)
		}
	})
}
