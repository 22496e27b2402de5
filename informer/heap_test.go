// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package informer_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/bench/informer/apiserver"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/typed"
	"github.com/watchkeeper/watchkeeper/informer/zstd"
)

const (
	// What one Pod takes is told by the difference between few and many: an
	// informer takes something for itself, which with compression is much.
	fewPods, manyPods = 2_000, 10_000
	// heapFile has the bytes of heap per Pod, by what is measured.
	heapFile = "testdata/heap.json"
	// tolerance is how much more of them there may be.
	tolerance = 1.1
)

var update = flag.Bool("update", false, "write "+heapFile+" anew")

// TestHeap is the gate for memory: an informer takes no more of the heap for an
// object than it did when that was recorded, and a tenth of it: neither when it
// has synced, nor when objects have changed since, nor when it has listed again.
// The race detector has a heap of its own, and is not asked.
func TestHeap(t *testing.T) {
	url := podServers(t)
	got := map[string]float64{
		"json":          heapPerPod(t, url, informer.JSON[map[string]any](), informer.Options{}),
		"json-zstd":     heapPerPod(t, url, informer.JSON[map[string]any](), informer.Options{Compression: zstd.New()}),
		"protobuf":      heapPerPod(t, url, typed.Protobuf[*corev1.Pod](), informer.Options{}),
		"protobuf-zstd": heapPerPod(t, url, typed.Protobuf[*corev1.Pod](), informer.Options{Compression: zstd.New()}),
	}
	if *update {
		text, err := json.MarshalIndent(got, "", "  ")
		if err == nil {
			err = os.WriteFile(heapFile, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range heapRecords(t) {
		t.Logf("%s: %.0f bytes of heap per Pod, %.0f are recorded", name, got[name], want)
		if got[name] == 0 || got[name] > want*tolerance {
			t.Errorf("%s: %.0f bytes of heap per Pod are more than %.0f and a tenth of it. If that is meant: go test ./informer -run TestHeap -update", name, got[name], want)
		}
	}
}

// TestHeapIsSeen: the gate notices an informer that keeps more.
func TestHeapIsSeen(t *testing.T) {
	got := heapPerPod(t, podServers(t), informer.JSON[map[string]any](), informer.Options{KeepManagedFields: true})
	if want := heapRecords(t)["json"]; got < want*tolerance {
		t.Errorf("with managedFields it is %.0f, and %.0f without", got, want)
	}
}

func heapRecords(t *testing.T) map[string]float64 {
	t.Helper()
	var all map[string]float64
	text, err := os.ReadFile(heapFile)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: %v", heapFile, err)
	}
	return all
}

// podServers returns servers of a number of Pods.
func podServers(t *testing.T) (urls map[int]string) {
	t.Helper()
	urls = map[int]string{}
	for _, n := range []int{fewPods, manyPods} {
		server, err := apiserver.New(apiserver.Options{Pods: n})
		if err != nil {
			t.Fatal(err)
		}
		address, _, stop, err := apiserver.Listen(server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		urls[n] = address.URL
	}
	return urls
}

func heapPerPod[T any](t *testing.T, urls map[int]string, codec informer.Codec[T], opts informer.Options) float64 {
	t.Helper()
	few := heapOfInformer(t, urls[fewPods], fewPods, codec, opts)
	many := heapOfInformer(t, urls[manyPods], manyPods, codec, opts)
	return math.Round((many - few) / (manyPods - fewPods))
}

// heapOfInformer is the most that an informer takes.
func heapOfInformer[T any](t *testing.T, url string, pods int, codec informer.Codec[T], opts informer.Options) float64 {
	t.Helper()
	src, err := informer.FromURL(url)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	if opts.Compression != nil {
		opts.Compression = zstd.New() // it belongs to one informer
	}
	i := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, codec, opts)
	var told atomic.Int64
	count := func(informer.Ref[T]) { told.Add(1) }
	i.Handle(informer.Handler[T]{Add: count, Update: func(_, now informer.Ref[T]) { count(now) }, Delete: count})
	defer run(t, i)()
	settled := func(done func() bool) float64 {
		for !done() || i.Status().Behind > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		return heap() - before
	}
	most := settled(func() bool { return told.Load() == int64(pods) })
	for _, command := range []string{fmt.Sprintf("/bench/events?n=%d", pods), "/bench/expire"} {
		resp, err := http.Post(url+command, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		var last apiserver.Mark
		err = json.NewDecoder(resp.Body).Decode(&last)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, settled(func() bool {
			ref, _ := i.Get(informer.Key{Namespace: last.Namespace, Name: last.Name})
			return ref.RV() == last.ResourceVersion
		}))
	}
	runtime.KeepAlive(i)
	return most
}

// run runs an informer until the test, or stop, ends it.
func run[T any](t *testing.T, i *informer.Informer[T]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// heap is what is in use, once collecting does not make it any less: pools take
// two collections, and goroutines that end a little time.
func heap() float64 {
	for least := math.Inf(1); ; time.Sleep(20 * time.Millisecond) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now := float64(m.HeapAlloc)
		if now > .999*least {
			return min(now, least)
		}
		least = now
	}
}
