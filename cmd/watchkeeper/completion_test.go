// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/termtest"
)

// completingShells are shells with a startup file like those of users. $LINES stands for what
// "completion --install" says.
var completingShells = map[string]struct {
	file, text string // below HOME
	list       []string
}{
	"bash": {
		file: ".bashrc",
		// As Debian's /etc/skel/.bashrc, and kubectl's documentation.
		text: ". /usr/share/bash-completion/bash_completion\nsource <(kubectl completion bash)\nPS1='$ '\n",
		list: []string{"Tab", "Tab"},
	},
	"zsh": {
		file: ".zshrc",
		text: "$LINES\nsource <(kubectl completion zsh)\nPS1='$ '\n",
		list: []string{"Tab"},
	},
	"fish": {
		file: ".config/fish/config.fish",
		// Suggestions would show words that were not completed.
		text: "set -g fish_greeting\nset -g fish_autosuggestion_enabled 0\nfunction fish_prompt; echo -n '$ '; end\nkubectl completion fish | source\n",
		list: []string{"Tab"},
	},
}

// TestCompletionInShells: after "completion --install", the shells complete both names.
func TestCompletionInShells(t *testing.T) {
	url := serveDemo(t)
	for shell, with := range completingShells {
		t.Run(shell, func(t *testing.T) {
			if testing.Short() && shell != "bash" {
				t.Skip("make test-all runs it")
			}
			t.Parallel()
			home := t.TempDir()
			bin := filepath.Join(home, "bin")
			linkProgram(t, bin, "watchkeeper", "kubectl-watchkeeper")
			env := []string{
				"HOME=" + home, "PATH=" + bin + ":" + pathWithKubectl(t), "WATCHKEEPER_SERVER=" + url, "KUBECONFIG=", "SHELL=/bin/" + shell, "ZDOTDIR=" + home, "INPUTRC=",
				"XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=", "BASH_COMPLETION_USER_DIR=", "KUBECACHEDIR=" + filepath.Join(home, "cache"),
			}
			lines := installCompletion(t, shell, env)
			startup := filepath.Join(home, with.file)
			if err := os.MkdirAll(filepath.Dir(startup), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(startup, []byte(strings.ReplaceAll(with.text, "$LINES", lines)), 0o600); err != nil {
				t.Fatal(err)
			}

			// Without this folder, fish makes completions from all manuals, for half a minute.
			if err := os.MkdirAll(filepath.Join(home, ".local/share/fish/generated_completions"), 0o755); err != nil {
				t.Fatal(err)
			}

			term := termtest.Start(t, 120, 40, []string{shell, "-i"}, env...)
			// expand presses Tab after some text, and waits until that is completed. It removes the line.
			expand := func(typed, want string) {
				t.Helper()
				term.Text(typed)
				term.Wait("^" + regexp.QuoteMeta("$ "+typed) + "$")
				term.Keys("Tab")
				term.Wait("^" + regexp.QuoteMeta("$ "+want) + "$")
				term.Keys("C-u")
				term.Wait(`^\$$`)
			}
			for _, program := range []string{"watchkeeper", "kubectl watchkeeper"} {
				expand(program+" hist", program+" history")
				expand(program+" history --show", program+" history --show-noise")
				expand(program+" history -n sh", program+" history -n shop")
				expand(program+" history -n shop deploy/che", program+" history -n shop deploy/checkout")
			}
			for _, program := range []string{"watchkeeper", "kubectl watchkeeper"} {
				term.Text(program + " history -n shop deploy/")
				term.Keys(with.list...)
				for _, name := range []string{"cart", "frontend", "payments"} {
					term.Wait(`(^|[\s/])` + name + `\b`)
				}
				term.Keys("C-u")
				term.Wait(`^\$$`)
				term.Keys("C-l")
				term.Wait(`\A\$\n\z`)
			}
		})
	}
}

// installCompletion installs the completion of a shell, and returns what the program says
// about the shell's startup file.
func installCompletion(t *testing.T, shell string, env []string) (lines string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "watchkeeper", "completion", "--install")
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	for _, what := range []string{shell, "kubectl"} {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^%s +/.*watchkeeper`, what)).Match(out) {
			t.Errorf("nothing is installed for %s: %s", what, out)
		}
	}
	for line := range strings.Lines(stderr.String()) {
		if line, ok := strings.CutPrefix(line, "  "); ok {
			lines += line
		} else if !strings.HasPrefix(line, "zsh loads") {
			t.Errorf("there is something left to do: %s", line)
		}
	}
	return lines
}

// linkProgram makes a directory with this program under some names.
func linkProgram(t *testing.T, dir string, names ...string) {
	t.Helper()
	program, err := exec.LookPath("watchkeeper")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// pathWithKubectl returns a PATH with a kubectl: localcluster's, if the machine has none.
func pathWithKubectl(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	program, err := filepath.Abs("../../bin/localcluster")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// It wants a cluster, of which it reads only this file.
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' kubectl --dir '%s' \"$@\"\n", program, dir)
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + ":" + path
}
