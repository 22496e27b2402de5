// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/livetable"
)

// deadline is how long a test waits for the screen.
const deadline = 30 * time.Second

// A terminal is a tmux session with a shell.
type terminal struct {
	t      *testing.T
	socket string
}

// newTerminal starts a session. tmux has to be installed: scripts/deps test.
func newTerminal(t *testing.T, width, height int, env ...string) *terminal {
	t.Helper()
	dir, err := os.MkdirTemp("", "tmux") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	term := &terminal{t, filepath.Join(dir, "s")}
	args := []string{"-u", "-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}
	for _, e := range append([]string{"PS1=$ ", "LC_ALL=C.UTF-8", "TZ=UTC", "HISTFILE="}, env...) {
		args = append(args, "-e", e)
	}
	term.tmux(append(args, "bash", "--noprofile", "--norc", "-i")...)
	t.Cleanup(func() { term.tmux("kill-server") })
	term.tmux("set-option", "-g", "status", "off")
	term.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
	term.wait(`^\$$`)
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// run shows a command's tables.
func (term *terminal) run(c command) {
	term.t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		term.t.Fatal(err)
	}
	// In a script, so that the screen does not have it.
	script := filepath.Join(filepath.Dir(term.socket), "get")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nLIVETABLE='%s' exec '%s'\n", text, os.Args[0]), 0o755); err != nil {
		term.t.Fatal(err)
	}
	term.tmux("send-keys", "-l", "PATH=$PATH:"+filepath.Dir(term.socket)+"; clear")
	term.keys("Enter")
	term.wait(`\A\$\n\z`)
	term.tmux("send-keys", "-l", "get")
	term.keys("Enter")
}

func (term *terminal) keys(keys ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, keys...)...)
}

var rate = regexp.MustCompile(`\d+ changes/s`)

// screen is what the terminal shows.
func (term *terminal) screen() string {
	term.t.Helper()
	text := rate.ReplaceAllString(term.tmux("capture-pane", "-p"), "N changes/s")
	return strings.TrimRight(text, "\n") + "\n"
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
		t.Run(name, func(t *testing.T) { f(t, name, size[0], size[1]) })
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

		term.tmux("resize-window", "-x", "30", "-y", "9")
		term.golden(name + "-small")
		term.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
		term.golden(name + "-large")

		term.keys("C-z")
		term.wait(`Stopped`)
		w.pod("web-02", "0/1", "Terminating")
		term.tmux("send-keys", "-l", "clear; fg")
		term.keys("Enter")
		term.wait(`web-02 .*Terminating`)
		term.golden(name + "-resumed")

		term.keys("q")
		term.wait(`^\$$`)
		term.golden(name + "-end")
	})
}
