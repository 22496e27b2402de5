// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clustertest runs real processes for tests: a local control plane
// (bin/localcluster), gateways in front of it (built from this tree), and
// kubectl. All are child processes on loopback with their own folder, and have
// ended when Close returns. Only tests and benchmarks import it.
package clustertest

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/watchkeeper/watchkeeper/localcluster/testcluster"
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

	up    *testcluster.Cluster // nil without a control plane
	work  string               // built programs
	build func() error         // builds watchkeeper, once
}

func newCluster(dir, work string) *Cluster {
	c := &Cluster{Dir: dir, work: work}
	c.build = sync.OnceValue(func() error { return build(c.Program()) })
	return c
}

// Start brings up a control plane with the number of simulated nodes, by the localcluster in
// $LOCALCLUSTER_BIN or else the one that make build leaves in this repository, and with
// further flags of localcluster up. The environment chooses how many API servers it has,
// unless --apiservers does: see replicas.
func Start(nodes int, flags ...string) (*Cluster, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "watchkeeper-test-")
	if err != nil {
		return nil, err
	}
	c := newCluster(filepath.Join(work, "cluster"), work)
	c.up, err = testcluster.StartContext(context.Background(), testcluster.Options{
		Binary: bin,
		Dir:    c.Dir,
		Flags:  slices.Concat([]string{"--nodes", fmt.Sprint(nodes), "--exec"}, replicas(flags), flags),
	})
	if err == nil {
		c.Config, err = clientcmd.RESTConfigFromKubeConfig(c.up.Kubeconfig())
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	c.Config.QPS = -1
	return c, nil
}

// binary returns the path of localcluster.
func binary() (string, error) {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		top, err := root()
		if err != nil {
			return "", err
		}
		bin = filepath.Join(top, "bin", "localcluster")
	}
	if _, err := os.Stat(bin); err != nil {
		return "", fmt.Errorf("no local control plane: run 'make build' first (%w)", err)
	}
	return bin, nil
}

// Minor returns the minor version of the Kubernetes that Start starts, such as 36: that of
// the module in the binary.
func Minor() (int, error) {
	bin, err := binary()
	if err != nil {
		return 0, err
	}
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return 0, err
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kubernetes" {
			minor, _, _ := strings.Cut(strings.TrimPrefix(m.Version, "v1."), ".")
			return strconv.Atoi(minor)
		}
	}
	return 0, fmt.Errorf("%s is built without k8s.io/kubernetes", bin)
}

// Without returns a Cluster without a control plane, for gateways in front of
// another server, which the flag --server names.
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
		if err := c.up.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "clustertest:", err)
		}
	}
	os.RemoveAll(c.work)
}

// Signal stops a component, such as kube-apiserver, with the named signal. It returns when the
// process has ended, or after STOP when it is frozen.
func (c *Cluster) Signal(component, signal string) error {
	if err := c.run("stop", component, "--signal", signal); err != nil || signal != "STOP" {
		return err
	}
	pid, err := c.PID(component)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); !isFrozen(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s (pid %s) runs after SIGSTOP", component, pid)
		}
	}
	return nil
}

// isFrozen reports whether no thread of a process runs. On a busy machine that takes a while
// after the signal. Without /proc it is not known.
func isFrozen(pid string) bool {
	threads, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "stat"))
	return !slices.ContainsFunc(threads, func(path string) bool {
		stat, _ := os.ReadFile(path) // empty if the thread has ended
		_, state, _ := strings.Cut(string(stat), ") ")
		return state != "" && state[0] != 'T'
	})
}

// StartComponent starts a component again and waits until it is ready. Like a
// kubelet, it restarts a component that ends meanwhile or does not become ready.
// An API server ends if a busy machine delays its first writes for too long.
func (c *Cluster) StartComponent(component string) error {
	for deadline := time.Now().Add(5 * time.Minute); ; {
		err := c.run("start", component)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.Dir, "logs", component+".log")) // its last lines may name the cause
			return fmt.Errorf("%w; its log ends with\n%s", err, log[max(0, len(log)-4000):])
		}
		_ = c.Signal(component, "KILL") // fails if it does not run
	}
}

// Lag lets the watch cache of one of several API servers lag behind etcd, with flags of
// localcluster lag.
func (c *Cluster) Lag(apiServer string, flags ...string) error {
	return c.run("lag", append([]string{apiServer}, flags...)...)
}

// Snapshot saves etcd's data to a file, and returns its revision.
func (c *Cluster) Snapshot(file string) (revision uint64, err error) {
	out, err := c.call("snapshot", file)
	if err != nil {
		return 0, err
	}
	_, number, _ := strings.Cut(strings.TrimSpace(out), " at revision ")
	return strconv.ParseUint(number, 10, 64)
}

// Restore replaces etcd's data by a snapshot, with flags of localcluster restore, and
// waits until the API servers are ready. It restarts a component that ends meanwhile, as
// StartComponent does.
func (c *Cluster) Restore(file string, flags ...string) error {
	err := c.run("restore", append([]string{file}, flags...)...)
	if err == nil || !strings.Contains(err.Error(), "ended while starting") {
		return err
	}
	names, err := c.APIServerNames()
	if err != nil {
		return err
	}
	for _, name := range append(names, "kube-controller-manager", "kube-scheduler", "kwok") {
		if _, err := c.PID(name); err == nil {
			continue
		}
		if err := c.StartComponent(name); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(c.Dir, "etcd-before-restore"))
}

func (c *Cluster) run(command string, args ...string) error {
	_, err := c.call(command, args...)
	return err
}

// call runs a command of localcluster and returns its output.
func (c *Cluster) call(command string, args ...string) (string, error) {
	out, err := c.up.Command(context.Background(), command, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("localcluster %s %s: %w: %s", command, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// PID returns the process id of a component.
func (c *Cluster) PID(component string) (string, error) {
	b, err := os.ReadFile(filepath.Join(c.Dir, "pids", component))
	return strings.TrimSpace(string(b)), err
}

// Load starts localcluster load with the arguments; stop ends it.
func (c *Cluster) Load(args ...string) (stop func(), err error) {
	p, err := start(c.up.Command(context.Background(), "load", args...), "", 0)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { p.stop(syscall.SIGINT) }), nil
}

// Kubectl returns localcluster's kubectl, which uses the API server unless the
// arguments name another one.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return c.up.Command(ctx, "kubectl", args...)
}

// Client returns an HTTP client with the admin's credentials, and the URL of
// the API server.
func (c *Cluster) Client() (*http.Client, string, error) {
	client, err := rest.HTTPClientFor(c.Config)
	return client, c.Config.Host, err
}
