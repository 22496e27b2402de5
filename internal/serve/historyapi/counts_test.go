// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

func TestCounts(t *testing.T) {
	f := newFixture(t)
	c := ask[api.Counts](f, "/counts?bin=10s&resource=deployments.apps&resource=pods&from="+f.when(0)+"&to="+f.when(100))
	skew := f.Start.Unix() % 10 // bins begin at multiples of 10 seconds
	if c.BinSeconds != 10 || c.Bins != len(c.Resources[0].Added) || c.From.Unix() != f.Start.Unix()-skew || !c.To.Equal(f.At(100)) {
		t.Errorf("%+v", c)
	}
	bin := func(second int64) int64 { return (second + skew) / 10 }
	for i, res := range c.Resources {
		want := make([]string, c.Bins)
		count := make([][3]int, c.Bins)
		add := func(second int64, typ int) { count[bin(second)][typ]++ }
		if res.Resource == "pods" {
			add(5, 0)
			add(6, 0)
			add(55, 2)
		} else {
			for _, s := range []int64{10, 11, 12, 20, 35, 80} {
				add(s, 1)
			}
			add(30, 2)
			add(40, 2)
			add(50, 0)
		}
		got := make([]string, c.Bins)
		for b := range got {
			want[b] = fmt.Sprint(count[b])
			got[b] = fmt.Sprint([3]int{res.Added[b], res.Modified[b], res.Deleted[b]})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", res.Resource, diff)
		}
		if i == 0 && (len(res.Gaps) != 1 || !res.Gaps[0].From.Equal(f.At(50)) || !res.Gaps[0].To.Equal(f.At(80)) || len(res.Spans) != 1 || !res.Spans[0].From.Equal(f.At(0))) {
			t.Errorf("%+v", res)
		}
	}
	if c := ask[api.Counts](f, "/counts"); c.BinSeconds != 30 || len(c.Resources) != 3 || c.Bins > 121 {
		t.Errorf("of an hour: %v s, %d bins, %d resources", c.BinSeconds, c.Bins, len(c.Resources))
	}
	if c := ask[api.Counts](f, "/counts?from=3000d"); c.Bins > 201 || c.Bins < 100 {
		t.Errorf("%d bins", c.Bins)
	}
	for query, want := range map[string]int{"filter=we": 7, "filter=we&type=DELETED": 1, "namespace=kube-system": 2, "filter=-we+ns:default": 3} {
		n := 0
		for _, r := range ask[api.Counts](f, "/counts?resource=deployments.apps&resource=pods&from="+f.when(0)+"&"+query).Resources {
			for i := range r.Added {
				n += r.Added[i] + r.Modified[i] + r.Deleted[i]
			}
		}
		if n != want {
			t.Errorf("%s: %d events, want %d", query, n, want)
		}
	}
}
