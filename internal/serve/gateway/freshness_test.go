// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

// inBubble runs a test with a gateway in front of an API server, in virtual time:
// whether a proof succeeds depends on how long it takes.
func inBubble(t *testing.T, test func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI(t)
		f.fill()
		g, client := f.frontInMemory()
		test(t, f, g, client)
	})
}

// read200 sends a GET that has to succeed.
func read200(t *testing.T, client *http.Client, path string) string {
	t.Helper()
	resp, err := client.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", path, resp.Status, body, err)
	}
	return string(body)
}

// fill writes enough Pods that a list of them is worth a freshness proof.
func (f *fakeAPI) fill() (last uint64) {
	for i := range 40 {
		last = f.write("d", fmt.Sprintf("p%02d", i), 4<<10)
	}
	return last
}

// TestConsistentList: a LIST with RV unset is answered from the timeline if the head
// reaches the upstream's RV by itself, otherwise by the upstream.
func TestConsistentList(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		res := podsOf(t, g)
		last := res.Timeline.View().RV
		f.count("list")

		if rv := rvOf(t, read200(t, client, "/api/v1/pods")); rv != last || f.count("list") != 0 || f.count("latest") == 0 {
			t.Errorf("without a later event: at %d, want %d", rv, last)
		}
		_, meta := names(t, read200(t, client, "/api/v1/namespaces/d/pods?limit=35"))
		if meta.ResourceVersion != fmt.Sprint(last) || *meta.RemainingItemCount != 5 || meta.Continue != request.EncodeContinue(last, "d/p34", "d") {
			t.Errorf("a page: %+v", meta)
		}
		if rest, _ := names(t, read200(t, client, "/api/v1/namespaces/d/pods?continue="+meta.Continue)); len(rest) != 5 || f.count("list") != 0 {
			t.Errorf("its next page: %v", rest)
		}
		f.count("latest")

		// Small lists are not worth a proof.
		for _, query := range []string{"/api/v1/namespaces/d/pods?limit=2", "/api/v1/namespaces/x/pods", "/api/v1/pods?labelSelector=none"} {
			resp, err := client.Get("http://localhost" + query)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if n := f.count("latest"); n != 0 {
			t.Errorf("%d proofs for small lists", n)
		}
		f.count("list")

		// The event arrives while the list waits for it.
		f.hold(true)
		last = f.write("d", "p00", 4<<10)
		done := make(chan uint64)
		go func() { done <- rvOf(t, read200(t, client, "/api/v1/pods")) }()
		until(t, "a proof", func() bool { return f.count("latest") > 0 })
		f.hold(false)
		if rv := <-done; rv != last {
			t.Errorf("at %d, want %d", rv, last)
		}
		if n := f.count("list"); n != 0 {
			t.Errorf("%d lists upstream", n)
		}

		// No event arrives: the list is passed through, and so is the next one at once.
		want := f.elsewhere()
		for range 2 {
			if rv := rvOf(t, read200(t, client, "/api/v1/pods")); rv != want || f.count("list") != 1 {
				t.Errorf("the head lags: at %d, want %d from upstream", rv, want)
			}
		}
		if n := f.count("latest"); n != 1 {
			t.Errorf("%d proofs were tried", n)
		}
		if v := res.Timeline.View(); v.RV != last {
			t.Errorf("the head went from %d to %d", last, v.RV)
		}
	})
}

// TestWatchWithoutRV: a WatchList with RV unset includes every write acknowledged before
// it, even if the upstream's stream lags. The head follows.
func TestWatchWithoutRV(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		res := podsOf(t, g)
		const query = "/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
		initial := func() (pods int, end string) {
			t.Helper()
			resp, err := client.Get("http://localhost" + query)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			for s := bufio.NewScanner(resp.Body); s.Scan(); pods++ {
				if b := brief(t, s.Text()); strings.HasPrefix(b, "BOOKMARK") {
					return pods, b
				}
			}
			t.Fatal("no bookmark ends the initial events")
			return 0, ""
		}

		f.write("d", "new", 10)
		now := f.elsewhere()
		if n, end := initial(); n != 41 || end != fmt.Sprintf("BOOKMARK @%d end", now) {
			t.Errorf("%d initial events, %s; now is %d", n, end, now)
		}
		time.Sleep(3 * time.Second)
		if v := res.Timeline.View(); v.RV != now {
			t.Errorf("the head is at %d, and %d is proven", v.RV, now)
		}
		f.count("list")
		if read200(t, client, fmt.Sprintf("/api/v1/pods?resourceVersion=%d", now)); f.count("list") != 0 {
			t.Error("a list not older than the proven RV is passed through")
		}

		// The watch waits for the event that the proof has seen.
		f.hold(true)
		f.write("d", "newer", 10)
		now = f.elsewhere()
		done := make(chan int)
		f.count("probe")
		go func() {
			n, _ := initial()
			done <- n
		}()
		until(t, "a probe", func() bool { return f.count("probe") > 0 })
		if v := res.Timeline.View(); v.RV >= now {
			t.Errorf("the head is at %d before the event came", v.RV)
		}
		f.hold(false)
		if n := <-done; n != 42 {
			t.Errorf("%d initial events, want 42", n)
		}

		// An upstream whose RV is older than the head proves nothing.
		f.mu.Lock()
		f.staleRV = 50
		f.mu.Unlock()
		f.count("watch")
		if _, err := res.Fresh(t.Context()); err == nil {
			t.Error("proven by an upstream with an older RV")
		}
	})
}

// TestProofsAreShared: many readers share one or two freshness proofs; without readers
// the gateway asks for none.
func TestProofsAreShared(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		podsOf(t, g)
		f.elsewhere()
		// The first proof is held until all readers wait for it or the next.
		f.mu.Lock()
		f.gate, f.arrivals = make(chan struct{}), make(chan struct{}, 10)
		f.mu.Unlock()
		const readers = 50
		var wg, opened sync.WaitGroup
		for range readers {
			opened.Add(1)
			wg.Go(func() {
				resp, err := client.Get("http://localhost/api/v1/pods?watch=1")
				opened.Done()
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"type":"ADDED"`) {
					t.Errorf("%s %v", line, err)
				}
			})
		}
		<-f.arrivals
		synctest.Wait()
		f.count("latest")
		close(f.gate)
		opened.Wait()
		wg.Wait()
		time.Sleep(3 * time.Second) // until the head has reached the readers' RV
		if lists, latest, probes, watches := f.count("list"), f.count("latest"), f.count("probe"), f.count("watch"); lists > 4 || latest > 2 || probes > 3 || watches > 1 {
			t.Errorf("%d readers: %d lists, %d times the latest RV, %d probes, %d watches", readers, lists, latest, probes, watches)
		}
		for what := range map[string]bool{"GET /api/v1": true, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": true} {
			f.count(what)
		}
		f.elsewhere()
		time.Sleep(300 * time.Millisecond)
		f.count("GET /readyz")
		if n := f.total(); n != 0 {
			t.Errorf("%d requests to the upstream without a reader: %v", n, f.asked)
		}
	})
}

// TestUnproven: without a proof of freshness, a few watches without an RV are passed
// through, each for a short time, and the others are asked to try again.
func TestUnproven(t *testing.T) {
	for query, seconds := range map[string]int{
		"watch=1":                    unprovenWatch,
		"watch=1&timeoutSeconds=900": unprovenWatch,
		"watch=1&timeoutSeconds=20":  20,
		"watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": unprovenList,
	} {
		inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
			podsOf(t, g)
			f.mu.Lock()
			f.staleRV = 50 // an RV below the head proves nothing
			f.lasting = true
			f.mu.Unlock()
			f.count("watch")
			began := time.Now()
			var wg sync.WaitGroup
			var mu sync.Mutex
			codes, lasted := map[int]int{}, map[time.Duration]int{}
			for range 3 * maxUnproven {
				wg.Go(func() {
					resp, err := client.Get("http://localhost/api/v1/pods?" + query)
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					if _, err := io.Copy(io.Discard, resp.Body); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if codes[resp.StatusCode]++; resp.StatusCode == http.StatusOK {
						announced := resp.Header.Get(kube.TimeoutHeader)
						if asked := strings.HasSuffix(query, "timeoutSeconds=20"); asked && announced != "" || !asked && announced != fmt.Sprint(seconds) {
							t.Errorf("%s: announced %q, want %d", query, announced, seconds)
						}
						lasted[time.Since(began).Round(10*time.Second)]++
					} else if resp.Header.Get("Retry-After") == "" {
						t.Errorf("%s has no Retry-After", resp.Status)
					}
				})
			}
			wg.Wait()
			if codes[http.StatusOK] != maxUnproven || codes[http.StatusTooManyRequests] != 2*maxUnproven {
				t.Errorf("%s: answers by code: %v", query, codes)
			}
			if lasted[time.Duration(seconds)*time.Second] != maxUnproven {
				t.Errorf("%s: watches by duration: %v, want %d s", query, lasted, seconds)
			}
		})
	}
}

// TestUnprovenPerUser: a user with many such watches leaves some to others.
func TestUnprovenPerUser(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, _ *http.Client) {
		podsOf(t, g)
		g.unproven = newUnproven(true)
		f.mu.Lock()
		f.staleRV, f.lasting = 50, true
		f.mu.Unlock()
		var wg sync.WaitGroup
		codes := map[string]*[600]atomic.Int32{"greedy": {}, "modest": {}}
		watch := func(user string) {
			wg.Go(func() {
				ctx := fairness.WithUser(t.Context(), fairness.UserNamed(user))
				w := httptest.NewRecorder()
				g.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/pods?watch=1", nil))
				codes[user][w.Code].Add(1)
			})
		}
		for range 3 * maxUnproven {
			watch("greedy")
		}
		synctest.Wait()
		time.Sleep(20 * time.Second) // they do not wait for a proof any more
		watch("modest")
		wg.Wait()
		if ok, refused := codes["greedy"][200].Load(), codes["greedy"][429].Load(); ok != maxUnprovenPerUser || refused != 3*maxUnproven-ok {
			t.Errorf("the greedy user: %d answers, %d refusals", ok, refused)
		}
		if codes["modest"][200].Load() != 1 {
			t.Error("the other user's watch is refused")
		}
	})
}

// TestListOfOtherHistory: while the upstream may have another history, a watch is not served
// from the timeline, which may have the RV of a list that was passed through, with other
// events after it; nor is it passed through, since its RV may be of the timeline.
func TestListOfOtherHistory(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		res, before := podsOf(t, g), f.Backup()
		for range 5 {
			f.write("d", "old", 1)
		}
		synctest.Wait()
		head := res.Timeline.View().RV
		watch := func(rv uint64) string {
			t.Helper()
			resp, err := client.Get(fmt.Sprintf("http://localhost/api/v1/pods?watch=1&timeoutSeconds=600&resourceVersion=%d", rv))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			line, _ := bufio.NewReader(resp.Body).ReadString('\n')
			return fmt.Sprintf("%d %s", resp.StatusCode, line)
		}
		f.mu.Lock()
		f.gate, f.arrivals, f.lasting = make(chan struct{}), make(chan struct{}, 1000), true
		f.mu.Unlock()
		f.Restore(before, 0)
		<-f.arrivals // the reflector asks for the newest RV
		rv := rvOf(t, read200(t, client, "/api/v1/pods?limit=3"))
		if rv >= head {
			t.Fatalf("the list is at %d, the head at %d", rv, head)
		}
		f.write("d", "new", 1)
		for _, from := range []uint64{rv, head} {
			if got := watch(from); !strings.HasPrefix(got, "503") {
				t.Errorf("from %d, while the history is not proven: %s", from, got)
			}
		}
		close(f.gate)
		until(t, "a list", func() bool { return res.Timeline.View().RV < head })
		if got := watch(rv); !strings.Contains(got, `"name":"new"`) {
			t.Errorf("from %d, of the new history: %s", rv, got)
		}
		if got := watch(head); !strings.HasPrefix(got, "200") || !strings.Contains(got, `"code":410`) {
			t.Errorf("from %d, of the history before: %s", head, got)
		}
		last := f.Advance(1000)
		go func() {
			time.Sleep(time.Minute)
			f.write("d", "later", 1)
		}()
		if got := watch(head); last <= head || !strings.Contains(got, `"name":"later"`) {
			t.Errorf("from %d, when the upstream is past it: %s", head, got)
		}
	})
}
