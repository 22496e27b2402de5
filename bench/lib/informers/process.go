// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A Process is an informer in a process of its own.
type Process struct {
	PID    int
	Synced Synced

	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// StartSelf starts this program with arguments that make it call Serve with its standard
// input and output, and returns when the informer has synced. The caller calls Stop; the
// process also ends with this one.
func StartSelf(o Order, args ...string) (p *Process, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p = &Process{cmd: exec.Command(self, args...)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.PID = p.cmd.Process.Pid
	if err := p.ask(o, &p.Synced); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// ask writes a question, and reads the answer.
func (p *Process) ask(question, answer any) error {
	if err := json.NewEncoder(p.in).Encode(question); err != nil {
		return err
	}
	if err := p.out.Decode(answer); err != nil {
		return fmt.Errorf("the informer's process has ended: %w", err)
	}
	return nil
}

// Update has the process follow a Command.
func (p *Process) Update(c Command) (lags []float64, err error) {
	err = p.ask(c, &lags)
	return lags, err
}

// Stop ends the process.
func (p *Process) Stop() {
	p.in.Close()
	_ = p.cmd.Wait() // its answers have said what matters
}
