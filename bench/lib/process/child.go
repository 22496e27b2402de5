// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io"
	"os"
	"os/exec"
)

// A Child is a process that is spoken with over its standard input and output.
type Child struct {
	PID int
	In  io.WriteCloser
	Out io.Reader

	cmd *exec.Cmd
}

// Start starts a process that ends when its input does, and so with this one. Its
// standard error is this process's. The caller calls Stop.
func Start(cmd *exec.Cmd) (*Child, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Child{PID: cmd.Process.Pid, In: in, Out: out, cmd: cmd}, nil
}

// StartSelf starts this program in its own process, with arguments.
func StartSelf(args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return Start(exec.Command(self, args...))
}

// Stop ends the process.
func (c *Child) Stop() {
	c.In.Close()
	_ = c.cmd.Wait() // what it wrote has said what matters
}
