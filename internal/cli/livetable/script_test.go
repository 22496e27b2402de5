// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkScript reports the bytes that script records for a change of one cell in a quiet
// table on a terminal of 24 lines and 80 columns: the change, two steps until its mark has gone,
// and the status line.
func BenchmarkScript(b *testing.B) {
	w := newWorld(b, 15)
	text, err := json.Marshal(w.command())
	if err != nil {
		b.Fatal(err)
	}
	record := filepath.Join(b.TempDir(), "record")
	cmd := exec.Command("script", "-qfc", fmt.Sprintf("stty rows 24 cols 80; exec '%s'", os.Args[0]), record)
	cmd.Env = append(os.Environ(), "LIVETABLE="+string(text), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "SHELL=/bin/sh")
	keys, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer cmd.Wait()
	defer fmt.Fprint(keys, "q")
	// quiet returns the size once nothing has been written for a while.
	quiet := func() int64 {
		for size, since := int64(-1), time.Now(); ; time.Sleep(100 * time.Millisecond) {
			if info, err := os.Stat(record); err == nil && info.Size() != size {
				size, since = info.Size(), time.Now()
			} else if size > 1000 && time.Since(since) > 5*time.Second {
				return size
			}
		}
	}
	first := quiet()
	n := 0
	for b.Loop() {
		w.pod("web-07", "1/1", []string{"CrashLoopBackOff", "Running"}[n%2])
		n++
		quiet()
	}
	b.ReportMetric(float64(quiet()-first)/float64(n), "B/change")
	b.ReportMetric(float64(first), "B/start")
	b.ReportMetric(0, "ns/op")
}
