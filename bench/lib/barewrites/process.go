// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package barewrites

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// A Process is a server in a process of its own.
type Process struct {
	PID          int
	HTTP1, HTTP2 streams.Target

	cmd *exec.Cmd
	in  io.WriteCloser
}

// StartSelf starts this program with arguments that make it call Serve with its standard
// input and output. The caller calls Stop; the process also ends with this one.
func StartSelf(args ...string) (p *Process, err error) {
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
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.PID = p.cmd.Process.Pid
	var at addresses
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		p.Stop()
		return nil, fmt.Errorf("the baseline's server does not start: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(at.CA)
	p.HTTP1 = streams.Target{Address: at.HTTP1, Protocol: streams.HTTP1}
	p.HTTP2 = streams.Target{Address: at.HTTP2, Protocol: streams.HTTP2, TLS: &tls.Config{RootCAs: roots}}
	return p, nil
}

// Event makes the server write an event to all watches.
func (p *Process) Event() error {
	_, err := p.in.Write([]byte{'\n'})
	return err
}

// Stop ends the process.
func (p *Process) Stop() {
	p.in.Close()
	_ = p.cmd.Wait() // it has nothing to say
}
