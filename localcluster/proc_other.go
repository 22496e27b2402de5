// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// manyLoopbacks: only 127.0.0.1 is.
const manyLoopbacks = false

// processAttributes puts a child into its own process group, so that Ctrl-C in the
// terminal reaches only this process. Only Linux can kill children when their parent
// is killed: elsewhere, after a SIGKILL of up, stop the processes in DIR/pids by hand.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

type launcher struct{}

func newLauncher() launcher { return launcher{} }

func (launcher) start(cmd *exec.Cmd) error { return cmd.Start() }
