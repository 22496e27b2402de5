// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// A recording is the events that one client of a watch received.
type recording struct {
	name   string
	client *http.Client
	url    string // without an RV
	resume bool   // when a stream ends, resume from the last RV

	mu     sync.Mutex // guards what follows
	frames []frame    // events; bookmarks are not kept
	rv     uint64     // of the last event or bookmark
	ends   int        // streams that ended
	err    error      // an ERROR event, or a line that is not one document
}

// record opens a watch and records its events until the context ends.
func record(ctx context.Context, wg *sync.WaitGroup, r *recording, from uint64) *recording {
	r.rv = from
	wg.Go(func() {
		for ctx.Err() == nil {
			r.stream(ctx)
			if ctx.Err() != nil {
				return
			}
			r.mu.Lock()
			r.ends++
			r.mu.Unlock()
			if !r.resume {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	return r
}

// recordBoth records all of podQueries from now on, at the API server and at a
// gateway, whose clients resume if resume is set.
func recordBoth(ctx context.Context, t *testing.T, wg *sync.WaitGroup, gateway string, resume bool) (from uint64, wants, gots []*recording) {
	t.Helper()
	client, up := direct(t)
	_, from = listState(t, "/api/v1/pods")
	for _, q := range podQueries {
		wants = append(wants, record(ctx, wg, &recording{name: "direct " + q, client: client, url: up + q, resume: true}, from))
		gots = append(gots, record(ctx, wg, &recording{name: "gateway " + q, client: http.DefaultClient, url: gateway + q, resume: resume}, from))
	}
	return from, wants, gots
}

func (r *recording) stream(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"&watch=1&allowWatchBookmarks=true&resourceVersion="+strconv.FormatUint(r.place(), 10), nil)
	if err != nil {
		r.fail(err)
		return
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return // the server is down
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode/100 != 5 {
			r.fail(fmt.Errorf("watch: %s", resp.Status))
		}
		return
	}
	frames := watchread.Lines(bufio.NewReaderSize(resp.Body, 1<<20))
	for {
		f, err := readFrame(frames)
		if err != nil {
			if strings.HasSuffix(f.text, "\n") { // a line without a newline was cut off
				r.fail(fmt.Errorf("%w in %q", err, f.text))
			}
			return
		}
		rv, err := strconv.ParseUint(f.Object.Metadata.ResourceVersion, 10, 64)
		if err != nil || f.Type == "ERROR" {
			r.fail(fmt.Errorf("got %s", f.text))
			return
		}
		r.mu.Lock()
		r.rv = rv
		if f.Type != "BOOKMARK" {
			r.frames = append(r.frames, f)
		}
		r.mu.Unlock()
	}
}

func (r *recording) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.resume = false
}

func (r *recording) place() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rv
}

// texts returns the events with RVs in (from, to].
func (r *recording) texts(from, to uint64) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, f := range r.frames {
		if rv := f.rv(); from < rv && rv <= to {
			out = append(out, f.text)
		}
	}
	return out
}

func (f frame) rv() uint64 {
	rv, _ := strconv.ParseUint(f.Object.Metadata.ResourceVersion, 10, 64)
	return rv
}

func (f frame) key() string { return f.Object.Metadata.Namespace + "/" + f.Object.Metadata.Name }

// fold checks that the events are ordered and unique (T4), applies them to start,
// the client's list at RV after, and returns the resulting state, key → RV.
func (r *recording) fold(t *testing.T, start map[string]uint64, after uint64) map[string]uint64 {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	state := maps.Clone(start)
	last := after
	for i, f := range r.frames {
		if f.rv() <= last {
			t.Fatalf("%s: event %d is at %d, after %d: %.200s", r.name, i, f.rv(), last, f.text)
		}
		last = f.rv()
		held, ok := state[f.key()]
		switch f.Type {
		case "ADDED":
			if ok {
				t.Fatalf("%s: ADDED %s, which exists at %d", r.name, f.key(), held)
			}
			state[f.key()] = f.rv()
		case "MODIFIED":
			if !ok {
				t.Fatalf("%s: MODIFIED %s at %d, which does not exist", r.name, f.key(), f.rv())
			}
			state[f.key()] = f.rv()
		case "DELETED":
			if !ok {
				t.Fatalf("%s: DELETED %s at %d, which does not exist", r.name, f.key(), f.rv())
			}
			delete(state, f.key())
		}
	}
	return state
}

// listState returns a consistent list from the API server, key → RV, and its RV.
func listState(t *testing.T, query string) (map[string]uint64, uint64) {
	t.Helper()
	client, up := direct(t)
	code, body := get(t, client, up+query)
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct {
			Metadata struct{ Name, Namespace, ResourceVersion string }
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 {
		t.Fatalf("list %s: %d %v", query, code, err)
	}
	state := map[string]uint64{}
	for _, o := range list.Items {
		rv, err := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		state[o.Metadata.Namespace+"/"+o.Metadata.Name] = rv
	}
	rv, err := strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return state, rv
}

// podQueries select Pods that localcluster load creates.
var podQueries = []string{
	"/api/v1/pods?x=",
	"/api/v1/namespaces/load-0/pods?x=",
	"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1",
	"/api/v1/pods?fieldSelector=status.phase!%3DRunning",
	"/api/v1/pods?labelSelector=app.kubernetes.io/name%20in%20(checkout,cart),!nothing",
	"/api/v1/pods?labelSelector=app.kubernetes.io/managed-by%3Dlocalcluster",
}

// difference describes the first difference of two recordings.
func difference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		var w, g string
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			return fmt.Sprintf("event %d of %d (got %d):\nwant %.400s\ngot  %.400s", i, len(want), len(got), w, g)
		}
	}
	return ""
}

// mark creates a Pod that all of podQueries select, and returns its RV: a
// recording that has reached it has every earlier event.
func mark(t *testing.T) uint64 {
	t.Helper()
	name := "mark-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	apply(t, strings.ReplaceAll(marker, "NAME", name))
	t.Cleanup(func() {
		_ = api.CoreV1().Pods("load-0").Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	client, up := direct(t)
	_, body := get(t, client, up+"/api/v1/namespaces/load-0/pods/"+name)
	var created frame
	if err := json.Unmarshal([]byte(`{"object":`+body+`}`), &created); err != nil {
		t.Fatal(err)
	}
	return created.rv() - 1 // it may have changed since its creation
}

const marker = `
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  namespace: load-0
  labels: {app.kubernetes.io/name: cart, app.kubernetes.io/managed-by: localcluster}
spec:
  nodeName: node-1
  containers: [{name: c, image: marker}]
`

// waitForAll waits until every recording has reached the RV, with an event or a
// bookmark.
func waitForAll(t *testing.T, all []*recording, rv uint64) {
	t.Helper()
	for _, r := range all {
		deadline := time.Now().Add(3 * time.Minute) // without an event, bookmarks come once a minute
		for r.place() < rv {
			if time.Now().After(deadline) {
				t.Fatalf("%s stays at %d, want %d; %d streams ended, %v\n%s", r.name, r.place(), rv, r.ends, r.err, gw.Log())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// churning is the load that tests share.
var churning struct {
	mu    sync.Mutex // guards what follows
	tests int        // that need the load
	stop  func()
}

// load has localcluster change 50 Pods a second until every test that called it
// has called stop.
func load(t *testing.T) (stop func()) {
	t.Helper()
	churning.mu.Lock()
	defer churning.mu.Unlock()
	if churning.tests == 0 {
		var err error
		if churning.stop, err = cluster.Load("--pods", "150", "--churn", "50"); err != nil {
			t.Fatal(err)
		}
	}
	churning.tests++
	stop = sync.OnceFunc(func() {
		churning.mu.Lock()
		defer churning.mu.Unlock()
		if churning.tests--; churning.tests == 0 {
			churning.stop()
		}
	})
	t.Cleanup(stop)
	eventually(t, "a load", func() bool {
		state, _ := listState(t, "/api/v1/namespaces/load-0/pods")
		return len(state) > 10
	})
	return stop
}

// churned waits until the cluster has changed n times, under a load, and returns
// its RV.
func churned(t *testing.T, n uint64) (rv uint64) {
	t.Helper()
	_, from := listState(t, "/api/v1/pods?limit=1")
	eventually(t, fmt.Sprint(n, " changes"), func() bool {
		_, rv = listState(t, "/api/v1/pods?limit=1")
		return rv >= from+n
	})
	return rv
}
