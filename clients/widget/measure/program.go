// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
)

// A program is one of the controllers.
type program struct {
	name, title string
	module, dir string   // dir is in the module, and module is relative to clients
	files       []string // of the controller, relative to clients
	api         string   // the file with the type Widget
}

var programs = []program{
	{
		name: "example", title: "`examples/widget`",
		module: "..", dir: "examples/widget",
		files: []string{"../examples/widget/controller.go", "../examples/widget/main.go"},
		api:   "../examples/widget/widget.go",
	},
	{
		name: "stock", title: "controller-runtime",
		module: ".", dir: "widget/stock",
		files: []string{"widget/controller.go", "widget/setup.go", "widget/stock/main.go"},
		api:   "widget/widget.go",
	},
	{
		name: "formanager", title: "controller-runtime with `ForManager`",
		module: ".", dir: "widget/formanager",
		files: []string{"widget/controller.go", "widget/setup.go", "widget/formanager/main.go"},
		api:   "widget/widget.go",
	},
}

// probe is compiled into the programs, so that their code need not have it. On SIGUSR1 it
// prints the live heap.
const probe = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func init() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			runtime.GC()
			runtime.GC() // frees what finalizers and pools have released
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Fprintln(os.Stderr, "heap", m.HeapAlloc)
		}
	}()
}
`

func (p program) path(dir string) string { return filepath.Join(dir, p.name) }

// build builds the program with the probe, which is a few kilobytes of it.
func (p program) build(ctx context.Context, dir string) error {
	folder, err := filepath.Abs(filepath.Join(p.module, p.dir))
	if err != nil {
		return err
	}
	added := p.path(dir) + ".txt"
	if err := os.WriteFile(added, []byte(probe), 0o600); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(folder, "probe.go"): added}})
	if err != nil {
		return err
	}
	overlay := p.path(dir) + ".json"
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-overlay", overlay, "-o", p.path(dir), "./"+p.dir)
	cmd.Dir = p.module
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.name, err, out)
	}
	return nil
}

// sizes returns the lines of the program, and the size of its binary.
func (p program) sizes(dir string) ([]value, error) {
	lines := 0
	for _, f := range p.files {
		n, err := countLines(f)
		if err != nil {
			return nil, err
		}
		lines += n
	}
	api, err := countLines(p.api)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(p.path(dir))
	if err != nil {
		return nil, err
	}
	return []value{
		{Of: float64(lines), Unit: "lines"},
		{Of: float64(api), Unit: "type-lines"},
		{Of: float64(info.Size()) / mega, Unit: "binary-MB"},
	}, nil
}

// countLines returns how many lines of a file have code.
func countLines(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return codeLines(text), nil
}

func codeLines(text []byte) int {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		for i := range strings.Count(literal, "\n") + 1 { // a raw string has several
			lines[file.Line(pos)+i] = true
		}
	}
}

// A running is a started program.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{}
	heap  chan float64

	mu  sync.Mutex   // guards log
	log bytes.Buffer // what it has printed
}

// start starts a program with a kubeconfig. It ends with ctx, if stop does not end it.
func start(ctx context.Context, path, kubeconfig string) (*running, error) {
	r := &running{cmd: exec.CommandContext(ctx, path), ended: make(chan struct{}), heap: make(chan float64, 1)}
	r.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := r.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(r.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if number, ok := strings.CutPrefix(lines.Text(), "heap "); ok {
				n, _ := strconv.ParseFloat(number, 64)
				r.heap <- n
				continue
			}
			r.mu.Lock()
			fmt.Fprintln(&r.log, lines.Text())
			r.mu.Unlock()
		}
		_ = r.cmd.Wait() // it is killed, or its log has the reason
	}()
	return r, nil
}

// stop ends the program.
func (r *running) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	select {
	case <-r.ended:
	case <-time.After(15 * time.Second):
		_ = r.cmd.Process.Kill()
		<-r.ended
	}
}

// output returns the end of what the program has printed.
func (r *running) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.log.Bytes()[max(0, r.log.Len()-2000):])
}

// idle waits until the program uses less than one percent of a CPU, and returns the CPU
// time that it has used until then.
func (r *running) idle(ctx context.Context) (cpu time.Duration, err error) {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		before, err := process.CPU(r.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return 0, err
		}
		if cpu, err = process.CPU(r.cmd.Process.Pid); err != nil || cpu-before < 10*time.Millisecond {
			return cpu, err
		}
	}
	return 0, fmt.Errorf("the program is busy after 5 minutes")
}

// liveHeap makes the program collect garbage.
func (r *running) liveHeap(ctx context.Context) (float64, error) {
	if err := r.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return 0, err
	}
	select {
	case n := <-r.heap:
		return n, nil
	case <-r.ended:
		return 0, fmt.Errorf("the program ended: %s", r.output())
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
