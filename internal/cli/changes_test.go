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
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/change"
	"github.com/watchkeeper/watchkeeper/internal/cli"
)

func changed(at time.Time, rv int, resource, name, what string) api.ObjectChange {
	return api.ObjectChange{Resource: resource, Path: "/" + resource + "/" + name, Namespace: "default", Name: name, Change: api.Change{
		Type: api.Modified, ResourceVersion: fmt.Sprint(rv), Time: at, Summary: []string{what}, By: []change.Manager{{Manager: "kubectl"}},
	}}
}

const recordedIndex = `{"recording":{"state":"on"},"resources":[{"resource":"deployments.apps"},{"resource":"events"},{"resource":"events.events.k8s.io"},{"resource":"namespaces"},{"resource":"pods"}]}`

func TestChanges(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	created, deleted := changed(at.Add(time.Second), 8, "pods", "a", "created"), changed(at.Add(2*time.Second), 9, "pods", "a", "deleted")
	created.Type, deleted.Type, deleted.By = api.Added, api.Deleted, nil
	f := newFakeGateway(t, map[string]string{
		"":         recordedIndex,
		"/changes": text(t, api.Changes{Items: []api.ObjectChange{deleted, created}, Continue: "x"}),
		"older":    text(t, api.Changes{Items: []api.ObjectChange{changed(at, 7, "deployments.apps", "web", "replicas 1 → 2")}}),
	})
	want := `2026-01-02 12:00:02Z  9         - pods default/a  deleted
2026-01-02 12:00:01Z  8         + pods default/a  created  by kubectl
2026-01-02 12:00:00Z  7         ~ deployments.apps default/web  replicas 1 → 2  by kubectl
`
	for line, query := range map[string]string{
		"changes --since 2026-01-02T11:00:00Z":                                        "from=2026-01-02T11%3A00%3A00Z&limit=1000&namespace=default&resource=deployments.apps&resource=namespaces&resource=pods&to=now",
		"changes --since 2026-01-02T11:00:00Z -A po deploy":                           "from=2026-01-02T11%3A00%3A00Z&limit=1000&resource=pods&resource=deployments.apps&to=now",
		"changes --since 2026-01-02T11:00:00Z -n shop po --by me --spec --filter web": "by=me&filter=web&from=2026-01-02T11%3A00%3A00Z&limit=1000&namespace=shop&resource=pods&spec=true&to=now",
	} {
		f.questions()
		out, errs, code := run(append(strings.Fields(line), "--utc")...)
		if diff := cmp.Diff(want, out); diff != "" || errs != "" || code != 0 {
			t.Errorf("%s: %d %s %s", line, code, errs, diff)
		}
		if got := f.questions(); !slices.Contains(got, "/changes?"+query) {
			t.Errorf("%s asked %q", line, got)
		}
	}
	var all api.Changes
	if out, _, code := run("changes", "-o", "json"); code != 0 || json.Unmarshal([]byte(out), &all) != nil || len(all.Items) != 3 || all.Continue != "" {
		t.Errorf("%d %s", code, out)
	}

	f.answers["/changes"] = `{"items":[]}`
	f.answers["/versions/api/v1/namespaces/default"] = `{"items":[{}]}`
	for line, want := range map[string]string{
		"changes --since 2026-01-02T11:00:00Z --until 2026-01-02T12:00:00Z --utc":    "no changes in namespace default between 2026-01-02 11:00:00Z and 2026-01-02 12:00:00Z\n",
		"changes --since 2026-01-02T11:00:00Z --until 2026-01-02T12:00:00Z --utc -A": "no changes between 2026-01-02 11:00:00Z and 2026-01-02 12:00:00Z\n",
	} {
		if out, errs, code := run(strings.Fields(line)...); code != 0 || out != "" || errs != want {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
		}
	}
	for line, want := range map[string]string{
		"changes -n shopp":              "nothing is recorded in namespace shopp",
		"changes pods/a":                "see 'watchkeeper history pods/a' for one object",
		"changes --since 12031":         "--since 12031: a resourceVersion does not select changes of several resources: use a time",
		"changes --watch --until 1m":    "--watch does not end: leave out --until",
		"changes --watch -o yaml":       "--watch prints text or json",
		"changes --since 1m --until 2m": "--since 1m is after --until 2m",
	} {
		if out, errs, code := run(strings.Fields(line)...); code != 1 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
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
	if from, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("from")); err == nil {
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
	h := &growingHistory{}
	server := httptest.NewServer(h)
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
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
		ended <- cli.Main(ctx, []string{"changes", "-A", "-w", "--since", start.Add(-time.Minute).UTC().Format(time.RFC3339Nano), "-s", server.URL}, strings.NewReader(""), w, errw)
	}()
	lines := bufio.NewScanner(r)
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
	if said, err := bufio.NewReader(errs).ReadString('\n'); err != nil || !strings.Contains(said, "the history is not open; trying again") {
		t.Errorf("%q %v", said, err)
	}
	go func() { _, _ = io.Copy(io.Discard, errs) }()
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

// TestAgesOfTheGateway: an age, and a time of day, count from the gateway's present,
// which is the end of a recording.
func TestAgesOfTheGateway(t *testing.T) {
	f := newFakeGateway(t, map[string]string{
		"":         `{"now":"2026-01-02T12:00:00Z","recording":{"state":"ended"},"resources":[{"resource":"pods"}]}`,
		"/changes": `{"items":[{"type":"MODIFIED","resource":"pods","name":"a","time":"2026-01-02T11:55:00Z","resourceVersion":"1","summary":["x"]}]}`,
	})
	clock := time.Date(2026, 1, 2, 11, 30, 0, 0, time.UTC).Local().Format("15:04")
	for since, want := range map[string]string{"10m": "2026-01-02T11:50:00Z", clock: "2026-01-02T11:30:00Z", "2026-01-01T00:00:00Z": "2026-01-01T00:00:00Z"} {
		f.questions()
		if _, errs, code := run("changes", "--since", since); code != 0 {
			t.Errorf("%s: %d %s", since, code, errs)
		}
		if got := f.questions(); !strings.Contains(got[len(got)-1], "from="+url.QueryEscape(want)+"&") {
			t.Errorf("%s asked %q, want %s", since, got, want)
		}
	}
}
