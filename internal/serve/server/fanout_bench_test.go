// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/serve/server"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// benchWatchers is set in the process of BenchmarkFanOut's clients, to their task. They
// have a process of their own so that they do not count as costs of the server.
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

// BenchmarkFanOut sends events of 4 KB to many streams over loopback sockets, in
// batches: the next one is sent when all streams have the last. It reports the CPU of
// this process per delivered event, kernel included, and the memory of an idle stream.
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

// BenchmarkIdle opens streams and reports the memory of each.
func BenchmarkIdle(b *testing.B) {
	const streams = 5000
	for _, how := range []struct {
		proto string
		conns int
	}{{"http1", streams}, {"https1", streams}, {"h2", 50}, {"h2", streams}} {
		b.Run(fmt.Sprintf("proto=%s/conns=%d", how.proto, how.conns), func(b *testing.B) {
			fanOut(b, how.proto, how.conns, streams, 1)
		})
	}
}

func fanOut(b *testing.B, proto string, conns, streams, batch int) {
	api := fakeapi.New(fakeapi.Options{NoWatchList: true})
	write(api, 1)
	upstream := httptest.NewServer(api)
	defer upstream.Close()
	defer upstream.CloseClientConnections()
	opts := server.Options{RESTConfig: &rest.Config{Host: upstream.URL}, Address: "127.0.0.1"}
	if proto != "http1" {
		dir := b.TempDir()
		opts.Cert.File, opts.Cert.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		writePair(b, opts.Cert.File, opts.Cert.KeyFile, 1)
	}
	listening := make(chan string, 1)
	opts.OnListening = func(url, _ string) { listening <- url }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, opts) }()
	url := <-listening

	idle := memory()
	clients := exec.Command(os.Args[0])
	clients.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s", benchWatchers, proto, conns, streams, url))
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
	wait := func(n int) {
		for range n {
			if _, err := rounds.ReadByte(); err != nil {
				b.Fatal("the clients are gone: ", err)
			}
		}
	}
	wait(1) // all are open
	write(api, 1)
	wait(1)
	idle = memory() - idle
	for range 20 {
		write(api, batch)
		wait(batch)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent := cpu()
	for b.Loop() {
		write(api, batch)
		wait(batch)
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
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// memory returns the bytes in use by the heap and stacks.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchForBench opens the streams; it writes a byte when all are open, and whenever all
// have received one more event, and ends at the end of its input.
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
					os.Stdout.WriteString(".")
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
		if i < conns && i%50 == 0 || i%500 == 0 {
			opening.Wait()
		}
	}
	opening.Wait()
	os.Stdout.WriteString(".")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// write changes the Pod of 4 KB n times.
func write(api *fakeapi.Server, n int) {
	for range n {
		api.Put("pods", fmt.Sprintf(`{"metadata":{"name":"a","namespace":"ns","labels":{"filling":%q}},"spec":{"containers":null},"status":{}}`,
			strings.Repeat("x", 3900)))
	}
}
