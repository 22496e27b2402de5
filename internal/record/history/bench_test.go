// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// The targets are for 20,000 Pods and 1,000,000 events:
//
//	go test -run '^$' -bench . -benchtime 1x ./internal/record/history -args -pods 20000 -events 1000000
var (
	benchPods   = flag.Int("pods", 2000, "Pods of the benchmarks")
	benchEvents = flag.Int("events", 50_000, "their changes")
	benchDir    = flag.String("dir", "", "the directory of their history, which stays for further runs; it is created if it does not exist")
	benchLeft   = flag.Bool("left", false, "leave the history as recording left it, without a compaction")
)

// A pod is a Pod of a benchmark, with the offsets of the changing parts of its JSON.
type pod struct {
	o               *scan.Object
	rv              int
	times, restarts []int
}

var (
	rvText   = regexp.MustCompile(`"resourceVersion":"(\d+)"`)
	timeText = regexp.MustCompile(`"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)"`)
	restarts = regexp.MustCompile(`"restartCount":(\d+)`)
)

// newPod gives numbers their final length.
func newPod(text string) *pod {
	text = rvText.ReplaceAllString(text, `"resourceVersion":"10000000"`)
	text = restarts.ReplaceAllString(text, `"restartCount":10`)
	p := &pod{o: must(scan.ParseObject(text)), rv: rvText.FindStringSubmatchIndex(text)[2]}
	for _, at := range timeText.FindAllStringSubmatchIndex(text, -1)[1:] { // without creationTimestamp
		p.times = append(p.times, at[2])
	}
	for _, at := range restarts.FindAllStringSubmatchIndex(text, -1) {
		p.restarts = append(p.restarts, at[2])
	}
	return p
}

// change makes the next version: it changes two times of the status and the time of
// the last manager, and in one of ten versions the restarts.
func (p *pod) change(rnd *rand.Rand, rv uint64, at time.Time) Event {
	text := []byte(p.o.JSON)
	copy(text[p.rv:], fmt.Sprint(10_000_000+rv))
	now := at.UTC().Format("2006-01-02T15:04:05Z")
	for _, i := range []int{rnd.IntN(len(p.times)), rnd.IntN(len(p.times)), len(p.times) - 1} {
		copy(text[p.times[i]:], now)
	}
	if rnd.IntN(10) == 0 {
		for _, i := range p.restarts {
			copy(text[i:], fmt.Sprint(10+rnd.IntN(90)))
		}
	}
	e := Event{Type: kube.Modified, Object: must(scan.ParseObject(string(text))), Prev: p.o, At: at}
	e.Object.Row = fmt.Sprintf(`"cells":[%q,"1/1","Running",%s,"5m","10.1.%d.%d","node-%d","<none>","<none>"]`,
		p.o.Key.Name(), text[p.restarts[0]:][:2], len(p.o.Key)%250, p.o.Key[len(p.o.Key)-1], p.o.Key[len(p.o.Key)-2])
	e.Object.Columns = "[]"
	p.o = e.Object
	return e
}

// A fixture is a store of a long history.
type fixture struct {
	dir         string
	s           *Store
	st          *Stream
	begin, head uint64
	key         kube.Key
	note        string // the cost of recording
}

// benched is the directory of the fixture, "" if there is none.
var benched string

// recorded creates the fixture once.
var recorded = sync.OnceValue(func() *fixture {
	if *benchDir != "" {
		if _, err := os.Stat(*benchDir); err == nil {
			return reopened(*benchDir)
		}
	}
	server := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: *benchPods}})
	web := httptest.NewServer(server)
	defer web.Close()
	resp := must(web.Client().Get(web.URL + "/api/v1/pods?resourceVersion=0"))
	list := must(scan.ParseList(string(must(io.ReadAll(resp.Body))), "Pod"))
	f := &fixture{dir: *benchDir, key: list.Items[7].Key}
	if f.dir == "" {
		f.dir = must(os.MkdirTemp("", "history-bench-"))
		benched = f.dir
	}
	f.s = must(Open(f.dir, Options{Cluster: "c"}))
	f.st = must(f.s.Stream(pods))
	rnd := rand.New(rand.NewPCG(1, 1))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all, objects := make([]*pod, len(list.Items)), make([]*scan.Object, len(list.Items))
	for i, o := range list.Items {
		all[i] = newPod(o.JSON)
		f.head++
		objects[i] = all[i].change(rnd, f.head, at).Object
	}
	f.begin = 10_000_000 + f.head
	if err := f.st.Begin(podForm, slices.Values(objects), f.begin, at); err != nil {
		panic(err)
	}
	var wall, cpu time.Duration
	size := 0
	for done := 0; done < *benchEvents; {
		var events []Event
		for range min(1000, *benchEvents-done) {
			done++
			f.head++
			at = at.Add(10 * time.Millisecond)
			e := all[rnd.IntN(len(all))].change(rnd, f.head, at)
			size += len(e.Object.JSON)
			events = append(events, e)
		}
		began, spent := time.Now(), cpuTime()
		if err := f.st.Append(events, 10_000_000+f.head, at); err != nil {
			panic(err)
		}
		wall, cpu = wall+time.Since(began), cpu+cpuTime()-spent
	}
	began, spent := time.Now(), cpuTime()
	if err := f.s.db.Flush(); err != nil {
		panic(err)
	}
	wall, cpu = wall+time.Since(began), cpu+cpuTime()-spent
	f.head += 10_000_000
	n := float64(*benchEvents)
	f.note = fmt.Sprintf("ingest: %d events of %d bytes, %.0f events/s, %.1f µs CPU per event", *benchEvents, size / *benchEvents, n/wall.Seconds(), float64(cpu.Microseconds())/n)
	before := must(f.s.tableBytes())
	if *benchLeft {
		f.note += fmt.Sprintf("; %.0f bytes/event on disk, the first list among them", float64(before)/n)
		return f
	}
	began = time.Now()
	if err := f.s.rewriteTables(context.Background()); err != nil {
		panic(err)
	}
	after := must(f.s.tableBytes())
	f.note += fmt.Sprintf("; %.0f bytes/event on disk, %.0f after a compaction of %v, the first list among them", float64(before)/n, float64(after)/n, time.Since(began).Round(time.Millisecond))
	return f
})

// reopened is the fixture of an earlier run.
func reopened(dir string) *fixture {
	f := &fixture{dir: dir, s: must(Open(dir, Options{Cluster: "c"})), note: "of an earlier run"}
	f.st = must(f.s.Stream(pods))
	f.begin, f.head = f.st.Span().From.RV, f.st.Head().RV
	for o, err := range f.st.List(context.Background(), f.head, "", "") {
		if f.key = must(o, err).Key; f.key != "" {
			break
		}
	}
	return f
}

// BenchmarkIngest reports the cost of recording the history that the others read.
func BenchmarkIngest(b *testing.B) {
	note := recorded().note
	for b.Loop() {
	}
	b.Log(note)
}

// measure reports how many units f handles per second, and the CPU time of each.
func measure(b *testing.B, unit string, f func() (n int)) {
	recorded()
	b.ReportAllocs()
	n, spent := 0, cpuTime()
	b.ResetTimer()
	for b.Loop() {
		n += f()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), unit+"/s")
	b.ReportMetric(float64((cpuTime()-spent).Microseconds())/float64(n), "cpu-µs/"+unit)
}

// BenchmarkList lists all Pods as they were in the middle of the history.
func BenchmarkList(b *testing.B) {
	measure(b, "object", func() (n int) {
		f := recorded()
		for _, err := range f.st.List(b.Context(), (f.begin+f.head)/2, "", "") {
			if n++; err != nil {
				b.Fatal(err)
			}
		}
		return n
	})
}

// BenchmarkDifference reads the objects that changed in the second quarter of the history,
// as of its middle.
func BenchmarkDifference(b *testing.B) {
	measure(b, "object", func() (n int) {
		f := recorded()
		to := (f.begin + f.head) / 2
		keys, err := f.st.Changed(b.Context(), f.begin+(f.head-f.begin)/4, to, "", 1<<30)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.st.Texts(b.Context(), to, keys, func(int, kube.Key, string) {}); err != nil {
			b.Fatal(err)
		}
		return len(keys)
	})
}

// BenchmarkFloor is what a list cannot do without: its blocks are read and decompressed,
// one seek for each object, and its texts are copied.
func BenchmarkFloor(b *testing.B) {
	measure(b, "object", func() (n int) {
		f := recorded()
		rv := (f.begin + f.head) / 2
		text := string(make([]byte, 4600))
		var kept []string
		var r versionReader
		err := f.st.read(b.Context(), rv, &r, func() error {
			names, err := f.st.names(b.Context(), rv, "", "", 1<<30)
			for _, key := range names {
				if ok, err := r.seek(key, rv); !ok || err != nil {
					return fmt.Errorf("%s: %v, %w", key, ok, err)
				}
				kept = append(kept, strings.Clone(text))
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		return len(kept)
	})
}

// BenchmarkReplay reads all events.
func BenchmarkReplay(b *testing.B) {
	measure(b, "event", func() (n int) {
		f := recorded()
		for _, err := range f.st.Events(b.Context(), f.begin, f.head) {
			if n++; err != nil {
				b.Fatal(err)
			}
		}
		return n
	})
}

// BenchmarkVersions reads all versions of one Pod.
func BenchmarkVersions(b *testing.B) {
	measure(b, "version", func() (n int) {
		f := recorded()
		for _, err := range f.st.Versions(b.Context(), f.key, 0) {
			if n++; err != nil {
				b.Fatal(err)
			}
		}
		return n
	})
}

// BenchmarkReopen opens the store and reads the newest state, as after a restart.
func BenchmarkReopen(b *testing.B) {
	measure(b, "object", func() (n int) {
		f := recorded()
		if err := f.s.Close(); err != nil {
			b.Fatal(err)
		}
		f.s = must(Open(f.dir, Options{Cluster: "c"}))
		f.st = must(f.s.Stream(pods))
		for _, err := range f.st.List(b.Context(), f.head, "", "") {
			if n++; err != nil {
				b.Fatal(err)
			}
		}
		return n
	})
}

// BenchmarkCounts counts all events in a hundred bins.
func BenchmarkCounts(b *testing.B) {
	measure(b, "event", func() (n int) {
		span := recorded().st.Span()
		end := span.To.At.Add(time.Millisecond)
		counts, err := recorded().st.EventCounts(context.Background(), span.From.At, end, end.Sub(span.From.At)/100, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range counts {
			n += c.Modified
		}
		return n
	})
}
