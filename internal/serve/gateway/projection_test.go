// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// shown returns the projection of a Pod to its labels.
func shown(name string, rv uint64, labels string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"d","resourceVersion":"%d"%s}}`, name, rv, labels)
}

func TestProjectedList(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 4, "app", "web", "x", "1"), pod("d", "b", 5, "y", "1"), pod("e", "c", 6)))
	const head = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[`
	items := shown("a", 4, `,"labels":{"app":"web"}`) + "," + shown("b", 5, "")
	for path, want := range map[string]string{
		"/api/v1/namespaces/d/pods?resourceVersion=0&fields=metadata.labels.app":                                     head + items + "]}\n",
		"/api/v1/namespaces/d/pods?resourceVersion=0&fields=metadata.labels%5B%27app%27%5D&fields=nowhere":           head + items + "]}\n",
		"/api/v1/pods?resourceVersion=0&labelSelector=x&fields=metadata.labels.app":                                  head + shown("a", 4, `,"labels":{"app":"web"}`) + "]}\n",
		"/api/v1/namespaces/d/pods?resourceVersion=0&fieldSelector=metadata.name%3Db&fields=metadata.labels.app":     head + shown("b", 5, "") + "]}\n",
		"/api/v1/namespaces/none/pods?resourceVersion=0&fields=metadata.labels.app":                                  head + "]}\n",
		"/api/v1/pods?resourceVersion=0&labelSelector=y&pretty=true&fields=metadata.name":                            "",
		"/api/v1/namespaces/d/pods?resourceVersion=10&resourceVersionMatch=Exact&limit=2&fields=metadata.labels.app": head + items + "]}\n",
	} {
		code, body := b.get(path)
		if want == "" { // indented
			want = "{\n  \"kind\": \"PodList\""
			body = body[:min(len(want), len(body))]
		}
		if code != 200 || body != want {
			t.Errorf("%s: %d\n got %s\nwant %s", path, code, body, want)
		}
	}
}

// TestProjectedPages: a Link header names the next page of a projection, so that it
// arrives before the items.
func TestProjectedPages(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 4), pod("d", "b", 5), pod("e", "c", 6)))
	var names []string
	next := "?resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=1&fields=spec.nodeName,metadata.labels%5B%27a.b/c%27%5D"
	for pages := 0; next != ""; pages++ {
		resp := b.open(t.Context(), "/api/v1/pods"+next)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		var list metav1.PartialObjectMetadataList
		if err := errors.Join(err, json.Unmarshal(body, &list)); err != nil || resp.StatusCode != 200 || len(list.Items) != 1 || pages > 2 {
			t.Fatalf("page %d: %s %s %v", pages, resp.Status, body, err)
		}
		names = append(names, list.Items[0].Name)
		link := resp.Header.Get("Link")
		if (link == "") != (list.Continue == "") || !strings.Contains(link, list.Continue) {
			t.Fatalf("page %d: Link %q, continue %q", pages, link, list.Continue)
		}
		next = strings.TrimPrefix(strings.TrimSuffix(link, `>; rel="next"`), "<")
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(names, want) {
		t.Errorf("the pages have %v, want %v", names, want)
	}
	resp := b.open(t.Context(), "/api/v1/pods?resourceVersion=10&resourceVersionMatch=Exact&limit=1")
	resp.Body.Close()
	if link := resp.Header.Get("Link"); link != "" {
		t.Errorf("a list without fields has Link %q", link)
	}
}

// TestProjectedWatch: a change outside the shown fields sends no event; an object that
// enters or leaves the selection does, whatever fields are shown.
func TestProjectedWatch(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 4, "app", "web", "x", "1"), pod("d", "b", 5, "x", "2")))
	lines, stop := b.watch("resourceVersion=0&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=x&fields=metadata.labels.app")
	defer stop()
	want := func(wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			select {
			case line := <-lines:
				if diff := cmp.Diff(w, line); diff != "" {
					t.Fatalf("(-want +got)\n%s", diff)
				}
			case <-time.After(time.Minute):
				t.Fatalf("nothing, want %s", w)
			}
		}
	}
	frame := func(typ kube.EventType, object string) string {
		return fmt.Sprintf(`{"type":%q,"object":%s}`, typ, object)
	}
	const web = `,"labels":{"app":"web"}`
	want(frame(kube.Added, shown("a", 4, web)), frame(kube.Added, shown("b", 5, "")))
	select {
	case line := <-lines:
		if brief(t, line) != "BOOKMARK @10 end" {
			t.Fatal(line)
		}
	case <-time.After(time.Minute):
		t.Fatal("no bookmark")
	}
	b.apply(kube.Modified, pod("d", "a", 11, "app", "web", "x", "other"))
	b.apply(kube.Modified, pod("d", "a", 12, "app", "api", "x", "other"))
	b.apply(kube.Modified, pod("d", "a", 13, "app", "api", "x", "1", "z", "1"))
	b.apply(kube.Modified, pod("d", "a", 14, "app", "api"))          // not selected any more
	b.apply(kube.Modified, pod("d", "a", 15, "app", "web"))          // nor now
	b.apply(kube.Modified, pod("d", "a", 16, "app", "web", "x", "")) // again
	b.apply(kube.Modified, pod("d", "b", 100, "x", "2", "z", "1"))   // with more digits
	b.apply(kube.Deleted, pod("d", "b", 101, "x", "2", "z", "1"))
	want(frame(kube.Modified, shown("a", 12, `,"labels":{"app":"api"}`)),
		frame(kube.Deleted, shown("a", 14, `,"labels":{"app":"api"}`)),
		frame(kube.Added, shown("a", 16, web)),
		frame(kube.Deleted, shown("b", 101, "")))
}

// TestRows: rows have the columns in the order of the request, in pages and in a watch,
// which is silent while only the RV changes.
func TestRows(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 4, "app", "web", "x", "1"), pod("d", "b", 5), pod("e", "c", 6)))
	const query = "&as=rows&fields=metadata.labels.x,metadata.labels.app"
	const columns = `"columns":["metadata.namespace","metadata.name","metadata.uid","metadata.resourceVersion","metadata.labels.x","metadata.labels.app"],"rows":[`
	const a, bRow, c = `["d","a",null,"4","1","web"]`, `["d","b",null,"5",null,null]`, `["e","c",null,"6",null,null]`
	code, body := b.get("/api/v1/pods?resourceVersion=0" + query)
	if want := `{"kind":"RowList","apiVersion":"watchkeeper/v1","metadata":{"resourceVersion":"10"},` + columns + a + "," + bRow + "," + c + "]}\n"; code != 200 || body != want {
		t.Errorf("%d\n got %s\nwant %s", code, body, want)
	}
	code, body = b.get("/api/v1/pods?resourceVersion=0&repeated=omit" + query)
	want := strings.Replace(columns, `"rows"`, `"repeated":"omit","rows"`, 1) + `[0,"d",0,"a",0,null,0,"4",0,"1",0,"web"],[1,"b",1,"5",0,null,0,null],[0,"e",0,"c",1,"6"]]}`
	if code != 200 || !strings.HasSuffix(body, want+"\n") {
		t.Errorf("%d\n got %s\nwant %s", code, body, want)
	}
	resp := b.open(t.Context(), "/api/v1/pods?resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=2"+query)
	defer resp.Body.Close()
	var page struct {
		Metadata metav1.ListMeta
		Rows     []json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || len(page.Rows) != 2 || page.Metadata.Continue == "" || !strings.Contains(resp.Header.Get("Link"), page.Metadata.Continue) {
		t.Errorf("a page: %+v %v, Link %s", page, err, resp.Header.Get("Link"))
	}
	lines, stop := b.watch("resourceVersion=10&repeated=omit" + query) // its rows are whole
	defer stop()
	b.apply(kube.Modified, pod("d", "a", 11, "app", "web", "x", "1", "other", "1"))
	b.apply(kube.Modified, pod("d", "a", 12, "app", "api", "x", "1"))
	b.apply(kube.Deleted, pod("d", "a", 13, "app", "api", "x", "1"))
	for _, want := range []string{`{"type":"MODIFIED","object":["d","a",null,"12","1","api"]}`, `{"type":"DELETED","object":["d","a",null,"13","1","api"]}`} {
		select {
		case line := <-lines:
			if line != want {
				t.Errorf("got %s, want %s", line, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing, want %s", want)
		}
	}
}

// TestCSV: texts of the cluster are never formulas.
func TestCSV(t *testing.T) {
	b := newBench(t, podList(10,
		pod("d", "a", 4, "x", `=HYPERLINK("http://evil","a")`, "y", "1,2"), pod("d", "b", 5, "x", "+1", "y", `say "hi"`), pod("d", "c", 6, "x", "-1"),
		pod("d", "d", 7, "x", "@SUM(A1)"), pod("d", "e", 8, "x", "\tx", "y", "two\nlines"), pod("e", "f", 9, "x", "＝1", "y", "plain")))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/api/v1/pods?resourceVersion=0&as=csv&fields=metadata.labels.x,metadata.labels.y,metadata.labels", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,*/*;q=0.8") // a browser's
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	records, err := csv.NewReader(resp.Body).ReadAll()
	if typ := resp.Header.Get("Content-Type"); err != nil || resp.StatusCode != 200 || typ != "text/csv; charset=utf-8; header=present" {
		t.Fatalf("%s %s %v", resp.Status, typ, err)
	}
	if diff := cmp.Diff([][]string{
		{"namespace", "name", "metadata.labels.x", "metadata.labels.y", "metadata.labels"},
		{"d", "a", `'=HYPERLINK("http://evil","a")`, "1,2", `{"x":"=HYPERLINK(\"http://evil\",\"a\")","y":"1,2"}`},
		{"d", "b", "'+1", `say "hi"`, `{"x":"+1","y":"say \"hi\""}`},
		{"d", "c", "'-1", "", `{"x":"-1"}`},
		{"d", "d", "'@SUM(A1)", "", `{"x":"@SUM(A1)"}`},
		{"d", "e", "'\tx", "two\nlines", `{"x":"\tx","y":"two\nlines"}`},
		{"e", "f", "'＝1", "plain", `{"x":"＝1","y":"plain"}`},
	}, records); diff != "" {
		t.Error(diff)
	}
}

// TestXLSX: a list as a file is a workbook, whose texts are never formulas.
func TestXLSX(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 4, "x", `=HYPERLINK("http://evil","a")`), pod("d", "b", 5, "x", "+1")))
	resp := b.open(t.Context(), "/api/v1/namespaces/d/pods?resourceVersion=0&as=xlsx&labelSelector=x&fields=metadata.labels.x,spec.nodeName,metadata.labels")
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if h := resp.Header; err != nil || resp.StatusCode != 200 || h.Get("Content-Type") != wire.XLSXType || h.Get("Content-Disposition") != `attachment; filename="pods.xlsx"` {
		t.Fatalf("%s %v %v", resp.Status, h, err)
	}
	book, problems, err := sheet.Read(sheet.NewBudget(t.Context(), 1<<30), data)
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	tab := book.Tabs[0]
	var texts []string
	for _, r := range tab.Rows {
		texts = append(texts, r.Namespace+"/"+r.Name+" "+string(r.Values[0])+" "+string(r.Values[1]))
	}
	tab.Rows = nil
	if diff := cmp.Diff([]string{`d/a "=HYPERLINK(\"http://evil\",\"a\")" null`, `d/b "+1" null`}, texts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(sheet.Tab{
		Name: "pods", Resource: sheet.Resource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespace: "d", Selector: "x",
		Columns: []string{"metadata.labels.x", "spec.nodeName", "metadata.labels"}, Cells: []sheet.Cell{},
	}, tab); diff != "" {
		t.Error(diff)
	}
}

// TestProjectionsRefused: a projection is never passed through; a Status says why it is
// not served.
func TestProjectionsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, podList(10, pod("d", "a", 4)))
	for _, test := range []struct {
		path, header, value string
		code                int
		message             string
	}{
		{"pods?resourceVersion=0&fields=", "", "", 400, "expected a name"},
		{"pods?resourceVersion=0&fields=a..b", "", "", 400, "at offset 2"},
		{"pods?resourceVersion=0&fields=a%5B0%5D", "", "", 400, "only rows can show"},
		{"pods?resourceVersion=0&fields=a%5B&as=rows", "", "", 400, "an index or a quoted name"},
		{"pods?resourceVersion=0&as=rows", "", "", 400, "as=rows needs fields"},
		{"pods?resourceVersion=0&fields=a,b,['a']&as=rows", "", "", 400, "['a'] is there twice"},
		{"pods?resourceVersion=0&fields=a&as=columns", "", "", 400, "it has to be rows or csv or xlsx"},
		{"pods?resourceVersion=0&as=rwos", "", "", 400, "it has to be rows or csv or xlsx"},
		{"pods?resourceVersion=0&repeated=omit", "", "", 400, "repeated=omit is for as=rows"},
		{"pods?resourceVersion=0&as=csv", "", "", 400, "as=csv needs fields"},
		{"pods?watch=1&resourceVersion=0&as=csv&fields=a", "", "", 400, "only a list has CSV"},
		{"pods?resourceVersion=0&fields=a&as=csv", "Accept", "application/json", 406, "accept text/csv"},
		{"pods?resourceVersion=0&as=xlsx", "", "", 400, "as=xlsx needs fields"},
		{"pods?watch=1&resourceVersion=0&as=xlsx&fields=a", "", "", 400, "only a list has XLSX"},
		{"pods?resourceVersion=0&fields=a&as=xlsx", "Accept", "text/csv", 406, "accept application/vnd.openxmlformats"},
		{"pods?resourceVersion=0&fields=a,a&as=xlsx", "", "", 400, "the column a is there twice"},
		{"pods?resourceVersion=0&fields=a&as=rows&as=rows", "", "", 400, "given 2 times"},
		{"pods?resourceVersion=0&fields=a&as=rows&repeated=x", "", "", 400, "repeated is \"x\": it has to be omit"},
		{"pods?resourceVersion=0&fields=a&as=csv&repeated=omit", "", "", 400, "repeated=omit is for as=rows"},
		{"namespaces/d/pods/a?as=rows&fields=a", "", "", 400, "lists and watches"},
		{"namespaces/d/pods/a?resourceVersion=0&fields=a", "", "", 400, "lists and watches"},
		{"pods?resourceVersion=x&fields=a", "", "", 400, "check its path and parameters"},
		{"pods?resourceVersion=0&fields=a", "Authorization", "Bearer x", 400, "credentials"},
		{"pods?resourceVersion=0&fields=a", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1", 400, "Table"},
		{"pods?resourceVersion=0&fields=a", "Accept", "application/vnd.kubernetes.protobuf", 406, "JSON only"},
		{"pods?resourceVersion=0&fields=a", "Accept", "application/yaml", 406, "JSON only"},
		{"pods?resourceVersion=0&fields=a&fieldSelector=spec.nowhere%3Dx", "", "", 400, "field label not supported: spec.nowhere"},
		{"pods?resourceVersion=5&resourceVersionMatch=Exact&fields=a", "", "", 410, "too old resource version: 5 (10)"},
		{"pods?watch=1&resourceVersion=5&fields=a", "", "", 410, "too old resource version: 5 (10)"},
		{"pods?resourceVersion=99&fields=a", "", "", 504, "Too large resource version: 99, current: 10"},
		{"pods?continue=x&fields=a", "", "", 400, "continue"},
		{"pods?fields=a", "", "", 503, "cannot be served"}, // no freshness proof without an upstream
		{"pods?watch=1&fields=a", "", "", 503, "cannot be served"},
		{"things?fields=a", "", "", 503, "cannot be served"}, // no discovery either
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/api/v1/"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.header != "" {
			req.Header.Set(test.header, test.value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if s := statusIn(t, resp); int(s.Code) != test.code || resp.StatusCode != test.code || !strings.Contains(s.Message, test.message) {
			t.Errorf("%s %s: %d %q, want %d %q", test.path, test.value, s.Code, s.Message, test.code, test.message)
		}
	}
	other := newBench(t, podList(10))
	other.denied = map[string]bool{"watch": true}
	if code, body := other.get("/api/v1/pods?watch=1&resourceVersion=0&fields=a"); code != 403 || !strings.Contains(body, "may not watch") {
		t.Errorf("%d %s", code, body)
	}
	// If the upstream denies the gateway the resource, the answer is 403: a retry is useless.
	other.reads.cache.Remove(other.res, &reflector.RefusedError{Code: 403, Message: "pods is forbidden"})
	if code, body := other.get("/api/v1/pods?resourceVersion=0&fields=a"); code != 403 || !strings.Contains(body, "pods is forbidden") {
		t.Errorf("%d %s", code, body)
	}
	select {
	case q := <-b.missed:
		t.Errorf("passed through: %s", q)
	default:
	}
	// Paths that only look like reads of objects are passed through.
	for _, path := range []string{"/api/v1/namespaces/d/services/s/proxy/pods?fields=a", "/api/v1/namespaces/d/pods/a/log?fields=a", "/healthz?fields=a", "/healthz?as=rwos"} {
		if code, body := b.get(path); code != http.StatusTeapot {
			t.Errorf("%s: %d %s", path, code, body)
		}
		<-b.missed
	}
}

// statusIn reads an answer that has to be a Status.
func statusIn(t *testing.T, resp *http.Response) (s metav1.Status) {
	t.Helper()
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil || s.Kind != "Status" {
		t.Errorf("%s: not a Status: %v", resp.Status, err)
	}
	return s
}
