// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

// In the tests this program is the client too.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_CLIENT") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program runs the client. Its input stays open until it ends.
func program(t *testing.T, env []string, input any, output any, args ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(append(os.Environ(), "BE_THE_CLIENT=1"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(input); err != nil && err != io.ErrClosedPipe {
		t.Log(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), output); err != nil {
		t.Fatalf("%v: %q", err, stdout.Bytes())
	}
}

// TestModes measures each mode with few objects, and checks the results.
func TestModes(t *testing.T) {
	var modes []measure.Mode
	program(t, nil, nil, &modes, "modes")
	if len(modes) < 7 {
		t.Errorf("%d modes", len(modes))
	}
	const pods, events = 200, 200
	for i, m := range modes {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			server := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: pods}})
			plain, secure, stop, err := fakeapi.Listen(fakeprocess.Handler(server))
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			target := []fakeapi.Address{plain, secure}[i%2]
			var r measure.Result
			program(t, m.Env, measure.Order{Mode: m.Name, Target: measure.Target(target), Pods: pods, Events: events}, &r)
			if r.Sync.Handled != pods || r.Events.Handled != events {
				t.Errorf("the handler was called %d and %d times, want %d and %d", r.Sync.Handled, r.Events.Handled, pods, events)
			}
			// client-go calls the handler again for every object of the list.
			if r.Relist.Handled != pods+1 {
				t.Errorf("after the 410 the handler was called %d times, want %d", r.Relist.Handled, pods+1)
			}
			if r.HeapPerObject < 1000 || r.HeapPerObject > 100_000 {
				t.Errorf("%.0f bytes per Pod", r.HeapPerObject)
			}
			for name, p := range map[string]measure.Phase{"sync": r.Sync, "events": r.Events, "relist": r.Relist} {
				if p.CPU <= 0 || p.Wall <= 0 || p.RSSBefore <= 0 || p.RSSPeak < p.RSSBefore {
					t.Errorf("%s: %+v", name, p)
				}
			}
		})
	}
}
