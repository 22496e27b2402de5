// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package testcluster starts localcluster, a Kubernetes control plane in one binary, for Go
// tests. It needs no containers, and only the standard library: a program that imports it
// gets neither k8s.io/kubernetes nor client-go as a requirement.
//
//	func TestController(t *testing.T) {
//		cluster := testcluster.Start(t, testcluster.Options{})
//		config, err := clientcmd.RESTConfigFromKubeConfig(cluster.Kubeconfig())
//		…
//	}
//
// A test that shares its cluster with others calls [StartContext] in TestMain, and
// [Cluster.Stop] at the end.
//
// The control plane is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
// kwok, which simulates Nodes: Pods are scheduled and become Running, but no container
// runs. [Cluster.Command] runs kubectl and the other commands of localcluster.
//
// # The binary
//
// It is Options.Binary, or $LOCALCLUSTER_BIN, or localcluster in $PATH. Build it from the
// same release as this package:
//
//	git clone https://github.com/watchkeeper/watchkeeper
//	make -C watchkeeper bin/localcluster
//
// # The end
//
// The control plane ends with the program that has started it, also if that panics, exits
// without Stop, or is killed: the operating system then closes the pipe that is localcluster's
// standard input, and localcluster stops its components. Only a kill of localcluster itself
// is different: on Linux its components end with it, elsewhere they go on, and the files in
// the folder pids of the cluster have their process ids. The temporary folder of a program
// that was killed stays.
//
// The functions and methods may be called by several goroutines at once. Clusters that run
// at the same time have different ports and folders.
package testcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	defaultStartTimeout = 5 * time.Minute
	defaultStopTimeout  = time.Minute
)

// Options are choices for a cluster. The zero value is a cluster with one API server and
// the default number of Nodes of localcluster up, from an ordinary place of the binary.
type Options struct {
	// Binary is the path of localcluster. The default is $LOCALCLUSTER_BIN, and then
	// localcluster in $PATH.
	Binary string
	// Dir is the folder of the cluster's data, logs and certificates. It stays, and the next
	// cluster there has the same data. The default is a new temporary folder, which Stop
	// removes.
	Dir string
	// Nodes is the number of simulated Nodes. With 0 it is the default of localcluster up,
	// or that of the last time in Dir; a negative number means none, and Pods stay Pending.
	Nodes int
	// Flags are further flags of localcluster up, such as "--apiservers=3",
	// "--feature-gates=A=true" or "--apiserver-arg=NAME=VALUE".
	Flags []string
	// StartTimeout is how long the cluster may take until it is ready. The default is 5
	// minutes; on an idle machine it takes seconds.
	StartTimeout time.Duration
	// StopTimeout is how long it may take to end before it is killed. The default is a
	// minute, in which localcluster kills components that do not end.
	StopTimeout time.Duration
}

// A Cluster is a running control plane.
type Cluster struct {
	binary      string
	dir         string
	temporary   bool // dir is removed at the end
	stopTimeout time.Duration
	up          *process
	url         string
	kubeconfig  []byte
	stop        func() error // once
}

// Start starts a cluster for a test and its subtests. The test fails if the cluster does
// not become ready; the cluster stops at the end of the test. If the test has failed, its
// log then has what the cluster has reported since it was ready, such as a component that
// died.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	c, err := StartContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if reports := c.up.output.tail(); t.Failed() && reports != "" {
			t.Logf("localcluster has printed:\n%s", reports)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// StartContext starts a cluster, and returns when it is ready: Nodes are Ready, and Pods
// can be created. Stop stops it. An error has the end of localcluster's output; nothing
// runs then. The context is that of the start: its end does not stop a cluster that is
// ready.
func StartContext(ctx context.Context, options Options) (*Cluster, error) {
	binary, err := findBinary(options.Binary)
	if err != nil {
		return nil, err
	}
	c := &Cluster{binary: binary, stopTimeout: cmp.Or(options.StopTimeout, defaultStopTimeout)}
	c.stop = sync.OnceValue(c.end)
	if c.dir, err = filepath.Abs(options.Dir); options.Dir == "" {
		c.temporary = true
		c.dir, err = os.MkdirTemp("", "localcluster-")
	}
	if err != nil {
		return nil, fmt.Errorf("testcluster: the folder of the cluster: %w", err)
	}
	timeout := cmp.Or(options.StartTimeout, defaultStartTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready after %v", timeout))
	defer cancel()
	if err := c.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("testcluster: localcluster up: %w", err), c.Stop())
	}
	return c, nil
}

// start starts the process and waits until it is ready.
func (c *Cluster) start(ctx context.Context, options Options) error {
	cmd := exec.Command(c.binary, "up", "--until-eof", "--dir", c.dir)
	if options.Nodes != 0 {
		cmd.Args = append(cmd.Args, "--nodes", strconv.Itoa(max(0, options.Nodes)))
	}
	cmd.Args = append(cmd.Args, options.Flags...)
	if _, ok := os.LookupEnv("GOGC"); !ok {
		cmd.Env = append(os.Environ(), "GOGC=300") // an API server collects much garbage at its start
	}
	up, err := startProcess(cmd)
	if err != nil {
		return err
	}
	ready, err := up.awaitReady(ctx)
	if err == nil {
		c.kubeconfig, err = os.ReadFile(c.KubeconfigFile())
	}
	if err != nil {
		if up.ended() == nil {
			err = errors.Join(err, up.stop(c.stopTimeout))
		}
		return err
	}
	c.up, c.url = up, ready
	return nil
}

// Stop stops the cluster, waits for its end, and removes a temporary folder. Further calls
// return the same. It is an error if localcluster had ended before.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) end() error {
	var err error
	if c.up != nil {
		if err = c.up.ended(); err == nil {
			err = c.up.stop(c.stopTimeout)
		}
	}
	if err != nil {
		err = fmt.Errorf("testcluster: localcluster up: %w", err)
	}
	if c.temporary {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// Kubeconfig returns a kubeconfig of the cluster's administrator, for
// clientcmd.RESTConfigFromKubeConfig of client-go. It does not refer to files.
func (c *Cluster) Kubeconfig() []byte { return slices.Clone(c.kubeconfig) }

// KubeconfigFile returns the path of a file with that kubeconfig, for $KUBECONFIG and
// --kubeconfig of other programs.
func (c *Cluster) KubeconfigFile() string { return filepath.Join(c.dir, "kubeconfig") }

// URL returns the address of the API server, or of the balancer in front of several ones.
func (c *Cluster) URL() string { return c.url }

// Dir returns the absolute path of the cluster's folder. The folder logs has a file for each
// component.
func (c *Cluster) Dir() string { return c.dir }

// Command returns a command of localcluster for this cluster, to run as any exec.Cmd:
//
//	out, err := cluster.Command(ctx, "kubectl", "apply", "-f", "crds").CombinedOutput()
//	err = cluster.Command(ctx, "stop", "kube-apiserver", "--signal", "KILL").Run()
//
// The end of the context kills it.
func (c *Cluster) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.binary, append([]string{name, "--dir", c.dir}, args...)...)
}
