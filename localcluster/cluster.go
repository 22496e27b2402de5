// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// cluster is the directory of one cluster:
//
//	kubeconfig      administrator's credentials (0600)
//	state.json      ports, nodes and command lines; shows that localcluster made the directory
//	pids/COMPONENT  process ids of the running components
//	logs/COMPONENT.log
//	pki/            certificates and keys, and a kubeconfig per component
//	etcd/           the data
//	etcd-restored/, etcd-before-restore/  the data during a restore
//	pod/            files of simulated containers: log, commands, working directory
//	kwok.yaml       kwok's configuration
//	lock            locked by the running up
//	control.sock    served by the running up
type cluster struct {
	dir string // absolute
}

func clusterAt(dir string) cluster {
	// Abs fails only without a working directory. The first use of the relative
	// path then fails with a better message.
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return cluster{dir: dir}
}

func (c cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

func (c cluster) kubeconfig() string              { return c.path("kubeconfig") }
func (c cluster) logFile(component string) string { return c.path("logs", component+".log") }
func (c cluster) pidFile(component string) string { return c.path("pids", component) }
func (c cluster) pki(name string) string          { return c.path("pki", name) }

// written are the files that localcluster writes into the directory, and that --fresh
// deletes. The lock is not deleted, since it is held meanwhile.
var written = []string{"kubeconfig", "state.json", "pids", "logs", "pki", "etcd", "etcd-restored", "etcd-before-restore", "pod", "kwok.yaml", "control.sock"}

// state is kept between runs, so that a cluster has the same addresses again.
type state struct {
	// Ports has the ports by component, or by one of the names below. That of
	// kube-apiserver is the cluster's: of the API server, or of the balancer if there
	// are several.
	Ports map[string]int `json:"ports"`
	Nodes int            `json:"nodes"`
	// Commands are the components' arguments, for people.
	Commands map[string][]string `json:"commands,omitempty"`
}

// Ports that are not a component's main port.
const (
	portEtcdPeer = "etcd-peer"
	portPod      = "pod"     // the HTTP server that `kubectl port-forward` connects to
	portKubelet  = "kubelet" // of all nodes
	// portFirstReplica is that of the component kube-apiserver behind a balancer.
	portFirstReplica = "kube-apiserver-1"
)

func (c cluster) readState() (state, error) {
	var s state
	data, err := os.ReadFile(c.path("state.json"))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s is damaged (%w); start over with --fresh", c.path("state.json"), err)
	}
	return s, nil
}

func (c cluster) writeState(s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.path("state.json"), append(data, '\n'), 0o600)
}

// claim creates and locks the directory. The returned file holds the lock. The kernel
// releases it when the process ends, even if it is killed.
func (c cluster) claim() (*os.File, error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !c.mayUse(entries) {
		return nil, fmt.Errorf("%s is not empty and was not made by localcluster; choose another --dir", c.dir)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(c.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(lock.Name())
		lock.Close()
		return nil, fmt.Errorf("a cluster is already running in %s (pid %s); use it, stop it with `localcluster down`, or choose another --dir",
			c.dir, strings.TrimSpace(string(holder)))
	}
	if err := lock.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(lock, os.Getpid()); err != nil {
		return nil, err
	}
	return lock, nil
}

// locked reports whether an up holds the lock.
func (c cluster) locked() bool {
	lock, err := os.Open(c.path("lock"))
	if err != nil {
		return false
	}
	defer lock.Close() // also releases the lock
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// mayUse reports whether the directory is empty or was made by localcluster. One that
// has only the lock counts as empty: an up may have been interrupted after creating it.
func (c cluster) mayUse(entries []fs.DirEntry) bool {
	foreign := 0
	for _, entry := range entries {
		switch entry.Name() {
		case "state.json":
			// Other programs have files of that name, too. If the file is
			// damaged, prepare reports it.
			s, err := c.readState()
			return err != nil || s.Ports[kubeAPIServer] != 0
		case "lock":
		default:
			foreign++
		}
	}
	return foreign == 0
}

func (c cluster) wipe() error {
	for _, name := range written {
		if err := os.RemoveAll(c.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// prepare reads or creates the state and the directories, and reserves the ports.
func (c cluster) prepare(options upOptions) (s state, _ *reservations, err error) {
	s, err = c.readState()
	if errors.Is(err, fs.ErrNotExist) {
		s, err = state{Nodes: defaultNodes}, nil
	}
	if err != nil {
		return s, nil, err
	}
	ports := &reservations{}
	defer func() {
		if err != nil {
			ports.release()
		}
	}()
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	if options.nodes >= 0 {
		s.Nodes = options.nodes
	}
	if options.apiserverPort != 0 {
		s.Ports[kubeAPIServer] = options.apiserverPort
	}
	users := []string{etcd, portEtcdPeer, kubeAPIServer, controllerManager, kubeScheduler, kwokController, portPod, portKubelet}
	if options.apiservers > 1 {
		users = append(users, portFirstReplica)
		for n := 2; n <= options.apiservers; n++ {
			users = append(users, apiserverName(n))
		}
	}
	for _, user := range users {
		if port := s.Ports[user]; port != 0 && ports.take(port) != nil {
			return s, nil, fmt.Errorf("port %d of %s is in use by another process; free it, or choose new ports with --fresh", port, user)
		}
	}
	for _, user := range users {
		if s.Ports[user] != 0 {
			continue
		}
		if s.Ports[user], err = ports.free(); err != nil {
			return s, nil, err
		}
	}
	for _, name := range []string{"pids", "logs", "pki", "pod"} {
		if err := os.MkdirAll(c.path(name), 0o700); err != nil {
			return s, nil, err
		}
	}
	return s, ports, c.writeState(s)
}

// reservations keep two clusters that start at the same time from choosing the same
// port, since a component listens on its port only seconds after the choice. A
// reservation is a Unix socket with an abstract name, which exists on Linux only. The
// kernel releases it when this process ends.
type reservations struct{ held []net.Listener }

// take reserves a port, if nothing listens on it.
func (r *reservations) take(port int) error {
	if runtime.GOOS == "linux" {
		lock, err := net.Listen("unix", fmt.Sprintf("@localcluster-port-%d", port))
		if err != nil {
			return err
		}
		r.held = append(r.held, lock)
	}
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return listener.Close()
}

// free reserves a port below the range that the kernel uses for outgoing connections
// (32768 and up on Linux). While a component is stopped, an outgoing connection could
// take a port of that range, and the component could not start again.
func (r *reservations) free() (int, error) {
	for range 1000 {
		port := 20000 + rand.IntN(10000)
		if r.take(port) == nil {
			return port, nil
		}
	}
	return 0, errors.New("no free port between 20000 and 29999 on 127.0.0.1; stop something that listens there")
}

func (r *reservations) release() {
	for _, lock := range r.held {
		lock.Close()
	}
	r.held = nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
