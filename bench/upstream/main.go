// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command upstream measures what watches cost the API server: the CPU time of
// its process per update of a Pod, with no watch, one, N of its own, and N
// that are open through the gateway instead. All in one run, on one control
// plane, with the same client and the same updates.
//
//	go run ./bench/upstream [-watches 1000] [-updates 400] [-rate 40] [-rounds 3]
//
// It prints Go benchmark lines, medians over the rounds, and a table. It needs
// bin/localcluster.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/clustertest"
)

var (
	watches = flag.Int("watches", 1000, "number of watches")
	updates = flag.Int("updates", 400, "updates per measurement")
	rate    = flag.Float64("rate", 40, "updates per second")
	rounds  = flag.Int("rounds", 3, "how often everything is measured")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A scenario is where the watches are open while the updates go on.
type scenario struct {
	name    string
	watches int
	client  *http.Client
	url     string
}

// A result is what one update cost.
type result struct {
	upstream, gateway time.Duration // CPU
	delivered         int64         // events, of all updates
}

func run(ctx context.Context) error {
	fmt.Fprintln(os.Stderr, "starting a control plane and a gateway…")
	cluster, err := clustertest.Start(2)
	if err != nil {
		return err
	}
	defer cluster.Close()
	gateway, err := cluster.Gateway()
	if err != nil {
		return err
	}
	defer gateway.Terminate()
	stop, err := cluster.Load("--pods", "50", "--namespaces", "1")
	if err != nil {
		return err
	}
	defer stop()
	clients, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return err
	}
	pod, err := aPod(ctx, clients)
	if err != nil {
		return err
	}
	direct, url, err := cluster.Client()
	if err != nil {
		return err
	}
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	cached := &http.Client{Transport: &http.Transport{Protocols: &h2c}}
	scenarios := []scenario{
		{"none", 0, direct, url},
		{"direct", 1, direct, url},
		{"direct", *watches, manyStreams(cluster.Config, direct), url},
		{"gateway", 1, cached, gateway.URL},
		{"gateway", *watches, cached, gateway.URL},
	}
	results := make([][]result, len(scenarios))
	pids, err := pidsOf(cluster, gateway)
	if err != nil {
		return err
	}
	for round := range *rounds {
		for i, s := range scenarios {
			fmt.Fprintf(os.Stderr, "round %d of %d: %d watches, %s…\n", round+1, *rounds, s.watches, s.name)
			r, err := measure(ctx, s, clients, pod, pids)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	report(os.Stdout, scenarios, results)
	return nil
}

// manyStreams has the API server's watches go over several connections, since
// it allows a limited number of streams on each.
func manyStreams(config *rest.Config, otherwise *http.Client) *http.Client {
	var all []http.RoundTripper
	for range 20 {
		c := rest.CopyConfig(config)
		// A dialer of its own keeps client-go from sharing the transport.
		c.Dial = new(dialer).DialContext
		rt, err := rest.TransportFor(c)
		if err != nil {
			return otherwise
		}
		all = append(all, rt)
	}
	return &http.Client{Transport: &roundRobin{all: all}}
}

func aPod(ctx context.Context, clients kubernetes.Interface) (string, error) {
	for range 300 {
		list, err := clients.CoreV1().Pods("load-0").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		if len(list.Items) == 50 {
			return list.Items[0].Name, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", fmt.Errorf("localcluster load made no pods")
}

// measure opens the scenario's watches and updates the Pod at the rate.
func measure(ctx context.Context, s scenario, clients kubernetes.Interface, pod string, pids [2]string) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var delivered, open atomic.Int64
	failed := make(chan error, s.watches+1)
	for range s.watches {
		wg.Go(func() {
			if err := watch(ctx, s, &open, &delivered); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	for int(open.Load()) < s.watches {
		select {
		case err := <-failed:
			return result{}, err
		case <-time.After(10 * time.Millisecond):
		}
	}
	time.Sleep(2 * time.Second) // the cost of opening is not what is asked for
	before, err := cpu(pids)
	if err != nil {
		return result{}, err
	}
	delivered.Store(0)
	tick := time.NewTicker(time.Duration(float64(time.Second) / *rate))
	defer tick.Stop()
	for i := range *updates {
		<-tick.C
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"bench":"%d"}}}`, i)
		if _, err := clients.CoreV1().Pods("load-0").Patch(ctx, pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return result{}, err
		}
	}
	time.Sleep(2 * time.Second) // for the last of them to arrive
	after, err := cpu(pids)
	if err != nil {
		return result{}, err
	}
	select {
	case err := <-failed:
		return result{}, err
	default:
	}
	n := time.Duration(*updates)
	return result{(after[0] - before[0]) / n, (after[1] - before[1]) / n, delivered.Load()}, nil
}

// watch opens a watch from now on and counts what comes.
func watch(ctx context.Context, s scenario, open, delivered *atomic.Int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("watch: %s", resp.Status)
	}
	open.Add(1)
	lines := bufio.NewReaderSize(resp.Body, 32<<10)
	for {
		_, err := lines.ReadSlice('\n')
		switch {
		case err == bufio.ErrBufferFull:
		case err != nil:
			return err
		default:
			delivered.Add(1)
		}
	}
}

// cpu returns the CPU time used by the API server and the gateway.
func cpu(pids [2]string) (out [2]time.Duration, err error) {
	for i, pid := range pids {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return out, err
		}
		// Behind the name in parentheses; user and system time are fields
		// 14 and 15 of all, in ticks of 10 ms.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		for _, ticks := range f[11:13] {
			n, err := strconv.Atoi(ticks)
			if err != nil {
				return out, err
			}
			out[i] += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return out, nil
}

func pidsOf(c *clustertest.Cluster, g *clustertest.Gateway) (pids [2]string, err error) {
	pids[0], err = c.PID("kube-apiserver")
	pids[1] = strconv.Itoa(g.PID())
	return pids, err
}

func median(all []result, of func(result) time.Duration) time.Duration {
	var d []time.Duration
	for _, r := range all {
		d = append(d, of(r))
	}
	slices.Sort(d)
	return d[len(d)/2]
}

func report(w io.Writer, scenarios []scenario, results [][]result) {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\ncpus: %d\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for i, s := range scenarios {
		for _, r := range results[i] {
			fmt.Fprintf(w, "BenchmarkUpdate/via=%s/watches=%d %d %d upstream-cpu-ns/op %d gateway-cpu-ns/op %.3f deliveries/op\n",
				s.name, s.watches, *updates, r.upstream.Nanoseconds(), r.gateway.Nanoseconds(), float64(r.delivered)/float64(*updates))
		}
	}
	upstream := func(r result) time.Duration { return r.upstream }
	base := median(results[1], upstream)
	fmt.Fprintf(w, "\n| watches | API server, CPU per update | ratio to one direct watch | gateway, CPU per update |\n|---|---|---|---|\n")
	for i, s := range scenarios {
		up := median(results[i], upstream)
		fmt.Fprintf(w, "| %d %s | %v | %.2f | %v |\n", s.watches, s.name, up.Round(10*time.Microsecond), float64(up)/float64(base),
			median(results[i], func(r result) time.Duration { return r.gateway }).Round(10*time.Microsecond))
	}
}
