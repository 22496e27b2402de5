// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/informer/apiserver"
	"github.com/watchkeeper/watchkeeper/internal/kube"
)

var (
	benchPods   = flag.Int("pods", 2000, "Pods of the benchmark")
	benchEvents = flag.Int("events", 20_000, "their changes")
)

var (
	rvText  = regexp.MustCompile(`"resourceVersion":"\d+"`)
	timeRe  = regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)
	restart = regexp.MustCompile(`"restartCount":\d+`)
)

// changed is a later version of an object: with the times of its status and of
// the manager of that, and one in ten times a restart.
func changed(rnd *rand.Rand, o *kube.Object, rv uint64, at time.Time) *kube.Object {
	now := fmt.Sprintf("%q", at.UTC().Format("2006-01-02T15:04:05Z"))
	text := rvText.ReplaceAllString(o.JSON, fmt.Sprintf(`"resourceVersion":"%d"`, rv))
	n := len(timeRe.FindAllString(text, -1))
	which := map[int]bool{rnd.IntN(n): true, rnd.IntN(n): true, n - 1: true}
	i := -1
	text = timeRe.ReplaceAllStringFunc(text, func(s string) string {
		if i++; which[i] {
			return now
		}
		return s
	})
	if rnd.IntN(10) == 0 {
		text = restart.ReplaceAllString(text, fmt.Sprintf(`"restartCount":%d`, rnd.IntN(100)))
	}
	p, err := kube.ScanObject(text)
	if err != nil {
		panic(err)
	}
	p.Row, p.Columns = fmt.Sprintf(`"cells":[%q,"1/1","Running",%d,"5m","10.1.%d.%d","node-%d","<none>","<none>"]`, o.Key.Name(), rv%7, rv%250, rv%100, rv%500), "[]"
	return p
}

// TestSize prints what history takes and how fast it is; -v -pods 20000 -events 1000000 for figures.
func TestSize(t *testing.T) {
	server, err := apiserver.New(apiserver.Options{Pods: *benchPods})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	defer web.Close()
	resp, err := web.Client().Get(web.URL + "/api/v1/pods?resourceVersion=0")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	list, err := kube.ScanList(string(body), "Pod")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := Open(dir, Options{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Stream(pods)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var events []Event
	rv := list.RV
	for i, o := range list.Items {
		rv++
		list.Items[i] = changed(rnd, o, rv, at)
	}
	start := time.Now()
	if err := st.Begin(podForm, slices.Values(list.Items), rv, at); err != nil {
		t.Fatal(err)
	}
	fmt.Println("base", time.Since(start))
	var spent time.Duration
	bytes := 0
	first := rv
	for done := 0; done < *benchEvents; {
		events = events[:0]
		for range 1000 {
			rv++
			done++
			at = at.Add(10 * time.Millisecond)
			i := rnd.IntN(len(list.Items))
			o := changed(rnd, list.Items[i], rv, at)
			bytes += len(o.JSON)
			events = append(events, Event{Type: kube.Modified, Object: o, Prev: list.Items[i], At: at})
			list.Items[i] = o
		}
		start := time.Now()
		if err := st.Append(events, rv, at); err != nil {
			t.Fatal(err)
		}
		spent += time.Since(start)
	}
	fmt.Printf("append: %.1f µs/event of %d bytes\n", float64(spent.Microseconds())/float64(*benchEvents), bytes / *benchEvents)
	size := func() float64 { return float64(s.db.Metrics().DiskSpaceUsage()) }
	fmt.Printf("disk %.1f MB\n", size()/1e6)
	start = time.Now()
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{255}, true); err != nil {
		t.Fatal(err)
	}
	var sst int64
	for _, l := range s.db.Metrics().Levels {
		sst += l.TablesSize
	}
	fmt.Printf("compacted in %v: tables %.1f MB, %.0f bytes/event\n", time.Since(start), float64(sst)/1e6, float64(sst)/float64(*benchEvents))
	start = time.Now()
	n := 0
	for _, err := range st.All(rv-uint64(*benchEvents)/2, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	fmt.Println("list", n, time.Since(start))
	start = time.Now()
	n = 0
	for _, err := range st.Events(first, rv) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	fmt.Printf("replay %d in %v: %.0f/s\n", n, time.Since(start), float64(n)/time.Since(start).Seconds())
	start = time.Now()
	n = 0
	for _, err := range st.Versions(list.Items[7].Key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	fmt.Println("versions", n, time.Since(start))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	s, _ = open(t, dir)
	fmt.Println("open", time.Since(start))
	s.Close()
	_ = os.RemoveAll
}
