// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
)

// A browser is the process of ui/bench/page.mjs, which defines the commands and their
// answers.
type browser struct {
	*process.Child
	out *bufio.Reader
}

func startBrowser(ctx context.Context) (*browser, error) {
	cmd := exec.CommandContext(ctx, "node", "bench/page.mjs")
	cmd.Dir = "ui"
	child, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	return &browser{Child: child, out: bufio.NewReader(child.Out)}, nil
}

// do sends a command, such as "open", with its arguments, and reads the answer.
func (b *browser) do(command string, arguments map[string]any, answer any) error {
	line := map[string]any{"do": command}
	for name, v := range arguments {
		line[name] = v
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := b.In.Write(append(text, '\n')); err != nil {
		return err
	}
	said, err := b.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the browser: %w", err)
	}
	var failed struct {
		Error string
		Wrong []string
	}
	if err := json.Unmarshal([]byte(said), &failed); err != nil {
		return fmt.Errorf("the browser printed %q: %w", said, err)
	}
	if failed.Error != "" || len(failed.Wrong) > 0 {
		return fmt.Errorf("%s: %s%s", command, failed.Error, strings.Join(failed.Wrong, "; "))
	}
	return json.Unmarshal([]byte(said), answer)
}
