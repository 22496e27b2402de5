// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"
)

// What a simulated container consists of. All of them share it:
//
//	pod/container.log   `kubectl logs`: a line per second, written by `up`
//	pod/previous.log    `kubectl logs --previous`
//	pod/bin/            the commands `kubectl exec` finds
//	pod/root/           the working directory of exec
//
// kwok runs what exec asks for on this machine, as the user who runs `up`.
// Finding only the commands below keeps a habit like `rm -rf` from the host; it
// is no sandbox, and need not be: who may exec here holds the administrator's
// credentials of a loopback-only test cluster.
var podCommands = []string{
	"sh", "echo", "cat", "ls", "env", "printenv", "date", "hostname", "id", "pwd",
	"printf", "seq", "sleep", "head", "tail", "tee", "wc", "grep", "sort",
	"true", "false", "test", "tty", "stty", "uname", "whoami",
}

// containerLogLimit bounds pod/container.log; it starts anew beyond.
const containerLogLimit = 4 << 20

// servePods makes the files above and serves the HTTP target of port-forward,
// until ctx ends; the returned function waits for that.
func servePods(ctx context.Context, c cluster, port int) (wait func(), err error) {
	for _, name := range []string{"bin", "root"} {
		if err := os.MkdirAll(c.path("pod", name), 0o700); err != nil {
			return nil, err
		}
	}
	for _, name := range podCommands {
		target, err := exec.LookPath(name)
		if err != nil {
			continue // not on this machine
		}
		if err := os.Symlink(target, c.path("pod", "bin", name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	previous := logLine("starting") + logLine("fatal: cannot reach the database, giving up")
	if err := os.WriteFile(c.path("pod", "previous.log"), []byte(previous), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.path("pod", "container.log"), []byte(logLine("starting")+logLine("listening on :8080")), 0o600); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from a simulated pod\n%s %s\n", r.Method, r.URL)
	})}
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(listener) }) // ends with Close
	group.Go(func() { appendLog(ctx, c.path("pod", "container.log")) })
	context.AfterFunc(ctx, func() { server.Close() })
	return group.Wait, nil
}

// appendLog writes a line per second, as a busy little service would.
func appendLog(ctx context.Context, path string) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		line := logLine(fmt.Sprintf("GET /healthz 200 request=%d", n))
		if n%5 == 0 {
			line = logLine(fmt.Sprintf("GET /orders/%d 200 %dms request=%d", 1000+n, 3+n%17, n))
		}
		// A full disk is found by etcd first; a simulated log may have holes.
		_ = appendLine(path, line)
	}
}

func appendLine(path, line string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > containerLogLimit {
		// Readers that follow notice the new file.
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(line)
	return err
}

// logLine is in the format of container runtimes: time, stream, full line.
func logLine(text string) string {
	return fmt.Sprintf("%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), text)
}
