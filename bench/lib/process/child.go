// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io"
	"os"
	"os/exec"
)

// A Child is this program in a process of its own, which also ends with this one.
type Child struct {
	PID int
	In  io.WriteCloser
	Out io.Reader

	cmd *exec.Cmd
}

// StartSelf starts this program with arguments that make it read In and write Out. It
// ends when its input does. The caller calls Stop.
func StartSelf(args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
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

// Stop ends the process.
func (c *Child) Stop() {
	c.In.Close()
	_ = c.cmd.Wait() // what it wrote has said what matters
}
