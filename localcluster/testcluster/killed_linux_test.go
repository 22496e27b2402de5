// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package testcluster_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// running returns the command lines that name a folder. That of a process that has ended,
// and for which nobody has waited, is empty.
func running(t *testing.T, dir string) (all []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		line, _ := os.ReadFile(path) // fails if it has ended
		if strings.Contains(string(line), dir) {
			all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// checkNone fails if a process of a cluster in a folder runs.
func checkNone(t *testing.T, dir string) {
	t.Helper()
	if all := running(t, dir); len(all) > 0 {
		t.Errorf("still running: %q", all)
	}
}

// TestKilled: a program that is killed leaves no control plane.
func TestKilled(t *testing.T) {
	o, _ := options(t, "orphan")
	cmd := exec.CommandContext(t.Context(), o.Binary)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := bufio.NewReader(out).ReadString('\n')
	dir = strings.TrimSpace(dir)
	if err != nil {
		t.Errorf("no cluster: %v", err)
	} else if all := running(t, dir); len(all) < 6 {
		t.Errorf("before the kill: %q", all)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if dir == "" {
		return
	}
	for deadline := time.Now().Add(timeout); len(running(t, dir)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %q", timeout, running(t, dir))
		}
	}
	// They have stopped in good order, and were not killed with localcluster.
	if pids, err := os.ReadDir(filepath.Join(dir, "pids")); err != nil || len(pids) > 0 {
		t.Errorf("files in pids: %v (%v)", pids, err)
	}
}
