// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func line(typ string, rv int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"%d"}}}`+"\n", typ, rv)
}

func endBookmark(rv int) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", rv)
}

// printed converts the lines of a watch to Tables, as the API server does: the
// first one of a stream has the columns.
func printed(lines string, first bool) string {
	columns := "null"
	if first {
		columns = `[{"name":"Name"}]`
	}
	var out strings.Builder
	for line := range strings.Lines(lines) {
		typ, object, _ := strings.Cut(strings.TrimSpace(line), `,"object":`)
		fmt.Fprintf(&out, `%s,"object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":%s,"rows":[{"cells":["x"],"object":%s}]}}`+"\n",
			typ, columns, strings.TrimSuffix(object, "}"))
		columns = "null"
	}
	return out.String()
}

const asTable = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"

const wholeList = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"20"},"items":[{"metadata":{"name":"a","resourceVersion":"11"}}]}`

// upstream starts an API server of one Pod, whose watches last until the test
// ends.
func upstream(t *testing.T) *rest.Config {
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		events := line("MODIFIED", 21) + line("MODIFIED", 22) + line("MODIFIED", 23)
		if q.Get("sendInitialEvents") == "true" {
			events = line("ADDED", 11) + endBookmark(20) + events
		}
		switch {
		case q.Get("watch") != "" && asksForTable(r):
			fmt.Fprint(w, printed(events, true))
		case q.Get("watch") != "":
			fmt.Fprint(w, events)
		default:
			fmt.Fprint(w, wholeList)
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(func() { close(ended); s.Close() })
	return &rest.Config{Host: s.URL}
}

// start starts a proxy whose nth request gets the nth fault, and the rest none.
func start(t *testing.T, tls bool, faults ...Fault) (*Proxy, func(query string) (int, string, error)) {
	t.Helper()
	n := 0
	p, err := Start(Options{Upstream: upstream(t), TLS: tls, Draw: func(string, Kind, int) Fault {
		if n++; n <= len(faults) {
			return faults[n-1]
		}
		return Fault{Name: None}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UserAgent = "watchkeeper/test"
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	// get reads until the end, or until the frame at RV 23: watches do not end by
	// themselves. A query with "tables" requests Tables.
	return p, func(query string) (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/api/v1/pods?"+query, nil)
		if err != nil {
			return 0, "", err
		}
		last := line("MODIFIED", 23)
		if strings.Contains(query, "tables") {
			req.Header.Set("Accept", asTable)
			last = printed(last, false)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		var got strings.Builder
		buf := make([]byte, 1000)
		for strings.Contains(query, "toTheEnd") || !strings.Contains(got.String(), last) {
			n, err := resp.Body.Read(buf)
			got.Write(buf[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				return resp.StatusCode, got.String(), err
			}
		}
		return resp.StatusCode, got.String(), nil
	}
}

func TestStreams(t *testing.T) {
	t.Run("objects", func(t *testing.T) { testStreams(t, "", func(lines string, _ bool) string { return lines }) })
	t.Run("tables", func(t *testing.T) { testStreams(t, "&tables", printed) })
}

// testStreams tests each fault on frames of one form.
func testStreams(t *testing.T, query string, form func(lines string, first bool) string) {
	m := func(rvs ...int) (s string) {
		for _, rv := range rvs {
			s += form(line("MODIFIED", rv), rv == 21)
		}
		return s
	}
	short := 50 * time.Millisecond
	for _, test := range []struct {
		fault Fault
		query string
		code  int
		body  string // at least its beginning is received
		fails bool
	}{
		{Fault{Name: None}, "watch=1", 200, m(21, 22, 23), false},
		{Fault{Name: CutBetween, Frames: 1}, "watch=1", 200, m(21), true},
		{Fault{Name: CutWithin, Frames: 1, Part: 0.5}, "watch=1", 200, m(21) + m(22)[:len(m(22))/2], true},
		{Fault{Name: End, Frames: 2}, "watch=1", 200, m(21, 22), false},
		{Fault{Name: EndWithin, Frames: 0, Part: 0.5}, "watch=1", 200, m(21)[:len(m(21))/2], false},
		{Fault{Name: EarlyEnd, Frames: 99, For: 360 * short}, "watch=1&toTheEnd", 200, m(21, 22, 23), false},
		{Fault{Name: Stall, Frames: 1, For: short}, "watch=1", 200, m(21), true},
		{Fault{Name: HalfOpen, For: short}, "watch=1", 0, "", true},
		{Fault{Name: Pause, Frames: 1, For: short}, "watch=1", 200, m(21, 22, 23), false},
		{Fault{Name: Delay, For: short}, "watch=1", 200, m(21, 22, 23), false},
		{Fault{Name: Drip, Frames: 1, For: short, Count: 1}, "watch=1", 200, m(21, 22, 23), false},
		{Fault{Name: Duplicate, Frames: 1}, "watch=1", 200, m(21, 22, 22, 23), false},
		{Fault{Name: Older, Frames: 1, Count: 1}, "watch=1", 200, m(21, 22, 21, 23), false},
		{Fault{Name: HTML}, "watch=1", 200, page, false},
		{Fault{Name: Gone}, "watch=1", 410, `{"kind":"Status"`, false},
		{Fault{Name: GoneWithin, Frames: 1}, "watch=1", 200, m(21) + `{"type":"ERROR"`, false},
		{Fault{Name: FailWithin, Frames: 1}, "watch=1", 200, m(21) + `{"type":"ERROR"`, false},
		{Fault{Name: TooMany}, "watch=1", 429, "Too many", false},
		{Fault{Name: RetryAfter}, "watch=1", 429, `{"kind":"Status"`, false},
		{Fault{Name: Burst, Count: 2}, "watch=1", 500, `{"kind":"Status"`, false},
		{Fault{Name: NoEnd, Frames: 9}, "watch=1&sendInitialEvents=true", 200, form(line("ADDED", 11), true) + form(line("MODIFIED", 21), false) + m(22, 23), false},
		{Fault{Name: None}, "limit=1", 200, wholeList, false},
		{Fault{Name: Truncate, Part: 0.5}, "limit=1", 200, wholeList[:len(wholeList)/2], true},
		{Fault{Name: TruncateEnd, Part: 0.5}, "limit=1", 200, wholeList[:len(wholeList)/2], false},
		{Fault{Name: Drip, For: short, Count: 1}, "limit=1", 200, wholeList, false},
		{Fault{Name: Regress}, "watch=1", 200, "", true}, // without a past the stream is cut
	} {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, tls %t", test.fault.Name, tls), func(t *testing.T) {
				if testing.Short() && test.fault.Name == EarlyEnd { // it has seconds, so that slow machines get all frames
					t.Skip("make test-all runs it")
				}
				t.Parallel()
				p, get := start(t, tls, test.fault)
				code, body, err := get(test.query + query)
				if code != test.code || !strings.HasPrefix(body, test.body) || (err != nil) != test.fails {
					t.Errorf("%d %q %v", code, body, err)
				}
				if len(body) > len(test.body) && test.fails {
					t.Errorf("more than %q: %q", test.body, body)
				}
				if n := len(p.Injected()); n != 1 && test.fault.Name != None {
					t.Errorf("%d faults were injected: %v", n, p.Injected())
				}
			})
		}
	}
}

// TestSecondFault: a stream that survives a fault gets another one.
func TestSecondFault(t *testing.T) {
	p, get := start(t, false, Fault{Name: Duplicate}, Fault{Name: End})
	want := line("MODIFIED", 21) + line("MODIFIED", 21) + line("MODIFIED", 22)
	if _, body, err := get("watch=1"); body != want || err != nil {
		t.Errorf("%q %v", body, err)
	}
	if n := len(p.Injected()); n != 2 {
		t.Errorf("%v", p.Injected())
	}
}

func TestGarble(t *testing.T) {
	_, get := start(t, false, Fault{Name: Garble, Frames: 1, Part: 0.9, Count: 3})
	if _, body, _ := get("watch=1"); strings.Count(body, "\x01") != 3 || !strings.HasPrefix(body, line("MODIFIED", 21)) || strings.Count(body, "\n") != 3 {
		t.Errorf("%q", body)
	}
	_, get = start(t, false, Fault{Name: Garble, Part: 0.1, Count: 2})
	if _, body, _ := get("limit=1"); strings.Count(body, "\x01") != 2 || len(body) != len(wholeList) {
		t.Errorf("%q", body)
	}
}

func TestBurst(t *testing.T) {
	_, get := start(t, false, Fault{Name: Burst, Count: 2})
	var codes []int
	for range 4 {
		code, _, _ := get("limit=1")
		codes = append(codes, code)
	}
	if !slices.Equal(codes, []int{500, 503, 500, 200}) {
		t.Error(codes)
	}
}

// TestStaleReplica serves the past for a while, and then the present again.
func TestStaleReplica(t *testing.T) {
	p, get := start(t, false, Fault{}, Fault{}, Fault{Name: Regress, For: 0, Count: 1})
	if _, body, err := get("limit=1"); body != wholeList || err != nil {
		t.Fatal(body, err)
	}
	if _, body, err := get("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"); !strings.HasSuffix(body, line("MODIFIED", 23)) || err != nil {
		t.Fatal(body, err)
	}
	// The stale replica serves the oldest states and events.
	if _, body, err := get("watch=1&resourceVersion=23"); body != line("MODIFIED", 21) || err == nil {
		t.Errorf("%q %v", body, err)
	}
	if len(p.Stale()) != 1 {
		t.Errorf("%v", p.Stale())
	}
	if _, body, err := get("watch=1&resourceVersion=20"); !strings.HasSuffix(body, line("MODIFIED", 23)) || err != nil {
		t.Errorf("%q %v", body, err)
	}
}

// TestStaleTables: the stale replica sends the columns as an API server does, and
// sends objects to a client that does not request Tables.
func TestStaleTables(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	t.Parallel()
	back := Fault{Name: Regress, For: time.Second, Count: 1}
	_, get := start(t, false, Fault{}, back, back, back)
	const again = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	if _, body, err := get(again + "&tables"); !strings.HasSuffix(body, printed(line("MODIFIED", 23), false)) || err != nil {
		t.Fatal(body, err)
	}
	for query, want := range map[string]string{
		again + "&tables":                             printed(line("ADDED", 11)+endBookmark(20)+line("MODIFIED", 21), true),
		"watch=1&resourceVersion=23&tables":           printed(line("MODIFIED", 21), true),
		"watch=1&resourceVersion=20&timeoutSeconds=3": line("MODIFIED", 21),
	} {
		if _, body, err := get(query); body != want || err == nil {
			t.Errorf("%s: %q %v", query, body, err)
		}
	}
}

// TestHeal: a stream that is held is cut, and later requests get no fault.
func TestHeal(t *testing.T) {
	hour := Fault{Name: HalfOpen, For: time.Hour}
	p, get := start(t, false, hour, hour, hour, hour)
	done := make(chan error)
	go func() {
		_, _, err := get("watch=1")
		done <- err
	}()
	for len(p.Injected()) == 0 {
		time.Sleep(time.Millisecond)
	}
	p.Heal()
	if err := <-done; err == nil {
		t.Error("the stream was not cut")
	}
	if _, body, err := get("limit=1"); body != wholeList || err != nil {
		t.Errorf("%q %v", body, err)
	}
}

// TestDraw: a seed replays in any order; all faults of a kind are drawn, and seeds
// differ.
func TestDraw(t *testing.T) {
	for kind, choices := range menu {
		drawn := map[Name]bool{}
		same := 0
		for n := range 3000 {
			f := Draw(7, "pods", kind, n)
			if f != Draw(7, "pods", kind, n) {
				t.Fatal("a seed does not replay")
			}
			if f == Draw(8, "pods", kind, n) || f == Draw(7, "nodes", kind, n) {
				same++
			}
			drawn[f.Name] = true
		}
		for _, c := range choices {
			if !drawn[c.name] {
				t.Errorf("%s: %s is never drawn", kind, c.name)
			}
		}
		if same > 0 {
			t.Errorf("%s: %d draws do not depend on the seed or the resource", kind, same)
		}
	}
}

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		agent, path, want string
	}{
		{"watchkeeper/1", "/api/v1/pods?limit=1", "pods probe true"},
		{"watchkeeper/1", "/api/v1/pods?limit=500", "pods list true"},
		{"watchkeeper/1", "/api/v1/pods?watch=true&sendInitialEvents=true", "pods watchlist true"},
		{"watchkeeper/1", "/apis/apps/v1/deployments?watch=true&timeoutSeconds=300", "deployments watch true"},
		{"watchkeeper/1", "/api/v1/pods?watch=true&timeoutSeconds=3", "pods proofwatch true"},
		{"watchkeeper/1", "/version", " other true"},
		{"watchkeeper/1", "/api/v1/namespaces/kube-system/configmaps?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dextension-apiserver-authentication&watch=true", " other true"},
		{"curl", "/api/v1/namespaces/a/pods?limit=1", "pods client list false"},
		{"curl", "/api/v1/namespaces/a/pods/b", "pods client list false"},
		{"curl", "/api/v1/namespaces?watch=1", "namespaces client watch false"},
	} {
		r := httptest.NewRequest(http.MethodGet, test.path, nil)
		r.Header.Set("User-Agent", test.agent)
		resource, kind, own := classify(r)
		if got := fmt.Sprint(resource, " ", kind, " ", own); got != test.want {
			t.Errorf("%s: %s, want %s", test.path, got, test.want)
		}
	}
}

// TestCredentials: the gateway's own requests have the proxy's credentials, and those of its
// clients only their own.
func TestCredentials(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "a review")
	}))
	defer s.Close()
	faults := []Fault{{Name: None}, {Name: None}, {Name: Truncate, Part: 0.5}}
	p, err := New(Options{Upstream: &rest.Config{Host: s.URL, Username: "gateway", Password: "x"}, Draw: func(_ string, _ Kind, n int) Fault { return faults[n] }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(authorization string) (body string, aborted bool) {
		r := httptest.NewRequest(http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", http.NoBody)
		r.Header.Set("User-Agent", "watchkeeper/test")
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		defer func() { body, aborted = w.Body.String(), recover() != nil }()
		p.ServeHTTP(w, r)
		return "", false
	}
	for _, tt := range []struct{ sent, want string }{{"", "Basic Z2F0ZXdheTp4"}, {"Bearer token", "Bearer token"}} {
		if body, aborted := ask(tt.sent); got != tt.want || body != "a review" || aborted {
			t.Errorf("with %q the API server got %q; %q, aborted: %v", tt.sent, got, body, aborted)
		}
	}
	if body, aborted := ask(""); body != "a re" || !aborted {
		t.Errorf("the answer 201 with a fault: %q, aborted: %v", body, aborted)
	}
}
