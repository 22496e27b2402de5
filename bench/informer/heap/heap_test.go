// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package heap_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
	"github.com/watchkeeper/watchkeeper/informer/zstd"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

const (
	// The heap per Pod is computed from the difference between few and many
	// Pods: an informer has a fixed cost, a high one with compression.
	fewPods, manyPods = 2_000, 10_000
	// heapFile has the recorded bytes of heap per Pod.
	heapFile = "heap.json"
	// tolerance is the factor by which a measurement may exceed the record.
	tolerance = 1.1
)

var update = flag.Bool("update", false, "update "+heapFile)

// TestHeap fails if an informer needs more heap per object than recorded, with a
// tolerance of a tenth: after the sync, after changes of objects, and after a
// relist. The build tag excludes the race detector, which changes allocations.
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
		t.Logf("%s: %.0f bytes of heap per Pod, recorded %.0f", name, got[name], want)
		if got[name] == 0 || got[name] > want*tolerance {
			t.Errorf("%s: %.0f bytes of heap per Pod, more than 110%% of the recorded %.0f. To accept it: go test ./bench/informer/heap -run TestHeap -update", name, got[name], want)
		}
	}
}

// TestHeapDetectsManagedFields: TestHeap fails for an informer that keeps managedFields.
func TestHeapDetectsManagedFields(t *testing.T) {
	got := heapPerPod(t, podServers(t), informer.JSON[map[string]any](), informer.Options{KeepManagedFields: true})
	if want := heapRecords(t)["json"]; got < want*tolerance {
		t.Errorf("%.0f bytes with managedFields, %.0f without", got, want)
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

// podServers starts a server with few Pods and one with many, and returns their
// URLs.
func podServers(t *testing.T) (urls map[int]string) {
	t.Helper()
	urls = map[int]string{}
	for _, n := range []int{fewPods, manyPods} {
		// What the server encodes when it is asked would count as the informer's.
		server := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: n, Formats: []fakeapi.Format{fakeapi.JSON, fakeapi.Protobuf}}})
		address, _, stop, err := fakeapi.Listen(fakeprocess.Handler(server))
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

// heapOfInformer returns the maximum heap of an informer.
func heapOfInformer[T any](t *testing.T, url string, pods int, codec informer.Codec[T], opts informer.Options) float64 {
	t.Helper()
	src, err := informer.FromURL(url)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	if opts.Compression != nil {
		opts.Compression = zstd.New() // not shared between informers
	}
	i := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, codec, opts)
	var events atomic.Int64
	count := func(informer.Ref[T]) { events.Add(1) }
	i.Handle(informer.Handler[T]{Add: count, Update: func(_, now informer.Ref[T]) { count(now) }, Delete: count})
	defer run(t, i)()
	// While a list is taken, objects are there twice.
	settled := func(rv uint64) float64 {
		for s := i.Status(); s.Phase != informer.Watching || s.RV < rv || s.Behind > 0 || events.Load() < int64(pods); s = i.Status() {
			time.Sleep(5 * time.Millisecond)
		}
		return heap() - before
	}
	maxHeap := settled(0)
	for _, command := range []string{fmt.Sprintf("/bench/events?n=%d", pods), "/bench/expire"} {
		resp, err := http.Post(url+command, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		var last fakeapi.Mark
		err = json.NewDecoder(resp.Body).Decode(&last)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		rv, err := strconv.ParseUint(last.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		maxHeap = max(maxHeap, settled(rv))
	}
	runtime.KeepAlive(i)
	return maxHeap
}

// run runs an informer until the test ends or stop is called.
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

// heap returns the heap in use once further collections do not reduce it, and no goroutine has
// ended meanwhile, five times: pools are emptied by the second collection, and on a busy machine
// goroutines take a while to end.
func heap() float64 {
	lowest, running, same := math.Inf(1), 0, 0
	for ; same < 5; time.Sleep(20 * time.Millisecond) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now, goroutines := float64(m.HeapAlloc), runtime.NumGoroutine()
		if same++; now < .999*lowest || goroutines != running {
			same = 0
		}
		lowest, running = min(lowest, now), goroutines
	}
	return lowest
}
