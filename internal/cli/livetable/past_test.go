// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable"
)

// The recording of make demo: a rollout, a crash loop and a lost Node.
const demo = "../../../demo/incident.wkr"

// demoServer serves the recording for all tests, and returns its URL. (The command sets a logger
// of the process: several could not run at a time.)
var demoServer = sync.OnceValues(func() (string, error) {
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	stopDemo = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		code := cli.Main(ctx, []string{"watchkeeper", "open", demo, "--port", "0"}, strings.NewReader(""), in, os.Stderr)
		in.CloseWithError(fmt.Errorf("open ended with %d", code))
	}()
	serving := regexp.MustCompile(`Starting to serve on (\S+)`)
	r := bufio.NewScanner(out)
	for r.Scan() {
		if m := serving.FindStringSubmatch(r.Text()); m != nil {
			go io.Copy(io.Discard, out)
			base := m[1]
			if !strings.HasPrefix(base, "http") {
				base = "http://" + base
			}
			return base, nil
		}
	}
	return "", fmt.Errorf("open does not serve: %w", r.Err())
})

// stopDemo stops demoServer, which removes its files.
var stopDemo = func() {}

// openDemo returns the URL of demoServer.
func openDemo(t *testing.T) string {
	t.Helper()
	base, err := demoServer()
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func demoCommand(server string) command {
	return command{Server: server, Resources: []string{"apps/v1/deployments"}, Namespace: "shop", Gateway: true}
}

// TestPast goes through a recording: it plays to its end, steps back to a change and on, and
// shows an object as it was.
func TestPast(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	t.Parallel()
	server := openDemo(t)
	term := newTerminal(t, 110, 24)
	c := demoCommand(server)
	c.At, c.Speed = "2026-11-21T23:49:30Z", 600
	term.run(c)
	term.wait(`^at 2026-11-21 23:53:48`)
	term.wait(`payments +4/4 +4 +4 `)
	term.Keys("Left")
	term.wait(`payments +3/4 +4 +3 `)
	term.Keys("Left")
	term.wait(`payments +4/4 +3 +4 `)
	term.Keys("Left")
	term.wait(`payments +4/4 +2 +4 `)
	term.Keys("Right")
	term.wait(`payments +4/4 +3 +4 `)
	term.golden("past")
	term.Keys("[")
	term.wait(`frontend +18/18`)
	term.Keys("Down", "Down", "Enter")
	term.wait(`\[yaml\]`)
	term.wait(`kind: Deployment`)
	term.Keys("Tab")
	term.golden("past-versions")
	term.Keys("Tab")
	term.wait(`^\+`)
	term.golden("past-diff")
	term.Keys("Escape")
	term.wait(`frontend +18/18`)
	for range 4 {
		term.Keys("-")
	}
	term.Keys("Space")
	term.wait(`^playing 37.5x at`)
	term.Keys("Space")
	term.wait(`^at 2026-11-21 23:5[23]:`)
	term.Keys("[")
	term.wait(`^at .*\(([789]\d|1\d\d)s ago\) · 5 rows`) // it has been read
	for range 5 {
		term.Keys("Space") // play, stop, play, stop, play
		time.Sleep(50 * time.Millisecond)
	}
	term.wait(`payments +4/4 +4 +4 `)
	term.wait(`^at 2026-11-21 23:53:48`)
	term.Keys("q")
	term.wait(`^\$$`)
	term.golden("past-end")
}

// TestStep: steps visit each change of a recording once, forwards and backwards alike.
func TestStep(t *testing.T) {
	t.Parallel()
	base, err := url.Parse(openDemo(t))
	if err != nil {
		t.Fatal(err)
	}
	g := &livetable.Gateway{Base: base, Transport: http.DefaultTransport}
	walk := func(from time.Time, forward bool) (all []time.Time) {
		for len(all) < 25 {
			at, ok, err := g.Step(t.Context(), []string{"deployments.apps"}, "shop", from, forward)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return all
			}
			if forward != at.After(from) {
				t.Fatalf("a step from %v leads to %v", from, at)
			}
			all, from = append(all, at), at
		}
		return all
	}
	end, _, err := g.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	back := walk(end.Add(time.Millisecond), false)
	if len(back) != 25 {
		t.Fatalf("%d changes", len(back))
	}
	on := walk(back[len(back)-1], true)
	if len(on) != len(back)-1 {
		t.Fatalf("%d steps back, and %d on", len(back), len(on)+1)
	}
	for i, at := range on {
		if !at.Equal(back[len(back)-2-i]) {
			t.Errorf("step %d: %v back, %v on", i, back[len(back)-2-i], at)
		}
	}
}

// TestDetails: an object that does not exist is an error in words.
func TestDetails(t *testing.T) {
	base, err := url.Parse(openDemo(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &livetable.Watch{Base: base, Transport: http.DefaultTransport, Resource: kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}}
	d := &livetable.ObjectDetails{Gateway: &livetable.Gateway{Base: base, Transport: http.DefaultTransport}}
	o := livetable.Object{Watch: w, Namespace: "shop", Name: "none", At: "2026-11-21T23:53:00Z"}
	if text, err := d.Text(t.Context(), o, "yaml"); err == nil || !strings.Contains(err.Error(), `deployments.apps "none" not found`) {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := d.Text(t.Context(), o, "versions"); err == nil && text != "no versions are recorded" {
		t.Errorf("%q, %v", text, err)
	}
}
