// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/termtest"
)

// deadline is how long a test waits for the screen.
const deadline = 30 * time.Second

// A terminal is a terminal with the command "get".
type terminal struct {
	*termtest.Terminal
	t   *testing.T
	dir string // of the command
}

func newTerminal(t *testing.T, width, height int, env ...string) *terminal {
	t.Helper()
	dir := t.TempDir()
	env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH")}, env...)
	return &terminal{termtest.New(t, width, height, env...), t, dir}
}

// run shows a command's tables.
func (term *terminal) run(c command) {
	term.t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		term.t.Fatal(err)
	}
	// In a script, so that the screen does not have it.
	script := filepath.Join(term.dir, "get")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nLIVETABLE='%s' exec '%s'\n", text, os.Args[0]), 0o755); err != nil {
		term.t.Fatal(err)
	}
	term.Type("get")
}

var rate = regexp.MustCompile(`\d+ changes/s`)

// screen is what the terminal shows.
func (term *terminal) screen() string {
	term.t.Helper()
	return rate.ReplaceAllString(term.Screen(), "N changes/s")
}

// wait waits until the screen matches.
func (term *terminal) wait(pattern string) string {
	term.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	var text string
	for began := time.Now(); time.Since(began) < deadline; time.Sleep(50 * time.Millisecond) {
		if text = term.screen(); re.MatchString(text) {
			return text
		}
	}
	term.t.Fatalf("the screen does not show %q:\n%s", pattern, text)
	return ""
}

// golden waits until the screen is as in a file.
func (term *terminal) golden(name string) {
	term.t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		time.Sleep(6 * time.Second) // marks have faded, and rows are gone
		if err := os.WriteFile(file, []byte(term.screen()), 0o644); err != nil {
			term.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		term.t.Fatal(err)
	}
	var got string
	for began := time.Now(); time.Since(began) < deadline; time.Sleep(100 * time.Millisecond) {
		if got = term.screen(); got == string(want) {
			return
		}
	}
	term.t.Errorf("%s: -want +got\n%s", name, cmp.Diff(string(want), got))
}

// A world is an API server with a Deployment and its Pods, whose columns are labels.
type world struct {
	api    *fakeapi.Server
	server *httptest.Server
}

func newWorld(t testing.TB, pods int) *world {
	api := fakeapi.New(fakeapi.Options{Resources: []fakeapi.Resource{fakeapi.Pods, fakeapi.Deployments}})
	w := &world{api, httptest.NewServer(api)}
	t.Cleanup(w.server.Close)
	t.Cleanup(w.server.CloseClientConnections)
	w.deployment("web", "1/1")
	for i := range pods {
		w.pod(fmt.Sprintf("web-%02d", i), "1/1", "Running")
	}
	return w
}

func (w *world) deployment(name, ready string) {
	w.api.Put("deployments.apps", object(name, fmt.Sprintf(`"ready":%q`, strings.ReplaceAll(ready, "/", "-"))))
}

func (w *world) pod(name, ready, status string) {
	w.api.Put("pods", object(name, fmt.Sprintf(`"ready":%q,"status":%q`, strings.ReplaceAll(ready, "/", "-"), status)))
}

func object(name, labels string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"labels":{%s}}}`, name, labels)
}

// command shows both resources.
func (w *world) command() command {
	return command{Server: w.server.URL, Resources: []string{"apps/v1/deployments", "v1/pods"}, Namespace: "ns", Prefix: true,
		Options: livetable.Options{LabelColumns: []string{"ready", "status"}}}
}

// script is the changes of a rollout that fails.
func (w *world) script() {
	w.deployment("web", "0/1")
	w.pod("web-00", "0/1", "CrashLoopBackOff")
	w.api.Delete("pods", "ns/web-01")
	w.pod("web-015", "0/1", "Pending")
}

func sizes(t *testing.T, f func(t *testing.T, name string, width, height int)) {
	for _, size := range [][2]int{{80, 24}, {200, 60}} {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, name, size[0], size[1])
		})
	}
}

// TestTerminal: the screen after changes, resizes, a suspension and the end.
func TestTerminal(t *testing.T) {
	sizes(t, func(t *testing.T, name string, width, height int) {
		w := newWorld(t, 5)
		term := newTerminal(t, width, height)
		term.run(w.command())
		term.wait(`pod/web-04 .*Running`)
		term.golden(name + "-first")
		w.script()
		term.wait(`web-00 .*CrashLoop`)
		term.golden(name + "-changed")

		term.Resize(30, 9)
		term.golden(name + "-small")
		term.Resize(width, height)
		term.golden(name + "-large")

		term.Keys("C-z")
		term.wait(`Stopped`)
		w.pod("web-02", "0/1", "Terminating")
		term.Type("clear; fg")
		term.wait(`web-02 .*Terminating`)
		term.golden(name + "-resumed")

		term.Keys("q")
		term.wait(`^\$$`)
		term.golden(name + "-end")
	})
}
