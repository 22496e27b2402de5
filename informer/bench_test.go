// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// benchPod returns a Pod of typical size, 4.5 KB with its managedFields.
func benchPod(name string, rv int) string {
	env := strings.Repeat(`{"name":"SOME_VARIABLE","value":"http://service.namespace.svc.cluster.local:8080/path"},`, 25)
	fields := strings.Repeat(`"f:name":{".":{},"f:value":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{}},`, 16)
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","uid":"9b1c6f4e-7f3c-4b52-9a36-1234567890ab","resourceVersion":"%d",`+
		`"labels":{"app":"web","tier":"front"},"managedFields":[{"manager":"kubelet","operation":"Update","fieldsV1":{%s"f:x":{}}}]},`+
		`"spec":{"nodeName":"n1","containers":[{"name":"c","image":"registry.example.com/image:v1","env":[%s{"name":"LAST","value":"x"}]}]},"status":{"phase":"Running"}}`,
		name, rv, fields, env)
}

// BenchmarkEvent measures an event from its bytes to a subscriber that does not
// decode it.
func BenchmarkEvent(b *testing.B) {
	const objects = 1000
	var lines [][]byte
	size := 0
	for n := range objects {
		line := []byte(`{"type":"MODIFIED","object":` + benchPod(fmt.Sprintf("pod-%d", n), 1) + "}")
		lines = append(lines, line)
		size += len(line)
	}
	i := New(NewSource(&url.URL{}, http.DefaultTransport), pods, Raw(), Options{})
	s, sub := i.shards[""], i.subscribe(allRuns)
	b.SetBytes(int64(size / objects))
	b.ReportAllocs()
	rv := uint64(1)
	var e scan.ItemEvent
	for n := 0; b.Loop(); n++ {
		if err := e.Scan(lines[n%objects]); err != nil {
			b.Fatal(err)
		}
		rv++
		e.Item.RV = rv // an older RV would be ignored
		if err := s.Apply(e.Type, &e.Item); err != nil {
			b.Fatal(err)
		}
		i.mu.Lock()
		i.events.take(sub)
		i.mu.Unlock()
		sub.taken = sub.taken[:0]
	}
}

// BenchmarkSync measures an object of a list: time, and as heap-B/obj the memory
// that the copy keeps.
func BenchmarkSync(b *testing.B) {
	const objects = 5000
	var items []string
	for n := range objects {
		items = append(items, benchPod(fmt.Sprintf("pod-%d", n), n+1))
	}
	text := script.Page(objects+1, "", items...)
	var was, is runtime.MemStats
	for b.Loop() {
		i := New(NewSource(&url.URL{}, http.DefaultTransport), pods, Raw(), Options{})
		s := i.shards[""]
		runtime.GC()
		runtime.ReadMemStats(&was)
		takeList(b, s, text)
		runtime.GC()
		runtime.ReadMemStats(&is)
		runtime.KeepAlive(i)
	}
	b.ReportMetric(float64(is.HeapAlloc-was.HeapAlloc)/objects, "heap-B/obj")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/objects, "µs/obj")
}
