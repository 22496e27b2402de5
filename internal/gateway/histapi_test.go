// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/gateway"
)

const (
	webVersions    = "/versions/apis/apps/v1/namespaces/default/deployments/web"
	deploymentDiff = "/diff/apis/apps/v1/deployments"
)

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

func TestHistoryIndex(t *testing.T) {
	p := newPast(t)
	p.cluster()
	r := p.rig()
	h := ask[api.History](r, "")
	if h.Recording.State != api.RecordingOn || h.Store.Bytes == 0 || h.Store.MaxBytes != 1<<30 || h.Store.MaxAgeSeconds != 48*3600 {
		t.Errorf("%+v", h)
	}
	var got []string
	for _, res := range h.Resources {
		e := res.Epochs[0]
		got = append(got, fmt.Sprint(res.Resource, " ", res.Path, " ", e.Span.From.ResourceVersion, "-", e.Span.To.ResourceVersion, " gaps ", len(e.Gaps)))
	}
	want := []string{ // the gateway may not list Secrets
		"deployments.apps /apis/apps/v1/deployments 100-200 gaps 1",
		"nodes /api/v1/nodes 100-159 gaps 0",
		"pods /api/v1/pods 100-155 gaps 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	gap := h.Resources[0].Epochs[0].Gaps[0]
	if gap.From.ResourceVersion != "150" || gap.To.ResourceVersion != "170" || !gap.To.Time.Equal(p.at(80)) {
		t.Errorf("gap %+v", gap)
	}
}

func TestHistoryVersions(t *testing.T) {
	p := newPast(t)
	p.cluster()
	r := p.rig()
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
		{"?since=" + p.when(0), all},
		{"?since=" + p.when(20) + "&until=" + p.when(40), all[2:4]},
		{"?since=rv:119&until=rv:140", all[2:4]},
		{"?until=rv:99", nil},
		{"?until=" + p.when(-1), nil},
		{"?until=" + p.when(0), all[6:]},
		{"?until=" + p.when(75), all[1:]}, // in the gap
		{"?noise=show&since=rv:111&until=rv:112", []string{"112 MODIFIED only noise by kube-controller-manager 2 operations"}},
	} {
		v := ask[api.Versions](r, webVersions+strings.ReplaceAll(tc.query, "+", "%2B"))
		if diff := cmp.Diff(tc.want, lines(v.Items)); diff != "" || v.Name != "web" || v.Namespace != "default" || v.Resource != "deployments.apps" {
			t.Errorf("%s: %s", tc.query, diff)
		}
	}
	v := ask[api.Versions](r, "/versions/api/v1/nodes/n1?noise=fold")
	want := []string{
		"159 FOLDED 14 since 146 map[heartbeat:14]",
		"145 MODIFIED Ready → Ready unknown (R) 1 operations",
		"144 FOLDED 44 since 101 map[heartbeat:44]",
		"80 INITIAL was there when the recorded history begins",
	}
	if diff := cmp.Diff(want, lines(v.Items)); diff != "" {
		t.Error(diff)
	}
	o := ask[api.Versions](r, webVersions+"?objects=true&since=rv:109&until=rv:110").Items[0]
	if !strings.Contains(string(o.Object), `"replicas":5`) || !strings.Contains(string(o.Before), `"replicas":3`) {
		t.Errorf("the objects are %s and %s", o.Before, o.Object)
	}
	for limit := 1; limit < 8; limit++ {
		var got []string
		query := fmt.Sprintf("?limit=%d", limit)
		for more := ""; ; {
			v := ask[api.Versions](r, webVersions+query+more)
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

func TestHistoryDiff(t *testing.T) {
	p := newPast(t)
	p.cluster()
	r := p.rig()
	brief := func(d api.Differences) (out []string) {
		for _, i := range d.Items {
			s := fmt.Sprintf("%s %s %s>%s %s %d", i.Type, i.Path, i.From, i.To, strings.Join(i.Summary, "; "), len(i.Changes))
			if i.Recreated {
				s += " recreated"
			}
			out = append(out, s+i.Selection)
		}
		return append(out, fmt.Sprint(d.Folded, " folded, ", d.Unchanged, " unchanged"))
	}
	const ns = "/apis/apps/v1/namespaces/default/deployments/"
	for _, tc := range []struct {
		path string
		want []string
	}{
		{deploymentDiff + "?from=rv:100&to=rv:120", []string{"MODIFIED " + ns + "web 90>120 replicas 3 → 5; image nginx:1.25 → 1.27 2", "0 folded, 2 unchanged"}},
		{deploymentDiff + "?from=" + p.when(10) + "&to=" + p.when(12.5), []string{"1 folded, 2 unchanged"}},
		{deploymentDiff + "?from=rv:100&to=rv:200", []string{
			"DELETED " + ns + "old 91> deleted 0",
			"MODIFIED " + ns + "web 90>165 deleted and created again; replicas 3 → 2; image nginx:1.25 → 1.27 3 recreated",
			"MODIFIED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1",
			"0 folded, 0 unchanged"}},
		{"/diff/apis/apps/v1/namespaces/kube-system/deployments?from=rv:100&to=rv:200", []string{
			"MODIFIED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1", "0 folded, 0 unchanged"}},
		{deploymentDiff + "?from=rv:100&to=rv:200&labelSelector=app%3Ddns", []string{
			"DELETED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1left", "0 folded, 0 unchanged"}},
		{deploymentDiff + "?from=rv:100&to=rv:200&labelSelector=app%3Dother", []string{
			"ADDED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1entered", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/pods?from=rv:100&to=rv:110&fieldSelector=spec.nodeName%3Dn1", []string{"ADDED /api/v1/namespaces/default/pods/a >105 created 0", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/pods?from=rv:100&to=rv:110&fieldSelector=metadata.namespace%3Dkube-system", []string{"ADDED /api/v1/namespaces/kube-system/pods/b >106 created 0", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes/n1?from=rv:101&to=rv:150", []string{"MODIFIED /api/v1/nodes/n1 101>150 Ready → Ready unknown (R) 1", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes/n1?from=rv:101&to=rv:102&noise=show", []string{"MODIFIED /api/v1/nodes/n1 101>102 only noise 2", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes/none?from=rv:101&to=rv:102", []string{"0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes?from=rv:150&to=rv:101", []string{"MODIFIED /api/v1/nodes/n1 150>101 Ready unknown → Ready (R) 1", "0 folded, 0 unchanged"}},
	} {
		if diff := cmp.Diff(tc.want, brief(ask[api.Differences](r, tc.path))); diff != "" {
			t.Errorf("%s: %s", tc.path, diff)
		}
	}
	var got []string
	for more := ""; ; {
		d := ask[api.Differences](r, deploymentDiff+"?from=59m50s&limit=1"+more)
		if d.From.ResourceVersion != "110" && d.From.ResourceVersion != "111" && d.From.ResourceVersion != "112" || d.To.ResourceVersion != "200" || !d.To.Time.Equal(p.at(100)) {
			t.Errorf("from %v to %v", d.From, d.To)
		}
		for _, i := range d.Items {
			got = append(got, i.Name)
		}
		if d.Continue == "" {
			break
		}
		more = "&continue=" + d.Continue
	}
	if diff := cmp.Diff([]string{"old", "web", "dns"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryCounts(t *testing.T) {
	p := newPast(t)
	p.cluster()
	r := p.rig()
	c := ask[api.Counts](r, "/counts?bin=10s&resource=deployments.apps&resource=pods&from="+p.when(0)+"&to="+p.when(100))
	skew := p.start.Unix() % 10 // bins begin at multiples of 10 seconds
	if c.BinSeconds != 10 || c.Bins != len(c.Resources[0].Added) || c.From.Unix() != p.start.Unix()-skew || !c.To.Equal(p.at(100)) {
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
		if i == 0 && (len(res.Gaps) != 1 || !res.Gaps[0].From.Equal(p.at(50)) || !res.Gaps[0].To.Equal(p.at(80)) || len(res.Spans) != 1 || !res.Spans[0].From.Equal(p.at(0))) {
			t.Errorf("%+v", res)
		}
	}
	if c := ask[api.Counts](r, "/counts"); c.BinSeconds != 30 || len(c.Resources) != 3 || c.Bins > 121 {
		t.Errorf("of an hour: %v s, %d bins, %d resources", c.BinSeconds, c.Bins, len(c.Resources))
	}
	if c := ask[api.Counts](r, "/counts?from=3000d"); c.Bins > 201 || c.Bins < 100 {
		t.Errorf("%d bins", c.Bins)
	}
}

func TestHistoryChanges(t *testing.T) {
	p := newPast(t)
	p.cluster()
	r := p.rig()
	walk := func(query string) (got []string, folded int) {
		for more := ""; ; {
			c := ask[api.Changes](r, "/changes?"+query+more)
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
	from := "from=" + p.when(0)
	for limit := range 12 {
		got, folded := walk(fmt.Sprintf("%s&limit=%d", from, limit+1))
		if diff := cmp.Diff(all, got); diff != "" || folded != 60 {
			t.Errorf("limit %d: %d folded %s", limit+1, folded, diff)
		}
	}
	if got, _ := walk(from + "&to=" + p.when(44)); cmp.Diff(all[4:], got) != "" {
		t.Errorf("to 44: %q", got)
	}
	if got, _ := walk("from=" + p.when(44)); cmp.Diff(all[:4], got) != "" {
		t.Errorf("from 44: %q", got)
	}
	if got, _ := walk(from + "&namespace=kube-system"); cmp.Diff([]string{all[5], all[9]}, got) != "" {
		t.Errorf("kube-system: %q", got)
	}
	if got, _ := walk(from + "&resource=pods&resource=nodes.v1"); cmp.Diff([]string{all[1], all[3], all[9], all[10]}, got) != "" {
		t.Errorf("pods and nodes: %q", got)
	}
	if got, folded := walk(from + "&noise=show&resource=nodes"); len(got) != 59 || folded != 0 {
		t.Errorf("all of nodes: %d", len(got))
	}
}

// TestHistoryEpochs: the history of an object spans a restore of etcd.
func TestHistoryEpochs(t *testing.T) {
	p := newPast(t)
	st := p.stream(podResource, 100, 0)
	p.event(st, kube.Added, "default/a", 110, `{kind: Pod, apiVersion: v1}`)
	second, err := p.store.NewEpoch(podResource)
	if err != nil {
		t.Fatal(err)
	}
	p.begin(second, 50, 200, thing(t, "default/a", 40, `{kind: Pod, apiVersion: v1, spec: {nodeName: m}}`))
	if err := second.Append(nil, 60, p.at(210)); err != nil {
		t.Fatal(err)
	}
	r := p.rig()
	path := "/versions/api/v1/namespaces/default/pods/a"
	want := []string{"40 INITIAL was there when the recorded history begins", "110 ADDED created"}
	if got := lines(ask[api.Versions](r, path).Items); cmp.Diff(want, got) != "" {
		t.Errorf("%q", got)
	}
	d := ask[api.Differences](r, "/diff/api/v1/pods?from="+p.when(10)+"&to="+p.when(205))
	if len(d.Items) != 1 || d.Items[0].From != "110" || d.Items[0].To != "40" || d.Items[0].Summary[0] != "scheduled to m" {
		t.Errorf("%+v", d)
	}
	// Between them nothing was observed, as /at has it, too.
	if s := statusOf(t, r.get("/watchkeeper/v1/history/diff/api/v1/pods?from="+p.when(100)+"&to="+p.when(205))); s.Code != http.StatusGone {
		t.Errorf("between two epochs: %+v", s)
	}
	if h := ask[api.History](r, ""); len(h.Resources[0].Epochs) != 2 || h.Resources[0].Epochs[0].Epoch != 1 {
		t.Errorf("%+v", h.Resources[0])
	}
}

func TestHistoryRefusals(t *testing.T) {
	p := newPast(t)
	p.cluster()
	r := p.rig()
	for path, want := range map[string]string{
		"/none":                         "404 there is nothing at",
		"/versions":                     "404 there is nothing at",
		"/versions/":                    "404 is not the path",
		"/counts/api/v1/pods":           "404 there is nothing at",
		"/versions/api/v1/pods":         "400 is a collection",
		"/versions/healthz":             "404 is not the path",
		"/versions/api/v1/watch/pods/a": "404 is not the path",
		"/versions/api/v1/namespaces/default/pods/none":                 "404 nothing is recorded of pods \"default/none\"",
		"/versions/api/v1/namespaces/default/pods/a/status":             "404 is not the path",
		"/versions/api/v1/namespaces/default/configmaps/a":              "404 --record",
		"/versions/api/v1/namespaces/default/secrets/s":                 "403 may not list secrets",
		"/versions/apis/rejected/v1/x/y":                                "403 --reject-paths",
		"/counts?bin=2500000h":                                          "400 a year at the most",
		"/counts?from=0001-01-01T00:00:00Z":                             "400 before there were clusters",
		"/versions/api/v1/nodes/n1?limit=0":                             "400 limit is \"0\"",
		"/versions/api/v1/nodes/n1?limit=1001":                          "400 from 1 to 1000",
		"/versions/api/v1/nodes/n1?noise=no":                            "400 noise",
		"/versions/api/v1/nodes/n1?objects=x":                           "400 objects",
		"/versions/api/v1/nodes/n1?since=soon":                          "400 since: \"soon\" is not a moment",
		"/versions/api/v1/nodes/n1?continue=1":                          "400 continue",
		"/versions/api/v1/nodes/n1?from=1h":                             "400 there is no parameter \"from\": the parameters are since",
		"/versions/api/v1/nodes/n1?since=1h&since=2h":                   "400 since is given 2 times",
		"/versions/api/v1/nodes/n1?since=%zz":                           "400 the query",
		"/diff/api/v1/nodes?from=2d":                                    "410 nodes are recorded from 100",
		"/diff/api/v1/nodes?from=rv:99":                                 "410 nodes are recorded from 100",
		"/diff/api/v1/nodes?from=" + p.when(10) + "&to=rv:100000":       "400 nodes are recorded from 100",
		"/diff/api/v1/nodes?from=" + p.when(10) + "&to=" + p.when(7200): "400 after the recorded history",
		"/diff/apis/apps/v1/deployments?from=rv:160":                    "410 in a gap",
		"/diff/apis/apps/v1/deployments?from=" + p.when(60):             "410 in a gap",
		"/diff/api/v1/nodes?continue=e30":                               "400 continue",
		"/diff/api/v1/nodes?from=rv:101&labelSelector=a%3D%3D%3Db":      "400 labelSelector",
		"/diff/api/v1/nodes?from=rv:101&fieldSelector=a":                "400 fieldSelector",
		"/diff/api/v1/nodes?from=rv:101&fieldSelector=spec.x%3Da":       "400 is not a field selector of nodes",
		"/counts?resource=configmaps":                                   "404 configmaps are not recorded",
		"/counts?resource=secrets":                                      "403 may not list secrets",
		"/counts?from=rv:100":                                           "400 times",
		"/counts?from=now&to=1h":                                        "400 is not before",
		"/counts?bin=1":                                                 "400 bin is \"1\"",
		"/counts?bin=1us":                                               "400 bin is",
		"/counts?bin=1s":                                                "400 3601 times",
		"/changes?continue=%21":                                         "400 continue",
		"/changes?from=1h&to=2h":                                        "400 is not before",
	} {
		code, text, _ := strings.Cut(want, " ")
		s := statusOf(t, r.get("/watchkeeper/v1/history"+path))
		if fmt.Sprint(s.Code) != code || !strings.Contains(s.Message, text) {
			if path == "/counts?bin=1s" && s.Code == 400 && strings.Contains(s.Message, "times") {
				continue // one bin more, at the turn of a second
			}
			t.Errorf("%s: %d %s, not %s", path, s.Code, s.Message, want)
		}
	}
	if s := statusOf(t, r.do(http.MethodPost, "/watchkeeper/v1/history", nil)); s.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %+v", s)
	}
	// The access of a caller with credentials decides what it may read.
	for path, code := range map[string]int{
		"/versions/api/v1/namespaces/default/pods/a":       200,
		"/versions/api/v1/namespaces/kube-system/pods/b":   403,
		"/diff/api/v1/namespaces/default/pods?from=rv:100": 200,
		"/diff/api/v1/pods?from=rv:100":                    403,
		"/changes?resource=pods&namespace=default":         200,
		"/changes?resource=pods":                           403,
		"/counts?resource=pods":                            403,
		"/versions/api/v1/namespaces/default/secrets/s":    200,
	} {
		if res := r.get("/watchkeeper/v1/history"+path, "Authorization", "Bearer of-default"); res.StatusCode != code {
			t.Errorf("%s with credentials: %s %s", path, res.Status, readAll(t, res))
		}
	}
	if s := statusOf(t, r.get("/watchkeeper/v1/x")); s.Code != http.StatusNotFound || !strings.Contains(s.Message, "openapi.json") {
		t.Errorf("%+v", s)
	}
}

// TestNoHistory: the index reports recording off; other paths say how to turn it on.
func TestNoHistory(t *testing.T) {
	r := newRig(t, http.NotFoundHandler(), rigOptions{gateway: gateway.Options{}})
	if h := ask[api.History](r, ""); h.Recording.State != api.RecordingOff || len(h.Resources) != 0 {
		t.Errorf("%+v", h)
	}
	if s := statusOf(t, r.get("/watchkeeper/v1/history"+webVersions)); s.Code != http.StatusNotFound || !strings.Contains(s.Message, "--data-dir") {
		t.Errorf("%+v", s)
	}
}

// TestHistoryEndsWithItsRequest: a canceled request ends its computation.
func TestHistoryEndsWithItsRequest(t *testing.T) {
	p := newPast(t)
	p.cluster()
	r := p.rig()
	from := "?from=" + p.when(10)
	for _, path := range []string{"/versions/api/v1/nodes/n1", "/diff/api/v1/nodes" + from, "/changes" + from, "/counts" + from} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, want := range []int{http.StatusOK, http.StatusGatewayTimeout} {
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/watchkeeper/v1/history"+path, nil)
			w := httptest.NewRecorder()
			r.gateway.ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("%s: %d, not %d: %.200s", path, w.Code, want, w.Body)
			}
			cancel()
		}
	}
}
