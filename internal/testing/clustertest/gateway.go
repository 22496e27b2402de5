// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/freeport"
)

// A Gateway is a running watchkeeper.
type Gateway struct {
	// URL is its address, and Admin that of its admin listener.
	URL, Admin string

	cluster *Cluster
	program string
	args    []string
	p       *process
}

// Gateway builds watchkeeper and starts it in front of the cluster, with
// further flags of serve. It records nothing unless they include "--data-dir".
func (c *Cluster) Gateway(args ...string) (*Gateway, error) {
	if err := c.build(); err != nil {
		return nil, err
	}
	return c.GatewayOf(c.Program(), args...)
}

// GatewayOf is Gateway for another version's program.
func (c *Cluster) GatewayOf(program string, args ...string) (*Gateway, error) {
	g := &Gateway{cluster: c, program: program, args: args}
	for {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		admin, err := freePort()
		if err != nil {
			return nil, err
		}
		err = g.start(port, "127.0.0.1:"+admin)
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			return g, err
		}
	}
}

// freePort picks a port. localcluster uses those from 20000 on.
func freePort() (string, error) { return freeport.Pick(10000, 10000) }

// Program returns the path of watchkeeper. Build or Gateway has to be called before.
func (c *Cluster) Program() string { return filepath.Join(c.work, "watchkeeper") }

// build builds watchkeeper over a copy of make's binary: if that is up to date, go build
// links nothing.
func build(bin string) error {
	top, err := root() // the test may be in a nested module
	if err != nil {
		return err
	}
	if made, err := os.ReadFile(filepath.Join(top, "bin", "watchkeeper")); err == nil {
		if err := os.WriteFile(bin, made, 0o755); err != nil {
			return err
		}
	}
	return BuildIn(top, bin)
}

// BuildIn builds the watchkeeper of a source tree with the same flags as make.
func BuildIn(tree, bin string, env ...string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "pebblegozstd", "-ldflags", "-s -w", "-o", bin, "./cmd/watchkeeper")
	cmd.Dir, cmd.Env = tree, append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// Command runs watchkeeper and returns its output. A gateway must have been started.
func (c *Cluster) Command(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, c.Program(), args...).CombinedOutput()
}

// Open serves a recording. A gateway must have been started.
func (c *Cluster) Open(file string, args ...string) (*Gateway, error) {
	g := &Gateway{cluster: c}
	cmd := exec.Command(c.Program(), append([]string{"open", file, "--port", "0"}, args...)...)
	return g, g.await(cmd)
}

// Build builds watchkeeper, for Program.
func (c *Cluster) Build() error { return c.build() }

// Run starts a command that serves as watchkeeper does. Its Gateway has no Admin, and cannot
// be restarted.
func (c *Cluster) Run(cmd *exec.Cmd) (*Gateway, error) {
	g := &Gateway{cluster: c}
	return g, g.await(cmd)
}

func (g *Gateway) start(port, admin string) error {
	args := []string{"serve", "--kubeconfig", g.cluster.Kubeconfig(), "--admin-listen", admin}
	if !slices.Contains(g.args, "--unix-socket") {
		args = append(args, "--port", port)
	}
	if !slices.Contains(g.args, "--data-dir") {
		args = append(args, "--data-dir=") // not the user's home
	}
	return g.await(exec.Command(g.program, append(args, g.args...)...))
}

// await starts a command that serves, and waits until it serves.
func (g *Gateway) await(cmd *exec.Cmd) error {
	serving := "Starting to serve on "
	if slices.Contains(cmd.Args, "--log-format=json") {
		serving = `"msg":"serving","url":"`
	}
	p, err := start(cmd, serving, 2*time.Minute)
	if err != nil {
		return fmt.Errorf("watchkeeper: %w", err)
	}
	g.p = p
	_, g.URL, _ = strings.Cut(p.line, serving)
	g.URL, _, _ = strings.Cut(g.URL, `"`)
	for _, field := range strings.Fields(p.Output()) {
		if url, ok := strings.CutPrefix(field, "admin="); ok {
			g.Admin = url
		}
	}
	return nil
}

// Kill ends the gateway with SIGKILL.
func (g *Gateway) Kill() { g.p.stop(syscall.SIGKILL) }

// Terminate ends it with SIGTERM and returns its exit code.
func (g *Gateway) Terminate() int {
	g.p.stop(syscall.SIGTERM)
	return g.p.cmd.ProcessState.ExitCode()
}

// Restart restarts a gateway that has ended, at the same addresses.
func (g *Gateway) Restart() error {
	at, err := url.Parse(g.URL)
	if err != nil {
		return err
	}
	return g.start(at.Port(), strings.TrimPrefix(g.Admin, "http://"))
}

// PID returns its process id.
func (g *Gateway) PID() int { return g.p.cmd.Process.Pid }

// Log returns its output.
func (g *Gateway) Log() string { return g.p.Output() }
