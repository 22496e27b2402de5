// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package uptest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReturns: what keeps `up` from starting ends it with one line that says so, and leaves no
// process and no lock behind. After that up has its folder as before.
func TestReturns(t *testing.T) {
	t.Parallel()
	bin := binary(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	inUse := func(user string) string { return fmt.Sprintf("port %d of %s is in use by another process", port, user) }

	stages := t.TempDir()
	if err := os.WriteFile(filepath.Join(stages, "a.yaml"), []byte("kind: ["), 0o600); err != nil {
		t.Fatal(err)
	}

	type obstacle struct {
		name string
		put  func(dir string) error // into the folder; nil for none
		args []string
		want string
	}
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	obstacles := []obstacle{
		{name: "port of the flag", args: []string{"--apiserver-port", fmt.Sprint(port)}, want: inUse("kube-apiserver")},
		{name: "damaged state", put: write("state.json", "{"), want: "state.json is damaged"},
		{name: "folder of others", put: write("notes.txt", ""), want: "was not made by localcluster"},
		{name: "folder is a file", args: []string{"--dir", "/dev/null"}, want: "not a directory"},
		{name: "no folder of stages", args: []string{"--stages", "/nonexistent"}, want: "--stages /nonexistent: there is no"},
		{name: "folder without stages", args: []string{"--stages", "."}, want: "--stages .: there is no"},
		{name: "stages that are none", args: []string{"--stages", stages}, want: "kwok ended while starting"},
		{name: "no program", args: []string{"--run", "x=/nonexistent"}, want: "--run x=/nonexistent"},
		{name: "--run", args: []string{"--run", "x"}, want: "must be IMAGE=PROGRAM"},
		{name: "--nodes", args: []string{"--nodes", "-1"}, want: "0 or more"},
		{name: "--apiservers", args: []string{"--apiservers", "0"}, want: "1 or more"},
		{name: "--balance without several", args: []string{"--balance", "request"}, want: "add --apiservers"},
		{name: "--balance", args: []string{"--apiservers", "2", "--balance", "fast"}, want: "fast"},
		{name: "an API server that ends", args: []string{"--apiserver-arg", "no-such-flag=1"}, want: "kube-apiserver ended while starting"},
		{name: "an API server of several that ends", args: []string{"--apiservers", "2", "--apiserver-arg", "no-such-flag=1"}, want: "kube-apiserver ended while starting"},
	}
	// Each port that is kept for the next up.
	for _, user := range []string{"etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "pod", "kubelet", "kube-apiserver-1", "kube-apiserver-2"} {
		ports := map[string]int{user: port}
		if user != "kube-apiserver" {
			ports["kube-apiserver"] = freePort(t)
		}
		state, err := json.Marshal(map[string]any{"ports": ports})
		if err != nil {
			t.Fatal(err)
		}
		obstacles = append(obstacles, obstacle{name: "kept port of " + user, put: write("state.json", string(state)), args: []string{"--apiservers", "2"}, want: inUse(user)})
	}
	// Each file that up writes, and each folder.
	kept, err := json.Marshal(map[string]any{"ports": map[string]int{"kube-apiserver": freePort(t)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pki", "logs", "pids", "pod", "pki/ca.crt", "pki/server.key", "kubeconfig", "pki/kwok.kubeconfig", "logs/etcd.log", "pids/etcd", "kwok.yaml", "control.sock"} {
		obstacles = append(obstacles, obstacle{name: name + " is of the other kind", want: name, put: func(dir string) error {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			if err := write("state.json", string(kept))(dir); err != nil {
				return err
			}
			if strings.Contains(name, ".") || strings.Contains(name, "/") || name == "kubeconfig" {
				return os.MkdirAll(filepath.Join(path, "folder"), 0o700)
			}
			return os.WriteFile(path, nil, 0o600)
		}})
	}
	for _, o := range obstacles {
		t.Run(o.name, func(t *testing.T) {
			dir := t.TempDir()
			if o.put != nil {
				if err := o.put(dir); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			up := exec.CommandContext(ctx, bin, append([]string{"up", "--dir", dir}, o.args...)...)
			up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
			out, err := up.CombinedOutput()
			text := string(out)
			if err == nil || ctx.Err() != nil || !strings.Contains(text, o.want) {
				t.Errorf("%v, which does not say %q:\n%s", err, o.want, text)
			}
			if strings.Contains(text, "goroutine ") {
				t.Errorf("it panics:\n%s", text)
			}
			if rest := processesOf(t, dir); len(rest) > 0 {
				t.Errorf("it has left behind %q", rest)
			}
		})
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// processesOf returns the arguments of the processes that name a folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(args), dir) { // else it has ended
			found = append(found, strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return found
}
