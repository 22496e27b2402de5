// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package termtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// deadline is how long a test waits for the screen.
	deadline = 60 * time.Second
	interval = 50 * time.Millisecond
)

// A Terminal is a tmux session with a shell.
type Terminal struct {
	Width, Height int

	t      testing.TB
	socket string
}

// New starts a session of a size, with variables such as "TERM=dumb" in the environment of its
// shell. It ends with the test.
func New(t testing.TB, width, height int, env ...string) *Terminal {
	t.Helper()
	return Start(t, width, height, []string{"bash", "--noprofile", "--norc", "-i"}, env...)
}

// Start is like New with another shell, whose prompt has to be "$ ".
func Start(t testing.TB, width, height int, shell []string, env ...string) *Terminal {
	t.Helper()
	if _, err := exec.LookPath(shell[0]); err != nil {
		t.Fatalf("%v: install it, for example by scripts/deps test", err)
	}
	dir, err := os.MkdirTemp("", "tmux") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	term := &Terminal{width, height, t, filepath.Join(dir, "s")}
	args := []string{"-u", "-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}
	// Of variables that are given to tmux itself, PATH would be overridden.
	args = append(args, "env", "PS1=$ ", "LC_ALL=C.UTF-8", "TZ=UTC", "HISTFILE=", "TERM=tmux-256color", "COLORTERM=")
	term.Tmux(append(append(args, env...), shell...)...)
	t.Cleanup(func() { term.Tmux("kill-server") })
	term.Tmux("set-option", "-g", "status", "off")
	term.Resize(width, height)
	term.Wait(`^\$$`)
	return term
}

// Tmux runs a command of tmux, and returns its output.
func (term *Terminal) Tmux(args ...string) string {
	term.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Resize changes the size.
func (term *Terminal) Resize(width, height int) {
	term.t.Helper()
	term.Width, term.Height = width, height
	term.Tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// Type types text and presses Enter.
func (term *Terminal) Type(text string) {
	term.t.Helper()
	term.Text(text)
	term.Keys("Enter")
}

// Text types text.
func (term *Terminal) Text(text string) {
	term.t.Helper()
	term.Tmux("send-keys", "-l", text)
}

// Keys presses keys, by tmux's names for them.
func (term *Terminal) Keys(keys ...string) {
	term.t.Helper()
	term.Tmux(append([]string{"send-keys"}, keys...)...)
}

// Screen is the text on the screen, without empty lines at its end.
func (term *Terminal) Screen() string {
	term.t.Helper()
	return strings.TrimRight(term.Tmux("capture-pane", "-p"), "\n") + "\n"
}

// Styled is the screen with escape sequences for colours and other attributes.
func (term *Terminal) Styled() string {
	term.t.Helper()
	return term.Tmux("capture-pane", "-e", "-p")
}

// Wait waits until the screen matches a pattern, and returns it.
func (term *Terminal) Wait(pattern string) string {
	term.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	var text string
	for began := time.Now(); time.Since(began) < deadline; time.Sleep(interval) {
		if text = term.Screen(); re.MatchString(text) {
			return text
		}
	}
	term.t.Fatalf("the screen does not show %q:\n%s", pattern, text)
	return ""
}
