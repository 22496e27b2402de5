// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// scanPage is newPage without an index, as the API server lists.
func scanPage(s *timeline.Snapshot, q *query, start kube.Key, limit int64) listPage {
	var p listPage
	for o := range s.All(q.Selection.Namespace, start) {
		if limit <= 0 || int64(len(p.items)) < limit {
			if q.Match.Matches(o) {
				p.items = append(p.items, o)
			}
			continue
		}
		if p.next == "" {
			p.next = request.EncodeContinue(s.RV, p.items[limit-1].Key, q.Selection.Namespace)
		}
		if q.IsSelective() {
			break
		}
		p.remaining++
	}
	return p
}

// TestIndexedPages reads lists by every kind of selector, in pages, while objects
// change: with the indexes that these reads build, the pages equal those of a scan.
func TestIndexedPages(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	version := func(i int, rv uint64) *scan.Object {
		o := pod(fmt.Sprint("ns", i%7), fmt.Sprint("p", i/2%500), rv,
			"app", fmt.Sprint("app", rnd.IntN(60)), "color", []string{"red", "blue", ""}[rnd.IntN(3)])
		text := fmt.Sprintf(`"spec":{"nodeName":"node%d",`, rnd.IntN(40))
		if rnd.IntN(5) == 0 {
			text = `"spec":{`
		}
		before, metadata, after := o.Metadata()
		o, err := scan.ParseObject(before + metadata + "," + text + after[len(`,"spec":{`):])
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	seen := map[kube.Key]bool{}
	var items []*scan.Object
	for i := range 1200 {
		if o := version(i, uint64(i+1)); !seen[o.Key] {
			seen[o.Key] = true
			items = append(items, o)
		}
	}
	tl := timeline.New(timeline.Options{})
	tl.Reset(podList(2000, items...))
	selectors := []string{
		"labelSelector=app%3Dapp1", "labelSelector=app+in+(app1,app2,none)", "labelSelector=app%3D%3Dapp3,color%3Dred",
		"labelSelector=app%3Dapp4,color", "labelSelector=app+notin+(app1)", "labelSelector=color%3D", "labelSelector=%21color",
		"labelSelector=app%3Dapp1,app%3Dapp2", "labelSelector=nobody%3Dhas",
		"fieldSelector=spec.nodeName%3Dnode1", "fieldSelector=spec.nodeName%3D", "fieldSelector=spec.nodeName!%3Dnode1",
		"fieldSelector=metadata.name%3Dp17", "fieldSelector=metadata.namespace%3Dns3,spec.nodeName%3Dnode2",
		"fieldSelector=spec.nodeName%3Dnode3&labelSelector=color%3Dblue", "fieldSelector=status.phase%3DRunning", "",
	}
	var remaining remainingCount
	for i := range 1000 {
		path := "/api/v1/pods"
		if rnd.IntN(3) == 0 {
			path = fmt.Sprintf("/api/v1/namespaces/ns%d/pods", rnd.IntN(8))
		}
		read, err := request.Parse(httptest.NewRequest("GET", path+"?"+selectors[rnd.IntN(len(selectors))], nil))
		if err != nil {
			t.Fatal(err)
		}
		selection, ok := read.Select(true, request.BuiltInFields(pods))
		if !ok {
			t.Fatalf("no query for %+v", read)
		}
		q := &query{Read: read, Selection: selection}
		s := &tl.View().Snapshot
		if i%10 == 0 {
			var err error
			if s, err = tl.At(s.RV - uint64(rnd.IntN(i+1))/2); err != nil {
				t.Fatal(err)
			}
		}
		limit, start := int64(rnd.IntN(5)*rnd.IntN(5)), kube.Key("")
		if limit > 0 && rnd.IntN(2) == 0 {
			start = kube.MakeKey(fmt.Sprint("ns", i%7), fmt.Sprint("p", i%500)) + "\x00"
		}
		if q.Key != "" && start == "" {
			continue // a lookup by key
		}
		for range 1 + rnd.IntN(3) { // pages
			got, err := newPage(&state{objects: timelineSnapshot{s}, rv: s.RV}, q, start, limit, &remaining)
			if err != nil {
				t.Fatal(err)
			}
			want := scanPage(s, q, start, limit)
			if !slices.Equal(got.items, want.items) || got.next != want.next || got.remaining != want.remaining {
				t.Fatalf("%s: %d items, next %q, %d remain; a scan has %d, %q, %d", path,
					len(got.items), got.next, got.remaining, len(want.items), want.next, want.remaining)
			}
			if got.next == "" {
				break
			}
			start = got.items[limit-1].Key + "\x00"
		}
		if err := tl.Apply(scan.Frame{Type: kube.Modified, Object: version(rnd.IntN(1200), 2001+uint64(i))}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			tl.Flush()
		}
	}
}
