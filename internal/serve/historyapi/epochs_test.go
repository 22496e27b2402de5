// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// crossed is a fixture of Pods with two epochs. The first one ends at 10 s. Then Pods are deleted,
// modified, created and recreated, and one that is left alone comes back in another form. The second
// one begins at 200 s: after a restore of etcd, or with other forms in the same history.
func crossed(t *testing.T, restored bool) *fixture {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pod := func(key kube.Key, rv uint64, uid, node string) *scan.Object {
		return pasttest.Thing(t, key, rv, fmt.Sprintf(`{kind: Pod, apiVersion: v1, metadata: {uid: "uid-%s"}, spec: {nodeName: %q}}`, uid, node))
	}
	deleted, modified, again, same, other := pod("default/deleted", 15, "1", "m"), pod("default/modified", 16, "2", ""), pod("default/again", 17, "3", "m"), pod("default/same", 18, "4", "m"), pod("other/deleted", 19, "5", "m")
	st := f.Stream(pasttest.Pods, 100, 0, deleted, modified, again, same, other)
	f.Events(st, 110)
	base := uint64(20)
	if !restored {
		base = 120
	}
	list := []*scan.Object{pod("default/modified", base+1, "2", "m"), pod("default/again", base+2, "6", "m"), pod("default/created", base+3, "7", "m"), pod("default/same", 18, "4", "other form")}
	if !restored {
		event := func(typ kube.EventType, rv uint64, o, prev *scan.Object) history.Event {
			if typ == kube.Deleted {
				o = prev.At(rv)
			}
			return history.Event{Type: typ, Object: o, Prev: prev, Inferred: true, At: f.At(200)}
		}
		if err := st.AppendGap([]history.Event{
			event(kube.Deleted, 112, nil, deleted), event(kube.Deleted, 113, nil, again), event(kube.Deleted, 114, nil, other),
			event(kube.Modified, 121, list[0], modified), event(kube.Added, 122, list[1], nil), event(kube.Added, 123, list[2], nil),
		}, 130, f.At(200)); err != nil {
			t.Fatal(err)
		}
	}
	second, err := f.Store.NewEpoch(pasttest.Pods)
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(second, base+10, 200, list...)
	if err := second.Append([]history.Event{{Type: kube.Added, Object: pod("default/later", base+20, "8", "m"), At: f.At(210)}}, base+30, f.At(220)); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCrossing: what has changed between two epochs is told as changes at the end of that time.
func TestCrossing(t *testing.T) {
	f := crossed(t, true)
	all := []string{
		"default/later 40 ADDED created", "default/again 22 ADDED created (inferred)", "default/again 30 DELETED deleted (inferred)", "default/created 23 ADDED created (inferred)",
		"default/deleted 30 DELETED deleted (inferred)", "default/modified 21 MODIFIED scheduled to m (inferred) 1 operations", "other/deleted 30 DELETED deleted (inferred)",
	}
	walk := func(query string) (got []string) {
		for more := ""; ; {
			c := ask[api.Changes](f, "/changes?resource=pods&since="+f.when(0)+query+more)
			for _, i := range c.Items {
				got = append(got, i.Namespace+"/"+i.Name+" "+line(i.Change))
				if i.Name != "later" && (i.Epoch != 1 || !i.Time.Equal(f.At(200)) || !i.NotBefore.Equal(f.At(10))) {
					t.Errorf("%+v", i)
				}
			}
			if c.Continue == "" {
				return got
			}
			more = "&continue=" + c.Continue
		}
	}
	for _, crossed := range []int{1, 2, 20_000} {
		reset := historyapi.SetMaxCrossed(crossed)
		for limit := 1; limit < 9; limit++ {
			if diff := cmp.Diff(all, walk(fmt.Sprintf("&limit=%d", limit))); diff != "" {
				t.Errorf("limit %d, %d objects a page: %s", limit, crossed, diff)
			}
		}
		reset()
	}
	for query, want := range map[string][]string{
		"&namespace=other":            all[6:],
		"&type=DELETED":               {all[2], all[4], all[6]},
		"&filter=created&limit=1":     {all[3]},
		"&spec=true&type=MODIFIED":    {all[5]},
		"&by=nobody":                  nil,
		"&until=" + f.when(199):       nil,
		"&until=" + f.when(205):       all[1:],
		"&until=" + f.when(200):       all[1:],
		"&until=rv:35":                all[1:],
		"&namespace=default&limit=1":  all[:6],
		"&limit=1&filter=-ns:default": all[6:],
	} {
		if got := walk(query); cmp.Diff(want, got) != "" {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if c := ask[api.Changes](f, "/changes?resource=pods&since="+f.when(201)); len(c.Items) != 1 {
		t.Errorf("after it: %+v", c.Items)
	}
	if c := ask[api.Changes](f, "/changes?resource=pods&since=rv:30"); len(c.Items) != 1 {
		t.Errorf("after the first list: %+v", c.Items)
	}
	for query, want := range map[string][3]int{"": {3, 1, 3}, "&namespace=default": {3, 1, 2}, "&type=DELETED": {0, 0, 3}} {
		one := ask[api.Counts](f, "/counts?bin=1s&resource=pods&since="+f.when(0)+"&until="+f.when(300)+query).Resources[0]
		var got [3]int
		for i := range one.Added {
			got[0] += one.Added[i]
			got[1] += one.Modified[i]
			got[2] += one.Deleted[i]
		}
		if got != want || len(one.Gaps) != 1 || !one.Gaps[0].From.Equal(f.At(10)) || !one.Gaps[0].To.Equal(f.At(200)) {
			t.Errorf("counts%s: %v, want %v; gaps %v", query, got, want, one.Gaps)
		}
	}
}

// TestVersionsAcrossEpochs: the versions of an object and its story have what became of it between
// two epochs, whichever of them has the difference. Another form is no version.
func TestVersionsAcrossEpochs(t *testing.T) {
	const was = "was there when the recorded history begins"
	for _, restored := range []bool{true, false} {
		f := crossed(t, restored)
		for key, want := range map[string][]string{
			"default/deleted":  {"DELETED deleted (inferred)", "INITIAL " + was},
			"default/modified": {"MODIFIED scheduled to m (inferred) 1 operations", "INITIAL " + was},
			"default/created":  {"ADDED created (inferred)"},
			"default/again":    {"ADDED created (inferred)", "DELETED deleted (inferred)", "INITIAL " + was},
			"default/same":     {"INITIAL " + was},
			"other/deleted":    {"DELETED deleted (inferred)", "INITIAL " + was},
			"default/later":    {"ADDED created"},
		} {
			namespace, name, _ := strings.Cut(key, "/")
			path := "/api/v1/namespaces/" + namespace + "/pods/" + name
			if !restored && name == "again" {
				want[0] = "ADDED created again (inferred)"
			}
			for _, limit := range []int{1, 2, 3, 100} {
				var got []string
				for more := ""; ; {
					v := ask[api.Versions](f, fmt.Sprintf("/versions%s?limit=%d%s", path, limit, more))
					for _, item := range v.Items {
						_, text, _ := strings.Cut(line(item), " ")
						got = append(got, text)
						if item.Inferred && (!item.Time.Equal(f.At(200)) || !item.NotBefore.Equal(f.At(10))) {
							t.Errorf("%+v", item)
						}
					}
					if more = "&continue=" + v.Continue; v.Continue == "" {
						break
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("restored %v, %s, limit %d: %s", restored, key, limit, diff)
				}
			}
			s := decoded[api.Story](t, f.story(historyapi.StoryPath+path+"?since="+f.when(1)+"&until="+f.when(220)))
			told := 0
			for _, e := range s.Episodes {
				told += len(e.Entries)
			}
			if changes := len(slices.DeleteFunc(want, func(text string) bool { return strings.HasPrefix(text, "INITIAL") })); told != changes {
				t.Errorf("restored %v: the story of %s has %d entries, want %d: %+v", restored, key, told, changes, s.Episodes)
			}
		}
		for from, want := range map[float64]int{1: 5, 205: 0} { // in the first epoch, and in the second
			d := ask[api.Differences](f, fmt.Sprintf("/diff/api/v1/pods?from=%s&to=%s", f.when(from), f.when(206)))
			if form := slices.ContainsFunc(d.Items, func(i api.Difference) bool { return i.Name == "same" }); len(d.Items)-map[bool]int{true: 1}[form] != want || form && !restored {
				t.Errorf("restored %v, diff from %v: %d, another form is a difference: %v", restored, from, len(d.Items), form)
			}
		}
		// Until before the second list, and since after it.
		v := ask[api.Versions](f, "/versions/api/v1/namespaces/default/pods/modified?until="+f.when(100))
		if len(v.Items) != 1 || v.Items[0].Type != api.Initial {
			t.Errorf("restored %v, until 100: %+v", restored, v.Items)
		}
		if v := ask[api.Versions](f, "/versions/api/v1/namespaces/default/pods/modified?since="+f.when(205)); len(v.Items) != 0 {
			t.Errorf("restored %v, since 205: %+v", restored, v.Items)
		}
	}
}

// TestCrossingDamaged: if the last state before a restore cannot be read, nothing is told of what
// differs, and the time stays one that was not observed.
func TestCrossingDamaged(t *testing.T) {
	f, fs := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow})), vfs.NewMem()
	open := func() {
		var err error
		if f.Store, err = history.Open("history", history.Options{Cluster: "c", FS: fs}); err != nil {
			t.Fatal(err)
		}
	}
	open()
	st := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 90, `{kind: Pod, apiVersion: v1}`))
	f.Events(st, 110)
	second, err := f.Store.NewEpoch(pasttest.Pods)
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(second, 50, 200, pasttest.Thing(t, "default/b", 40, `{kind: Pod, apiVersion: v1}`))
	for _, want := range []int{2, 0} {
		c := ask[api.Changes](f, "/changes?resource=pods&since="+f.when(0))
		one := ask[api.Counts](f, "/counts?bin=1s&resource=pods&since="+f.when(0)+"&until="+f.when(300)).Resources[0]
		if len(c.Items) != want || slices.Max(one.Added)+slices.Max(one.Deleted) != want {
			t.Errorf("want %d: %+v, counts %+v", want, c.Items, one)
		}
		if len(one.Gaps) != 1 || !slices.ContainsFunc(c.Unobserved, func(s api.UnobservedSpan) bool { return s.From.Equal(f.At(10)) && s.To.Equal(f.At(200)) }) {
			t.Errorf("want %d: unobserved %+v, gaps %+v", want, c.Unobserved, one.Gaps)
		}
		if err := f.Store.Close(); err != nil {
			t.Fatal(err)
		}
		if want > 0 { // spoil the versions of the first stream
			db, err := pebble.Open("history", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Set([]byte("V\x00\x00\x00\x01default/a\x00\x00\x00\x00\x00\x00\x00\x00\x5a"), []byte{0}, pebble.Sync), db.Close()); err != nil {
				t.Fatal(err)
			}
			open()
		}
	}
}

// TestVersionOfAPI: the record of a resource is one, whatever API version was the preferred one when.
func TestVersionOfAPI(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	widget := func(version string, key kube.Key, rv uint64, size int) *scan.Object {
		return pasttest.Thing(t, key, rv, fmt.Sprintf(`{kind: Widget, apiVersion: example.com/%s, spec: {size: %d}}`, version, size))
	}
	of := func(version string) kube.Resource {
		return kube.Resource{Group: "example.com", Version: version, Name: "widgets"}
	}
	first := f.Stream(of("v1beta1"), 100, 0, widget("v1beta1", "default/a", 90, 1), widget("v1beta1", "default/b", 91, 1), widget("v1beta1", "default/same", 92, 1))
	f.Events(first, 110, history.Event{Type: kube.Modified, Object: widget("v1beta1", "default/a", 105, 2), At: f.At(5)})
	second, err := f.Store.NewEpoch(of("v1"))
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(second, 130, 30, widget("v1", "default/a", 120, 3), widget("v1", "default/same", 92, 1))
	f.Events(second, 140, history.Event{Type: kube.Modified, Object: widget("v1", "default/a", 135, 4), At: f.At(35)})
	if h := ask[api.History](f, ""); len(h.Resources) != 1 || h.Resources[0].Path != of("v1").Path() || len(h.Resources[0].Epochs) != 2 {
		t.Errorf("recorded: %+v", h.Resources)
	}
	var got []string
	c := ask[api.Changes](f, "/changes?resource=widgets.example.com&since="+f.when(0))
	for _, i := range c.Items {
		got = append(got, i.Path+" "+line(i.Change))
	}
	const objects = "/apis/example.com/%s/namespaces/default/widgets/%s "
	want := []string{
		fmt.Sprintf(objects, "v1", "a") + "135 MODIFIED size 3 → 4 1 operations", fmt.Sprintf(objects, "v1", "a") + "120 MODIFIED size 2 → 3 (inferred) 2 operations", // the second is of the apiVersion
		fmt.Sprintf(objects, "v1", "b") + "130 DELETED deleted (inferred)", fmt.Sprintf(objects, "v1beta1", "a") + "105 MODIFIED size 1 → 2 1 operations",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(c.Unobserved, func(s api.UnobservedSpan) bool { return s.From.Equal(f.At(10)) && s.To.Equal(f.At(30)) }) {
		t.Errorf("unobserved: %+v", c.Unobserved)
	}
	for _, version := range []string{"v1", "v1beta1"} {
		if v := ask[api.Versions](f, "/versions"+strings.TrimSpace(fmt.Sprintf(objects, version, "a"))); len(v.Items) != 4 {
			t.Errorf("%s: %+v", version, v.Items)
		}
		d := ask[api.Differences](f, "/diff"+of(version).Path()+"?from="+f.when(1)+"&to="+f.when(36))
		if d.Unchanged != 1 || len(d.Items) != 2 || !slices.Equal(d.Items[0].Summary, []string{"size 1 → 4"}) {
			t.Errorf("%s: %+v", version, d)
		}
	}
}
