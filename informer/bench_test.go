// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

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
	const pods = 1000
	var text strings.Builder
	for n := range pods {
		text.WriteString(`{"type":"MODIFIED","object":` + benchPod(fmt.Sprintf("pod-%d", n), 1) + "}\n")
	}
	i := New(nil, Resource{Version: "v1", Name: "pods"}, Raw(), Options{})
	s, sub := i.shards[""], i.subscribe(allRuns)
	b.SetBytes(int64(text.Len() / pods))
	b.ReportAllocs()
	rv := uint64(1)
	frames := itemEncoding{}.watch(&repeating{text: text.String()}, false)
	for b.Loop() {
		f, err := frames.next()
		if err != nil {
			b.Fatal(err)
		}
		rv++
		f.object.RV = rv // an older RV would be ignored
		if err := s.Apply(f.typ, f.object); err != nil {
			b.Fatal(err)
		}
		i.mu.Lock()
		i.events.take(sub)
		i.mu.Unlock()
		sub.taken = sub.taken[:0]
	}
}

// A repeating reads a text without end.
type repeating struct {
	text string
	at   int
}

func (a *repeating) Read(b []byte) (int, error) {
	if a.at == len(a.text) {
		a.at = 0
	}
	n := copy(b, a.text[a.at:])
	a.at += n
	return n, nil
}

// BenchmarkSync measures an object of a list: time, and as heap-B/obj the memory
// that the copy keeps.
func BenchmarkSync(b *testing.B) {
	const pods = 5000
	var items []string
	for n := range pods {
		items = append(items, benchPod(fmt.Sprintf("pod-%d", n), n+1))
	}
	text := page(pods+1, "", items...)
	var was, is runtime.MemStats
	for b.Loop() {
		i := New(nil, Resource{Version: "v1", Name: "pods"}, Raw(), Options{})
		s := i.shards[""]
		runtime.GC()
		runtime.ReadMemStats(&was)
		s.Begin(false)
		head, err := itemEncoding{}.list(bufio.NewReader(io.Reader(strings.NewReader(text))), &scan.List{Typed: true, ItemKind: "Pod", APIVersion: "v1"}, s.Item)
		if err != nil {
			b.Fatal(err)
		}
		s.End(head)
		runtime.GC()
		runtime.ReadMemStats(&is)
		runtime.KeepAlive(i)
	}
	b.ReportMetric(float64(is.HeapAlloc-was.HeapAlloc)/pods, "heap-B/obj")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/pods, "µs/obj")
}
