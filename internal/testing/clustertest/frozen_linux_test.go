// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestIsFrozen(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pid := strconv.Itoa(cmd.Process.Pid)
	if isFrozen(pid) {
		t.Error("frozen before the signal")
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); isFrozen(pid) != (signal == syscall.SIGSTOP); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after %v: frozen is %v", signal, isFrozen(pid))
			}
		}
	}
}
