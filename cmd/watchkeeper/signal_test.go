// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first signal lets an open request end, however long that takes within
// the grace period; the second ends the process at once.
func TestSignals(t *testing.T) {
	for _, tc := range []struct {
		name    string
		signals []os.Signal
		code    int
	}{
		{"SIGTERM", []os.Signal{syscall.SIGTERM}, 0},
		{"SIGINT twice", []os.Signal{os.Interrupt, os.Interrupt}, 130},
		{"SIGINT, then SIGTERM", []os.Signal{os.Interrupt, syscall.SIGTERM}, 143},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.NewResponseController(w).Flush()
				select {
				case <-release:
					io.WriteString(w, "done")
				case <-r.Context().Done():
				}
			}))
			t.Cleanup(upstream.Close)
			cmd := exec.CommandContext(t.Context(), "watchkeeper", "serve", "--server", upstream.URL, "--port=0", "--admin-listen=", "--data-dir=", "--shutdown-grace=1m")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			url, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			url = strings.TrimSpace(strings.TrimPrefix(url, "Starting to serve on "))
			res, err := http.Get(url + "/version")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()

			log := bufio.NewScanner(stderr)
			for i, sig := range tc.signals {
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				for i == 0 && log.Scan() && !strings.Contains(log.Text(), "msg=draining") {
				}
			}
			begin := time.Now()
			if tc.code == 0 {
				close(release)
				if body, err := io.ReadAll(res.Body); err != nil || string(body) != "done" {
					t.Errorf("the open request: %q, %v", body, err)
				}
			}
			for log.Scan() {
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != tc.code || time.Since(begin) > 30*time.Second {
				t.Errorf("exit code %d after %v, want %d", code, time.Since(begin), tc.code)
			}
		})
	}
}
