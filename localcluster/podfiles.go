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
	"path/filepath"
	"sync"
	"time"
)

// All simulated containers share these files:
//
//	pod/container.log   `kubectl logs`: a line per second, written by up
//	pod/previous.log    `kubectl logs --previous`
//	pod/bin/            the commands that `kubectl exec` finds
//	pod/root/           the working directory of exec
//
// Commands of exec run on this machine, as the user who runs up, if that was asked for
// (`up --exec`). PATH has only the commands below, against an accidental `rm -rf`: that is no
// sandbox.
var podCommands = []string{
	"sh", "echo", "cat", "ls", "env", "printenv", "date", "hostname", "id", "pwd",
	"printf", "seq", "sleep", "head", "tail", "tee", "wc", "grep", "sort",
	"true", "false", "test", "tty", "stty", "uname", "whoami",
}

// maxContainerLog is the size in bytes at which pod/container.log is replaced by a new
// file.
const maxContainerLog = 4 << 20

// podFiles are where the files are, and the address that port-forward leads to.
type podFiles struct{ log, previous, bin, root, server string }

func (c cluster) podFiles(s state) podFiles {
	return podFiles{
		log: c.path("pod", "container.log"), previous: c.path("pod", "previous.log"),
		bin: c.path("pod", "bin"), root: c.path("pod", "root"), server: loopback(s.Ports[portPod]),
	}
}

// servePods creates these files and serves the HTTP target of port-forward until ctx
// ends. The returned function waits for the end.
func servePods(ctx context.Context, files podFiles) (wait func(), err error) {
	for _, dir := range []string{files.bin, files.root} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	for _, name := range podCommands {
		target, err := exec.LookPath(name)
		if err != nil {
			continue // not on this machine
		}
		if err := os.Symlink(target, filepath.Join(files.bin, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	previous := logLine("starting") + logLine("fatal: cannot reach the database, giving up")
	if err := os.WriteFile(files.previous, []byte(previous), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(files.log, []byte(logLine("starting")+logLine("listening on :8080")), 0o600); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", files.server)
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from a simulated pod\n%s %s\n", r.Method, r.URL)
	})}
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(listener) }) // until Close
	group.Go(func() { appendLog(ctx, files.log) })
	context.AfterFunc(ctx, func() { server.Close() })
	return group.Wait, nil
}

// appendLog writes a line of an HTTP access log per second.
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
		// An error is ignored: etcd notices a full disk, and the log is only simulated.
		_ = appendLine(path, line)
	}
}

func appendLine(path, line string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > maxContainerLog {
		// `kubectl logs -f` notices the new file.
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

// logLine formats a line as container runtimes do: time, stream, F for a full line.
func logLine(text string) string {
	return fmt.Sprintf("%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), text)
}
