// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// cluster is the directory of one cluster:
//
//	kubeconfig      administrator's credentials (0600)
//	state.json      ports, nodes and command lines; also marks the directory as ours
//	pids/COMPONENT  process ids of what runs now
//	logs/COMPONENT.log
//	pki/            certificates and keys, and a kubeconfig per component
//	etcd/           the data
//	pod/            what simulated containers see: log file, commands, working directory
//	kwok.yaml       kwok's configuration
//	lock, control.sock   held and served by the running `up`
type cluster struct {
	dir string // absolute
}

func clusterAt(dir string) cluster {
	// Abs fails only without a working directory; the relative path then
	// fails at first use with a better message.
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

// ours is everything localcluster writes into the directory, hence everything
// --fresh removes. The lock stays: it is held while we wipe.
var ours = []string{"kubeconfig", "state.json", "pids", "logs", "pki", "etcd", "pod", "kwok.yaml", "control.sock"}

// state is what must survive between runs for a cluster to come back at the
// same addresses.
type state struct {
	// Ports by user: a component, or one of the names below.
	Ports map[string]int `json:"ports"`
	Nodes int            `json:"nodes"`
	// Commands are for people who want to see how a component was started.
	Commands map[string][]string `json:"commands,omitempty"`
}

// Ports that are not a component's main port.
const (
	portEtcdPeer = "etcd-peer"
	portPod      = "pod" // the HTTP server behind `kubectl port-forward`
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

// claim makes the directory ours for the life of this process. The returned
// file holds the lock, which the kernel drops however the process ends.
func (c cluster) claim() (*os.File, error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !c.isOurs(entries) {
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

// locked reports whether some `up` holds the directory.
func (c cluster) locked() bool {
	lock, err := os.Open(c.path("lock"))
	if err != nil {
		return false
	}
	defer lock.Close() // drops the lock, too
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// isOurs is true for an empty directory and for one that localcluster made.
// The lock alone counts too: an `up` may have been interrupted right after it.
func (c cluster) isOurs(entries []fs.DirEntry) bool {
	others := 0
	for _, entry := range entries {
		switch entry.Name() {
		case "state.json":
			// Others have files of that name, too; one that is damaged
			// is ours to complain about.
			s, err := c.readState()
			return err != nil || s.Ports[kubeAPIServer] != 0
		case "lock":
		default:
			others++
		}
	}
	return others == 0
}

func (c cluster) wipe() error {
	for _, name := range ours {
		if err := os.RemoveAll(c.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// prepare reads or makes the state and the directories, and reserves the ports.
// A port asked for explicitly replaces the remembered one.
func (c cluster) prepare(nodes, apiserverPort int) (s state, ports *reservations, err error) {
	s, err = c.readState()
	if errors.Is(err, fs.ErrNotExist) {
		s, err = state{Nodes: defaultNodes}, nil
	}
	if err != nil {
		return s, nil, err
	}
	ports = &reservations{}
	defer func() {
		if err != nil {
			ports.release()
		}
	}()
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	if nodes >= 0 {
		s.Nodes = nodes
	}
	if apiserverPort != 0 {
		s.Ports[kubeAPIServer] = apiserverPort
	}
	users := []string{etcd, portEtcdPeer, kubeAPIServer, controllerManager, kubeScheduler, kwokController, portPod}
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
