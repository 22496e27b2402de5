// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a child whose output is kept.
type process struct {
	cmd  *exec.Cmd
	line string // the line that said it is ready
	done chan struct{}

	mu  sync.Mutex // guards out
	out strings.Builder
}

// start starts a command and waits for a line of its output that has ready.
func start(cmd *exec.Cmd, ready string, timeout time.Duration) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	noOrphan(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	w.Close()
	found := make(chan string, 1)
	go func() {
		defer close(p.done)
		defer r.Close()
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			p.mu.Lock()
			p.out.WriteString(line)
			p.mu.Unlock()
			if ready != "" && strings.Contains(line, ready) {
				select {
				case found <- strings.TrimSpace(line):
				default:
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					fmt.Fprintln(os.Stderr, "clustertest:", err)
				}
				_ = cmd.Wait() // ProcessState has the result
				return
			}
		}
	}()
	if ready == "" {
		return p, nil
	}
	select {
	case p.line = <-found:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("%s ended: %s", filepath.Base(cmd.Path), p.Output())
	case <-time.After(timeout):
		p.stop(syscall.SIGKILL)
		return nil, fmt.Errorf("%s was not ready after %v: %s", filepath.Base(cmd.Path), timeout, p.Output())
	}
}

// stop signals the process and waits for its end; after half a minute it kills the
// process.
func (p *process) stop(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // fails if it has already ended
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Output returns what the process has printed so far.
func (p *process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}
