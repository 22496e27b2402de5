// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestClockStep: the clock was half an hour ahead and was set back. A range that begins or
// ends at a time that it showed twice is refused with 410 and an explanation; others, and
// the counts, have all events.
func TestClockStep(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(pasttest.Pods, 100, 0)
	event := func(rv uint64, typ kube.EventType, second float64) {
		t.Helper()
		o := pasttest.Thing(t, "default/a", rv, `{kind: Pod, apiVersion: v1, spec: {nodeName: n`+kube.FormatRV(rv)+`}}`)
		if err := st.Append([]history.Event{{Type: typ, Object: o, At: f.At(second)}}, rv, f.At(second)); err != nil {
			t.Fatal(err)
		}
	}
	event(110, kube.Added, 10)
	event(120, kube.Modified, 1800)
	event(130, kube.Modified, 60) // the clock was set back
	event(140, kube.Modified, 90)
	for _, query := range []string{"from=" + f.when(600), "to=" + f.when(600), "from=" + f.when(0) + "&to=" + f.when(75)} {
		ofOne := strings.NewReplacer("from=", "since=", "to=", "until=").Replace(query)
		for _, path := range []string{"/changes?" + query, "/versions/api/v1/namespaces/default/pods/a?" + ofOne} {
			s, _ := f.refused(path)
			if s.Code != http.StatusGone || s.Reason != metav1.StatusReasonExpired || !strings.Contains(s.Message, "at the resourceVersion 120 of pods, the clock was set back from") {
				t.Errorf("%s: %+v", path, s)
			}
		}
	}
	for query, want := range map[string]string{
		"since=2h":                       "140 130 120 110",
		"since=2h&until=" + f.when(50):   "110",
		"since=2h&until=" + f.when(1801): "140 130 120 110",
		"since=2h&until=rv:130":          "130 120 110",
		"since=" + f.when(5):             "140 130 120 110",
		"since=rv:120":                   "140 130",
		"since=" + f.when(50):            "140 130 120",
	} {
		var rvs []string
		for _, item := range ask[api.Versions](f, "/versions/api/v1/namespaces/default/pods/a?"+query).Items {
			if item.Type != api.Initial {
				rvs = append(rvs, item.ResourceVersion)
			}
		}
		if got := strings.Join(rvs, " "); got != want {
			t.Errorf("%s: %s, not %s", query, got, want)
		}
	}
	if got := ask[api.Changes](f, "/changes?from=2h").Items; len(got) != 4 {
		t.Errorf("%d changes", len(got))
	}
	c := ask[api.Counts](f, "/counts?resource=pods&bin=10s&from="+f.when(0)+"&to="+f.when(3600)).Resources[0]
	n := 0
	for i := range c.Added {
		n += c.Added[i] + c.Modified[i]
	}
	if n != 4 || len(c.Spans) != 2 || !c.Spans[0].To.Equal(f.At(1800)) || !c.Spans[1].From.Equal(f.At(60)) || !c.Spans[1].To.Equal(f.At(90)) {
		t.Errorf("%d events counted in %v", n, c.Spans)
	}
}
