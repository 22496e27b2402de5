// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/accessapi"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// described is an API with its description.
type described struct {
	*rig
	doc    *openapi3.T
	router routers.Router
	hit    map[string]bool // the paths of the description that were asked for
}

// newExtensionRig returns a gateway that serves a recorded history. Its API server allows
// everything.
func newExtensionRig(t *testing.T) *rig {
	t.Helper()
	c := pasttest.NewCluster(t)
	c.Fill()
	return newRig(t, fakeapi.New(fakeapi.Options{}), rigOptions{gateway: gateway.Options{Recording: c.Store, RecordingSlack: 2 * time.Minute, Filter: gateway.FilterOptions{RejectPaths: "^/apis/rejected/"}}})
}

// TestExtensions: the gateway filters the paths of resources that extensions are asked
// for, and says where the extensions are described.
func TestExtensions(t *testing.T) {
	r := newExtensionRig(t)
	if s := statusOf(t, r.get("/watchkeeper/v1/history/versions/apis/rejected/v1/x/y")); s.Code != http.StatusForbidden || !strings.Contains(s.Message, "--reject-paths") {
		t.Errorf("%+v", s)
	}
	// What a request makes the gateway parse and copy is bounded.
	var fields []string
	for range 1001 {
		fields = append(fields, "X", "")
	}
	for _, test := range []struct {
		path    string
		headers []string
		code    int32
		message string
	}{
		{"history/changes?" + strings.Repeat("resource=pods&", 101), nil, 400, "101 resources are named"},
		{"history/changes?filter=" + strings.Repeat("a+", 101), nil, 400, "the filter has 101 terms"},
		{"history/changes?filter=" + strings.Repeat("a", 32<<10), nil, 414, "the query has 32775 bytes"},
		{"multiwatch?watch=" + url.QueryEscape("/api/v1/pods?watch=1"), fields, 431, "the header has"},
	} {
		if s := statusOf(t, r.do(http.MethodGet, "/watchkeeper/v1/"+test.path, nil, test.headers...)); s.Code != test.code || !strings.Contains(s.Message, test.message) {
			t.Errorf("%.60s: %+v", test.path, s)
		}
	}
	if s := statusOf(t, r.get("/watchkeeper/v1/x")); s.Code != http.StatusNotFound || !strings.Contains(s.Message, "openapi.json") {
		t.Errorf("%+v", s)
	}
}

// TestNoHistory: without a history, the index reports recording off, and other paths say
// how to turn it on.
func TestNoHistory(t *testing.T) {
	r := newRig(t, http.NotFoundHandler(), rigOptions{})
	var h api.History
	if err := json.Unmarshal([]byte(readAll(t, r.get("/watchkeeper/v1/history"))), &h); err != nil || h.Recording.State != api.RecordingOff || len(h.Resources) != 0 {
		t.Errorf("%+v %v", h, err)
	}
	if s := statusOf(t, r.get("/watchkeeper/v1/history/versions/api/v1/nodes/n1")); s.Code != http.StatusNotFound || !strings.Contains(s.Message, "--data-dir") {
		t.Errorf("%+v", s)
	}
}

// TestOpenAPI: each path of the description answers as described, and each served path
// and parameter is described.
func TestOpenAPI(t *testing.T) {
	r := newExtensionRig(t)
	doc, err := openapi3.NewLoader().LoadFromData([]byte(readAll(t, r.get("/watchkeeper/v1/openapi.json"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	openapi3filter.RegisterBodyDecoder("application/zstd", openapi3filter.FileBodyDecoder)
	d := &described{rig: r, doc: doc, router: router, hit: map[string]bool{}}
	const pods, deployments = "/api/v1/namespaces/default/pods", "/apis/apps/v1/namespaces/default/deployments"
	for _, path := range []string{
		"/openapi.json",
		"/access?resource=pods",
		"/access?resource=pods&verb=watch&version=v1",
		"/access?resource=deployments&group=apps",
		"/history",
		"/history/counts?from=1h&to=now&bin=1m&resource=pods&resource=nodes&pretty=1",
		"/history/changes?from=2h&limit=5&noise=show&objects=true&resource=deployments.apps",
		"/history/changes?namespace=default",
		"/history/changes?from=now",
		"/history/versions/api/v1/nodes/n1",
		"/history/versions/api/v1/nodes/n1?noise=show&objects=true&limit=1000&since=59m",
		"/history/versions" + pods + "/a?until=now",
		"/history/versions" + pods + "/none",
		"/history/versions/apis/apps/v1/deployments/web", // in no namespace
		"/history/versions" + deployments + "/web?objects=true",
		"/history/failing" + pods + "/a?at=now",
		"/history/changes?filter=a+-ns:x&type=ADDED&by=x&spec=true",
		"/history/counts?filter=a&type=ADDED&namespace=default",
		"/history/diff/api/v1/pods?from=rv:100",
		"/history/diff/api/v1/nodes/n1?from=59m",
		"/history/diff" + pods + "?from=rv:100&labelSelector=a%3Db&fieldSelector=metadata.name%3Da",
		"/history/diff" + pods + "/a?from=rv:100&to=rv:110&objects=true&noise=show",
		"/history/diff/apis/apps/v1/deployments?from=rv:100&to=rv:200&objects=true",
		"/history/diff/apis/apps/v1/deployments?from=9h",
		"/history/diff/api/v1/pods?from=rv:100&as=rows&fields=spec.nodeName&fields=status.phase",
		"/history/diff" + deployments + "?from=rv:100&to=rv:110&as=rows&fields=spec.replicas",
		"/history/diff" + deployments + "?from=rv:100",
		"/history/diff/apis/apps/v1/deployments/web?from=rv:100",
		"/history/diff" + deployments + "/web?from=rv:100",
		"/history/diff/api/v1/secrets?from=rv:100",
		"/story" + pods + "/a?since=2h",
		"/story" + deployments + "/web?since=59m&until=now&pretty=1",
		"/story/api/v1/nodes/n1",
		"/story/apis/apps/v1/deployments/web", // in no namespace
		"/history/export?from=2h&to=now&resource=pods&namespace=default&labelSelector=a&pseudonyms=true",
		"/history/export?from=2h",
		"/findings?at=10m&namespace=default&pretty=1",
		"/findings",
	} {
		d.ask(t, "/watchkeeper/v1"+path)
	}
	d.ask(t, "/watchkeeper/v1/multiwatch?watch=x")
	for _, prefix := range []string{"/api/v1", "/apis/apps/v1"} {
		for _, path := range []string{"/nodes", "/nodes/a", "/namespaces/default/pods", "/namespaces/default/pods/a"} {
			d.ask(t, "/at/10m"+prefix+path)
		}
	}
	d.convert(t)
	for path := range doc.Paths.Map() {
		if !d.hit[path] {
			t.Errorf("%s is described, and not tested", path)
		}
	}
	d.complete(t)
	if d.check(t, "/watchkeeper/v1/history", &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}, `{"resources":[]}`) == nil {
		t.Error("the check accepts any answer")
	}
}

// ask sends a GET for a path, and checks the request and the answer.
func (d *described) ask(t *testing.T, path string) {
	t.Helper()
	res := d.get(path)
	body := readAll(t, res)
	if err := d.check(t, path, res, body); err != nil {
		t.Errorf("%s: %s %.300s: %v", path, res.Status, body, err)
	}
	if res.StatusCode == http.StatusNotFound && strings.Contains(body, "there is nothing at") {
		t.Errorf("%s is described, and not served", path)
	}
}

// convert sends a workbook, and its file, and checks the requests and the answers.
func (d *described) convert(t *testing.T) {
	t.Helper()
	openapi3filter.RegisterBodyDecoder(wire.XLSXType, openapi3filter.FileBodyDecoder)
	const path = "/watchkeeper/v1/workbook"
	body := `{"tabs":[{"name":"pods","resource":{"group":"","version":"v1","resource":"pods"},"kind":"Pod","namespace":"","selector":"","columns":["spec.nodeName"],` +
		`"rows":[{"namespace":"a","name":"b","uid":"c","values":[null]},{"namespace":"","name":"","uid":"","values":null}],"cells":[{"cell":"D1","value":"x"},{"cell":"D2","formula":"=XLOOKUP(1,A1,A1)"}]}]}`
	for _, sent := range []string{"application/json", wire.XLSXType, "text/csv"} {
		want := map[bool]int{true: http.StatusUnsupportedMediaType, false: http.StatusOK}[sent == "text/csv"]
		body = d.post(t, path, sent, body, want)
	}
	const yaml = "/watchkeeper/v1/yaml"
	d.post(t, yaml, "application/yaml", "a: 0400", http.StatusOK)
	d.post(t, yaml, "application/yaml", "a: 1\n---\nb: 2", http.StatusBadRequest)
	d.post(t, yaml, "text/plain", "a: 1", http.StatusUnsupportedMediaType)
}

// post sends a text, checks the request and the answer, and returns it.
func (d *described) post(t *testing.T, path, sent, body string, want int) string {
	t.Helper()
	res := d.do(http.MethodPost, path, strings.NewReader(body), "Content-Type", sent)
	answer := readAll(t, res)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", sent)
	route, params, err := d.router.FindRoute(req)
	if err != nil {
		t.Fatal(err)
	}
	d.hit[route.Path] = true
	input := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(t.Context(), input); (err == nil) != (want != http.StatusUnsupportedMediaType) {
		t.Errorf("%s: the request: %v", sent, err)
	}
	if res.StatusCode != want {
		t.Errorf("%s: %s %.300s", sent, res.Status, answer)
	}
	if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: res.StatusCode, Header: res.Header, Body: io.NopCloser(strings.NewReader(answer)),
	}); err != nil {
		t.Errorf("%s: the answer: %v", sent, err)
	}
	return answer
}

// check compares a request and its answer with the description.
func (d *described) check(t *testing.T, path string, res *http.Response, body string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := d.router.FindRoute(req)
	if err != nil {
		return err
	}
	d.hit[route.Path] = true
	input := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
		return err
	}
	return openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: res.StatusCode, Header: res.Header, Body: io.NopCloser(strings.NewReader(body)),
	})
}

// complete checks that all paths and parameters are described.
func (d *described) complete(t *testing.T) {
	var got []string
	for _, p := range d.doc.Paths.Find(accessapi.Path).Get.Parameters {
		got = append(got, p.Value.Name)
	}
	if !slices.Equal(got, accessapi.Parameters()) {
		t.Errorf("%s has the parameters %q, and %q are described", accessapi.Path, accessapi.Parameters(), got)
	}
	for name, parameters := range historyapi.Parameters() {
		found := 0
		for path, item := range d.doc.Paths.Map() {
			rest, ok := strings.CutPrefix(path, name)
			if !ok || rest != "" && !strings.HasPrefix(rest, "/api") || name == historyapi.Path && rest != "" {
				continue
			}
			found++
			var got []string
			for _, p := range item.Get.Parameters {
				if p.Value.In == "query" && p.Value.Name != "pretty" {
					got = append(got, p.Value.Name)
				}
			}
			slices.Sort(got)
			slices.Sort(parameters)
			if !slices.Equal(got, parameters) {
				t.Errorf("%s has the parameters %q, and %q are described", path, parameters, got)
			}
		}
		if found == 0 {
			t.Errorf("%s is not described", name)
		}
	}
}
