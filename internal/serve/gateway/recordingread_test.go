// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

// discoveryOfPods is what a recording of Pods has of discovery.
var discoveryOfPods = []recording.Document{{Path: "/api/v1", Type: "application/json", Body: json.RawMessage(
	`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`)}}

// newRecordingRig returns a gateway that serves the story of a cluster as a recording.
func newRecordingRig(t *testing.T, only string) *rig {
	t.Helper()
	c := pasttest.NewCluster(t)
	c.Fill()
	return newRigOf(t, c, only)
}

func newRigOf(t *testing.T, c *pasttest.Cluster, only string) *rig {
	t.Helper()
	return newRigFor(t, &rest.Config{Host: "http://recording", Transport: recording.NewUpstream(c.Store, discoveryOfPods)},
		rigOptions{gateway: gateway.Options{Recording: c.Store, RecordingScope: &recording.Scope{Namespace: only}, RecordingSlack: 2 * time.Minute}})
}

// TestRecordingReads: a recording answers what an API server would answer, with any
// credentials, and says what is wrong with a request. It denies nothing that it has.
func TestRecordingReads(t *testing.T) {
	r := newRecordingRig(t, "")
	for path, want := range map[string]string{
		"/api/v1/pods":                                     `"name":"b"`,
		"/api/v1/pods?timeout=5s":                          `"name":"b"`,
		"/api/v1/pods?timeout=5s&limit=500":                `"name":"b"`,
		"/api/v1/namespaces/kube-system/pods/b?timeout=5s": `"name":"b"`,
		"/at/now/api/v1/pods?timeout=5s":                   `"name":"b"`,
		"/api/v1/namespaces/kube-system/pods?resourceVersion=106&resourceVersionMatch=Exact": `"name":"b"`,
	} {
		for _, credentials := range [][]string{nil, {"Authorization", "Bearer x"}} {
			res := r.get(path, credentials...)
			if body := readAll(t, res); res.StatusCode != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s %v: %d %s", path, credentials, res.StatusCode, body)
			}
		}
	}
	for query, want := range map[string]struct {
		code    int
		message string
	}{
		"timeout=abc":              {400, `timeout: Invalid value: "abc"`},
		"limit=abc":                {400, `limit: Invalid value: "abc"`},
		"resourceVersion=abc":      {400, `resourceVersion: Invalid value: "abc"`},
		"labelSelector=app+in":     {400, `labelSelector: Invalid value: "app in"`},
		"fieldSelector=spec.x%3Da": {400, "field label not supported: spec.x"},
		"resourceVersion=5&continue=" + "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhXHUwMDAwIn0": {400, "specifying resource version is not allowed when using continue"},
		"watch=1&resourceVersion=abc":      {400, `resourceVersion: Invalid value: "abc"`},
		"watch=1&timeoutSeconds=abc":       {400, `timeoutSeconds: Invalid value: "abc"`},
		"watch=1&fieldSelector=spec.x%3Da": {400, "field label not supported: spec.x"},
		"watch=1&sendInitialEvents=true":   {422, "resourceVersionMatch: Forbidden"},
	} {
		for _, at := range []string{"", "/at/now"} {
			path := at + "/api/v1/pods?" + query
			if s := statusOf(t, r.get(path)); int(s.Code) != want.code || !strings.Contains(s.Message, want.message) {
				t.Errorf("%s: %d %s", path, s.Code, s.Message)
			}
		}
	}
}

// TestRecordingOfNamespace: an empty answer about another namespace would say that there
// was nothing in it.
func TestRecordingOfNamespace(t *testing.T) {
	r := newRecordingRig(t, "kube-system")
	const history = "/watchkeeper/v1/history"
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/namespaces/kube-system/pods", "/at/now/api/v1/pods", "/at/now/api/v1/namespaces/kube-system/pods",
		history, history + "/changes?namespace=kube-system", history + "/changes", history + "/diff/api/v1/namespaces/kube-system/pods?from=10s&to=now",
	} {
		if res := r.get(path); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, res.StatusCode, readAll(t, res))
		}
	}
	for _, path := range []string{
		"/api/v1/namespaces/other/pods", "/api/v1/namespaces/other/pods?watch=1", "/api/v1/namespaces/other/pods/a",
		"/at/now/api/v1/namespaces/other/pods", "/at/now/api/v1/namespaces/other/pods?watch=1", "/at/now/api/v1/namespaces/other/pods/a",
		history + "/changes?namespace=other", history + "/counts?namespace=other", history + "/export?namespace=other",
		history + "/diff/api/v1/namespaces/other/pods?from=1h&to=now", history + "/versions/api/v1/namespaces/other/pods/a",
	} {
		if s := statusOf(t, r.get(path)); s.Code != http.StatusNotFound || s.Message != "this recording has only namespace kube-system" {
			t.Errorf("%s: %d %s", path, s.Code, s.Message)
		}
	}
	// kubectl asks for the namespace of an object that is not found, and prints only a 404.
	for path, want := range map[string]string{
		"/api/v1/namespaces/kube-system/pods/nope": `404 pods "nope" not found`,
		"/api/v1/namespaces/kube-system":           "403 this recording has what is in namespace kube-system, and no namespaces",
	} {
		for _, at := range []string{"", "/at/now"} {
			if s := statusOf(t, r.get(at+path)); fmt.Sprint(s.Code, " ", s.Message) != want {
				t.Errorf("%s: %d %s, want %s", at+path, s.Code, s.Message, want)
			}
		}
	}
}

// TestShorterRecord: of a resource that was not observed to the end of a recording, nothing is
// known after the end of its record: neither a state, nor that nothing changed.
func TestShorterRecord(t *testing.T) {
	c := pasttest.NewCluster(t)
	c.Fill()
	pods := c.Store.Streams(pasttest.Pods)[0].Head().At
	c.Events(c.Store.Streams(pasttest.Deployments)[0], 400)
	r := newRigOf(t, c, "")
	res := r.get("/api/v1/pods")
	if body, warning := readAll(t, res), res.Header.Get("Warning"); res.StatusCode != http.StatusOK || !strings.Contains(warning, "pods: the last recorded state, of ") {
		t.Errorf("%d %s, warning %q", res.StatusCode, body, warning)
	}
	until := "pods are recorded until " + past.Stamp(pods)
	for _, at := range []string{"now", past.Stamp(c.At(250))} {
		if s := statusOf(t, r.get("/at/"+at+"/api/v1/pods")); s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, until) {
			t.Errorf("at %s: %d %s", at, s.Code, s.Message)
		}
	}
	if res := r.get("/at/" + past.Stamp(pods) + "/api/v1/pods"); res.StatusCode != http.StatusOK {
		t.Errorf("at its end: %d %s", res.StatusCode, readAll(t, res))
	}
	var changes api.Changes
	res = r.get("/watchkeeper/v1/history/changes?resource=pods&from=60s&to=now")
	if err := json.Unmarshal([]byte(readAll(t, res)), &changes); err != nil || len(changes.Unobserved) != 1 || changes.Unobserved[0].Reason != api.RecordingStopped || !changes.Unobserved[0].From.Equal(pods) {
		t.Errorf("%v %+v", err, changes)
	}
	var found api.Findings
	res = r.get("/watchkeeper/v1/findings")
	if err := json.Unmarshal([]byte(readAll(t, res)), &found); err != nil || len(found.Items) == 0 || found.Items[0].Rule != findings.Unobserved || !strings.Contains(found.Items[0].Title, "not observed: nodes, pods") {
		t.Errorf("%v %+v", err, found)
	}
}
