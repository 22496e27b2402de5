// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// Serve is a process that is a server: it says on out where, and ends with its
// input.
func Serve(o Options, in io.Reader, out io.Writer) error {
	server, err := New(o)
	if err != nil {
		return err
	}
	plain, secure, stop, err := Listen(server)
	if err != nil {
		return err
	}
	defer stop()
	if err := json.NewEncoder(out).Encode(map[string]Address{"http": plain, "tls": secure}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// Start starts a process that calls Serve, and returns its addresses: "http"
// and "tls". It ends with this process too, should end not be called.
func Start(cmd *exec.Cmd) (addresses map[string]Address, end func(), err error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end = func() {
		in.Close()
		cmd.Wait()
	}
	if err := json.NewDecoder(out).Decode(&addresses); err != nil {
		end()
		return nil, nil, fmt.Errorf("the API server does not start: %w", err)
	}
	return addresses, end, nil
}

// StartSelf is [Start] of the running program, whose flag -fakeapi has it call
// Serve with so many Pods; more are flags besides.
func StartSelf(pods int, more ...string) (addresses map[string]Address, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	return Start(exec.Command(self, append([]string{"-fakeapi", strconv.Itoa(pods)}, more...)...))
}
