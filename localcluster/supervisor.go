// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readyTimeout = 4 * time.Minute
	// stopGrace is how long a component may take to end after a signal.
	stopGrace = 10 * time.Second
)

// phase is the state of a component.
type phase string

const (
	stopped  phase = "stopped"
	starting phase = "starting"
	running  phase = "running"
	frozen   phase = "frozen" // SIGSTOP
	died     phase = "died"
)

// supervisor runs the components as children of this process.
type supervisor struct {
	cluster  cluster
	self     string // path of this executable
	launcher launcher
	out      io.Writer // receives progress, and reports of components that died
	// ready checks the API at the cluster's address.
	ready    func(context.Context) error
	replicas *replicas // nil with one API server

	restoring sync.Mutex // held during a restore

	mu         sync.Mutex
	components []*component
	waiters    sync.WaitGroup // one per living process
}

type component struct {
	spec

	// supervisor.mu guards the fields below.
	phase  phase
	pid    int
	since  time.Time     // start of the process
	exited chan struct{} // closed once the process has been waited for
	// expected is set before the supervisor ends the process by a signal.
	expected bool
}

func newSupervisor(c cluster, specs []spec, out io.Writer) (*supervisor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &supervisor{cluster: c, self: self, launcher: newLauncher(), out: out}
	for _, spec := range specs {
		s.components = append(s.components, &component{spec: spec, phase: stopped})
	}
	return s, nil
}

func (s *supervisor) find(name string) (*component, error) {
	for _, c := range s.components {
		if c.name == name {
			return c, nil
		}
	}
	var names []string
	for _, c := range s.components {
		names = append(names, c.name)
	}
	return nil, fmt.Errorf("unknown component %q; the components are %s", name, strings.Join(names, ", "))
}

// start starts a component, or continues a frozen one, and returns when it is healthy.
func (s *supervisor) start(ctx context.Context, c *component) error {
	s.mu.Lock()
	switch c.phase {
	case starting, running:
		s.mu.Unlock()
		return fmt.Errorf("%s is already running (pid %d)", c.name, c.pid)
	case frozen:
		c.phase = running
		pid, exited := c.pid, c.exited
		s.mu.Unlock()
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			return err
		}
		return s.awaitHealth(ctx, c, exited)
	}
	c.phase = starting
	c.expected = false
	s.mu.Unlock()

	exited, err := s.launch(ctx, c)
	if err != nil {
		s.mu.Lock()
		c.phase = stopped
		s.mu.Unlock()
		return err
	}
	if err := s.awaitHealth(ctx, c, exited); err != nil {
		return err
	}
	s.mu.Lock()
	if c.phase == starting {
		c.phase = running
	}
	s.mu.Unlock()
	return nil
}

// launch starts the process and the goroutine that waits for its end.
func (s *supervisor) launch(ctx context.Context, c *component) (exited chan struct{}, err error) {
	if c.before != nil {
		if err := c.before(ctx); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(s.cluster.logFile(c.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(s.self, append([]string{"component", c.program}, c.args...)...)
	cmd.Env = environment(c.env)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes()
	if err := s.launcher.start(cmd); err != nil {
		return nil, err
	}

	exited = make(chan struct{})
	s.mu.Lock()
	c.pid, c.since, c.exited = cmd.Process.Pid, time.Now(), exited
	s.mu.Unlock()
	s.waiters.Go(func() { s.wait(c, cmd, exited) })
	return exited, os.WriteFile(s.cluster.pidFile(c.name), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600)
}

// wait reaps the process, and reports its end if it was not expected.
func (s *supervisor) wait(c *component, cmd *exec.Cmd, exited chan struct{}) {
	err := cmd.Wait()
	// Kill the processes that it started, such as kwok's commands of `kubectl
	// exec`. Mostly there are none, which is an error.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = os.Remove(s.cluster.pidFile(c.name))

	s.mu.Lock()
	expected := c.expected
	c.pid, c.phase = 0, stopped
	if !expected {
		c.phase = died
	}
	s.mu.Unlock()
	if !expected {
		s.reportDeath(c.name, cmd.Process.Pid, err)
	}
	close(exited)
}

func (s *supervisor) reportDeath(name string, pid int, err error) {
	cause := "exit status 0"
	if err != nil {
		cause = err.Error()
	}
	var report bytes.Buffer
	fmt.Fprintf(&report, "%s (pid %d) died: %s. The last lines of %s:\n", name, pid, cause, s.cluster.logFile(name))
	for _, line := range lastLines(s.cluster.logFile(name), 20) {
		fmt.Fprintf(&report, "    %s\n", line)
	}
	fmt.Fprintf(&report, "start it again with: localcluster start %s --dir %s\n", name, s.cluster.dir)
	_, _ = s.out.Write(report.Bytes()) // one write, so that reports do not mix
}

// awaitHealth waits until the component is healthy. It fails if the process ends
// before.
func (s *supervisor) awaitHealth(ctx context.Context, c *component, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := c.health(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%s ended while starting; see %s", c.name, s.cluster.logFile(c.name))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s is not healthy after %s (%w); see %s", c.name, readyTimeout, err, s.cluster.logFile(c.name))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop sends a signal and waits until the process has ended. It kills the process after
// stopGrace. SIGSTOP freezes the process until start; stop does not wait then.
func (s *supervisor) stop(c *component, signal syscall.Signal) error {
	s.mu.Lock()
	if c.pid == 0 {
		s.mu.Unlock()
		return fmt.Errorf("%s is not running", c.name)
	}
	pid, exited, wasFrozen := c.pid, c.exited, c.phase == frozen
	if signal == syscall.SIGSTOP {
		c.phase = frozen
	} else {
		c.expected = true
	}
	s.mu.Unlock()

	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("signalling %s: %w", c.name, err)
	}
	if signal == syscall.SIGSTOP {
		return nil
	}
	if wasFrozen { // a frozen process does not handle the signal
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	select {
	case <-exited:
		return nil
	case <-time.After(stopGrace):
	}
	fmt.Fprintf(s.out, "%s (pid %d) did not end within %s, killing it\n", c.name, pid, stopGrace)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-exited
	return nil
}

// stopAll stops all components, tier by tier.
func (s *supervisor) stopAll() {
	for _, t := range []tier{clientTier, apiTier, storeTier} {
		s.stopTier(t, syscall.SIGTERM)
	}
	s.waiters.Wait()
}

// stopTier stops the components of a tier, all at once, and returns those that ran.
func (s *supervisor) stopTier(t tier, signal syscall.Signal) (ended []*component) {
	var group sync.WaitGroup
	for _, c := range s.ofTier(t) {
		s.mu.Lock()
		alive := c.pid != 0
		s.mu.Unlock()
		if alive {
			ended = append(ended, c)
			fmt.Fprintf(s.out, "stopping %s\n", c.name)
			// An error means that the process has ended before.
			group.Go(func() { _ = s.stop(c, signal) })
		}
	}
	group.Wait()
	return ended
}

func (s *supervisor) ofTier(t tier) []*component {
	var result []*component
	for _, c := range s.components {
		if c.tier == t {
			result = append(result, c)
		}
	}
	return result
}

// lastLines returns the last lines of a file, at most n; none if it cannot be read.
func lastLines(path string, n int) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	const window = 64 << 10
	if info, err := file.Stat(); err == nil && info.Size() > window {
		_, _ = file.Seek(-window, io.SeekEnd)
	}
	data, _ := io.ReadAll(file)
	var lines []string
	for line := range bytes.Lines(data) {
		lines = append(lines, string(bytes.TrimRight(line, "\r\n")))
	}
	return lines[max(0, len(lines)-n):]
}
