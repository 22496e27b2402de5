// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

var podsResource = kube.Resource{Version: "v1", Name: "pods"}

// show is the rows that a table would show: "ns1 p3 app=2".
func show(t *table.Table) (all []string) {
	for _, r := range t.Rows() {
		if !r.Deleted.IsZero() {
			continue
		}
		var cells []string
		for _, c := range r.Cells {
			cells = append(cells, c.Text)
		}
		all = append(all, strings.Join(cells, " "))
	}
	return all
}

// fresh lists the objects without a feed.
func fresh(t *testing.T, network *fakeapi.Network, p *feed.Printer) (all []string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/api/v1/pods?includeObject=Object", nil)
	req.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	resp, err := network.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	list, err := scan.ParseList(string(body), "Pod")
	if err != nil {
		t.Fatal(err)
	}
	of := &table.Table{}
	var rows []table.Data
	for _, o := range list.Items {
		d, err := p.Data(o)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, d)
	}
	columns, err := p.Columns(list.Columns)
	if err != nil {
		t.Fatal(err)
	}
	of.Replace(columns, rows, time.Now())
	return show(of)
}

// TestRandom: after random changes and faults, a table agrees with a list.
func TestRandom(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { random(t, seed) })
		})
	}
}

func random(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	api := fakeapi.New(fakeapi.Options{Bookmarks: time.Minute, NoWatchList: seed%2 == 0})
	network := fakeapi.NewNetwork(api)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer network.Close()
	defer cancel()

	columns := feed.Columns{Namespace: true, ShowLabels: true}
	f := feed.New(feed.NewPrinter(podsResource, columns, nil), nil, func() {})
	var mu sync.Mutex
	var states []feed.State
	running.Go(func() {
		err := f.Run(ctx, feed.Collection{Base: network.URL(), Transport: network, Resource: podsResource}, func(s feed.State) {
			mu.Lock()
			defer mu.Unlock()
			states = append(states, s)
		})
		if err != nil {
			t.Error(err)
		}
	})

	shown := &table.Table{}
	backup := api.Backup()
	for range 300 {
		key := fmt.Sprintf("ns%d/p%d", random.IntN(2), random.IntN(20))
		switch random.IntN(40) {
		case 0:
			api.CutWatches()
		case 1:
			api.EndWatches()
		case 2:
			api.CutWatches()
			api.Expire()
		case 3:
			backup = api.Backup()
		case 4:
			api.Restore(backup, uint64(random.IntN(3)))
		case 5, 6, 7, 8, 9, 10, 11, 12:
			if _, ok := api.All("pods")[key]; ok {
				api.Delete("pods", key)
			}
		default:
			api.Put("pods", fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"labels":{"v":"%d"}}}`, key[:3], key[4:], random.IntN(5)))
		}
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		if random.IntN(3) == 0 {
			f.Drain().Apply(shown, time.Now())
			shown.Expire(time.Now())
		}
	}
	time.Sleep(time.Minute) // longer than any back-off
	synctest.Wait()
	f.Drain().Apply(shown, time.Now())
	if d := cmp.Diff(fresh(t, network, feed.NewPrinter(podsResource, columns, nil)), show(shown)); d != "" {
		t.Errorf("-list +table\n%s", d)
	}
	if n := len(shown.Rows()); n == 0 {
		t.Error("nothing was left to compare")
	}
	mu.Lock()
	defer mu.Unlock()
	if last := states[len(states)-1]; last.Phase != feed.Live {
		t.Errorf("%+v", last)
	}
}

// TestStale: an outage is reported with its time and reason, and so is its end.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(fakeapi.Options{})
		network := fakeapi.NewNetwork(api)
		defer network.Close()
		api.Put("pods", `{"metadata":{"namespace":"ns","name":"a"}}`)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		began := time.Now()
		var end func()
		time.AfterFunc(time.Minute, func() {
			end = api.Control(func(w http.ResponseWriter, _ *fakeapi.Request, _ func(http.ResponseWriter)) {
				fakeapi.WriteStatus(w, 503, "ServiceUnavailable", "down\x1b[2J")
			})
			api.CutWatches()
		})
		time.AfterFunc(70*time.Second, func() { end() })
		var states []feed.State
		f := feed.New(feed.NewPrinter(podsResource, feed.Columns{}, nil), nil, func() {})
		if err := f.Run(ctx, feed.Collection{Base: network.URL(), Transport: network, Resource: podsResource}, func(s feed.State) { states = append(states, s) }); err != nil {
			t.Fatal(err)
		}
		if len(states) < 4 || states[0].Phase != feed.Live || states[len(states)-1].Phase != feed.Live {
			t.Fatalf("%+v", states)
		}
		down := states[len(states)-2]
		if down.Phase != feed.Stale || !down.Since.Equal(began.Add(time.Minute)) || down.Reason != "503: down^[[2J" {
			t.Errorf("%+v", down)
		}
	})
}

// TestRefused: a resource that may not be read is reported, and Run ends.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(fakeapi.Options{})
		network := fakeapi.NewNetwork(api)
		defer network.Close()
		api.Control(func(w http.ResponseWriter, _ *fakeapi.Request, _ func(http.ResponseWriter)) {
			fakeapi.WriteStatus(w, 403, "Forbidden", "pods is forbidden")
		})
		var last feed.State
		f := feed.New(feed.NewPrinter(podsResource, feed.Columns{}, nil), nil, func() {})
		err := f.Run(t.Context(), feed.Collection{Base: network.URL(), Transport: network, Resource: podsResource}, func(s feed.State) { last = s })
		if err == nil || last.Phase != feed.Refused || last.Reason != "pods is forbidden" {
			t.Errorf("%v, %+v", err, last)
		}
	})
}

// TestMerged: what happens to an object between two frames is one event, and all are counted.
func TestMerged(t *testing.T) {
	f := feed.New(feed.NewPrinter(podsResource, feed.Columns{ShowLabels: true}, nil), func(k kube.Key) bool { return k != "ns/hidden" }, func() {})
	object := func(name string, rv int) *scan.Object {
		o, err := scan.ParseObject(fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"resourceVersion":"%d","uid":"u","creationTimestamp":"2026-01-31T15:04:05Z","labels":{"rv":"%d"}}}`, name, rv, rv))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	f.Begin(false)
	for _, name := range []string{"a", "b", "hidden"} {
		if err := f.Item(object(name, 5)); err != nil {
			t.Fatal(err)
		}
	}
	f.End(&scan.List{RV: 10})
	shown := &table.Table{}
	now := time.Now()
	f.Drain().Apply(shown, now)
	for rv := 11; rv < 20; rv++ {
		if err := f.Apply(kube.Modified, object([]string{"a", "hidden"}[rv%2], rv)); err != nil {
			t.Fatal(err)
		}
	}
	f.Apply(kube.Deleted, object("b", 20))
	f.Apply(kube.Added, object("c", 21))
	f.Apply(kube.Deleted, object("c", 22))
	if n := f.Waiting(); n != 7 {
		t.Errorf("%d events wait", n)
	}
	changes := f.Drain()
	if len(changes.Events) != 3 || changes.Merged != 4 {
		t.Errorf("%d events, %d merged", len(changes.Events), changes.Merged)
	}
	changes.Apply(shown, now)
	if d := cmp.Diff([]string{"a  rv=18"}, show(shown)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if err := f.Item(object("a", 6)); err == nil {
		t.Error("a list below what is held was taken")
	}
	if len(f.Drain().Events) != 0 {
		t.Error("drained twice")
	}
}

// TestUnreadableColumns: an empty list is shown even if its columns cannot be read.
func TestUnreadableColumns(t *testing.T) {
	f := feed.New(feed.NewPrinter(podsResource, feed.Columns{}, nil), nil, func() {})
	f.Begin(false)
	f.End(&scan.List{RV: 5, Columns: `{"not":"columns"}`})
	shown := &table.Table{}
	f.Drain().Apply(shown, time.Now())
	var names []string
	for _, c := range shown.Columns() {
		names = append(names, c.Name)
	}
	if !shown.Listed() || strings.Join(names, " ") != "NAME AGE" {
		t.Errorf("listed %t, columns %q", shown.Listed(), names)
	}
}
