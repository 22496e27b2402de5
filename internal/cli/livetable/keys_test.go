// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestKeys goes through the keys for the tables.
func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 40)
	w.pod("db-0", "0/1", "Pending")
	w.api.Control(serveLogs)
	term := newTerminal(t, 80, 24)
	term.run(w.command())
	term.wait(`… 2\d below`)

	term.Text("/WEB-3")
	term.wait(`pod/web-39 .*\n(.*\n)*live · filter: WEB-3_`)
	term.golden("keys-filter")
	term.Keys("Enter", "s", "s", "s", "S") // READY has no order of its own here
	term.wait(`STATUS↓`)
	term.golden("keys-sort")
	term.Keys("Escape")
	term.wait(`… 2\d below`)
	term.Keys("s") // after the last column
	term.wait(`NAME +READY +STATUS\n`)

	term.Keys("End")
	term.wait(`pod/web-39`)
	term.wait(`… \d+ above\n`)
	term.Keys("PgUp")
	term.wait(`above, \d+ below`)
	term.Keys("Home", "Down") // over the end of the first table
	term.wait(`pod/db-0`)
	term.Keys("Enter")
	term.wait(`pods/db-0 in ns +\[yaml\]`)
	term.wait(`name: db-0`)
	term.Keys("Escape")
	term.wait(`pod/db-0`)
	term.Keys("l")
	term.wait(`^line 2 \^\[\[2J of container`)
	term.Keys("Escape")
	term.wait(`pod/db-0`)

	term.Keys("Space")
	term.wait(`^paused, 0 changes since`)
	w.pod("db-0", "0/1", "Paused")
	w.pod("db-0", "1/1", "Running")
	term.wait(`^paused, 2 changes since`)
	if strings.Contains(term.screen(), "Paused") {
		t.Error("a change shows while paused")
	}
	term.Keys("Space")
	term.wait(`pod/db-0 +1-1 +Running`)
	term.Keys("?")
	term.wait(`move the cursor`)
	term.Keys("?", "Left")
	term.wait(`no history`)
	term.Keys("C-c")
	term.wait(`^\$$`)
}

// serveLogs answers requests for the log of a Pod.
func serveLogs(rw http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
	if !strings.HasSuffix(r.URL.Path, "/log") {
		next(rw)
		return
	}
	for i := range 3 {
		fmt.Fprintf(rw, "line %d \x1b[2J of container %q\n", i, r.Query.Get("container"))
	}
	_ = http.NewResponseController(rw).Flush()
	<-r.Context().Done()
}

// TestOutage: the status line says since when the tables are stale, and when they are live.
func TestOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	term := newTerminal(t, 120, 20)
	term.run(w.command())
	term.wait(`^live · 4 rows`)
	end := w.api.Control(func(rw http.ResponseWriter, _ *fakeapi.Request, _ func(http.ResponseWriter)) {
		fakeapi.WriteStatus(rw, 503, "ServiceUnavailable", "the API server is down")
	})
	w.api.CutWatches()
	term.wait(`^stale since \d\d:\d\d:\d\d \(503: the API server is down\) · 4 rows`)
	w.pod("web-00", "0/1", "Missed")
	end()
	term.wait(`web-00 +0-1 +Missed`)
	term.wait(`^live · 4 rows`)
	term.Keys("q")
	term.wait(`^\$$`)
}

// TestNoColor: without colours, characters are the marks.
func TestNoColor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	term := newTerminal(t, 80, 20, "NO_COLOR=1")
	term.run(w.command())
	term.wait(`web-02 +1-1 +Running`)
	w.pod("web-00", "0/1", "Failed")
	term.wait(`^~ pod/web-00 +0-1\* +Failed\*`)
	w.pod("web-05", "0/1", "Pending")
	term.wait(`^\+ pod/web-05`)
	w.api.Delete("pods", "ns/web-01")
	term.wait(`^- pod/web-01`)
	if text := term.Styled(); regexp.MustCompile("\x1b\\[[0-9;]*[34][0-8]\\b").MatchString(text) {
		t.Errorf("colours:\n%q", text)
	}
	term.Keys("q")
	term.wait(`^\$$`)
}

// TestRefusedTerminal: what may not be read is an error in the shell.
func TestRefusedTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.api.Control(func(rw http.ResponseWriter, _ *fakeapi.Request, _ func(http.ResponseWriter)) {
		fakeapi.WriteStatus(rw, 403, "Forbidden", "not for you")
	})
	term := newTerminal(t, 80, 20)
	term.run(w.command())
	term.wait(`error: not for you`)
	term.wait(`^\$$`)
}

// TestPlain: lines in words, without any control of the terminal.
func TestPlain(t *testing.T) {
	w := newWorld(t, 2)
	c := w.command()
	c.Prefix = false
	o, err := c.options()
	if err != nil {
		t.Fatal(err)
	}
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o.Plain, o.Out = true, out
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- livetable.Run(ctx, o)
		out.Close()
	}()
	lines := make(chan string, 100)
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := r.Read(buffer)
			if err != nil {
				close(lines)
				return
			}
			for l := range strings.Lines(string(buffer[:n])) {
				lines <- strings.TrimSuffix(l, "\n")
			}
		}
	}()
	expect := func(want string) {
		t.Helper()
		for {
			select {
			case l, ok := <-lines:
				if !ok {
					t.Fatalf("ended before %q", want)
				}
				if strings.ContainsRune(l, '\x1b') {
					t.Errorf("%q controls the terminal", l)
				}
				if strings.Contains(l, want) {
					return
				}
			case <-time.After(deadline):
				t.Fatalf("no line has %q", want)
			}
		}
	}
	expect("web-01   1-1     Running")
	w.script()
	for _, want := range []string{
		"pods web-00 changed: READY from 1-1 to 0-1, STATUS from Running to CrashLoopBackOff",
		"pods web-01 deleted",
		"pods web-015 added: READY 0-1, STATUS Pending",
	} {
		expect(want)
	}
	end := w.api.Control(func(rw http.ResponseWriter, _ *fakeapi.Request, _ func(http.ResponseWriter)) {
		fakeapi.WriteStatus(rw, 503, "ServiceUnavailable", "down")
	})
	w.api.CutWatches()
	expect("pods: stale: ")
	w.api.Delete("pods", "ns/web-00")
	w.api.Expire()
	end()
	expect("pods web-00 deleted")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	io.Copy(io.Discard, r)
}
