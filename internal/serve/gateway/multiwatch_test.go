// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/multiwatch"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

// multiwatchURL returns the request of the watches.
func multiwatchURL(server string, watches ...string) string {
	return server + multiwatchPath + "?" + url.Values{"watch": watches}.Encode()
}

// serveMultiwatch serves multiwatches whose watches answer serves.
func serveMultiwatch(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	inner := func(w http.ResponseWriter, r *http.Request) *metav1.Status {
		answer(w, r)
		return nil
	}
	server := httptest.NewServer(&multiwatch.Handler{Answer: inner, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(server.Close)
	return server
}

// nextLine reads a line and abbreviates it: the watch and its event.
func nextLine(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	if !lines.Scan() {
		return fmt.Sprint("end ", lines.Err())
	}
	var line struct {
		Watch  *int
		Type   string
		Object struct {
			Metadata struct{ Name, ResourceVersion string }
			Code     int
			Kind     string
			Message  string
		}
	}
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Watch == nil {
		t.Fatalf("%q: %v", lines.Text(), err)
	}
	o := line.Object
	switch line.Type {
	case "ERROR":
		return fmt.Sprintf("%d ERROR %s %d %s", *line.Watch, o.Kind, o.Code, o.Message)
	case "END":
		return fmt.Sprintf("%d END", *line.Watch)
	}
	return fmt.Sprintf("%d %s %s@%s", *line.Watch, line.Type, o.Metadata.Name, o.Metadata.ResourceVersion)
}

// TestMultiwatch: several watches on one response, each with its selectors; an error of
// one watch does not end the others.
func TestMultiwatch(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5, "color", "red"), pod("e", "b", 6)))
	server := serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		rec := &responseRecorder{ResponseWriter: w, metrics: b.metrics, request: r}
		if b.reads.serve(rec, r) != nil {
			status.Write(w, r, status.New(http.StatusForbidden, "Forbidden", "passed through"))
		} else if rec.stream != nil {
			b.reads.tracker.Serve(rec, r, rec.stream)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, multiwatchURL(server.URL,
		"/api/v1/pods?watch=1&resourceVersion=0&labelSelector=color%3Dred",
		"/api/v1/watch/namespaces/e/pods?resourceVersion=10",
		"/api/v1/secrets?watch=1",
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	got := map[string]bool{}
	for range 3 { // in any order
		got[nextLine(t, lines)] = true
	}
	want := map[string]bool{"0 ADDED a@5": true, "2 ERROR Status 403 passed through": true, "2 END": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	for _, change := range []struct {
		typ    kube.EventType
		object *scan.Object
		want   string
	}{
		{kube.Modified, pod("e", "b", 11), "1 MODIFIED b@11"},
		{kube.Modified, pod("d", "a", 12, "color", "blue"), "0 DELETED a@12"},
		{kube.Added, pod("e", "c", 13, "color", "blue"), "1 ADDED c@13"},
	} {
		b.apply(change.typ, change.object)
		if got := nextLine(t, lines); got != change.want {
			t.Fatalf("got %q, want %q", got, change.want)
		}
	}
	b.res.Timeline.Close() // ends both
	for range 2 {
		if got := nextLine(t, lines); !strings.HasSuffix(got, " END") {
			t.Fatalf("got %q, want an end", got)
		}
	}
	if got := nextLine(t, lines); got != "end <nil>" {
		t.Errorf("after the last line: %s", got)
	}
}

// boardFields are about the fields of a Pod that the page reads.
const boardFields = "metadata.labels,metadata.ownerReferences,metadata.creationTimestamp,metadata.deletionTimestamp,spec.nodeName," +
	"spec.containers[*].resources.requests,status.phase,status.conditions[*].type,status.conditions[*].status,status.conditions[*].lastTransitionTime," +
	"status.containerStatuses[*].name,status.containerStatuses[*].ready,status.containerStatuses[*].restartCount,status.containerStatuses[*].state"

// A countedReader counts the bytes that are read.
type countedReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// zipped asks for a multiwatch in gzip, and does not read it.
func zipped(ctx context.Context, t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip, deflate, br")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return resp
}

// serveBench serves multiwatches of the bench's.
func serveBench(t *testing.T, b *bench) string {
	return serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		rec := &responseRecorder{ResponseWriter: w, metrics: b.metrics, request: r}
		if b.reads.serve(rec, r) == nil && rec.stream != nil {
			b.reads.tracker.Serve(rec, r, rec.stream)
		}
	}).URL
}

// TestMultiwatchBytes: a change of a Pod takes at most 300 bytes on the wire, even alone;
// and it is flushed without a later event.
func TestMultiwatchBytes(t *testing.T) {
	const n = 60
	// The Pod at rv, with another transition time of its Ready condition.
	made := func(i int, rv uint64) *scan.Object {
		p := synthetic.Pod(i)
		p.ResourceVersion = fmt.Sprint(rv)
		p.Status.Conditions[1].LastTransitionTime = metav1.NewTime(time.Unix(1_790_000_000+int64(rv), 0).UTC())
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		o, err := scan.ParseObject(string(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var before []*scan.Object
	for i := range n {
		before = append(before, made(i, uint64(i+1)))
	}
	b := newBench(t, podList(n, before...))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch := "/api/v1/pods?watch=1&resourceVersion=" + fmt.Sprint(n) + "&fields=" + url.QueryEscape(boardFields)
	resp := zipped(ctx, t, multiwatchURL(serveBench(t, b), watch))
	wire := &countedReader{r: resp.Body}
	plain, err := gzip.NewReader(wire)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(plain)
	began, size := wire.n.Load(), 0
	for i := range n {
		o := made(n-1-i, uint64(n+1+i))
		b.apply(kube.Modified, o)
		if got, want := nextLine(t, lines), fmt.Sprintf("0 MODIFIED %s@%d", o.Key.Name(), o.RV); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		size += len(lines.Bytes())
	}
	each := (wire.n.Load() - began) / n
	t.Logf("%d bytes for a change of %d", each, size/n)
	if each > 300 {
		t.Errorf("%d bytes for a change", each)
	}
	// The gzip stream is valid to its end.
	b.res.Timeline.Close()
	if got := nextLine(t, lines); got != "0 END" {
		t.Errorf("got %q, want an end", got)
	}
	if got := nextLine(t, lines); got != "end <nil>" {
		t.Errorf("after the last line: %s", got)
	}
}
