// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package livetable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStopped: after a stop that cannot be caught, the terminal is set up again.
func TestStopped(t *testing.T) {
	w := newWorld(t, 3)
	term := newTerminal(t, 80, 20)
	term.run(w.command())
	term.wait(`web-02 +1-1 +Running`)
	pid := term.child()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	term.wait(`Stopped`)
	term.Type("clear; fg")
	w.pod("web-00", "0/1", "Failed")
	term.wait(`web-00 +0-1 +Failed`)
	term.Keys("q")
	term.wait(`^\$$`)
}

// TestSignals: a signal that ends the program leaves the terminal as it was.
func TestSignals(t *testing.T) {
	w := newWorld(t, 1)
	term := newTerminal(t, 80, 20)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		term.Type("clear")
		term.run(w.command())
		term.wait(`web-00 +1-1 +Running`)
		if err := syscall.Kill(term.child(), s); err != nil {
			t.Fatal(err)
		}
		term.wait(`^\$$`)
		term.Type("clear; stty -a | tr ' ' '\\n' | grep -xE -- '-?(echo|icanon)' | tr '\\n' ' '")
		term.wait(`^icanon echo `)
	}
}

// child returns the process that the shell runs.
func (term *terminal) child() int {
	term.t.Helper()
	shell := strings.TrimSpace(term.Tmux("display-message", "-p", "#{pane_pid}"))
	text, err := os.ReadFile(filepath.Join("/proc", shell, "task", shell, "children"))
	if err != nil {
		term.t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		term.t.Fatal(err)
	}
	return pid
}
