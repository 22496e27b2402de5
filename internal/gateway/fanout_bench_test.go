// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// benchWatchers is set, to a URL, for a process that is the clients of
// BenchmarkFanOut: they are not to count as costs of the gateway.
const benchWatchers = "WATCHKEEPER_BENCH_WATCHERS"

func init() {
	if spec := os.Getenv(benchWatchers); spec != "" {
		if err := watchForBench(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// BenchmarkFanOut brings events of 4 KB to many streams over loopback sockets,
// batch by batch: the next comes when all have the last. It reports what a
// delivery of an event to a stream costs this process, the kernel's part
// included, and what a stream takes while it is idle.
func BenchmarkFanOut(b *testing.B) {
	const streams = 1000
	for _, batch := range []int{1, 10} {
		for _, how := range []struct {
			proto string
			conns int
		}{{"http1", streams}, {"https1", streams}, {"h2", 10}, {"h2", streams}} {
			b.Run(fmt.Sprintf("proto=%s/conns=%d/batch=%d", how.proto, how.conns, batch), func(b *testing.B) {
				fanOut(b, how.proto, how.conns, streams, batch)
			})
		}
	}
}

func fanOut(b *testing.B, proto string, conns, streams, batch int) {
	f := newFakeAPI(b)
	upstream := httptest.NewServer(f)
	defer upstream.Close()
	defer upstream.CloseClientConnections()
	up, err := NewUpstream(&rest.Config{Host: upstream.URL}, UpstreamOptions{})
	if err != nil {
		b.Fatal(err)
	}
	g, err := New(Options{Upstream: up, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	server := httptest.NewUnstartedServer(g)
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
	if proto == "http1" {
		server.Start()
	} else {
		server.EnableHTTP2 = proto == "h2"
		server.StartTLS()
	}
	f.write("ns", "a", 3900)
	res, _ := g.reader.(*cache).hold(pods)
	for res == nil {
		resp, err := server.Client().Get(server.URL + "/api/v1/pods?resourceVersion=0")
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		res, _ = g.reader.(*cache).hold(pods)
	}
	<-res.timeline.Synced()

	idle := memory()
	clients := exec.Command(os.Args[0])
	clients.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s", benchWatchers, proto, conns, streams, server.URL))
	clients.Stderr = os.Stderr
	in, err := clients.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	pipe, err := clients.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := clients.Start(); err != nil {
		b.Fatal(err)
	}
	rounds := bufio.NewReader(pipe)
	round := func(n int) {
		for range n {
			f.write("ns", "a", 3900)
		}
		for range n {
			if _, err := rounds.ReadByte(); err != nil {
				b.Fatal("the clients are gone: ", err)
			}
		}
	}
	for res.watches.Load() < int64(streams) {
		time.Sleep(10 * time.Millisecond)
	}
	round(1)
	idle = memory() - idle
	for range 50 {
		round(batch)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent := cpu()
	for b.Loop() {
		round(batch)
	}
	spent = cpu() - spent
	runtime.ReadMemStats(&after)
	deliveries := float64(b.N * batch * streams)
	b.ReportMetric(float64(spent.Nanoseconds())/deliveries, "cpu-ns/delivery")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/deliveries, "allocs/delivery")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/deliveries, "B/delivery")
	b.ReportMetric(float64(idle)/float64(streams), "idle-B/stream")

	in.Close()
	if err := clients.Wait(); err != nil {
		b.Error(err)
	}
	server.Client().CloseIdleConnections()
	server.Config.Close()
	cancel()
	<-ended
	up.Close()
}

// memory returns what is in use, and cannot be given back to the system.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// cpu returns what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchForBench opens the streams, writes a byte whenever all of them have
// got one more event, and ends when its input does.
func watchForBench(spec string) error {
	var proto, url string
	var conns, streams int
	if _, err := fmt.Sscan(spec, &proto, &conns, &streams, &url); err != nil {
		return err
	}
	var events atomic.Int64
	count := func(r io.Reader) {
		buf := make([]byte, 8<<10)
		for {
			n, err := r.Read(buf)
			if got := int64(bytes.Count(buf[:n], []byte("\n"))); got > 0 {
				now := events.Add(got)
				for i := now/int64(streams) - (now-got)/int64(streams); i > 0; i-- {
					os.Stdout.WriteString("\n")
				}
			}
			if err != nil {
				return
			}
		}
	}
	transports := make([]*http.Transport, conns)
	for i := range transports {
		transports[i] = &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2: proto == "h2",
			HTTP2:             &http.HTTP2Config{StrictMaxConcurrentRequests: true},
		}
	}
	var opening sync.WaitGroup
	for i := range streams {
		opening.Go(func() {
			resp, err := (&http.Client{Transport: transports[i%conns]}).Get(url + "/api/v1/pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
			if err != nil || resp.StatusCode != 200 {
				fmt.Fprintln(os.Stderr, resp, err)
				return
			}
			go count(resp.Body)
		})
		if i < conns || i%50 == 0 {
			opening.Wait()
		}
	}
	opening.Wait()
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
