// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// environment names the binary if Options do not.
const environment = "LOCALCLUSTER_BIN"

// findBinary returns the absolute path of localcluster. The argument is Options.Binary.
func findBinary(name string) (string, error) {
	where := "Options.Binary"
	if name == "" {
		name, where = os.Getenv(environment), "$"+environment
	}
	if name == "" {
		name, where = "localcluster", "$PATH"
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("testcluster: no localcluster in %s: %w; build it, which takes about 5 minutes, with"+
			"\n\tgit clone https://github.com/watchkeeper/watchkeeper && make -C watchkeeper bin/localcluster"+
			"\nand put its path into $%s, or its folder into $PATH", where, err, environment)
	}
	return path, nil
}

// A process is a running localcluster up. It ends at the end of its standard input, which is
// a pipe from this process.
type process struct {
	stdin  io.Closer
	kill   func() error
	output *output
	done   chan struct{} // closed once it has ended and its output is read
	err    error         // how it has ended; valid once done is closed
}

// readDelay is how long the output may stay open after the end of the process, as when it
// has left a child.
const readDelay = 5 * time.Second

func startProcess(cmd *exec.Cmd) (*process, error) {
	out := &output{ready: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = readDelay
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{stdin: stdin, kill: cmd.Process.Kill, output: out, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// awaitReady returns the API server's URL once the cluster is ready.
func (p *process) awaitReady(ctx context.Context) (url string, err error) {
	select {
	case url = <-p.output.ready:
		return url, nil
	case <-p.done:
		return "", p.ended()
	case <-ctx.Done():
		return "", fmt.Errorf("%w; %s", context.Cause(ctx), p.output)
	}
}

// ended returns an error that says how the process has ended, or nil if it runs.
func (p *process) ended() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	how := p.err
	if how == nil {
		how = errors.New("exit status 0")
	}
	hint := ""
	if strings.Contains(p.output.tail(), "unknown flag: --until-eof") {
		hint = "it is older than this package, build it from the same release; "
	}
	return fmt.Errorf("ended by itself: %w; %s%s", how, hint, p.output)
}

// stop ends the process, and kills it after the timeout. It returns once the process has
// ended, and an error unless that was with status 0.
func (p *process) stop(timeout time.Duration) error {
	p.stdin.Close() // again after the end of the process, which is an error
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("stopped: %w; %s", p.err, p.output)
		}
		return nil
	case <-timer.C:
	}
	err := p.kill()
	<-p.done
	return errors.Join(fmt.Errorf("killed, as it did not stop within %v; %s", timeout, p.output), err)
}

// maxOutput is how many bytes of the output are kept.
const maxOutput = 16 << 10

// output is an io.Writer that finds the line with which localcluster up says that it is
// ready, and keeps the end of the text before that, or since then.
type output struct {
	ready chan string // gets the URL of that line

	mu    sync.Mutex // guards what follows
	text  []byte
	found bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if !o.found {
		o.findLocked()
	}
	if extra := len(o.text) - maxOutput; extra > 0 {
		o.text = append(o.text[:0], o.text[extra:]...)
	}
	return len(p), nil
}

// findLocked looks for the line "ready URL  kubeconfig FILE", and drops it and the text
// before it.
func (o *output) findLocked() {
	start := 0
	for line := range bytes.Lines(o.text) {
		start += len(line)
		if url, ok := strings.CutPrefix(string(line), "ready "); ok && strings.HasSuffix(url, "\n") {
			o.found, o.text = true, bytes.Clone(o.text[start:])
			url, _, _ = strings.Cut(strings.TrimSpace(url), " ")
			o.ready <- url
			return
		}
	}
}

// tail returns the text that is kept.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.text))
}

// String describes the output for an error.
func (o *output) String() string {
	text := o.tail()
	if text == "" {
		return "it has printed nothing"
	}
	return "its output ends with\n" + text
}
