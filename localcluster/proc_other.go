// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// processAttributes puts a child into its own process group, so that Ctrl-C in
// the terminal reaches only us. Outside Linux no kernel ties a child's life to
// ours: after a SIGKILL of `up` its components must be stopped by hand, from
// DIR/pids.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

type launcher struct{}

func newLauncher() launcher { return launcher{} }

func (launcher) start(cmd *exec.Cmd) error { return cmd.Start() }
