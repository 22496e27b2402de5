// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// manyLoopbacks: every address of 127.0.0.0/8 is this machine's.
const manyLoopbacks = true

// processAttributes puts a child into its own process group, so that Ctrl-C in the
// terminal reaches only this process. The kernel kills the child when this process
// ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// launcher starts every child from one OS thread that lives as long as the process.
// Pdeathsig fires when the *thread* that forked the child ends, and the Go runtime may
// end other threads at any time.
type launcher chan launch

type launch struct {
	cmd    *exec.Cmd
	result chan error
}

func newLauncher() launcher {
	l := make(launcher)
	go func() {
		runtime.LockOSThread()
		for request := range l { // never closed
			request.result <- request.cmd.Start()
		}
	}()
	return l
}

func (l launcher) start(cmd *exec.Cmd) error {
	result := make(chan error)
	l <- launch{cmd, result}
	return <-result
}
