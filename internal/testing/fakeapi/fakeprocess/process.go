// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeprocess

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// Serve runs the server in this process: it writes the addresses to out, and ends when
// its input does.
func Serve(o fakeapi.Options, in io.Reader, out io.Writer) error {
	plain, secure, stop, err := fakeapi.Listen(Handler(fakeapi.New(o)))
	if err != nil {
		return err
	}
	defer stop()
	if err := json.NewEncoder(out).Encode(map[string]fakeapi.Address{"http": plain, "tls": secure}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// Start starts a process that calls Serve, and returns its addresses: "http" and "tls".
// The caller calls end; the process also ends with this one.
func Start(cmd *exec.Cmd) (addresses map[string]fakeapi.Address, end func(), err error) {
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

// StartSelf is [Start] for the running program, with arguments that make it call Serve.
func StartSelf(args ...string) (addresses map[string]fakeapi.Address, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	return Start(exec.Command(self, args...))
}
