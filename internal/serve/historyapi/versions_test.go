// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

const webVersions = "/versions/apis/apps/v1/namespaces/default/deployments/web"

// line formats a change as one line.
func line(c api.Change) string {
	var by []string
	for _, m := range c.By {
		by = append(by, m.Manager)
	}
	out := fmt.Sprintf("%s %s %s", c.ResourceVersion, c.Type, strings.Join(c.Summary, "; "))
	if by != nil {
		out += " by " + strings.Join(by, ",")
	}
	if c.Folded != nil {
		out += fmt.Sprintf("%d since %s %v", c.Folded.Count, c.Folded.Oldest.ResourceVersion, c.Folded.Noise)
	}
	if c.Inferred {
		out += " (inferred)"
	}
	if len(c.Changes) > 0 {
		out += fmt.Sprintf(" %d operations", len(c.Changes))
	}
	return out
}

func lines(items []api.Change) (out []string) {
	for _, c := range items {
		out = append(out, line(c))
	}
	return out
}

func TestVersions(t *testing.T) {
	f := newFixture(t)
	all := []string{
		"165 MODIFIED replicas 1 → 2 (inferred) 1 operations",
		"150 ADDED created again, 10s after its deletion",
		"140 DELETED deleted",
		"120 MODIFIED image nginx:1.25 → 1.27 by kubectl-set 1 operations",
		"112 FOLDED 2 since 111 map[managedFields:2]",
		"110 MODIFIED replicas 3 → 5 by kubectl-scale 1 operations",
		"90 INITIAL was there when the recorded history begins",
	}
	for _, tc := range []struct {
		query string
		want  []string
	}{
		{"", all},
		{"?since=" + f.when(0), all},
		{"?since=" + f.when(20) + "&until=" + f.when(40), all[2:4]},
		{"?since=rv:119&until=rv:140", all[2:4]},
		{"?until=rv:99", nil},
		{"?until=" + f.when(-1), nil},
		{"?until=" + f.when(0), all[6:]},
		{"?until=" + f.when(75), all[1:]}, // in the gap
		{"?noise=show&since=rv:111&until=rv:112", []string{"112 MODIFIED only noise by kube-controller-manager 2 operations"}},
	} {
		v := ask[api.Versions](f, webVersions+strings.ReplaceAll(tc.query, "+", "%2B"))
		if diff := cmp.Diff(tc.want, lines(v.Items)); diff != "" || v.Name != "web" || v.Namespace != "default" || v.Resource != "deployments.apps" {
			t.Errorf("%s: %s", tc.query, diff)
		}
	}
	for _, query := range []string{"", "?since=" + f.when(0), "?until=" + f.when(40), "?since=rv:119&until=rv:140"} {
		if s, _ := f.refused("/versions/apis/apps/v1/namespaces/default/deployments/nosuch" + query); s.Code != 404 || !strings.HasPrefix(s.Message, `nothing is recorded of deployments.apps "default/nosuch"`) {
			t.Errorf("%s: %+v", query, s)
		}
	}
	v := ask[api.Versions](f, "/versions/api/v1/nodes/n1?noise=fold")
	want := []string{
		"159 FOLDED 14 since 146 map[heartbeat:14]",
		"145 MODIFIED Ready → Ready unknown (R) 1 operations",
		"144 FOLDED 44 since 101 map[heartbeat:44]",
		"80 INITIAL was there when the recorded history begins",
	}
	if diff := cmp.Diff(want, lines(v.Items)); diff != "" {
		t.Error(diff)
	}
	o := ask[api.Versions](f, webVersions+"?objects=true&since=rv:109&until=rv:110").Items[0]
	if !strings.Contains(string(o.Object), `"replicas":5`) || !strings.Contains(string(o.Before), `"replicas":3`) {
		t.Errorf("the objects are %s and %s", o.Before, o.Object)
	}
	for limit := 1; limit < 8; limit++ {
		var got []string
		query := fmt.Sprintf("?limit=%d", limit)
		for more := ""; ; {
			v := ask[api.Versions](f, webVersions+query+more)
			got = append(got, lines(v.Items)...)
			if v.Continue == "" {
				break
			}
			more = "&continue=" + v.Continue
		}
		split := append(append([]string{}, all[:4]...), "112 FOLDED 1 since 112 map[managedFields:1]", "111 FOLDED 1 since 111 map[managedFields:1]", all[5], all[6])
		if diff := cmp.Diff(all, got); diff != "" && cmp.Diff(split, got) != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
}

// TestEpochs: the history of an object spans a restore of etcd.
func TestEpochs(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(pasttest.Pods, 100, 0)
	f.Event(st, kube.Added, "default/a", 110, `{kind: Pod, apiVersion: v1}`)
	second, err := f.Store.NewEpoch(pasttest.Pods)
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(second, 50, 200, pasttest.Thing(t, "default/a", 40, `{kind: Pod, apiVersion: v1, spec: {nodeName: m}}`))
	if err := second.Append(nil, 60, f.At(210)); err != nil {
		t.Fatal(err)
	}
	path := "/versions/api/v1/namespaces/default/pods/a"
	want := []string{"40 MODIFIED scheduled to m (inferred) 1 operations", "110 ADDED created"}
	if got := lines(ask[api.Versions](f, path).Items); cmp.Diff(want, got) != "" {
		t.Errorf("%q", got)
	}
	d := ask[api.Differences](f, "/diff/api/v1/pods?from="+f.when(10)+"&to="+f.when(205))
	if len(d.Items) != 1 || d.Items[0].From != "110" || d.Items[0].To != "40" || d.Items[0].Summary[0] != "scheduled to m" {
		t.Errorf("%+v", d)
	}
	// Between them nothing was observed, as /at has it, too.
	if s, _ := f.refused("/diff/api/v1/pods?from=" + f.when(100) + "&to=" + f.when(205)); s.Code != http.StatusGone {
		t.Errorf("between two epochs: %+v", s)
	}
	if h := ask[api.History](f, ""); len(h.Resources[0].Epochs) != 2 || h.Resources[0].Epochs[0].Epoch != 1 {
		t.Errorf("%+v", h.Resources[0])
	}
}

// TestWrittenInGap: what was set and set back in a gap is no noise: its author is known. Noise
// that is found after a gap is of the gap, and not folded with what was observed.
func TestWrittenInGap(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pod := func(more, managers string) string {
		return fmt.Sprintf(`{kind: Pod, apiVersion: v1, metadata: {%smanagedFields: [%s]}}`, more, managers)
	}
	const kubelet, later = `{manager: kubelet, operation: Update, subresource: status, time: "1"}`, `{manager: kubelet, operation: Update, subresource: status, time: "2"}`
	const carol = `, {manager: carol, operation: Update, time: "2"}`
	const election = `annotations: {control-plane.alpha.kubernetes.io/leader: %q}, `
	st := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 90, pod("", kubelet)), pasttest.Thing(t, "default/b", 91, pod("", kubelet)),
		pasttest.Thing(t, "default/c", 92, pod(fmt.Sprintf(election, "1"), kubelet)))
	found := func(key kube.Key, rv uint64, text string) history.Event {
		return history.Event{Type: kube.Modified, Object: pasttest.Thing(t, key, rv, text), Inferred: true, At: f.At(80)}
	}
	if err := st.AppendGap([]history.Event{
		found("default/a", 165, pod("", kubelet+carol)), found("default/b", 166, pod("", later)), found("default/c", 167, pod(fmt.Sprintf(election, "2"), later)),
	}, 170, f.At(80)); err != nil {
		t.Fatal(err)
	}
	f.Event(st, kube.Modified, "default/c", 185, pod(fmt.Sprintf(election, "3"), later))
	path := "/versions/api/v1/namespaces/default/pods/"
	for name, want := range map[string]string{
		"a": "165 MODIFIED written, without a difference in the end by carol (inferred)",
		"b": "166 MODIFIED written, without a difference in the end by kubelet (inferred)",
		"c": "167 FOLDED 1 since 167 map[lease renewal:1 managedFields:1] (inferred)",
	} {
		items := ask[api.Versions](f, path+name).Items
		if name == "c" {
			if got := line(items[0]); !strings.HasPrefix(got, "185 FOLDED 1 since 185") || !items[0].NotBefore.IsZero() {
				t.Errorf("%s %v", got, items[0].NotBefore)
			}
			items = items[1:]
		}
		if got := line(items[0]); got != want || !items[0].NotBefore.Equal(f.At(0)) {
			t.Errorf("%s: %s, not before %v, want %s", name, got, items[0].NotBefore, want)
		}
	}
	changes := ask[api.Changes](f, "/changes?spec=true&since="+f.when(0))
	if len(changes.Items) != 1 || changes.Items[0].Name != "a" {
		t.Errorf("of a status alone, too: %+v", changes.Items)
	}
}

// TestAgainLate: of a deletion or a creation in a late gap, the time between them has bounds.
func TestAgainLate(t *testing.T) {
	for name, tc := range map[string]struct {
		late int // how many of the two come with the end of a gap that began at 20 s
		want string
	}{
		"none":     {0, "created again, 30s after its deletion"},
		"deletion": {1, "created again, 40s to 1m20s after its deletion"},
		"both":     {2, "created again, less than 1s to 40s after its deletion"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
			const object = `{kind: ConfigMap, apiVersion: v1}`
			st := f.Stream(kube.Resource{Version: "v1", Name: "configmaps"}, 100, 0, pasttest.Thing(t, "default/settings", 90, object))
			f.Events(st, 119)
			both := []history.Event{
				{Type: kube.Deleted, Object: pasttest.Thing(t, "default/settings", 160, object)},
				{Type: kube.Added, Object: pasttest.Thing(t, "default/settings", 161, object)},
			}
			if err := st.AppendLate(both[:tc.late], 165, f.At(20), f.At(60)); err != nil {
				t.Fatal(err)
			}
			if tc.late < 1 {
				f.Event(st, kube.Deleted, "default/settings", 170, object)
			}
			if tc.late < 2 {
				f.Event(st, kube.Added, "default/settings", 200, object)
			}
			f.Events(st, 300)
			items := ask[api.Versions](f, "/versions/api/v1/namespaces/default/configmaps/settings").Items
			if len(items) == 0 || items[0].Type != api.Added || items[0].Summary[0] != tc.want {
				t.Errorf("%q", lines(items))
			}
		})
	}
}

// TestLargeDifferences: a page of versions ends also for the size of their differences, which may
// be several times that of the object.
func TestLargeDifferences(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(pasttest.Deployments, 100, 0)
	const versions = 40
	for n := range uint64(versions) {
		env := make([]string, 2000)
		for i := range env {
			env[i] = fmt.Sprintf(`{"name":"v%d","value":"%d"}`, i, n)
		}
		typ := kube.Modified
		if n == 0 {
			typ = kube.Added
		}
		f.Event(st, typ, "default/web", 110+n, `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {containers: [{name: main, env: [`+strings.Join(env, ",")+`]}]}}}}`)
	}
	path := "/versions/apis/apps/v1/namespaces/default/deployments/web?limit=1000"
	all, first := 0, 0
	for next := ""; ; next = "&continue=" + next {
		page := ask[api.Versions](f, path+next)
		if all += len(page.Items); first == 0 {
			first = all
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	if all != versions || first > versions*3/4 {
		t.Errorf("%d versions, %d of them on the first page", all, first)
	}
}

// TestLargePages: a page of versions of a huge object takes a slot of the whole lists, which all
// users share, until it is encoded. One of small objects takes none.
func TestLargePages(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(pasttest.Deployments, 100, 0)
	for n := range uint64(20) {
		f.Event(st, kube.Added, kube.Key(fmt.Sprintf("default/small-%d", n)), 110+n, `{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 1}}`)
	}
	f.Event(st, kube.Added, "default/huge", 200, `{kind: Deployment, apiVersion: apps/v1, spec: {template: {metadata: {annotations: {a: `+strings.Repeat("x", 300<<10)+`}}}}}`)
	lists := f.handler.Past.Lists
	var held []func()
	for lists.InUse() < 4 {
		release, err := lists.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, release)
	}
	const path = "/versions/apis/apps/v1/namespaces/default/deployments/"
	if n := len(ask[api.Versions](f, path+"small-1").Items); n != 1 {
		t.Errorf("%d versions of a small object", n)
	}
	for _, large := range []string{path + "huge", "/changes?since=2h", "/diff" + strings.TrimPrefix(path, "/versions") + "huge?from=" + f.when(0)} {
		answered := make(chan int, 1)
		go func() { answered <- f.get(large).Code }()
		select {
		case code := <-answered:
			t.Fatalf("%s: %d without a slot", large, code)
		case <-time.After(100 * time.Millisecond):
		}
		held[0]()
		if code := <-answered; code != http.StatusOK || lists.InUse() != 3 {
			t.Errorf("%s: %d, and then %d slots are taken", large, code, lists.InUse())
		}
		release, err := lists.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held[0] = release
	}
}
