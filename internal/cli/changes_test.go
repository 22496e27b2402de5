// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/cli"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

func changed(at time.Time, rv int, resource, name, what string) api.ObjectChange {
	return api.ObjectChange{Resource: resource, Path: "/" + resource + "/" + name, Namespace: "default", Name: name, Change: api.Change{
		Type: api.Modified, ResourceVersion: fmt.Sprint(rv), Time: at, Summary: []string{what}, By: []change.Manager{{Manager: "kubectl"}},
	}}
}

// recordedIndex is a record since 2026-01-01, with a gap at noon of 2026-01-02.
var recordedIndex = func() string {
	epoch := `"epochs":[{"span":{"from":{"resourceVersion":"1","time":"2026-01-01T00:00:00Z"},"to":{"resourceVersion":"99","time":"2026-01-03T00:00:00Z"}},` +
		`"gaps":[{"from":{"resourceVersion":"5","time":"2026-01-02T14:00:00Z"},"to":{"resourceVersion":"8","time":"2026-01-02T14:00:30Z"}}]}]`
	var all []string
	for _, name := range []string{"deployments.apps", "events", "events.events.k8s.io", "namespaces", "nodes", "pods"} {
		one := epoch
		if name == "nodes" { // quiet before the outage
			one = strings.Replace(epoch, "14:00:00Z", "13:59:20Z", 1)
		}
		all = append(all, fmt.Sprintf(`{"resource":%q,%s}`, name, one))
	}
	return `{"recording":{"state":"on"},"resources":[` + strings.Join(all, ",") + `]}`
}()

func TestChanges(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	created, deleted := changed(at.Add(time.Second), 8, "pods", "a", "created"), changed(at.Add(2*time.Second), 9, "pods", "a", "deleted")
	created.Type, deleted.Type, deleted.By = api.Added, api.Deleted, nil
	f := newFakeGateway(t, map[string]string{
		"":         recordedIndex,
		"/changes": text(t, api.Changes{From: at.Add(-time.Hour), To: at.Add(time.Hour), Items: []api.ObjectChange{deleted, created}, Continue: "x"}),
		"older":    text(t, api.Changes{Items: []api.ObjectChange{changed(at, 7, "deployments.apps", "web", "replicas 1 → 2")}}),
	})
	want := `2026-01-02 12:00:02Z  9         - pods default/a  deleted
2026-01-02 12:00:01Z  8         + pods default/a  created  by kubectl
2026-01-02 12:00:00Z  7         ~ deployments.apps default/web  replicas 1 → 2  by kubectl
`
	// Without a RESOURCE, it is said which of the usual suspects are not recorded.
	const lacks = "not recorded, so not listed: configmaps, secrets, ingresses.networking.k8s.io, networkpolicies.networking.k8s.io, horizontalpodautoscalers.autoscaling, resourcequotas, services, statefulsets.apps, daemonsets.apps\n"
	for line, query := range map[string]string{
		"changes --since 2026-01-02T11:00:00Z":                                        "limit=1000&namespace=default&resource=deployments.apps&resource=namespaces&resource=pods&since=2026-01-02T11%3A00%3A00Z&until=now",
		"changes --since 2026-01-02T11:00:00Z -A":                                     "limit=1000&resource=deployments.apps&resource=namespaces&resource=nodes&resource=pods&since=2026-01-02T11%3A00%3A00Z&until=now",
		"changes --since 2026-01-02T11:00:00Z -A po deploy":                           "limit=1000&resource=pods&resource=deployments.apps&since=2026-01-02T11%3A00%3A00Z&until=now",
		"changes --since 2026-01-02T11:00:00Z -A po,deploy --limit 5":                 "limit=5&resource=pods&resource=deployments.apps&since=2026-01-02T11%3A00%3A00Z&until=now",
		"changes po --since 7":                                                        "limit=1000&namespace=default&resource=pods&since=rv%3A7&until=now",
		"changes --until 2026-01-02T11:00:00Z -A po":                                  "limit=1000&resource=pods&since=2026-01-02T10%3A00%3A00Z&until=2026-01-02T11%3A00%3A00.999Z",
		"changes --until 2026-01-02T11:00:00.0Z -A po":                                "limit=1000&resource=pods&since=2026-01-02T10%3A00%3A00Z&until=2026-01-02T11%3A00%3A00Z",
		"changes --since 2026-01-02T11:00:00Z -n shop po --by me --spec --filter web": "by=me&filter=web&limit=1000&namespace=shop&resource=pods&since=2026-01-02T11%3A00%3A00Z&spec=true&until=now",
	} {
		f.questions()
		out, errs, code := run(append(strings.Fields(line), "--utc")...)
		wantErrs := ""
		if strings.Contains(query, "resource=namespaces") {
			wantErrs = lacks
		}
		if diff := cmp.Diff(want, out); diff != "" || errs != wantErrs || code != 0 {
			t.Errorf("%s: %d %s %s", line, code, errs, diff)
		}
		if got := f.questions(); !slices.Contains(got, "/changes?"+query) {
			t.Errorf("%s asked %q", line, got)
		}
	}
	if out, _, code := run("changes", "-A", "--limit", "2", "--utc"); code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("--limit 2: %d %s", code, out)
	}
	var all api.Changes
	if out, _, code := run("changes", "-o", "json"); code != 0 || json.Unmarshal([]byte(out), &all) != nil || len(all.Items) != 3 || all.Continue != "" {
		t.Errorf("%d %s", code, out)
	}

	f.answers["/changes"] = `{"from":"2026-01-02T11:00:00Z","to":"2026-01-02T12:00:00Z","items":[],"leftOut":317,"folded":2}`
	f.answers["/versions/api/v1/namespaces/default"] = `{"items":[{}]}`
	for line, want := range map[string]string{
		"changes --since 2026-01-02T11:00:00Z --until 2026-01-02T12:00:00Z --utc":                                     "no changes in namespace default between 2026-01-02 11:00:00Z and 2026-01-02 12:00:00Z in the recorded resources (deployments.apps, namespaces, pods); --spec leaves out 317; 2 are noise (--show-noise)\n" + lacks,
		"changes --since 2026-01-02T11:00:00Z --until 2026-01-02T12:00:00Z --utc -A":                                  "no changes between 2026-01-02 11:00:00Z and 2026-01-02 12:00:00Z in the recorded resources (deployments.apps, namespaces, nodes, pods); --spec leaves out 317; 2 are noise (--show-noise)\n" + lacks,
		"changes no --since 2026-01-02T11:00:00Z --until 2026-01-02T12:00:00Z --utc -A --filter x --by kubectl-lable": "no changes of nodes with --filter \"x\" by \"kubectl-lable\" between 2026-01-02 11:00:00Z and 2026-01-02 12:00:00Z; --by leaves out 317; 2 are noise (--show-noise)\n",
	} {
		if out, errs, code := run(strings.Fields(line)...); code != 0 || out != "" || errs != want {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
		}
	}
	for line, want := range map[string]string{
		"changes -n shopp":                        "nothing is recorded in namespace shopp",
		"changes pods/a":                          "see 'watchkeeper history pods/a' for one object",
		"changes --since 12031":                   "--since 12031: a resourceVersion is that of one resource: name it, as in 'watchkeeper changes pods --since 12031', or use a time",
		"changes --since now":                     "--since and --until are both now: name two moments, such as --since 10m",
		"changes --until 7 pods":                  "--until 7 is a resourceVersion: give --since, too",
		"changes --limit -1":                      "--limit -1: use a number above 0",
		"changes po -s http://127.0.0.1:1?x=y":    "has a query or a fragment",
		"changes po -s http://127.0.0.1:1#x":      "has a query or a fragment",
		"changes po -s http://127.0.0.1:1/at/1m/": "is the URL of a moment: name that of the gateway",
		"changes --watch --until 1m":              "--watch does not end: leave out --until",
		"changes --watch -o yaml":                 "--watch prints text or json",
		"changes --since 1m --until 2m":           "--since 1m is after --until 2m",
		"changes --since 2100-01-01":              "--since: 2100-01-01 is in the future",
	} {
		if out, errs, code := run(strings.Fields(line)...); code != 1 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
		}
	}
}

// TestChangesOfUnrecordedTime: changes says where the record begins, and what was not
// observed. Silence would read as "no changes".
func TestChangesOfUnrecordedTime(t *testing.T) {
	at := func(clock string) time.Time {
		at, err := time.Parse(time.TimeOnly, clock)
		if err != nil {
			t.Fatal(err)
		}
		return at.AddDate(2026, 0, 1) // 2026-01-02
	}
	span := func(resource, reason, from, to string) api.UnobservedSpan {
		return api.UnobservedSpan{Resource: resource, Reason: reason, TimeSpan: api.TimeSpan{From: at(from), To: at(to)}}
	}
	pods, nodes := span("pods", api.InGap, "14:00:00", "14:00:30"), span("nodes", api.InGap, "13:59:20", "14:00:30")
	silent := pods
	silent.NoAnswer = true
	const gap = "not observed between 2026-01-02 14:00:00Z and 2026-01-02 14:00:30Z"
	const outcome = ": of changes in that time, only the outcome is known\n"
	const long = "not observed between 2026-01-02 13:59:20Z and 2026-01-02 14:00:30Z (some resources: from 2026-01-02 14:00:00Z)"
	const came = ": changes in that time have the time of its end\n"
	one := changed(at("12:00:00"), 7, "pods", "a", "x")
	f := newFakeGateway(t, nil)
	for _, test := range []struct {
		line, from, to string
		spans          []api.UnobservedSpan
		changes        int
		recording      string // the state
		says           string
	}{
		{"changes po -A -o json", "13:00:00", "15:00:00", []api.UnobservedSpan{pods}, 1, "on", gap + outcome},
		{"changes po,no -A", "13:00:00", "14:00:20", []api.UnobservedSpan{nodes, pods}, 1, "on", long + outcome},
		{"changes po -A", "13:00:00", "15:00:00", []api.UnobservedSpan{span("pods", api.Late, "14:00:00", "14:00:30")}, 1, "on", gap + came},
		{"changes po,no -A", "13:00:00", "14:00:20", []api.UnobservedSpan{nodes, silent}, 1, "on", long + ", because the API server did not answer" + outcome},
		{"changes po,no -A", "13:00:00", "15:00:00", []api.UnobservedSpan{span("nodes", api.Late, "14:00:00", "14:00:20"), pods}, 1, "on",
			gap + ": of changes in that time, what is known has the time of its end\n"},
		{"changes po -A --limit=100", "14:00:30", "15:00:00", nil, 1, "on", ""},
		{"changes po -A", "14:00:30", "15:00:00", []api.UnobservedSpan{pods}, 1, "on", gap + outcome}, // what it has led to
		// A range of which nothing is known is an error.
		{"changes po -A", "14:00:10", "14:00:20", []api.UnobservedSpan{pods}, 0, "on",
			gap + outcome + "watchkeeper: nothing is known of changes of pods between 2026-01-02 14:00:10Z and 2026-01-02 14:00:20Z\n"},
		{"changes po,no -A", "13:59:50", "14:00:20", []api.UnobservedSpan{nodes, pods}, 0, "on",
			"no observed changes of pods, nodes between 2026-01-02 13:59:50Z and 2026-01-02 14:00:20Z\n" + long + outcome},
		{"changes po -A", "13:00:00", "15:00:00", []api.UnobservedSpan{span("pods", api.RecordingStopped, "14:30:00", "15:00:00")}, 0, "failed",
			"no observed changes of pods between 2026-01-02 13:00:00Z and 2026-01-02 15:00:00Z\nnothing is recorded since 2026-01-02 14:30:00Z: the disk is full\n"},
		{"changes po,no -A", "14:40:00", "15:00:00", []api.UnobservedSpan{span("pods", api.RecordingStopped, "14:30:00", "15:00:00")}, 1, "on",
			"not recorded since: pods 2026-01-02 14:30:00Z\n"},
		{"changes po -A", "14:40:00", "15:00:00", []api.UnobservedSpan{span("pods", api.NoAnswer, "14:30:00", "15:00:00")}, 0, "on",
			"watchkeeper: nothing is known of changes of pods between 2026-01-02 14:40:00Z and 2026-01-02 15:00:00Z\n"},
		{"changes no -n x", "13:00:00", "15:00:00", nil, 0, "on",
			"no changes of nodes between 2026-01-02 13:00:00Z and 2026-01-02 15:00:00Z\n"},
	} {
		f.answers = map[string]string{
			"":                              strings.Replace(recordedIndex, `"recording":{"state":"on"}`, `"recording":{"state":"`+test.recording+`","reason":"the disk is full"}`, 1),
			"/changes":                      text(t, api.Changes{From: at(test.from), To: at(test.to), Items: slices.Repeat([]api.ObjectChange{one}, test.changes), Unobserved: test.spans}),
			"/versions/api/v1/namespaces/x": `{"items":[{}]}`,
		}
		line := append(strings.Fields(test.line), "--utc", "--since", at(test.from).Format(time.RFC3339), "--until", at(test.to).Format(time.RFC3339))
		if _, errs, code := run(line...); (code != 0) != strings.Contains(test.says, "watchkeeper: ") || errs != test.says {
			t.Errorf("%s from %s: %d %q, want %q", test.line, test.from, code, errs, test.says)
		}
	}

	f.answers = map[string]string{"": recordedIndex, "/changes": text(t, api.Changes{From: at("11:00:00"), To: at("15:00:00"), Items: []api.ObjectChange{one}, Continue: "x", Unobserved: []api.UnobservedSpan{
		span("pods", api.InGap, "11:10:00", "11:20:00"), pods}})}
	if _, errs, _ := run("changes", "po", "-A", "--limit", "1", "--utc", "--since", "2026-01-02T11:00:00Z", "--until", "2026-01-02T15:00:00Z"); errs != gap+outcome {
		t.Errorf("--limit has the gaps since what it lists: %q", errs)
	}
	for since, want := range map[string]string{
		"2025-12-31T00:00:00Z": "the recorded history begins at 2026-01-01 00:00:00Z: changes since then\n",
		"2025-12-30T00:00:00Z": "watchkeeper: --until is before the recorded history, which begins at 2026-01-01 00:00:00Z: use a later moment\n",
	} {
		from, _ := time.Parse(time.RFC3339, since)
		until := from.AddDate(0, 0, 1).Format(time.RFC3339)
		if strings.HasPrefix(want, "the") {
			until = "2026-01-02T12:00:00Z"
		}
		f.answers["/changes"] = `{"from":"` + since + `","to":"` + until + `","items":[{"resource":"pods","name":"a"}]}`
		if _, errs, _ := run("changes", "po", "--utc", "--since", since, "--until", until); errs != want {
			t.Errorf("since %s: %q, want %q", since, errs, want)
		}
	}
}

// A growingHistory serves the changes so far, newest first, two on a page, and fails in
// between.
type growingHistory struct {
	mu    sync.Mutex // guards what follows
	items []api.ObjectChange
	asked int // with items
	fail  int // so many requests fail
}

func (h *growingHistory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/changes") {
		_, _ = io.WriteString(w, recordedIndex)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail > 0 {
		h.fail--
		http.Error(w, `{"kind":"Status","code":503,"message":"the history is not open"}`, http.StatusServiceUnavailable)
		return
	}
	out := api.Changes{From: time.Now(), To: time.Now(), Items: []api.ObjectChange{}}
	if from, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("since")); err == nil {
		out.From = from
		var skip int
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &skip)
		for _, c := range slices.Backward(h.items) {
			if c.Time.Before(from) {
				continue
			}
			if skip--; skip >= 0 {
				continue
			}
			if out.Items = append(out.Items, c); len(out.Items) == 2 {
				break
			}
		}
		if len(out.Items) == 2 {
			done := 0
			_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &done)
			out.Continue = fmt.Sprint(done + 2)
		}
		h.asked++
	}
	_ = json.NewEncoder(w).Encode(out)
}

// add adds changes; the time of one may be before that of another that was there before.
func (h *growingHistory) add(all ...api.ObjectChange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.items = append(h.items, all...)
	slices.SortStableFunc(h.items, func(a, b api.ObjectChange) int { return a.Time.Compare(b.Time) })
}

// TestChangesWatch: --watch prints each change once, oldest first, also one that is
// recorded after a newer one, and continues after the gateway did not answer.
func TestChangesWatch(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	synctest.Test(t, testChangesWatch)
}

func testChangesWatch(t *testing.T) {
	h := &growingHistory{}
	server := serveInMemory(t, h)
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	h.add(changed(at(-90), 1, "pods", "a", "before"), changed(at(-30), 2, "pods", "a", "first"), changed(at(-30), 3, "pods", "b", "first"), changed(at(-10), 4, "pods", "a", "second"))

	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	errs, errw := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		defer w.Close()
		defer errw.Close()
		ended <- cli.Main(ctx, []string{"watchkeeper", "changes", "-A", "-w", "--since", start.Add(-time.Minute).UTC().Format(time.RFC3339Nano), "-s", server}, strings.NewReader(""), w, errw)
	}()
	lines, said := bufio.NewScanner(r), bufio.NewReader(errs)
	if line, err := said.ReadString('\n'); err != nil || !strings.HasPrefix(line, "not recorded, so not listed: configmaps, secrets, ") {
		t.Errorf("%q %v", line, err)
	}
	expect := func(want ...string) {
		t.Helper()
		for _, want := range want {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Fatalf("printed %q, want %q", lines.Text(), want)
			}
		}
	}
	expect("  2         ~ pods default/a  first", "  3         ~ pods default/b  first", "  4         ~ pods default/a  second")
	h.mu.Lock()
	h.fail = 2
	h.mu.Unlock()
	h.add(changed(at(1), 6, "deployments.apps", "web", "third"))
	if said, err := said.ReadString('\n'); err != nil || !strings.Contains(said, "the history is not open; trying again") {
		t.Errorf("%q %v", said, err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	expect("  6         ~ deployments.apps default/web  third")
	h.add(changed(at(0), 5, "pods", "c", "late"), changed(at(2), 7, "pods", "a", "fourth"))
	expect("  5         ~ pods default/c  late", "  7         ~ pods default/a  fourth")
	// A gateway that was killed has observed a change again, with another time.
	h.mu.Lock()
	h.items[len(h.items)-1].Time = at(4)
	asked := h.asked
	h.mu.Unlock()
	for {
		h.mu.Lock()
		again := h.asked >= asked+4
		h.mu.Unlock()
		if again {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.add(changed(at(5), 8, "pods", "a", "fifth"))
	expect("  8         ~ pods default/a  fifth")
	cancel()
	if lines.Scan() {
		t.Errorf("printed more: %q", lines.Text())
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestChangesWatchOfNothing: --watch says when new changes are not known, and when they are
// again: it looks like a quiet cluster otherwise.
func TestChangesWatchOfNothing(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	synctest.Test(t, testChangesWatchOfNothing)
}

func testChangesWatchOfNothing(t *testing.T) {
	var asked atomic.Int32
	server := serveInMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/changes") {
			_, _ = io.WriteString(w, strings.Replace(recordedIndex, `"recording":{"state":"on"}`, `"recording":{"state":"failed","reason":"the disk is full"}`, 1))
			return
		}
		out := api.Changes{From: time.Now(), To: time.Now(), Items: []api.ObjectChange{}}
		late := func(resource string, minute int) api.UnobservedSpan {
			from := time.Date(2026, 1, 2, 14, minute, 0, 0, time.UTC)
			return api.UnobservedSpan{Resource: resource, Reason: api.Late, TimeSpan: api.TimeSpan{From: from, To: from.Add(20 * time.Second)}}
		}
		switch n := asked.Add(1); {
		case n >= 6:
			out.Unobserved = []api.UnobservedSpan{late("nodes", 40), late("pods", 40), late("pods", 50)}
		case n >= 4:
			out.Unobserved = []api.UnobservedSpan{late("pods", 40)}
		case n > 1:
			at, _ := time.Parse(time.RFC3339, "2026-01-02T14:30:00Z")
			out.Unobserved = []api.UnobservedSpan{{Resource: "pods", Reason: api.RecordingStopped, TimeSpan: api.TimeSpan{From: at, To: time.Now()}}}
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		defer w.Close()
		ended <- cli.Main(ctx, []string{"watchkeeper", "changes", "-A", "-w", "--utc", "-s", server}, strings.NewReader(""), io.Discard, w)
	}()
	lines := bufio.NewScanner(r)
	for _, want := range []string{"not recorded, so not listed: configmaps, secrets, ingresses.networking.k8s.io, networkpolicies.networking.k8s.io, horizontalpodautoscalers.autoscaling, resourcequotas, services, statefulsets.apps, daemonsets.apps",
		"nothing is recorded since 2026-01-02 14:30:00Z: the disk is full", "new changes are known again",
		"not observed between 2026-01-02 14:40:00Z and 2026-01-02 14:40:20Z: changes in that time have the time of its end",
		"not observed between 2026-01-02 14:50:00Z and 2026-01-02 14:50:20Z: changes in that time have the time of its end"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("printed %q, want %q", lines.Text(), want)
		}
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestAgesOfTheGateway: an age, and a time of day, count from the gateway's present,
// which is the end of a recording.
func TestAgesOfTheGateway(t *testing.T) {
	f := newFakeGateway(t, map[string]string{
		"":         `{"now":"2026-01-02T12:00:00Z","recording":{"state":"ended"},"resources":[{"resource":"pods","epochs":[{"span":{"from":{"resourceVersion":"1","time":"2026-01-02T11:00:00Z"},"to":{"resourceVersion":"9","time":"2026-01-02T12:00:00Z"}},"gaps":[]}]}]}`,
		"/changes": `{"items":[{"type":"MODIFIED","resource":"pods","name":"a","time":"2026-01-02T11:55:00Z","resourceVersion":"1","summary":["x"]}]}`,
	})
	after := time.Date(2026, 1, 2, 12, 30, 0, 0, time.UTC).Local().Format("15:04")
	clock := time.Date(2026, 1, 2, 11, 30, 0, 0, time.UTC).Local().Format("15:04")
	before := time.Date(2026, 1, 2, 10, 50, 0, 0, time.UTC).Local().Format("15:04")
	for since, want := range map[string]string{before: "2026-01-02T10:50:00Z", "10m": "2026-01-02T11:50:00Z", clock: "2026-01-02T11:30:00Z", "2026-01-01T00:00:00Z": "2026-01-01T00:00:00Z"} {
		f.questions()
		if _, errs, code := run("changes", "--since", since); code != 0 {
			t.Errorf("%s: %d %s", since, code, errs)
		}
		if got := f.questions(); !strings.Contains(got[len(got)-1], "since="+url.QueryEscape(want)+"&") || !strings.Contains(got[len(got)-1], "&until=2026-01-02T12%3A00%3A00Z") {
			t.Errorf("%s asked %q, want %s", since, got, want)
		}
	}
	for line, want := range map[string]string{
		"changes --until " + after:                                      "--until: " + after + " is after the end of the recording, 2026-01-02T12:00:00Z",
		"changes --until 2026-01-02T12:00:02Z":                          "--until: 2026-01-02T12:00:02Z is after the end of the recording, 2026-01-02T12:00:00Z",
		"history pods/a --until 2027-01-02T12:00:02Z":                   "--until: 2027-01-02T12:00:02Z is after the end of the recording",
		"diff po --from 10m --to 2026-01-02T13:00:00Z":                  "--to: 2026-01-02T13:00:00Z is after the end of the recording",
		"changes --since 10m --until 2026-01-02T11:40:00Z":              "--since 10m is after --until 2026-01-02T11:40:00Z: swap them",
		"diff po --from 2026-01-02T12:00:00Z --to 2026-01-02T12:00:00Z": "are both 2026-01-02T12:00:00Z",
		"changes --since rv:9 --until rv:9 pods":                        "are both rv:9",
	} {
		if out, errs, code := run(strings.Fields(line)...); code == 0 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
		}
	}
}
