// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/cli"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

var update = flag.Bool("update", false, "write the goldens")

// openRecording serves a recording, and returns its URL.
func openRecording(t *testing.T, file string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	ctx, cancel := context.WithCancel(t.Context())
	stdout, w := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- cli.Main(ctx, []string{"watchkeeper", "open", file, "-p", "0"}, strings.NewReader(""), w, io.Discard)
		w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("open ends with %d", code)
		}
	})
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(first), "Starting to serve on ")
	if err != nil || !ok {
		t.Fatalf("%q %v", first, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if !strings.HasPrefix(address, "http") {
		address = "http://" + address
	}
	return address
}

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(got), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: 'go test ./internal/cli -run 'Story|Diagnose' -update' writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// TestStoryOfDemo: the stories of the recording that 'make demo' opens, in all forms.
func TestStoryOfDemo(t *testing.T) {
	server := openRecording(t, "../../demo/incident.wkr")
	for name, line := range map[string]string{
		"demo.txt":         "deployment/checkout -n shop",
		"demo-v.txt":       "deployment/checkout -n shop -v",
		"demo.md":          "deployment/checkout -n shop -o markdown",
		"demo-v.md":        "deployment/checkout -n shop --since 23:52 --until 23:53 -o markdown -v",
		"demo.json":        "deployment/checkout -n shop --since 2026-11-21T23:52:00Z -o json",
		"demo-node.txt":    "node/node-4",
		"demo-pod.txt":     "pod/checkout-979d84455-wkkmb -n shop",
		"demo-scaled.txt":  "deploy frontend -n shop",
		"demo-rollout.txt": "deployment/search -n shop -v --until 23:49:29",
		"demo-quiet.txt":   "node/node-0 --since 23:53 --until 23:53:10",
	} {
		out, errs, code := run(append([]string{"story", "--utc", "--server", server}, strings.Fields(line)...)...)
		if code != 0 || errs != "" {
			t.Errorf("%s: %d %s", line, code, errs)
		}
		golden(t, "story/"+name, out)
	}
	out, _, _ := run("story", "deployment/checkout", "-n", "shop", "--utc", "--server", server)
	first, _, _ := strings.Cut(out, "\n")
	for _, part := range []string{"rollout of checkout from 1.0 to 1.1", "failed", "CrashLoopBackOff", "exit 1", "cannot reach the database", "rolled back to 1.0", "by kubectl"} {
		if !strings.Contains(first, part) {
			t.Errorf("the first line does not have %q: %s", part, first)
		}
	}
	for line, want := range map[string]string{
		"deployment/checkout -n other":                              "nothing is recorded in namespace other",
		"deployment -n shop":                                        "name it as deployment/NAME",
		"deployment/checkout -n shop -o yaml":                       "use text, json or markdown",
		"configmap/x -n shop":                                       "configmaps",
		"deployment/checkout -n shop --since 23:53 --until 23:52":   "--since 23:53 is after --until 23:52, which was last on ",
		"deployment/checkout -n shop --since 10d --until 9d":        "deployments.apps: before the recorded history, which begins at ",
		"deployment/checkout -n shop --since 23:52:00 --color none": "--color",
	} {
		if _, errs, code := run(append([]string{"story", "--server", server}, strings.Fields(line)...)...); code != 1 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}

// TestStoryOfScenarios: the stories that demo/scenarios/NAME.txt asks for of each recording
// there.
func TestStoryOfScenarios(t *testing.T) {
	files, err := filepath.Glob("../../demo/scenarios/*.wkr")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".wkr")
		t.Run(name, func(t *testing.T) {
			asks, err := os.ReadFile(strings.TrimSuffix(file, ".wkr") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			server := openRecording(t, file)
			var all strings.Builder
			asked := 0
			for line := range strings.Lines(string(asks)) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "cause:") {
					break
				}
				if line == "" {
					continue
				}
				asked++
				args := append([]string{"story", "--utc", "--server", server}, strings.Fields(line)...)
				out, errs, code := run(args...)
				if code != 0 || errs != "" {
					t.Errorf("%s: %d %s", line, code, errs)
				}
				all.WriteString("$ watchkeeper story " + line + "\n" + out + "\n")
				again, _, _ := run(append(args, "-o", "json")...)
				var s api.Story
				if err := json.Unmarshal([]byte(again), &s); err != nil {
					t.Error(err)
				}
				for _, e := range s.Episodes {
					if e.Main && (e.Severity == api.EpisodeInfo || len(e.Causes) == 0) {
						t.Errorf("%s: the main episode is %q, with %d causes", line, e.Title, len(e.Causes))
					}
				}
			}
			if asked == 0 {
				t.Error("nothing is asked")
			}
			golden(t, "story/"+name+".txt", all.String())
		})
	}
}

// TestStoryWithout: a gateway that has no stories is older.
func TestStoryWithout(t *testing.T) {
	newFakeGateway(t, map[string]string{})
	if _, errs, code := run("story", "deployment/web"); code != 1 || !strings.Contains(errs, "nothing is recorded of it") {
		t.Errorf("%d %s", code, errs)
	}
	if _, err := os.Stat("testdata/story"); errors.Is(err, fs.ErrNotExist) {
		t.Error("there are no goldens")
	}
}
