// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clustertest runs the real things for tests: a local control plane
// (bin/localcluster), gateways in front of it (built from this tree), and
// kubectl. Everything is a child process on loopback in a folder of its own,
// and has ended when Close returns. Only tests and benchmarks import it.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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

	bin   string
	work  string       // built programs
	build func() error // builds watchkeeper, once
	up    *process
}

func newCluster(dir, work string) *Cluster {
	c := &Cluster{Dir: dir, work: work}
	c.build = sync.OnceValue(func() error { return build(c.program()) })
	return c
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
	c := newCluster(filepath.Join(dir, "cluster"), dir)
	c.bin = bin
	up := exec.Command(bin, append([]string{"up", "--dir", c.Dir, "--nodes", fmt.Sprint(nodes)}, flags...)...)
	up.Env = append(os.Environ(), "GOGC=300") // an API server that starts collects garbage a lot
	c.up, err = start(up, "ready ", 5*time.Minute)
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
	c := newCluster(work, work)
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
