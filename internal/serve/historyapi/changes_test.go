// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

func TestChanges(t *testing.T) {
	f := newFixture(t)
	walk := func(query string) (got []string, folded int) {
		for more := ""; ; {
			c := ask[api.Changes](f, "/changes?"+query+more)
			for _, i := range c.Items {
				got = append(got, i.Path[strings.LastIndex(i.Path, "/")+1:]+" "+line(i.Change))
			}
			folded += c.Folded
			if c.Continue == "" {
				return got, folded
			}
			more = "&continue=" + c.Continue
		}
	}
	all := []string{
		"web 165 MODIFIED replicas 1 → 2 (inferred) 1 operations",
		"a 155 DELETED deleted",
		"web 150 ADDED created again, 10s after its deletion",
		"n1 145 MODIFIED Ready → Ready unknown (R) 1 operations",
		"web 140 DELETED deleted",
		"dns 135 MODIFIED label app dns → other 1 operations",
		"old 130 DELETED deleted",
		"web 120 MODIFIED image nginx:1.25 → 1.27 by kubectl-set 1 operations",
		"web 110 MODIFIED replicas 3 → 5 by kubectl-scale 1 operations",
		"b 106 ADDED created",
		"a 105 ADDED created",
	}
	from := "from=" + f.when(0)
	for limit := range 12 {
		got, folded := walk(fmt.Sprintf("%s&limit=%d", from, limit+1))
		if diff := cmp.Diff(all, got); diff != "" || folded != 60 {
			t.Errorf("limit %d: %d folded %s", limit+1, folded, diff)
		}
	}
	if got, _ := walk(from + "&to=" + f.when(44)); cmp.Diff(all[4:], got) != "" {
		t.Errorf("to 44: %q", got)
	}
	if got, _ := walk("from=" + f.when(44)); cmp.Diff(all[:4], got) != "" {
		t.Errorf("from 44: %q", got)
	}
	if got, _ := walk(from + "&namespace=kube-system"); cmp.Diff([]string{all[5], all[9]}, got) != "" {
		t.Errorf("kube-system: %q", got)
	}
	if got, _ := walk(from + "&resource=pods&resource=nodes.v1"); cmp.Diff([]string{all[1], all[3], all[9], all[10]}, got) != "" {
		t.Errorf("pods and nodes: %q", got)
	}
	// A resource without namespaces that is named matches, as in kubectl get.
	if got, _ := walk(from + "&namespace=kube-system&resource=pods&resource=nodes"); cmp.Diff([]string{all[3], all[9]}, got) != "" {
		t.Errorf("pods and nodes of kube-system: %q", got)
	}
	for query, want := range map[string][]string{
		"from=rv:120&resource=deployments.apps":                  {all[0], all[2], all[4], all[5], all[6]},
		"from=rv:119&to=rv:140&resource=deployments":             {all[4], all[5], all[6], all[7]},
		"to=rv:140&resource=deployments.apps&" + from:            {all[4], all[5], all[6], all[7], all[8]},
		"from=rv:120&resource=deployments&filter=web&limit=1":    {all[0], all[2], all[4]},
		"from=rv:120&resource=deployments&to=" + f.when(44) + "": {all[4], all[5], all[6]},
	} {
		if got, _ := walk(query); cmp.Diff(want, got) != "" {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got, folded := walk(from + "&noise=show&resource=nodes"); len(got) != 59 || folded != 0 {
		t.Errorf("all of nodes: %d", len(got))
	}
	for query, want := range map[string][]string{
		"&filter=we":                          {all[0], all[2], all[4], all[7], all[8]},
		"&filter=WEB+-ns:default":             {},
		"&filter=ns:kube-":                    {all[5], all[9]},
		"&filter=-namespace:kube-+-web":       {all[1], all[3], all[6], all[10]},
		"&filter=name:a+ns:":                  {all[1], all[10]},
		"&type=DELETED":                       {all[1], all[4], all[6]},
		"&type=DELETED&type=ADDED&filter=web": {all[2], all[4]},
		"&by=kubectl-set":                     {all[7]},
		"&by=nobody":                          {},
		"&spec=true&resource=nodes":           {},
		"&spec=true":                          append(slices.Clone(all[:3]), all[4:]...),
		"&filter=web&by=kubectl-scale":        {all[8]},
	} {
		for limit := range 4 {
			if got, _ := walk(fmt.Sprintf("%s%s&limit=%d", from, query, limit+1)); !slices.Equal(want, got) {
				t.Errorf("%s, limit %d: %q, want %q", query, limit+1, got, want)
			}
		}
	}
	if c := ask[api.Changes](f, "/changes?"+from+"&resource=nodes&spec=true"); c.LeftOut != 1 {
		t.Errorf("%d changes of the status are left out", c.LeftOut)
	}
	for _, query := range []string{"filter=stat:failing", "filter=app%3Dweb", "from=rv:120", "from=rv:120&resource=pods&resource=nodes", "from=rv:140&to=rv:120&resource=pods", "type=deleted", "spec=maybe", "by=a&by=b"} {
		if s, _ := f.refused("/changes?" + query); s.Code != 400 {
			t.Errorf("%s: %+v", query, s)
		}
	}
}

// TestScannedPages: a page that has read as much of the log as it may ends, and the next one
// continues there.
func TestScannedPages(t *testing.T) {
	f := newFixture(t)
	defer historyapi.SetMaxScanned(3)()
	pages, got := 0, []string{}
	for more := ""; ; pages++ {
		c := ask[api.Changes](f, "/changes?from="+f.when(0)+"&filter=web+-ns:x"+more)
		for _, i := range c.Items {
			got = append(got, i.ResourceVersion)
		}
		if c.Continue == "" {
			break
		}
		more = "&continue=" + c.Continue
	}
	if want := []string{"165", "150", "140", "120", "110"}; !slices.Equal(got, want) || pages < 10 {
		t.Errorf("%v on %d pages, want %v", got, pages, want)
	}
}

// TestOrderOfChanges: what is recorded of causes and their effects is listed in the order of
// their RVs, however the watches observed them, and once, whatever the pages.
func TestOrderOfChanges(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	type seen struct {
		rv      uint64
		seconds float64
	}
	write := func(r kube.Resource, from uint64, all ...seen) {
		st := f.Stream(r, from, 0)
		var events []history.Event
		for i, e := range all {
			events = append(events, history.Event{Type: kube.Added, At: f.At(e.seconds), Object: pasttest.Thing(t, kube.MakeKey("default", fmt.Sprint(r.Name, i)), e.rv, "kind: Thing\napiVersion: v1")})
			if i+1 < len(all) && all[i+1].rv == e.rv {
				continue // those of one RV are found together
			}
			if err := st.AppendGap(events, e.rv, f.At(e.seconds)); err != nil {
				t.Fatal(err)
			}
			events = nil
		}
	}
	write(pasttest.Deployments, 100, seen{2200, 9.5}, seen{2238, 10.0}, seen{2242, 10.1}, seen{2300, 20})
	write(kube.Resource{Group: "apps", Version: "v1", Name: "replicasets"}, 100, seen{2239, 10.4}, seen{2240, 10.5}, seen{2241, 10.6}, seen{2301, 22})
	write(pasttest.Pods, 100, seen{2299, 21.5}, seen{2299, 21.5})
	// These have stores of their own.
	write(kube.Resource{Version: "v1", Name: "events"}, 100, seen{2250, 10.05}, seen{2251, 10.55})
	write(kube.Resource{Group: "other", Version: "v1", Name: "things"}, 100, seen{7_000_000, 10.2})
	want := []string{"2301", "2299", "2299", "2300", "2242", "2241", "2251", "2240", "2239", "7000000", "2250", "2238", "2200"}
	for limit := range len(want) + 1 {
		var got []string
		for more := ""; ; {
			c := ask[api.Changes](f, fmt.Sprintf("/changes?from=%s&limit=%d%s", f.when(0), limit+1, more))
			for _, i := range c.Items {
				got = append(got, i.ResourceVersion)
			}
			if c.Continue == "" {
				break
			}
			more = "&continue=" + c.Continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("limit %d: %s", limit+1, diff)
		}
	}
}
