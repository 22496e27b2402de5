// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
)

// A client is a program in one of its modes.
type client struct {
	measure.Mode
	program string
}

// buildClients builds the program of each folder, and runs it to list its modes.
func buildClients(ctx context.Context, dir string) (all []client, cleanup func(), err error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: run it in the repository", err)
	}
	out, err := os.MkdirTemp("", "bench-informer-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(out)
		}
	}()
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-w", "-o", out+string(filepath.Separator), "./"+filepath.Join(dir, "..."))
	if text, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("building %s: %w\n%s", dir, err, text)
	}
	for _, f := range folders {
		program := filepath.Join(out, f.Name())
		text, err := exec.CommandContext(ctx, program, "modes").Output()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		var modes []measure.Mode
		if err := json.Unmarshal(text, &modes); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		for _, m := range modes {
			all = append(all, client{m, program})
		}
	}
	return all, func() { os.RemoveAll(out) }, nil
}

// measure runs the program once and returns its result.
func (c client) measure(ctx context.Context, order measure.Order) (r measure.Result, err error) {
	cmd := exec.CommandContext(ctx, c.program)
	cmd.Env = append(os.Environ(), c.Env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	defer in.Close() // ends the program, if it has not ended
	if err := cmd.Start(); err != nil {
		return r, err
	}
	if err := json.NewEncoder(in).Encode(order); err != nil {
		return r, err
	}
	if err := cmd.Wait(); err != nil {
		return r, fmt.Errorf("%s: %w", c.Name, err)
	}
	return r, json.Unmarshal(out.Bytes(), &r)
}
