// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestLinearizable has clients write, most of them at the API server, and read
// at the gateway once the write is acknowledged, or meanwhile: a consistent list,
// whole or in pages, a streaming list, or a watch with RV unset. A read has to
// contain every write that was acknowledged before it began. If there are several API
// servers, one after the other lags meanwhile.
// WATCHKEEPER_LINEARIZABLE_ROUNDS is the number of rounds, and
// WATCHKEEPER_LINEARIZABLE_SEED repeats the choices of a run.
func TestLinearizable(t *testing.T) {
	l := newLinearizable(t)
	rounds := clustertest.FromEnv(t, "WATCHKEEPER_LINEARIZABLE_ROUNDS", 200)
	l.run(rounds, false, func() { l.lag(rounds) })
}

// lag delays what one API server after the other receives from etcd, once each at least.
func (l *linearizable) lag(rounds uint64) {
	names, err := cluster.APIServerNames()
	if err != nil {
		l.t.Error(err)
	}
	if len(names) == 1 {
		return
	}
	for i := 0; (i < len(names) || l.reads.Load() < int64(rounds)) && !l.t.Failed(); i++ {
		if err := cluster.Lag(names[i%len(names)], "--delay", "500ms", "--for", "2s"); err != nil {
			l.t.Error(err)
		}
		time.Sleep(2 * time.Second)
	}
}

// TestLinearizableThroughRestart restarts the API server meanwhile. Reads may fail
// then; those that succeed have to be right.
func TestLinearizableThroughRestart(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quietOutage)
	l := newLinearizable(t)
	outages[quietOutage].Ready()
	rounds := clustertest.FromEnv(t, "WATCHKEEPER_LINEARIZABLE_ROUNDS", 200) / 2
	l.run(rounds, true, func() {
		for l.reads.Load() < int64(rounds)/3 && !t.Failed() {
			time.Sleep(10 * time.Millisecond)
		}
		if err := outages[quietOutage].Next(nil); err != nil {
			t.Error(err)
		}
	})
	if l.skips.Load() == 0 {
		t.Error("no read failed: nothing was disturbed")
	}
}

// A linearizable is one run.
type linearizable struct {
	t       *testing.T
	gateway *clustertest.Gateway
	direct  *http.Client
	up      string
	client  *http.Client // of the gateway
	stores  []*store
	// disturbed is set if requests may fail.
	disturbed bool

	reads, skips atomic.Int64 // reads that succeeded, that failed
	pages        atomic.Int64 // of lists, after the first
}

func newLinearizable(t *testing.T) *linearizable {
	one, two := namespace(t), namespace(t, "-2")
	apply(t, marks)
	established(t, "marks.example.com")
	mine, err := cluster.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		mine.Terminate()
		_ = cluster.Kubectl(context.Background(), "delete", "crd", "marks.example.com").Run()
		_ = cluster.Kubectl(context.Background(), "delete", "priorityclasses", "-l", "color").Run()
	})
	l := &linearizable{t: t, gateway: mine, client: &http.Client{Transport: transport}}
	l.direct, l.up = direct(t)
	scopes := []string{one, two}
	l.stores = []*store{
		{name: "configmaps", prefix: "/api/v1", form: `"apiVersion":"v1","kind":"ConfigMap"`, namespaces: scopes},
		{name: "secrets", prefix: "/api/v1", form: `"apiVersion":"v1","kind":"Secret","type":"example.com/t"`, namespaces: scopes, field: "type=example.com/t"},
		{name: "marks", prefix: "/apis/example.com/v1", form: `"apiVersion":"example.com/v1","kind":"Mark"`, namespaces: scopes},
		{name: "priorityclasses", prefix: "/apis/scheduling.k8s.io/v1", form: `"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","value":1`},
	}
	return l
}

const marks = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: marks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: marks, singular: mark, kind: Mark}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

// run runs the rounds, several at a time, and disturb concurrently.
func (l *linearizable) run(rounds uint64, disturbed bool, disturb func()) {
	t := l.t
	seed := clustertest.FromEnv(t, "WATCHKEEPER_LINEARIZABLE_SEED", uint64(time.Now().UnixNano()))
	t.Logf("WATCHKEEPER_LINEARIZABLE_SEED=%d", seed)
	l.fatten()
	l.disturbed = disturbed
	start := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() { l.churn(ctx, rand.New(rand.NewPCG(seed, 1000))) })
	var over atomic.Bool // the disturbance
	others.Go(func() {
		defer over.Store(true)
		disturb()
	})
	workers := make([]*worker, 24)
	for i := range workers {
		w := &worker{linearizable: l, rnd: rand.New(rand.NewPCG(seed, uint64(i))), seen: map[*store]uint64{}, last: map[string]*reading{}}
		for _, s := range l.stores {
			for k := range 3 {
				w.keys = append(w.keys, s.newKey(w.rnd, fmt.Sprintf("w%d-%d", i, k)))
			}
		}
		workers[i] = w
	}
	l.work(workers, func() bool { return l.reads.Load() >= int64(rounds) && over.Load() })
	// First pages of lists, at the least: not all later pages are from the cache.
	lists, watches := l.served("list")-int(l.pages.Load()), l.served("watch")
	if lists <= 0 && !disturbed {
		lists = l.alone(workers[0])
	}
	cancel()
	others.Wait()
	if watches == 0 || lists <= 0 && !disturbed {
		t.Errorf("the cache served %d lists and %d watches: too few to show anything", lists, watches)
	}
	t.Logf("%d reads, and %d that failed, in %v; the cache served %d watches and at least %d first pages of lists",
		l.reads.Load(), l.skips.Load(), time.Since(start).Round(time.Second), watches, max(lists, 0))
}

// work has the workers run rounds until enough returns true.
func (l *linearizable) work(workers []*worker, enough func() bool) {
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			for !enough() && !l.t.Failed() {
				w.round(l.t.Context())
				if l.disturbed { // the outage may wait for other tests
					time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

// alone has one worker read the resource that churn keeps busy, until the cache serves
// it: on a busy machine the quick proofs of all concurrent reads can fail. It returns how
// many lists the cache served.
func (l *linearizable) alone(w *worker) (n int) {
	q := query{store: l.stores[0], match: func(*key, op) bool { return true }}
	for deadline := time.Now().Add(2 * time.Minute); n == 0 && time.Now().Before(deadline) && !l.t.Failed(); {
		time.Sleep(100 * time.Millisecond)
		before, floor := l.served("list"), q.store.floor()
		got, err := w.list(l.t.Context(), q, "")
		w.judge(q, floor, got, err)
		n = l.served("list") - before
	}
	return n
}

// served returns how many requests the gateway has served from its timelines.
func (l *linearizable) served(verb string) (n int) {
	_, body := get(l.t, http.DefaultClient, l.gateway.Admin+"/metrics")
	for _, m := range regexp.MustCompile(`(?m)^watchkeeper_requests_total\{code="200",source="cache",verb="`+verb+`"\} (\d+)`).FindAllStringSubmatch(body, -1) {
		k, err := strconv.Atoi(m[1])
		if err != nil {
			l.t.Fatal(err)
		}
		n += k
	}
	return n
}

// fatten makes the lists of ConfigMaps and Secrets so long that the gateway tries
// to serve them from the cache.
func (l *linearizable) fatten() {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, s := range l.stores[:2] {
		for i := range 50 {
			k := s.newKey(rnd, fmt.Sprint("fat-", i))
			if err := l.write(l.t.Context(), l.direct, l.up, k, op{color: "fat"}); err != nil {
				l.t.Fatal(err)
			}
			if s.name == "configmaps" {
				s.fat = append(s.fat, k)
			}
		}
	}
}

// churn changes ConfigMaps all the time.
func (l *linearizable) churn(ctx context.Context, rnd *rand.Rand) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	fat := l.stores[0].fat
	for {
		select {
		case <-tick.C:
			// If the last write fails, its outcome is unknown.
			_ = l.write(ctx, l.direct, l.up, fat[rnd.IntN(len(fat))], op{color: "fat"})
		case <-ctx.Done():
			return
		}
	}
}

// A worker is a client that writes its own objects and reads those of all.
type worker struct {
	*linearizable
	rnd  *rand.Rand
	keys []*key
	seen map[*store]uint64   // the highest RV of a consistent read
	last map[string]*reading // by path and query
}

// round is one write and one read.
func (w *worker) round(ctx context.Context) {
	i := w.rnd.IntN(len(w.keys))
	k := w.keys[i]
	next := op{color: []string{"red", "blue"}[w.rnd.IntN(2)], deleted: k.alive() && w.rnd.IntN(3) == 0}
	client, base := w.direct, w.up
	if w.rnd.IntN(4) == 0 {
		client, base = w.client, w.gateway.URL
	}
	acked := make(chan error, 1)
	write := func() { acked <- w.write(ctx, client, base, k, next) }
	if w.rnd.IntN(4) > 0 {
		write()
	} else {
		go write()
		time.Sleep(time.Duration(w.rnd.IntN(3000)) * time.Microsecond)
	}
	w.read(ctx, w.query(k))
	if err := <-acked; err != nil {
		if !w.disturbed {
			w.t.Errorf("write: %v", err)
		}
		// The outcome is unknown: continue with another object.
		w.keys[i] = k.store.newKey(w.rnd, fmt.Sprintf("%s-%d", k.name, len(k.ops)))
	}
}

// query chooses a collection to read, mostly one with the object.
func (w *worker) query(k *key) query {
	q := query{store: k.store}
	switch w.rnd.IntN(6) {
	case 0:
		q.selector, q.match = "fieldSelector=metadata.name%3D"+k.name, func(o *key, _ op) bool { return o.name == k.name }
	case 1, 2:
		q.selector, q.match = "labelSelector=color%3Dred", func(_ *key, state op) bool { return state.color == "red" }
	case 3:
		q.selector, q.match = "labelSelector=color%20notin%20(red,blue)", func(_ *key, state op) bool { return state.color == "fat" }
	}
	if q.match == nil && k.store.field != "" && w.rnd.IntN(2) == 0 {
		q.selector = "fieldSelector=" + strings.Replace(k.store.field, "=", "%3D", 1)
	}
	if q.match == nil {
		q.match = func(*key, op) bool { return true }
	}
	if k.namespace != "" {
		switch w.rnd.IntN(3) {
		case 0:
			q.namespace = k.namespace
		case 1:
			if q.selector == "" { // put the namespace in the selector
				q.selector = "fieldSelector=metadata.namespace%3D" + k.namespace
				q.match = func(o *key, _ op) bool { return o.namespace == k.namespace }
				q.narrowed = true
			}
		}
	}
	return q
}
