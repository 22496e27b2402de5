// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
)

// record starts a gateway that records the Pods of the API server. stop ends both
// servers, as the end of the process does.
func (f *fakeAPI) record(fs vfs.FS, idle time.Duration) (g *Gateway, rec *recorder.Recorder, url string, stop func()) {
	t := f.t
	t.Helper()
	apiserver := httptest.NewServer(f)
	up, err := upstream.New(&rest.Config{Host: apiserver.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	selected, err := recorder.Select([]string{"pods"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	rec, err = recorder.New(recorder.Options{Dir: "data", FS: fs, Select: selected, Upstream: up})
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err = New(Options{Upstream: up, History: rec, IdleTimeout: idle}); err != nil {
		t.Fatal(err)
	}
	end := runs(t, g)
	last, stopRecording := context.WithCancel(context.Background())
	recorded := make(chan bool)
	go func() { rec.Run(last, g.Cache()); close(recorded) }()
	server := httptest.NewServer(g)
	return g, rec, server.URL, func() {
		server.CloseClientConnections()
		end()
		stopRecording()
		<-recorded
		server.Close()
		up.Close()
		apiserver.CloseClientConnections()
		apiserver.Close()
	}
}

// TestResumesFromRecord: after a restart, the gateway serves reads from the record
// and the events after it, without a list.
func TestResumesFromRecord(t *testing.T) {
	f, fs := newFakeAPI(t), vfs.NewMem()
	f.write("ns", "a", 10)
	g, rec, _, stop := f.record(fs, time.Minute)
	podsOf(t, g)
	head := f.write("ns", "b", 10)
	until(t, "the event in the timeline", func() bool { return podsOf(t, g).Timeline.View().RV >= head })
	until(t, "a record", func() bool { return rec.Sync(t.Context(), pods) == nil })
	stop()
	missed := f.write("ns", "c", 10)

	g, _, url, stop := f.record(fs, time.Minute)
	defer stop()
	until(t, "the missed event in the timeline", func() bool { return podsOf(t, g).Timeline.View().RV >= missed })
	f.count("list")
	resp, err := http.Get(url + "/api/v1/pods?resourceVersion=" + kube.FormatRV(missed))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	for _, name := range []string{`"name":"a"`, `"name":"b"`, `"name":"c"`} {
		if !strings.Contains(string(body), name) {
			t.Errorf("%s is not in %s", name, body)
		}
	}
	res := podsOf(t, g)
	if s := res.Status(); len(s.Relists) != 0 || f.count("list") != 0 {
		t.Errorf("the gateway sent a list: %v", s.Relists)
	}
	// The recorder may have been faster than the reader.
	if v := res.Timeline.View(); v.Start != head && v.Start != missed {
		t.Errorf("the timeline begins at %d, the record ends at %d", v.Start, head)
	}
}

// gateLists makes each list with limit=1 wait for a value on the gate, or until the
// gate is opened. A reflector that resumes from a record sends such a list first.
func (f *fakeAPI) gateLists() (arrivals, gate chan struct{}, open func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	arrivals, gate = make(chan struct{}, 10), make(chan struct{})
	f.gate, f.arrivals = gate, arrivals
	return arrivals, gate, sync.OnceFunc(func() { close(gate) })
}

// TestRecordIsChecked: the gateway serves the record only after the upstream has
// shown that its RVs have not gone back.
func TestRecordIsChecked(t *testing.T) {
	f, fs := newFakeAPI(t), vfs.NewMem()
	f.write("ns", "a", 10)
	g, rec, url, stop := f.record(fs, time.Minute)
	podsOf(t, g)
	until(t, "a record", func() bool { return rec.Sync(t.Context(), pods) == nil })
	stop()

	arrivals, _, open := f.gateLists()
	g, _, url, stop = f.record(fs, time.Minute)
	defer stop()
	defer open()
	<-arrivals // the RV check of the reflector, which the recorder has started
	answered := make(chan int)
	go func() {
		resp, err := http.Get(url + "/api/v1/pods?resourceVersion=0")
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	var res *watchcache.Resource
	until(t, "the record in a timeline", func() bool {
		if all := g.reads.cache.All(); len(all) == 1 {
			res = all[0]
		}
		return res != nil && res.State().View != nil
	})
	if s := res.State(); s.Readable {
		t.Errorf("the record is readable before the check: %v", s.View)
	}
	open()
	if code := <-answered; code != http.StatusOK {
		t.Errorf("code %d", code)
	}
	// The client may have waited too long, and been answered by the upstream.
	until(t, "a readable record after the check", func() bool { return res.State().Readable })
}

// TestWaitsForTheListBehindTheRecord: if the upstream has compacted the RVs after the
// record, a watch from an RV of the record waits for the relist. It is not passed
// through: the upstream would expire it.
func TestWaitsForTheListBehindTheRecord(t *testing.T) {
	f, fs := newFakeAPI(t), vfs.NewMem()
	recorded := f.write("ns", "a", 10)
	g, rec, url, stop := f.record(fs, time.Minute)
	podsOf(t, g)
	until(t, "a record", func() bool { return rec.Sync(t.Context(), pods) == nil })
	stop()
	arrivals, gate, open := f.gateLists()
	missed := f.write("ns", "b", 10)
	f.Compact(missed)

	g, _, url, stop = f.record(fs, time.Minute)
	defer stop()
	defer open()
	<-arrivals // the RV check of the reflector, which the recorder has started
	line := make(chan string, 1)
	go func() {
		resp, err := http.Get(url + "/api/v1/pods?watch=1&resourceVersion=" + kube.FormatRV(recorded))
		if err != nil {
			line <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := bufio.NewReader(resp.Body).ReadString('\n')
		line <- text
	}()
	until(t, "the record in a timeline", func() bool {
		all := g.reads.cache.All()
		return len(all) == 1 && all[0].State().View != nil
	})
	gate <- struct{}{}
	<-arrivals // the RV check before the relist, since the watch has expired
	until(t, "a list", func() bool {
		return g.reads.cache.All()[0].Status().Phase == reflector.Listing
	})
	open()
	if got := <-line; !strings.HasPrefix(got, `{"type":"ADDED"`) || !strings.Contains(got, `"name":"b"`) {
		t.Errorf("got %s", got)
	}
}

// TestAtLaterRV: the state of a resource at an RV that only other resources have reached
// is that of its last change before it.
func TestAtLaterRV(t *testing.T) {
	f, fs := newFakeAPI(t), vfs.NewMem()
	_, rec, url, stop := f.record(fs, time.Minute)
	defer stop()
	f.write("ns", "a", 10)
	until(t, "a record", func() bool { return rec.Sync(t.Context(), pods) == nil })
	now := f.elsewhere()
	get := func(rv uint64) (int, string) {
		resp, err := http.Get(fmt.Sprintf("%s/at/rv:%d/api/v1/pods", url, rv))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	code, body := get(now)
	if list, _ := names(t, body); code != http.StatusOK || len(list) != 1 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := get(now + 1); code != http.StatusBadRequest || !strings.Contains(body, "after the recorded history") {
		t.Errorf("%d %s", code, body)
	}
}

// TestIdleIsRecorded: one upstream watch records a resource without a gap, whether or
// not clients read it.
func TestIdleIsRecorded(t *testing.T) {
	f, fs := newFakeAPI(t), vfs.NewMem()
	g, rec, _, stop := f.record(fs, 10*time.Millisecond)
	defer stop()
	for range 3 {
		podsOf(t, g)
		until(t, "an idle resource", func() bool { return len(g.reads.cache.All()) == 0 })
		rv := f.write("ns", "a", 10)
		until(t, "a record of it", func() bool {
			return rec.Sync(t.Context(), pods) == nil && rec.Store().Streams(pods)[0].Head().RV >= rv
		})
	}
	if st := rec.Store().Streams(pods)[0]; len(st.Gaps()) != 0 || st.Epoch() != 0 {
		t.Errorf("gaps %v", st.Gaps())
	}
	if n := f.count("list"); n != 0 { // the first one was a stream
		t.Errorf("%d lists", n)
	}
}
