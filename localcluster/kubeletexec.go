// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const noExec = "localcluster runs commands of exec only with `up --exec`: they run on this machine, as the user who runs up"

// execute runs a command (kubelet, /exec).
func (k *kubelet) execute(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) {
	if !k.exec {
		http.Error(w, noExec, http.StatusForbidden)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		http.Error(w, "no command", http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, hostShell{k.files, k.launcher}, pod.Name, string(pod.UID), r.PathValue("container"), command, options, kubeletIdle, kubeletCreate, remotecommand.SupportedStreamingProtocols)
}

// A hostShell runs commands on this machine, as the user who runs up.
type hostShell struct {
	podFiles
	launcher launcher
}

// ExecInContainer implements remotecommand.Executor.
func (h hostShell) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	path := command[0]
	if filepath.Base(path) == path {
		path = filepath.Join(h.bin, path)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s: no such command: there are %s", command[0], strings.Join(podCommands, ", "))
	}
	cmd := &exec.Cmd{
		Path: path, Args: command, Dir: h.root, Env: []string{"HOME=" + h.root, "PATH=" + h.bin},
		SysProcAttr: processAttributes(), WaitDelay: time.Second, // for children that hold the output open
	}
	var err error
	if tty {
		err = h.onTerminal(ctx, cmd, in, out, resize)
	} else {
		err = h.withPipes(ctx, cmd, in, out, errOut)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// withPipes runs a command until it ends, also if the client keeps its end of the input open.
func (h hostShell) withPipes(ctx context.Context, cmd *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, errOut
	if in != nil {
		input, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(input, in) // an error means that the command has ended
			input.Close()
		}()
	}
	return h.run(ctx, cmd)
}

// onTerminal runs a command on its own terminal.
func (h hostShell) onTerminal(ctx context.Context, cmd *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	terminal, tty, err := pty.Open()
	if err != nil {
		return err
	}
	defer terminal.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = false, true, true
	go func() {
		for size := range resize {
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width}) // fails once it is closed
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		_, _ = io.Copy(out, terminal) // until EIO, once no process has the terminal
	}()
	err = h.run(ctx, cmd)
	tty.Close()
	select {
	case <-shown:
	case <-time.After(cmd.WaitDelay): // its children have the terminal
	}
	return err
}

// run runs a command until it ends, or the client goes. What it has started ends with it.
func (h hostShell) run(ctx context.Context, cmd *exec.Cmd) error {
	if err := h.launcher.start(cmd); err != nil {
		return err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // fails if nothing is left
	defer kill()
	defer context.AfterFunc(ctx, kill)()
	if err := cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	return nil
}
