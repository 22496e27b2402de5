// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cli_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/watchkeeper/watchkeeper/internal/cli"
)

// hostileFile is the variable in the environment of a process that opens a file.
const hostileFile = "WATCHKEEPER_TEST_OPEN"

func init() {
	if file := os.Getenv(hostileFile); file != "" {
		os.Exit(openFile(file))
	}
}

// openFile runs "open" until it serves, and prints the most memory that the process has
// had. The build tag excludes the race detector, which needs a multiple of it.
func openFile(file string) int {
	ctx, cancel := context.WithCancel(context.Background())
	stdout, w := io.Pipe()
	go func() {
		_, _ = bufio.NewReader(stdout).ReadString('\n')
		cancel()
		_, _ = io.Copy(io.Discard, stdout)
	}()
	code := cli.Main(ctx, []string{"watchkeeper", "open", file, "-p", "0"}, strings.NewReader(""), w, os.Stderr)
	fmt.Println(peakMemory())
	return code
}

// peakMemory returns the most bytes of memory that the runtime has taken from the system:
// this number never decreases.
func peakMemory() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Sys)
}

// TestOpenHostile: opening a file takes less than 256 MiB of memory, whatever it
// contains. Each of these files unpacks to more than that from a small size; those that
// an honest recording resembles are opened.
func TestOpenHostile(t *testing.T) {
	const (
		begin = `{"stream":{"version":"v1","resource":"pods","listKind":"PodList","rv":1,"at":"2026-01-01T00:00:00Z"}}`
		form  = `{"form":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{}}}}`
		end   = `{"head":{"rv":100000,"at":"2026-01-01T00:00:00Z"}}`
	)
	long := strings.Repeat("a", 5<<19)
	object := func(kind, name, more string, rv int) string {
		return fmt.Sprintf(`{"%s":{"type":"ADDED","at":"2026-01-01T00:00:00Z","json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s","resourceVersion":"%d"%s}}}}`, kind, name, rv, more)
	}
	labels := `,"labels":{` + strings.Repeat(`"a":"",`, 3<<17) + `"b":""}`
	in := func(n int, f func(i int) string) func() []iter.Seq[string] {
		return func() []iter.Seq[string] { return []iter.Seq[string]{one(begin, form), lines(n, f), one(end)} }
	}
	alone := func(n int, f func(i int) string) func() []iter.Seq[string] {
		return func() []iter.Seq[string] { return []iter.Seq[string]{lines(n, f)} }
	}
	for name, test := range map[string]struct {
		lines  func() []iter.Seq[string]
		opened bool
		short  bool // make test runs it
	}{
		"paths":     {alone(60, func(int) string { return `{"document":{"path":"` + long + `"}}` }), false, true},
		"types":     {alone(60, func(int) string { return `{"document":{"path":"/api","type":"` + long + `"}}` }), false, false},
		"documents": {alone(60, func(int) string { return `{"document":{"path":"/api","body":"` + long + `"}}` }), false, false},
		"empty":     {alone(150_000, func(int) string { return `{"document":{}}` }), false, true},
		"unknown":   {alone(60, func(int) string { return `{"later":"` + long + `"}` }), true, false},
		"one line":  {alone(1, func(int) string { return `{"later":"` + strings.Repeat("a", 100<<20) + `"}` }), false, true},
		"columns": {in(60, func(i int) string {
			return `{"columns":{"number":` + strconv.Itoa(i) + `,"definitions":"` + long + `"}}`
		}), false, false},
		"forms": {in(60, func(int) string { return strings.Replace(form, "Pod", long, 1) }), false, false},
		"resources": {alone(60_000, func(i int) string {
			return []string{strings.Replace(begin, "pods", "p"+strconv.Itoa(i/3), 1), form, end}[i%3]
		}), false, true},
		"gaps": {in(60_000, func(i int) string {
			return fmt.Sprintf(`{"gap":{"from":{"rv":%d,"at":"2026-01-01T00:00:00Z"},"to":{"rv":%d,"at":"2026-01-01T00:00:00Z"}}}`, i+1, i+2)
		}), true, false},
		"names":            {in(60, func(i int) string { return object("object", long+strconv.Itoa(i), "", 1) }), false, false},
		"names of events":  {in(60, func(i int) string { return object("event", long+strconv.Itoa(i), "", 2) }), false, false},
		"long names":       {in(8_000, func(i int) string { return object("object", long[:4000]+strconv.Itoa(i), "", 1) }), true, false},
		"labels":           {in(4, func(i int) string { return object("object", "p"+strconv.Itoa(i), labels, 1) }), true, false},
		"labels of events": {in(4, func(i int) string { return object("event", "p"+strconv.Itoa(i), labels, i+2) }), true, false},
		"large objects": {in(60, func(i int) string {
			return object("event", "p"+strconv.Itoa(i%8), `,"x":"`+long+strconv.Itoa(i)+`"`, i+2)
		}), true, false},
		"events of one RV": {in(60_000, func(i int) string { return object("event", "p"+strconv.Itoa(i), "", 2) }), true, false},
		"many objects":     {in(60_000, func(i int) string { return object("object", "p"+strconv.Itoa(i), "", 1) }), true, false},
		"a large gap": {func() []iter.Seq[string] {
			gap := `{"gap":{"from":{"rv":1,"at":"2026-01-01T00:00:00Z"},"to":{"rv":9,"at":"2026-01-01T00:00:00Z"}}}`
			return []iter.Seq[string]{one(begin, form, gap), lines(20, func(i int) string {
				return object("event", "p"+strconv.Itoa(i), `,"x":"`+long+`"`, 2)
			}), one(end)}
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !test.short {
				t.Skip("make test-all runs it")
			}
			file := filepath.Join(t.TempDir(), "hostile.wkr")
			record(t, file, append([]iter.Seq[string]{one(`{"recording":{"format":1}}`)}, test.lines()...)...)
			open := exec.CommandContext(t.Context(), os.Args[0])
			// Without GOGC, which scripts/test sets for tests: it would take more memory.
			open.Env = append(os.Environ(), "GOGC=", hostileFile+"="+file, "TMPDIR="+t.TempDir())
			var stderr strings.Builder
			open.Stderr = &stderr
			out, err := open.Output()
			if err == nil != test.opened {
				t.Errorf("%v: %.500s", err, stderr.String())
			}
			peak, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				t.Fatalf("%q: %.500s", out, stderr.String())
			}
			t.Logf("%d MiB", peak>>20)
			if peak > 256<<20 {
				t.Errorf("open took %d MiB of memory", peak>>20)
			}
		})
	}
}

func one(texts ...string) iter.Seq[string] {
	return lines(len(texts), func(i int) string { return texts[i] })
}

func lines(n int, f func(i int) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < n && yield(f(i)); i++ {
		}
	}
}

// record writes a recording with these lines, of which the first is its header.
func record(t *testing.T, file string, all ...iter.Seq[string]) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	w, sum, n := bufio.NewWriter(z), sha256.New(), 0
	for _, part := range all {
		for line := range part {
			for _, to := range []io.Writer{w, sum} {
				if _, err := io.WriteString(to, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			n++
		}
	}
	fmt.Fprintf(w, `{"end":{"lines":%d,"sha256":"%x"}}`+"\n", n, sum.Sum(nil))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

// recordingLines returns the lines of a recording but its last, which has their checksum.
func recordingLines(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	return all[:len(all)-1]
}
