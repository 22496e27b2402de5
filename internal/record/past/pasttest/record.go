// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package pasttest has histories for tests, in memory: a record of Pods, and that of a
// cluster.
package pasttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// Pods is the resource that is recorded.
var Pods = kube.Resource{Version: "v1", Name: "pods"}

// A Record is a past.Record that a test fills.
type Record struct {
	History *history.Store
	Stream  *history.Stream // the newest epoch

	Mu     sync.Mutex   // guards OnSync, and may guard what it writes
	OnSync func() error // called by Sync; nil for nothing

	Withheld string // the name of a resource that is withheld
	// Epoch is the epoch of a timeline that continues Stream; 0 is the first.
	Epoch uint64
}

// Store implements past.Record.
func (r *Record) Store() *history.Store { return r.History }

// Sync implements past.Record.
func (r *Record) Sync(context.Context, kube.Resource) error {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.OnSync == nil {
		return nil
	}
	return r.OnSync()
}

// Now implements past.Record.
func (r *Record) Now() time.Time { return time.Now() }

// Ended implements past.Record.
func (r *Record) Ended() bool { return false }

// Withholds implements past.Record.
func (r *Record) Withholds(id kube.Resource) bool { return id.Name == r.Withheld }

// Missing implements past.Record.
func (r *Record) Missing(kube.Resource) string { return "" }

// Continued implements past.Record.
func (r *Record) Continued(_ kube.Resource, _ *timeline.Timeline, epoch uint64) *history.Stream {
	if epoch != max(r.Epoch, 1) {
		return nil
	}
	return r.Stream
}

// epoch is when the history of tests begins, at the RV 10.
var epoch = time.Now().Add(-24 * time.Hour).Truncate(time.Second)

// TimeOf returns the time at which an RV is recorded: each RV is a second.
func TimeOf(rv uint64) time.Time { return epoch.Add(time.Duration(rv) * time.Second) }

// New returns a record that begins with a list.
func New(t testing.TB, list *scan.List) *Record {
	t.Helper()
	r := &Record{History: open(t, history.Options{})}
	r.Begin(t, list)
	return r
}

// open opens a history in memory.
func open(t testing.TB, opts history.Options) *history.Store {
	t.Helper()
	opts.Cluster, opts.FS = "c", vfs.NewMem()
	store, err := history.Open("history", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Begin begins an epoch with a list.
func (r *Record) Begin(t testing.TB, list *scan.List) {
	t.Helper()
	st, err := r.History.NewEpoch(Pods)
	if err == nil {
		r.Stream = st
		form := history.Form{ListKind: list.Kind, Item: list.EmptyItem()}
		err = st.Begin(form, slices.Values(list.Items), list.RV, TimeOf(list.RV))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Append records events, each at the time of its RV.
func (r *Record) Append(t testing.TB, events ...history.Event) {
	t.Helper()
	for _, e := range events {
		e.At = TimeOf(e.Object.RV)
		if err := r.Stream.Append([]history.Event{e}, e.Object.RV, e.At); err != nil {
			t.Fatal(err)
		}
	}
}

// Pod returns a Pod; labels are pairs.
func Pod(namespace, name string, rv uint64, labels ...string) *scan.Object {
	m := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	l, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","labels":%s},"spec":{"containers":null},"status":{"phase":"Running"}}`, name, namespace, rv, l))
	if err != nil {
		panic(err)
	}
	return o
}

// List returns a list of Pods.
func List(rv uint64, items ...*scan.Object) *scan.List {
	return &scan.List{Kind: "PodList", ItemKind: "Pod", APIVersion: "v1", Typed: true, RV: rv, Items: items}
}

// NewStory returns a record from RV 10 to 100, and the list at 100: a in d is modified at
// 20, b in d deleted at 30, c in e added at 40; between 50 and 60 there is a gap.
func NewStory(t testing.TB) (*Record, *scan.List) {
	t.Helper()
	a, b, c := Pod("d", "a", 4, "color", "red"), Pod("d", "b", 5, "color", "blue"), Pod("e", "c", 40, "color", "red")
	a20, a60 := Pod("d", "a", 20, "color", "blue"), Pod("d", "a", 60, "color", "green")
	r := New(t, List(10, a, b))
	r.Append(t,
		history.Event{Type: kube.Modified, Object: a20, Prev: a},
		history.Event{Type: kube.Deleted, Object: b.At(30), Prev: b},
		history.Event{Type: kube.Added, Object: c},
	)
	gap := []history.Event{{Type: kube.Modified, Object: a60, Prev: a20, Inferred: true, At: TimeOf(60)}}
	for _, step := range []func() error{
		func() error { return r.Stream.Append(nil, 50, TimeOf(50)) },
		func() error { return r.Stream.AppendGap(gap, 60, TimeOf(60)) },
		func() error { return r.Stream.Append(nil, 100, TimeOf(100)) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return r, List(100, a60, c)
}
