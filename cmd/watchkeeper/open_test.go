// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpenLeavesNothing: open removes its temporary directory, whenever a signal
// ends it.
func TestOpenLeavesNothing(t *testing.T) {
	// open starts the command and returns a function that waits for its end and
	// checks that the directory is gone.
	open := func(t *testing.T, file string) (cmd *exec.Cmd, stdout, stderr *bufio.Reader, ended func(code int)) {
		temp := t.TempDir()
		cmd = exec.CommandContext(t.Context(), "watchkeeper", "open", file, "--port=0")
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stderr = bufio.NewReader(errs)
		return cmd, bufio.NewReader(out), stderr, func(code int) {
			t.Helper()
			said, _ := io.ReadAll(stderr)
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != code {
				t.Errorf("exit code %d, want %d: %s", got, code, said)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		}
	}
	signal := func(t *testing.T, cmd *exec.Cmd, sig os.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("while it reads", func(t *testing.T) {
		pipe := filepath.Join(t.TempDir(), "pipe.wkr")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(demo)
		if err != nil {
			t.Fatal(err)
		}
		cmd, _, _, ended := open(t, pipe)
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.Write(whole[:len(whole)/2]); err != nil {
			t.Fatal(err)
		}
		signal(t, cmd, os.Interrupt)
		ended(130)
	})
	t.Run("while it serves", func(t *testing.T) {
		cmd, stdout, _, ended := open(t, demo)
		if _, err := stdout.ReadString('\n'); err != nil {
			ended(0)
			t.Fatal(err)
		}
		signal(t, cmd, syscall.SIGTERM)
		ended(0)
	})
	t.Run("after its output is closed", func(t *testing.T) {
		// As in "open FILE 2>&1 | head -1".
		temp := t.TempDir()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "watchkeeper", "open", demo, "--port=0")
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		out := bufio.NewReader(r)
		for line := ""; !strings.Contains(line, "The page is"); {
			if line, err = out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
		signal(t, cmd, os.Interrupt)
		cmd.Wait()
		if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
			t.Errorf("%v, left: %v, %v", cmd.ProcessState, left, err)
		}
	})
	t.Run("a second one while it drains", func(t *testing.T) {
		cmd, stdout, stderr, ended := open(t, demo)
		line, err := stdout.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSpace(line), "Starting to serve on http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// The body never ends.
		io.WriteString(conn, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
		if answer, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(answer, "100 Continue") {
			t.Fatalf("%q, %v", answer, err)
		}
		signal(t, cmd, os.Interrupt)
		for line := ""; !strings.Contains(line, "msg=draining"); {
			if line, err = stderr.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		signal(t, cmd, os.Interrupt)
		ended(130)
	})
}
