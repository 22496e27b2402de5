// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The other commands send requests to the running up through DIR/control.sock: one
// JSON request and one JSON response per connection. Only up starts and stops
// processes, so every component is its child.

type request struct {
	Op        string `json:"op"` // stop, start, lag, restore, status, down
	Component string `json:"component,omitempty"`
	Signal    string `json:"signal,omitempty"` // of stop

	Off   bool          `json:"off,omitempty"` // of lag, see setLag
	Delay time.Duration `json:"delay,omitempty"`
	For   time.Duration `json:"for,omitempty"`

	File         string `json:"file,omitempty"` // of restore, absolute
	BumpRevision uint64 `json:"bumpRevision,omitempty"`
	KeepRunning  bool   `json:"keepRunning,omitempty"`
}

type response struct {
	Error      string            `json:"error,omitempty"`
	Message    string            `json:"message,omitempty"`
	API        string            `json:"api,omitempty"`
	Components []componentStatus `json:"components,omitempty"`
}

type componentStatus struct {
	Name  string    `json:"name"`
	Phase phase     `json:"phase"`
	Pid   int       `json:"pid,omitempty"`
	Since time.Time `json:"since"`
	Port  int       `json:"port"`
	Lag   string    `json:"lag,omitempty"`
}

var stopSignals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM,
	"INT":  syscall.SIGINT,
	"QUIT": syscall.SIGQUIT,
	"ABRT": syscall.SIGABRT,
	"KILL": syscall.SIGKILL,
	"STOP": syscall.SIGSTOP,
}

// serveControl answers requests until ctx ends. The returned function waits until all
// accepted requests are answered.
func serveControl(ctx context.Context, s *supervisor, down func()) (wait func(), err error) {
	path := s.cluster.path("control.sock")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := listenUnix(path)
	if err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed below
			}
			group.Go(func() {
				defer conn.Close()
				var req request
				_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
				if err := json.NewDecoder(conn).Decode(&req); err != nil {
					return
				}
				_ = json.NewEncoder(conn).Encode(s.handle(ctx, req, down))
			})
		}
	})
	context.AfterFunc(ctx, func() { listener.Close() })
	return group.Wait, nil
}

func (s *supervisor) handle(ctx context.Context, req request, down func()) response {
	if req.Op == "status" {
		return s.status(ctx)
	}
	if req.Op == "down" {
		down()
		return response{}
	}
	act := s.stopOrStart
	switch req.Op {
	case "lag":
		act = s.setLag
	case "restore":
		act = s.restore
	}
	message, err := act(ctx, req)
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{Message: message}
}

func (s *supervisor) stopOrStart(ctx context.Context, req request) (string, error) {
	c, err := s.find(req.Component)
	if err != nil {
		return "", err
	}
	began := time.Now()
	switch req.Op {
	case "start":
		if err := s.start(ctx, c); err != nil {
			return "", err
		}
		if err := s.awaitAPI(ctx, c); err != nil {
			return "", err
		}
		fmt.Fprintf(s.out, "%s is ready again (%s)\n", c.name, elapsed(began))
		return fmt.Sprintf("%s is ready (%s)", c.name, elapsed(began)), nil
	case "stop":
		signal, ok := stopSignals[strings.TrimPrefix(strings.ToUpper(req.Signal), "SIG")]
		if !ok {
			return "", fmt.Errorf("unknown signal %q; use TERM, INT, QUIT, ABRT, KILL or STOP", req.Signal)
		}
		if err := s.stop(c, signal); err != nil {
			return "", err
		}
		what := "stopped"
		if signal == syscall.SIGSTOP {
			what = "frozen"
		}
		fmt.Fprintf(s.out, "%s was %s on request (%s)\n", c.name, what, req.Signal)
		return fmt.Sprintf("%s is %s (%s)", c.name, what, elapsed(began)), nil
	}
	return "", fmt.Errorf("unknown request %q", req.Op)
}

// awaitAPI waits, after a start of etcd, until the API servers are healthy again.
func (s *supervisor) awaitAPI(ctx context.Context, started *component) error {
	if started.name != etcd {
		return nil
	}
	for _, api := range s.ofTier(apiTier) {
		s.mu.Lock()
		alive, exited := api.phase == running, api.exited
		s.mu.Unlock()
		if !alive {
			continue
		}
		if err := s.awaitHealth(ctx, api, exited); err != nil {
			return err
		}
	}
	return nil
}

func (s *supervisor) status(ctx context.Context) response {
	var result response
	s.mu.Lock()
	for _, c := range s.components {
		status := componentStatus{Name: c.name, Phase: c.phase, Pid: c.pid, Since: c.since, Port: c.port}
		if lag := s.lag(c); lag.Delay != 0 {
			status.Lag = describeLag(lag)
		}
		result.Components = append(result.Components, status)
	}
	s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		result.API = "not ready: " + err.Error()
	} else {
		result.API = "ready"
	}
	return result
}

// call sends a request to the running up of the cluster.
func (c cluster) call(req request) (response, error) {
	var result response
	conn, err := dialUnix(c.path("control.sock"))
	if err != nil {
		return result, fmt.Errorf("no cluster is running in %s; start it with: localcluster up --dir %s", c.dir, c.dir)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return result, err
	}
	if err := json.NewDecoder(conn).Decode(&result); err != nil {
		return result, fmt.Errorf("`localcluster up` ended before it answered: %w", err)
	}
	if result.Error != "" {
		return result, errors.New(result.Error)
	}
	return result, nil
}

// viaDirectory calls use with a name of path that is short enough for the address of a
// Unix socket, which holds about 100 bytes; paths of test directories are longer. The
// short name refers to the descriptor of the directory, as Linux allows.
func viaDirectory(path string, use func(short string) error) error {
	if len(path) < 100 {
		return use(path)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the path %s is too long for a Unix socket; use a shorter directory", path)
	}
	dir, err := os.Open(path[:strings.LastIndexByte(path, '/')])
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d%s", dir.Fd(), path[strings.LastIndexByte(path, '/'):]))
}

func listenUnix(path string) (listener net.Listener, err error) {
	err = viaDirectory(path, func(short string) error {
		listener, err = net.Listen("unix", short)
		if err == nil {
			// At Close the short name no longer exists. wipe and serveControl
			// remove the file.
			listener.(*net.UnixListener).SetUnlinkOnClose(false)
		}
		return err
	})
	return listener, err
}

func dialUnix(path string) (conn net.Conn, err error) {
	err = viaDirectory(path, func(short string) error {
		conn, err = net.Dial("unix", short)
		return err
	})
	return conn, err
}
