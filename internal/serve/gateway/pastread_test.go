// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
)

// printed returns an observed Pod with its row and columns.
func printed(o *scan.Object, cells, columns string) *scan.Object {
	return o.WithRow(`"cells":`+cells, columns)
}

const (
	oldColumns = `[{"name":"Name","type":"string"},{"name":"Status","type":"string"},{"name":"Age","type":"string"}]`
	newColumns = `[{"name":"Name","type":"string"},{"name":"Node","type":"string"},{"name":"Age","type":"string"}]`
)

func created(namespace, name string, rv uint64, at time.Time) *scan.Object {
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","creationTimestamp":%q}}`,
		name, namespace, rv, at.UTC().Format(time.RFC3339)))
	if err != nil {
		panic(err)
	}
	return o
}

// newPastBench returns a bench whose timeline begins at RV 100, with a past from RV 10
// on: a in d is modified at 20, b deleted at 30, c in e added at 40; between 50 and 60
// there is a gap.
func newPastBench(t *testing.T) (*bench, *pasttest.Record) {
	t.Helper()
	h, list := pasttest.NewStory(t)
	bench := newBench(t, list)
	bench.remember(h)
	return bench, h
}

func at(rv uint64) string {
	return "/at/" + url.PathEscape(pasttest.TimeOf(rv).UTC().Format(time.RFC3339))
}

// briefList returns the RV of a list, and the key and RV of each item.
func briefList(t *testing.T, body string) string {
	t.Helper()
	list, err := scan.ParseList(body, "Pod")
	if err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	all := []string{fmt.Sprint(list.RV)}
	for _, o := range list.Items {
		all = append(all, fmt.Sprintf("%s@%d", o.Key, o.RV))
	}
	return strings.Join(all, " ")
}

func TestPastList(t *testing.T) {
	b, _ := newPastBench(t)
	ordinary := "/api/v1/pods?resourceVersionMatch=Exact&resourceVersion="
	for path, want := range map[string]string{
		// At a moment.
		at(10) + "/api/v1/pods": "10 d/a@4 d/b@5",
		at(19) + "/api/v1/pods": "10 d/a@4 d/b@5",
		at(20) + "/api/v1/pods": "20 d/a@20 d/b@5",
		at(35) + "/api/v1/pods": "30 d/a@20",
		at(70) + "/api/v1/pods": "60 d/a@60 e/c@40",
		"/at/" + pasttest.TimeOf(20).Add(-time.Millisecond).UTC().Format(time.RFC3339Nano) + "/api/v1/pods": "10 d/a@4 d/b@5",
		"/at/" + pasttest.TimeOf(20).In(time.FixedZone("", 7200)).Format(time.RFC3339) + "/api/v1/pods":     "20 d/a@20 d/b@5",
		"/at/rv:25/api/v1/pods":                                              "25 d/a@20 d/b@5",
		"/at/rv:100/api/v1/pods":                                             "100 d/a@60 e/c@40",
		"/at/10m/api/v1/pods":                                                "100 d/a@60 e/c@40",
		"/at/now/api/v1/pods":                                                "100 d/a@60 e/c@40",
		at(45) + "/api/v1/namespaces/e/pods":                                 "40 e/c@40",
		at(45) + "/api/v1/namespaces/none/pods":                              "40",
		at(45) + "/api/v1/pods?labelSelector=color%3Dred":                    "40 e/c@40",
		at(10) + "/api/v1/pods?labelSelector=color%3Dred":                    "10 d/a@4",
		at(45) + "/api/v1/pods?fieldSelector=metadata.namespace%3De":         "40 e/c@40",
		at(45) + "/api/v1/pods?fieldSelector=metadata.name%3Da":              "40 d/a@20",
		at(45) + "/api/v1/namespaces/d/pods?fieldSelector=metadata.name%3Da": "40 d/a@20",
		// At an RV before the moment, or not older than one.
		at(45) + "/api/v1/pods?resourceVersion=0":                                 "40 d/a@20 e/c@40",
		at(45) + "/api/v1/pods?resourceVersion=20":                                "40 d/a@20 e/c@40",
		at(45) + "/api/v1/pods?resourceVersion=0&limit=1":                         "40 d/a@20 e/c@40",
		at(45) + "/api/v1/pods?resourceVersion=20&resourceVersionMatch=Exact":     "20 d/a@20 d/b@5",
		at(45) + "/api/v1/pods?resourceVersion=20&limit=1":                        "20 d/a@20",
		at(45) + "/api/v1/pods?limit=1":                                           "40 d/a@20",
		at(45) + "/api/v1/pods?continue=" + request.EncodeContinue(40, "d/a", ""): "40 e/c@40",
		at(45) + "/api/v1/pods?continue=" + request.EncodeContinue(10, "d/a", ""): "10 d/b@5",
		// On the ordinary paths.
		ordinary + "10": "10 d/a@4 d/b@5",
		ordinary + "29": "29 d/a@20 d/b@5",
		ordinary + "99": "99 d/a@60 e/c@40",
		"/api/v1/pods?limit=1&resourceVersion=20":                                      "20 d/a@20",
		"/api/v1/pods?continue=" + request.EncodeContinue(20, "d/a", ""):               "20 d/b@5",
		"/api/v1/namespaces/d/pods?continue=" + request.EncodeContinue(20, "d/a", "d"): "20 d/b@5",
		ordinary + "45&labelSelector=color%3Dblue":                                     "45 d/a@20",
	} {
		code, body := b.get(path)
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		} else if got := briefList(t, body); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{
		at(45) + "/api/v1/namespaces/d/pods/a":                    `"resourceVersion":"20"`,
		at(15) + "/api/v1/namespaces/d/pods/a":                    `"resourceVersion":"4"`,
		at(15) + "/api/v1/namespaces/d/pods/a?resourceVersion=10": `"resourceVersion":"4"`,
		at(45) + "/api/v1/namespaces/d/pods/a?timeout=5s":         `"resourceVersion":"20"`,
		at(45) + "/api/v1/pods?timeout=0&limit=1":                 `"continue"`,
		at(45) + "/api/v1/pods?limit=1":                           `"continue":"` + request.EncodeContinue(40, "d/a", "") + `","remainingItemCount":1}`,
		at(45) + "/api/v1/pods?limit=1&labelSelector=color":       `"continue":"` + request.EncodeContinue(40, "d/a", "") + `"}`,
		at(15) + "/api/v1/namespaces/d/pods?limit=1":              `"remainingItemCount":1}`,
		"/api/v1/pods?limit=1&resourceVersion=20":                 `"remainingItemCount":1}`,
		at(45) + "/api/v1/pods?fields=spec.x":                     `"items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"d","resourceVersion":"20"}},`,
	} {
		if code, body := b.get(path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// TestPastRefusals: the Status of a refusal says what is recorded.
func TestPastRefusals(t *testing.T) {
	b, h := newPastBench(t)
	span := "pods are recorded from 10 (" + past.Stamp(pasttest.TimeOf(10)) + ") to 100 (" + past.Stamp(pasttest.TimeOf(100)) + ")"
	gap := "pods were not observed between 50 (" + past.Stamp(pasttest.TimeOf(50)) + ") and 60 (" + past.Stamp(pasttest.TimeOf(60)) + "): these two are the nearest moments that are known"
	for _, end := range []uint64{50, 60} { // as the refusal says
		if code, body := b.get(at(end) + "/api/v1/pods"); code != http.StatusOK {
			t.Errorf("at %d: %d %s", end, code, body)
		}
	}
	for path, want := range map[string]string{
		at(9) + "/api/v1/pods":       `410 Expired before the recorded history: ` + past.Stamp(pasttest.TimeOf(9)) + "; " + span,
		"/at/2d/api/v1/pods":         "410 Expired before the recorded history: *; " + span,
		"/at/rv:9/api/v1/pods":       "410 Expired before the recorded history: 9; " + span,
		"/at/rv:101/api/v1/pods":     "400 BadRequest after the recorded history: 101; " + span,
		at(2*86400) + "/api/v1/pods": "400 BadRequest after the recorded history: " + past.Stamp(pasttest.TimeOf(2*86400)) + "; " + span,
		at(55) + "/api/v1/pods":      "410 Expired in a gap of the recorded history: " + past.Stamp(pasttest.TimeOf(55)) + "; " + gap,
		"/at/rv:55/api/v1/pods":      "410 Expired in a gap of the recorded history: 55; " + gap,
		at(45) + "/api/v1/pods?resourceVersion=9&resourceVersionMatch=Exact":                         "410 Expired before the recorded history: 9; " + span,
		at(45) + "/api/v1/pods?resourceVersion=41":                                                   "504 Timeout Too large resource version: 41, current: 40",
		at(45) + "/api/v1/pods?resourceVersion=41&resourceVersionMatch=Exact":                        "504 Timeout Too large resource version: 41, current: 40",
		at(45) + "/api/v1/pods?continue=" + request.EncodeContinue(41, "d/a", ""):                    "504 Timeout Too large resource version: 41, current: 40",
		at(45) + "/api/v1/pods?continue=x":                                                           "400 BadRequest continue: *",
		at(45) + "/api/v1/pods?resourceVersion=x":                                                    `400 BadRequest resourceVersion: Invalid value: "x": strconv.ParseUint: *`,
		at(45) + "/api/v1/namespaces/d/pods/a?resourceVersion=x":                                     `400 BadRequest resourceVersion: Invalid value: "x": *`,
		at(45) + "/api/v1/pods?limit=abc":                                                            `400 BadRequest limit: Invalid value: "abc": strconv.ParseInt: parsing "abc": invalid syntax`,
		at(45) + "/api/v1/pods?watch=1&timeoutSeconds=x":                                             `400 BadRequest timeoutSeconds: Invalid value: "x": strconv.ParseInt: *`,
		at(45) + "/api/v1/pods?resourceVersionMatch=Exact":                                           `422 Invalid ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: *`,
		at(45) + "/api/v1/pods?sendInitialEvents=true":                                               `422 Invalid ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: *`,
		at(45) + "/api/v1/pods?timeout=abc":                                                          `400 BadRequest timeout: Invalid value: "abc": time: invalid duration "abc"`,
		at(45) + "/api/v1/namespaces/d/pods/a?timeout=5":                                             `400 BadRequest timeout: Invalid value: "5": time: missing unit in duration "5"`,
		at(45) + "/api/v1/pods?timeout=1ns":                                                          "504 Timeout *",
		at(45) + "/api/v1/pods?export=true":                                                          `400 BadRequest export: Invalid value: "true": *`,
		at(45) + "/api/v1/pods?resourceVersion=20&continue=" + request.EncodeContinue(40, "d/a", ""): "400 BadRequest specifying resource version is not allowed when using continue",

		at(45) + "/api/v1/pods?fieldSelector=spec.x%3Da":          "400 BadRequest fieldSelector: field label not supported: spec.x",
		at(45) + "/api/v1/pods?fieldSelector=a":                   `400 BadRequest fieldSelector: Invalid value: "a": invalid selector: *`,
		at(45) + "/api/v1/pods?labelSelector=a%3Db%3Dc":           `400 BadRequest labelSelector: Invalid value: "a=b=c": *`,
		at(45) + "/api/v1/pods?speed=2":                           "400 BadRequest speed: only a watch *",
		at(45) + "/api/v1/pods?watch=1&speed=0":                   `400 BadRequest speed: "0" is not a number above 0 and up to 10000`,
		at(45) + "/api/v1/pods?watch=1&resourceVersion=9":         "410 Expired before *",
		at(45) + "/api/v1/pods?watch=1&resourceVersion=55":        "410 Expired in a gap *",
		at(45) + "/api/v1/namespaces/d/pods/none":                 `404 NotFound pods "none" not found`,
		at(45) + "/api/v1/namespaces/d/pods/a?resourceVersion=41": "504 Timeout Too large *",
		at(45) + "/api/v1/namespaces/d/pods/a/log":                "404 NotFound nothing of the past is served at /api/v1/namespaces/d/pods/a/log: *",
		at(45) + "/api/v1/pods/a":                                 "404 NotFound nothing of the past *",
		at(45) + "/metrics":                                       "404 NotFound nothing of the past *",
		at(45) + "/api/v1/secrets":                                "404 NotFound secrets are not recorded: add --record-secrets to the flags of watchkeeper serve, *",
		at(45) + "/apis/apps/v1/deployments":                      "404 NotFound deployments.apps are not recorded: add them to --record of watchkeeper serve, as in --record=core,deployments.apps, *",
		at(45) + "/api/v2/pods":                                   "404 NotFound pods are not recorded as v2, but as v1",
		"/api/v1/pods?watch=1&speed=2":                            "400 BadRequest speed: a replay begins with a resourceVersion, or at a moment, as in /at/10m/api/v1/pods",
		"/api/v1/pods?watch=1&speed=2&resourceVersion=9":          "410 Expired before *",
	} {
		code, body := b.get(path)
		s := statusOfBody(t, body)
		got := fmt.Sprint(code, " ", s.Reason, " ", s.Message)
		if !matches(got, want) {
			t.Errorf("%s\n got %s\nwant %s", path, got, want)
		}
	}

	h.OnSync = func() error { return errors.New("the disk is full") }
	want := "503 ServiceUnavailable not recorded: pods are recorded until " + past.Stamp(pasttest.TimeOf(100)) + ": the disk is full"
	code, body := b.get("/at/10m/api/v1/pods")
	if s := statusOfBody(t, body); fmt.Sprint(code, " ", s.Reason, " ", s.Message) != want {
		t.Errorf("%d %s", code, body)
	}
	// The present is that of the cache, for what fails now.
	if snapshot := b.reads.present(t.Context(), pasttest.Pods); snapshot == nil || snapshot.Len() == 0 {
		t.Errorf("the cache: %v", snapshot)
	}
	if code, body = b.get(at(45) + "/api/v1/pods"); code != http.StatusOK {
		t.Errorf("an earlier moment: %d %s", code, body)
	}

	b.denied = map[string]bool{"list": true}
	b.remember(h) // this drops the decisions
	if code, body = b.get(at(45) + "/api/v1/pods"); code != http.StatusForbidden {
		t.Errorf("the gateway may not list: %d %s", code, body)
	}
	b.reads.past = nil
	if code, body = b.get(at(45) + "/api/v1/pods"); code != http.StatusNotFound || !strings.Contains(body, "--data-dir") {
		t.Errorf("without a history: %d %s", code, body)
	}
}

// TestPastVersions: a moment at which another API version was recorded is served in the forms that
// have no objects of a version.
func TestPastVersions(t *testing.T) {
	h := pasttest.New(t, podList(10, pod("d", "a", 4)))
	beta := kube.Resource{Version: "v1beta1", Name: "pods"}
	for i, id := range []kube.Resource{beta, pasttest.Pods} {
		st, err := h.History.NewEpoch(id)
		list := podList(uint64(20+10*i), pod("d", "a", 4))
		if err == nil {
			err = st.Begin(history.Form{ListKind: list.Kind, Item: list.EmptyItem()}, slices.Values(list.Items), list.RV, pasttest.TimeOf(list.RV))
		}
		if err == nil {
			err = st.Append(nil, list.RV+5, pasttest.TimeOf(list.RV+5))
		}
		if err != nil {
			t.Fatal(err)
		}
		h.Stream = st
	}
	b := newBench(t, podList(35, pod("d", "a", 4)))
	b.remember(h)
	refusal := func(as, asked string) string {
		return fmt.Sprintf("pods are recorded as %s at that moment, not as %s: read /api/%[1]s/pods, or a Table", as, asked)
	}
	for path, want := range map[string]string{
		at(10) + "/api/v1/pods":                      `"name":"a"`,
		at(22) + "/api/v1/pods":                      refusal("v1beta1", "v1"),
		at(22) + "/api/v1/namespaces/d/pods/a":       refusal("v1beta1", "v1"),
		at(22) + "/api/v1/pods?watch=1":              refusal("v1beta1", "v1"),
		at(22) + "/api/v1/pods?fields=metadata.name": `"name":"a"`,
		at(22) + "/api/v1beta1/pods":                 `"name":"a"`,
		at(27) + "/api/v1/pods":                      "pods were not observed between 25 (",
		"/at/rv:27/api/v1/pods":                      "in a gap of the recorded history: 27; pods were not observed between 25 (",
		"/at/rv:17/api/v1/pods":                      "in a gap of the recorded history: 17; pods were not observed between 10 (",
		"/at/rv:7/api/v1/pods":                       "before the recorded history: 7; pods are recorded from 10 (",
		at(32) + "/api/v1/pods":                      `"name":"a"`,
		at(32) + "/api/v1beta1/pods":                 refusal("v1", "v1beta1"),
		"/at/now/api/v1/pods":                        `"name":"a"`,
		"/at/now/api/v1beta1/pods":                   refusal("v1", "v1beta1"),
		"/at/now/api/v2/pods":                        "pods are not recorded as v2, but as v1, v1beta1",
	} {
		if _, body := b.get(path); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
	for accept, want := range map[string]bool{
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": true, "application/json": false,
	} {
		if code, _, body := b.accept(at(22)+"/api/v1/pods", accept); (code == http.StatusOK) != want {
			t.Errorf("%s: %d %s", accept, code, body)
		}
	}
}

func statusOfBody(t *testing.T, body string) (s metav1.Status) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &s); err != nil || s.Kind != "Status" {
		t.Errorf("not a Status: %s", body)
	}
	return s
}

// matches reports whether got matches the pattern want, where * stands for any text.
func matches(got, want string) bool {
	for i, part := range strings.Split(want, "*") {
		at := strings.Index(got, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		got = got[at+len(part):]
	}
	return got == "" || strings.HasSuffix(want, "*")
}

// TestPastTable: ages are as of the moment, and rows with older columns are aligned to
// those of the newest row.
func TestPastTable(t *testing.T) {
	born := pasttest.TimeOf(10).Add(-time.Hour)
	h := pasttest.New(t, podList(10,
		printed(created("d", "a", 4, born), `["a","Running","5m"]`, oldColumns),
		printed(created("d", "b", 5, born), `["b","Pending","5m"]`, oldColumns)))
	h.Append(t, history.Event{Type: kube.Modified, Object: printed(created("d", "a", 30, born), `["a","node-1","5m"]`, newColumns)})
	b := newBench(t, podList(100))
	b.remember(h)
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for path, want := range map[string]string{
		at(10) + "/api/v1/pods": `"cells":["a","Running","60m"] "cells":["b","Pending","60m"]`,
		at(70) + "/api/v1/pods": `"cells":["a","node-1","61m"] "cells":["b",null,"61m"]`,
		"/at/rv:10/api/v1/pods": `"cells":["a","Running","60m"] "cells":["b","Pending","60m"]`,
		at(70) + "/api/v1/pods?resourceVersion=10&resourceVersionMatch=Exact": `"cells":["a","Running","60m"] "cells":["b","Pending","60m"]`,
		at(70) + "/api/v1/namespaces/d/pods/b":                                `"cells":["b","Pending","61m"]`,
	} {
		code, body := b.get(path, "Accept", table)
		if got := strings.Join(cellsIn(body), " "); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	lines, stop := b.watchAt(at(10)+"/api/v1/pods?watch=1&timeoutSeconds=60", "Accept", table)
	defer stop()
	for _, want := range []string{`"cells":["a","Running","60m"]`, `"cells":["b","Pending","60m"]`, `"cells":["a",null,"60m"]`} {
		if got := strings.Join(cellsIn(<-lines), " "); got != want {
			t.Errorf("watch: %s, want %s", got, want)
		}
	}

	// An object without a row is served as plain JSON if the client accepts it.
	h.Append(t, history.Event{Type: kube.Added, Object: created("d", "c", 80, born)})
	if code, _ := b.get("/at/rv:80/api/v1/pods", "Accept", table); code != http.StatusNotAcceptable {
		t.Errorf("an object without a row: %d", code)
	}
	if code, body := b.get("/at/rv:80/api/v1/pods", "Accept", table+",application/json"); code != http.StatusOK || !strings.Contains(body, "PodList") {
		t.Errorf("an object without a row: %d %s", code, body)
	}
}

// cellsIn returns the cells of all rows.
func cellsIn(body string) (all []string) {
	for {
		_, rest, ok := strings.Cut(body, `"cells":`)
		if !ok {
			return all
		}
		cells, rest, _ := strings.Cut(rest, "]")
		all = append(all, `"cells":`+cells+"]")
		body = rest
	}
}

// TestPastCallerCredentials: a caller with credentials reads what it may read itself,
// whatever the gateway may read (T8).
func TestPastCallerCredentials(t *testing.T) {
	b, _ := newPastBench(t)
	b.denied = map[string]bool{"list": true}
	for _, test := range []struct {
		path, token string
		code        int
	}{
		{"/api/v1/namespaces/d/pods", "", http.StatusForbidden}, // the gateway's own
		{"/api/v1/namespaces/d/pods", "list d", http.StatusOK},
		{"/api/v1/namespaces/e/pods", "list d", http.StatusForbidden},
		{"/api/v1/pods", "list d", http.StatusForbidden},
		{"/api/v1/pods", "list *", http.StatusOK},
		{"/api/v1/namespaces/d/pods/a", "list d", http.StatusForbidden},
		{"/api/v1/namespaces/d/pods/a", "get d", http.StatusOK},
	} {
		var headers []string
		if test.token != "" {
			headers = []string{"Authorization", "Bearer " + test.token}
		}
		if code, body := b.get(at(45)+test.path, headers...); code != test.code {
			t.Errorf("%s for %q: %d %s", test.path, test.token, code, body)
		}
	}
}
