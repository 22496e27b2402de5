// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clustertest runs the real things for tests: a local control plane
// (bin/localcluster), gateways in front of it (built from this tree), and
// kubectl. Everything is a child process on loopback in a folder of its own,
// and has ended when Close returns. Only tests and benchmarks import it.
package clustertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// root is the repository's root, found from the folder of the test.
func root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "localcluster", "go.mod")); statErr == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("clustertest: not inside the repository")
		}
		dir = parent
	}
	return "", err
}

// A Cluster is a running local control plane.
type Cluster struct {
	// Config reaches the API server as cluster admin.
	Config *rest.Config
	// Dir holds its data and logs.
	Dir string

	bin  string
	work string // built programs
	up   *process
}

// Start brings up a control plane with the number of simulated nodes, and with
// further flags of localcluster up.
func Start(nodes int, flags ...string) (*Cluster, error) {
	top, err := root()
	if err != nil {
		return nil, err
	}
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		bin = filepath.Join(top, "bin", "localcluster")
	}
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("no local control plane: run 'make build' first (%w)", err)
	}
	dir, err := os.MkdirTemp("", "watchkeeper-test-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: filepath.Join(dir, "cluster"), bin: bin, work: dir}
	c.up, err = start(exec.Command(bin, append([]string{"up", "--dir", c.Dir, "--nodes", fmt.Sprint(nodes)}, flags...)...), "ready ", 5*time.Minute)
	if err == nil {
		c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("localcluster: %w", err)
	}
	c.Config.QPS = -1
	return c, nil
}

// Without returns a Cluster that has no control plane. It is there to have
// gateways in front of something else, which their flags name: --server.
func Without() (*Cluster, error) {
	work, err := os.MkdirTemp("", "watchkeeper-test-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: work, work: work}
	if err := clientcmd.WriteToFile(*clientcmdapi.NewConfig(), c.Kubeconfig()); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Kubeconfig returns the path of the admin's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Close stops the control plane and removes its folder.
func (c *Cluster) Close() {
	if c.up != nil {
		c.up.stop(syscall.SIGTERM)
	}
	os.RemoveAll(c.work)
}

// Signal ends a component, such as kube-apiserver, by a signal's name.
func (c *Cluster) Signal(component, signal string) error {
	return c.run("stop", component, "--dir", c.Dir, "--signal", signal)
}

// StartComponent starts a component again and waits until it is ready. One that
// ends meanwhile, as an API server does when a busy machine keeps it from its
// first writes for too long, or that does not become ready, is started anew, as
// a kubelet would.
func (c *Cluster) StartComponent(component string) error {
	for deadline := time.Now().Add(5 * time.Minute); ; {
		err := c.run("start", component, "--dir", c.Dir)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.Dir, "logs", component+".log")) // its end may say why
			return fmt.Errorf("%w; its log ends with\n%s", err, log[max(0, len(log)-4000):])
		}
		_ = c.Signal(component, "KILL") // it may not run
	}
}

func (c *Cluster) run(args ...string) error {
	if out, err := exec.Command(c.bin, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("localcluster %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// PID returns the process number of a component.
func (c *Cluster) PID(component string) (string, error) {
	b, err := os.ReadFile(filepath.Join(c.Dir, "pids", component))
	return strings.TrimSpace(string(b)), err
}

// Load starts localcluster load with the arguments; stop ends it.
func (c *Cluster) Load(args ...string) (stop func(), err error) {
	p, err := start(exec.Command(c.bin, append([]string{"load", "--dir", c.Dir}, args...)...), "", 0)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { p.stop(syscall.SIGINT) }), nil
}

// Kubectl returns the kubectl of localcluster, against the API server unless
// the arguments name another.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.bin, append([]string{"kubectl", "--dir", c.Dir}, args...)...)
}

// Client returns an HTTP client with the admin's credentials, and the URL of
// the API server.
func (c *Cluster) Client() (*http.Client, string, error) {
	client, err := rest.HTTPClientFor(c.Config)
	return client, c.Config.Host, err
}

// A Gateway is a running watchkeeper.
type Gateway struct {
	// URL is where it serves, and Admin where its admin listener is.
	URL, Admin string

	cluster *Cluster
	args    []string
	p       *process
}

// Gateway builds watchkeeper and starts it in front of the cluster, with
// further flags of serve. It records nothing, unless "--data-dir" is among them.
func (c *Cluster) Gateway(args ...string) (*Gateway, error) {
	bin := filepath.Join(c.work, "watchkeeper")
	if _, err := os.Stat(bin); err != nil {
		build := exec.Command("go", "build", "-trimpath", "-tags", "pebblegozstd", "-ldflags", "-s -w", "-o", bin, "./cmd/watchkeeper")
		if build.Dir, err = root(); err != nil { // the test may be of a nested module
			return nil, err
		}
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	g := &Gateway{cluster: c, args: args}
	return g, g.start("0", "127.0.0.1:0")
}

// Command runs watchkeeper, once a gateway has been started, and returns what it
// prints.
func (c *Cluster) Command(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, filepath.Join(c.work, "watchkeeper"), args...).CombinedOutput()
}

// Open serves a recording, once a gateway has been started.
func (c *Cluster) Open(file string, args ...string) (*Gateway, error) {
	g := &Gateway{cluster: c}
	cmd := exec.Command(filepath.Join(c.work, "watchkeeper"), append([]string{"open", file, "--port", "0"}, args...)...)
	return g, g.await(cmd)
}

func (g *Gateway) start(port, admin string) error {
	args := []string{"serve", "--kubeconfig", g.cluster.Kubeconfig(), "--admin-listen", admin}
	if !slices.Contains(g.args, "--unix-socket") {
		args = append(args, "--port", port)
	}
	if !slices.Contains(g.args, "--data-dir") {
		args = append(args, "--data-dir=") // and not the home of whoever runs the test
	}
	return g.await(exec.Command(filepath.Join(g.cluster.work, "watchkeeper"), append(args, g.args...)...))
}

// await starts a command that serves, and waits until it does.
func (g *Gateway) await(cmd *exec.Cmd) error {
	p, err := start(cmd, "Starting to serve on ", 2*time.Minute)
	if err != nil {
		return fmt.Errorf("watchkeeper: %w", err)
	}
	g.p = p
	_, g.URL, _ = strings.Cut(p.line, "Starting to serve on ")
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

// Restart starts a gateway that has ended again, at the same addresses.
func (g *Gateway) Restart() error {
	_, port, _ := strings.Cut(strings.TrimPrefix(g.URL, "http://"), ":")
	return g.start(port, strings.TrimPrefix(g.Admin, "http://"))
}

// PID returns its process number.
func (g *Gateway) PID() int { return g.p.cmd.Process.Pid }

// Log returns what it has printed.
func (g *Gateway) Log() string { return g.p.Output() }

// A process is a child whose output is kept.
type process struct {
	cmd  *exec.Cmd
	line string // the one that said it is ready
	done chan struct{}

	mu  sync.Mutex // guards out
	out strings.Builder
}

// start starts a command and waits for a line of its output that begins with
// ready.
func start(cmd *exec.Cmd, ready string, patience time.Duration) (*process, error) {
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
			if ready != "" && strings.HasPrefix(line, ready) {
				select {
				case found <- strings.TrimSpace(line):
				default:
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					fmt.Fprintln(os.Stderr, "clustertest:", err)
				}
				_ = cmd.Wait() // how it ended is in ProcessState
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
	case <-time.After(patience):
		p.stop(syscall.SIGKILL)
		return nil, fmt.Errorf("%s was not ready after %v: %s", filepath.Base(cmd.Path), patience, p.Output())
	}
}

// stop signals the process and waits for its end, which after half a minute
// is not up to it any more.
func (p *process) stop(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // it may have ended already
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
