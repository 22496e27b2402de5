// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package livetable

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

const (
	benchRows = 10_000
	benchRate = 1000 // changes per second
	benchFor  = 5 * time.Second
)

// BenchmarkLive shows 10,000 Pods of which 1,000 change in a second, each in a cell, on a
// terminal of 60 lines and 200 columns. The API server is another process. It reports
//
//	%core        processor time of the program, with the list and watch, of one processor
//	max-ms/frame the longest time that a frame took to be made
//	B/frame      bytes written to the terminal
//	B/change     the same for each change of an object
//	MB-live      heap that is in use after a collection
//	MB-heap      heap that was taken from the system
func BenchmarkLive(b *testing.B) {
	for _, rate := range []int{0, benchRate} {
		b.Run(fmt.Sprintf("rows=%d/rate=%d", benchRows, rate), func(b *testing.B) {
			addresses, end, err := fakeprocess.StartSelf("serve", fmt.Sprint(benchRows))
			if err != nil {
				b.Fatal(err)
			}
			defer end()
			for b.Loop() {
				measureLive(b, addresses["http"].URL, rate)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A counter counts what is written to a terminal.
type counter struct{ bytes, frames atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	c.frames.Add(1)
	return len(p), nil
}

// A timed model notes the longest time that a message took.
type timed struct {
	*model
	longest atomic.Int64
}

func (t *timed) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	began := time.Now()
	_, cmd := t.model.Update(msg)
	t.longest.Store(max(t.longest.Load(), int64(time.Since(began))))
	return t, cmd
}

func measureLive(b *testing.B, server string, rate int) {
	base, err := url.Parse(server)
	if err != nil {
		b.Fatal(err)
	}
	before := heap()
	ctx, cancel := context.WithCancel(b.Context())
	p := newPacer()
	w := Watch{Title: "pods", Base: base, Transport: &http.Transport{}, Resource: kube.Resource{Version: "v1", Name: "pods"}, Namespaced: true}
	m, err := newModel(ctx, Options{Watches: []Watch{w}, AllNamespaces: true}, p)
	if err != nil {
		b.Fatal(err)
	}
	screen, model := &counter{}, &timed{model: m}
	program := tea.NewProgram(model, tea.WithInput(nil), tea.WithOutput(screen), tea.WithWindowSize(200, 60), tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler())
	var running sync.WaitGroup
	running.Go(func() { p.run(ctx, func() { program.Send(frameMsg{}) }) })
	running.Go(func() {
		if _, err := program.Run(); err != nil {
			b.Error(err)
		}
	})
	listed := func() int {
		rows := make(chan int, 1)
		program.Send(countMsg(rows))
		return <-rows
	}
	for listed() < benchRows {
		time.Sleep(100 * time.Millisecond)
	}
	live := heap() - before
	model.longest.Store(0)
	bytes, frames, used, began := screen.bytes.Load(), screen.frames.Load(), processorTime(), time.Now()
	if rate > 0 {
		n := rate * int(benchFor/time.Second)
		resp, err := http.Post(fmt.Sprintf("%s/bench/events?n=%d&rate=%d", server, n, rate), "", nil)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		b.ReportMetric(float64(screen.bytes.Load()-bytes)/float64(n), "B/change")
	} else {
		time.Sleep(benchFor)
	}
	took := time.Since(began)
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	b.ReportMetric(100*float64(processorTime()-used)/float64(took), "%core")
	b.ReportMetric(float64(model.longest.Load())/1e6, "max-ms/frame")
	if n := screen.frames.Load() - frames; n > 0 {
		b.ReportMetric(float64(screen.bytes.Load()-bytes)/float64(n), "B/frame")
		b.ReportMetric(float64(n)/took.Seconds(), "frames/s")
	}
	b.ReportMetric(float64(live)/1e6, "MB-live")
	b.ReportMetric(float64(stats.HeapSys-stats.HeapReleased)/1e6, "MB-heap")
	program.Send(quitMsg{})
	cancel()
	running.Wait()
	m.stop()
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkFrame makes a frame after 40 changes of 10,000 rows, without list and watch.
func BenchmarkFrame(b *testing.B) {
	m, err := newModel(b.Context(), Options{Watches: []Watch{{Title: "pods"}}}, newPacer())
	if err != nil {
		b.Fatal(err)
	}
	row := func(i, restarts int) table.Data {
		key := fmt.Sprintf("ns-%d/web-%05d", i%20, i)
		return table.Data{Key: kube.Key(key), UID: "u", Cells: []table.Cell{{Text: key}, {Text: "1/1"}, {Text: "Running"}, {Text: fmt.Sprint(restarts)}, {Since: int64(i)}}}
	}
	var rows []table.Data
	for i := range benchRows {
		rows = append(rows, row(i, 0))
	}
	t := m.streams[0].table()
	t.Replace([]table.Column{{Name: "NAME", IsName: true}, {Name: "READY"}, {Name: "STATUS"}, {Name: "RESTARTS"}, {Name: "AGE"}}, rows, time.Now())
	m.screen.Width, m.screen.Height = 200, 60
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		now := time.Now()
		for range 40 {
			n++
			t.Put(row(n*7919%benchRows, n), now)
		}
		m.draw(now)
	}
	if len(m.content) == 0 {
		b.Error("nothing was drawn")
	}
}
