// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

func names(t *testing.T, body string) (out []string, meta metav1.ListMeta) {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, o := range list.Items {
		out = append(out, o.Namespace+"/"+o.Name+"@"+o.ResourceVersion)
	}
	return out, list.ListMeta
}

func TestListVersions(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5)))
	b.apply(kube.Modified, pod("d", "a", 12))
	b.apply(kube.Added, pod("d", "b", 14))
	for _, test := range []struct {
		query string
		rv    string // "" is passed through
		want  []string
	}{
		{"", "", nil},
		{"resourceVersion=0", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=0&limit=1", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=11", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=3", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=15", "", nil},
		{"resourceVersion=12&resourceVersionMatch=Exact", "12", []string{"d/a@12"}},
		{"resourceVersion=11&resourceVersionMatch=Exact", "11", []string{"d/a@5"}},
		{"resourceVersion=10&limit=5", "10", []string{"d/a@5"}},
		{"resourceVersion=9&resourceVersionMatch=Exact", "", nil},
		{"resourceVersion=15&resourceVersionMatch=Exact", "", nil},
		{"continue=garbage", "", nil},
		{"continue=" + request.EncodeContinue(3, "d/a", ""), "", nil},
	} {
		code, body := b.get("/api/v1/pods?" + test.query)
		if test.rv == "" {
			if code != http.StatusTeapot {
				t.Errorf("%s: served with %d %s", test.query, code, body)
			}
			continue
		}
		got, meta := names(t, body)
		if diff := cmp.Diff(test.want, got); code != 200 || diff != "" || meta.ResourceVersion != test.rv {
			t.Errorf("%s: %d at %s (-want +got)\n%s", test.query, code, meta.ResourceVersion, diff)
		}
	}
}

func TestPages(t *testing.T) {
	var all []*scan.Object
	for i := range uint64(23) {
		color := []string{"red", "blue"}[i%2]
		all = append(all, pod([]string{"a", "a-b", "b"}[i%3], fmt.Sprintf("p%02d", i), i+1, "color", color))
	}
	b := newBench(t, podList(100, all...))
	next := uint64(100)
	for _, scope := range []string{"/api/v1/pods", "/api/v1/namespaces/a/pods"} {
		for _, selector := range []string{"", "&labelSelector=color%3Dred"} {
			rv := b.res.Timeline.View().RV
			_, body := b.get(fmt.Sprintf("%s?resourceVersion=%d&resourceVersionMatch=Exact%s", scope, rv, selector))
			want, _ := names(t, body)
			for limit := 1; limit <= 24; limit++ {
				var got []string
				query := fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=Exact", rv)
				for {
					code, body := b.get(fmt.Sprintf("%s?%s&limit=%d%s", scope, query, limit, selector))
					if code != 200 {
						t.Fatalf("%s: %d %s", query, code, body)
					}
					page, meta := names(t, body)
					got = append(got, page...)
					if meta.ResourceVersion != fmt.Sprint(rv) {
						t.Fatalf("page at %s, want %d", meta.ResourceVersion, rv)
					}
					if (meta.RemainingItemCount != nil) != (meta.Continue != "" && selector == "") {
						t.Errorf("remainingItemCount %v, continue %q, selector %q", meta.RemainingItemCount, meta.Continue, selector)
					}
					if meta.RemainingItemCount != nil && int(*meta.RemainingItemCount) != len(want)-len(got) {
						t.Errorf("%d remain, said to be %d", len(want)-len(got), *meta.RemainingItemCount)
					}
					if meta.Continue == "" {
						break
					}
					query = "continue=" + meta.Continue
					next++
					b.apply(kube.Modified, pod("a", "p00", next, "color", "red"))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s%s limit %d (-want +got)\n%s", scope, selector, limit, diff)
				}
			}
		}
	}
}

func TestGet(t *testing.T) {
	o := pod("d", "a", 5)
	b := newBench(t, podList(10, o))
	if code, body := b.get("/api/v1/namespaces/d/pods/a?resourceVersion=0"); code != 200 || body != o.JSON+"\n" {
		t.Errorf("%d %s", code, body)
	}
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"x\" not found","reason":"NotFound","details":{"name":"x","kind":"pods"},"code":404}` + "\n"
	if code, body := b.get("/api/v1/namespaces/d/pods/x?resourceVersion=10"); code != 404 || body != want {
		t.Errorf("%d %s", code, body)
	}
	for _, path := range []string{"/api/v1/namespaces/d/pods/a", "/api/v1/namespaces/d/pods/a?resourceVersion=11", "/api/v1/pods/a?resourceVersion=0", "/api/v1/namespaces/d/pods/a?resourceVersion=x"} {
		if code, body := b.get(path); code != http.StatusTeapot {
			t.Errorf("%s: served with %d %s", path, code, body)
		}
	}
}

func TestGzip(t *testing.T) {
	var big []*scan.Object
	for i := range uint64(1000) {
		big = append(big, pod("d", fmt.Sprintf("p%03d", i), i+1, "some-label", strings.Repeat("x", 60)))
	}
	b := newBench(t, podList(2000, big...))
	_, plain := b.get("/api/v1/pods?resourceVersion=0")
	for _, test := range []struct {
		accept, query string
		want          bool
	}{
		{"gzip", "", true},
		{"deflate, gzip", "", true},
		{"gzip;q=1.0", "", false},
		{"", "", false},
		{"gzip", "&limit=5&resourceVersionMatch=NotOlderThan", true}, // RV 0: no limit
		{"gzip", "&labelSelector=none", false},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/api/v1/pods?resourceVersion=0"+test.query, nil)
		req.Header.Set("Accept-Encoding", test.accept)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Content-Encoding") == "gzip" && resp.Header.Get("Vary") == "Accept-Encoding"; got != test.want {
			t.Errorf("%q %s: gzip is %v", test.accept, test.query, got)
		}
		if test.want {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(r); err != nil || string(text) != plain {
				t.Errorf("%q: %d bytes unpacked, want %d: %v", test.accept, len(text), len(plain), err)
			}
		}
	}
}

// TestGzipWatch: a streaming list is compressed where a list is, and other watches are not.
func TestGzipWatch(t *testing.T) {
	var big []*scan.Object
	for i := range uint64(1000) {
		big = append(big, pod("d", fmt.Sprintf("p%03d", i), i+1, "some-label", strings.Repeat("x", 60)))
	}
	b := newBench(t, podList(2000, big...))
	const initial = "&resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
	initialEvents := func(r io.Reader) string {
		lines := bufio.NewReader(r)
		var text strings.Builder
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(line)
			if strings.Contains(line, "initial-events-end") {
				return text.String()
			}
		}
	}
	plain := b.open(t.Context(), "/api/v1/pods?watch=1&allowWatchBookmarks=true"+initial, "Accept-Encoding", "identity")
	defer plain.Body.Close()
	want := initialEvents(plain.Body)
	for _, test := range []struct {
		accept, query string
		want          bool
	}{
		{"gzip", initial, true},
		{"gzip;q=1.0", initial, false},
		{"identity", initial, false},
		{"gzip", initial + "&labelSelector=none", false}, // small
		{"gzip", "&resourceVersion=2000", false},
		{"gzip", "&resourceVersion=0", false}, // it begins with the same events
	} {
		resp := b.open(t.Context(), "/api/v1/pods?watch=1&allowWatchBookmarks=true"+test.query, "Accept-Encoding", test.accept)
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Encoding") == "gzip" && resp.Header.Get("Vary") == "Accept-Encoding"; got != test.want {
			t.Errorf("%q %s: gzip is %v", test.accept, test.query, got)
		}
		if test.want {
			r, err := gzip.NewReader(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := initialEvents(r); got != want {
				t.Errorf("%d bytes unpacked, want %d", len(got), len(want))
			}
		}
	}
}

// TestEventsContinue: a page of Events, which have no watch cache at the API server, has
// the token of an etcd list; other pages have that of the watch cache.
func TestEventsContinue(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5), pod("d", "b", 6)))
	view := b.res.Timeline.View()
	st := (&live{}).state(view, &view.Snapshot)
	for _, test := range []struct{ resource, namespace, token string }{
		{"pods", "", `{"v":"meta.k8s.io/v1","rv":10,"start":"/d/a\u0000"}`},
		{"events", "", `{"v":"meta.k8s.io/v1","rv":10,"start":"d/a\u0000"}`},
		{"events", "d", `{"v":"meta.k8s.io/v1","rv":10,"start":"a\u0000"}`},
	} {
		q := &query{Read: &request.Read{}, Selection: request.Selection{Namespace: test.namespace}}
		q.Resource = kube.Resource{Version: "v1", Name: test.resource}
		p, err := newPage(&st, q, "", 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := base64.RawURLEncoding.DecodeString(p.next); err != nil || string(token) != test.token {
			t.Errorf("%s in %q: %s, want %s", test.resource, test.namespace, token, test.token)
		}
	}
}

func TestOddVersions(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5), pod("d", "b", 6)))
	token := request.EncodeContinue(10, "d/a", "")
	for _, query := range []string{
		"resourceVersion=00", "watch=1&resourceVersion=00", "resourceVersion=010",
		"continue=" + token + "&resourceVersion=5", "continue=" + token + "&resourceVersion=0&limit=1",
		"resourceVersion=10&limit=1&fieldSelector=metadata.namespace%3Dd",
		"continue=" + token + "&fieldSelector=metadata.namespace%3Dd",
	} {
		if code, body := b.get("/api/v1/pods?" + query); code != http.StatusTeapot {
			t.Errorf("%s: served with %d %s", query, code, body)
		}
	}
	if code, body := b.get("/api/v1/watch/pods/a?resourceVersion=0&timeoutSeconds=1"); code != http.StatusTeapot {
		t.Errorf("a namespaced object without its namespace: %d %s", code, body)
	}
	for _, timeout := range []string{"-1", "9223372037"} {
		if code, body := b.get("/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=" + timeout); code != 200 || body != "" {
			t.Errorf("timeoutSeconds=%s: %d %q", timeout, code, body)
		}
	}
	escaped, stop := b.watchAt("/api/v1/pods?resourceVersion=0&w%61tch=true")
	defer stop()
	expect(t, escaped, "ADDED a@5", "ADDED b@6")
}
