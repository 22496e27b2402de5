// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestStoryLog: the last line that a crashed container wrote is in the story if the caller may
// read it, and if the story reaches the present.
func TestStoryLog(t *testing.T) {
	var asked []string
	answers := fakeapi.New(fakeapi.Options{Allow: func(*fakeapi.Request, authorizationv1.ResourceAttributes) bool { return true }})
	f := newFixtureAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			answers.ServeHTTP(w, r)
			return
		}
		asked = append(asked, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") == "Bearer denied" {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("the last words\xff\n"))
	}))
	pods := f.Stream(pasttest.Pods, 100, 0)
	f.Event(pods, kube.Added, "default/web", 101, `{kind: Pod, apiVersion: v1, status: {phase: Running, containerStatuses: [{name: c, state: {running: {}}}]}}`)
	f.Event(pods, kube.Modified, "default/web", 102, `{kind: Pod, apiVersion: v1, status: {phase: Running, containerStatuses: [{name: c, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {reason: Error, exitCode: 3}}}]}}`)
	nodes := f.Stream(pasttest.Nodes, 100, 0)
	f.Event(nodes, kube.Added, "n1", 110, `{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: Unknown}]}}`)
	for i, ready := range []string{"True", "False"} {
		f.Event(pods, kube.Modified, "default/web", uint64(110+i), fmt.Sprintf(`{kind: Pod, apiVersion: v1, spec: {nodeName: n1}, status: {phase: Running, conditions: [{type: Ready, status: %q}], containerStatuses: [{name: c, restartCount: 1, state: {running: {}}, lastState: {terminated: {reason: Error, exitCode: 3, finishedAt: "2020-01-01T00:00:00Z"}}}]}}`, ready))
	}
	f.Events(nodes, 200)
	f.Events(pods, 200)
	const path = historyapi.StoryPath + "/api/v1/namespaces/default/pods/web?since=2h"
	says := func(query string, headers ...string) (line string) {
		t.Helper()
		asked = nil
		for _, e := range decoded[api.Story](t, f.story(path+query, headers...)).Episodes {
			for _, cause := range e.Causes {
				if cause.Field == "log of c" {
					line = cause.Text
				}
			}
		}
		return line
	}
	const log = "/api/v1/namespaces/default/pods/web/log?container=c&previous=true&tailLines=1 Bearer "
	if got := says(""); got != "the last words\uFFFD" || !slices.Equal(asked, []string{log + "gateway"}) {
		t.Errorf("the gateway's: %q, asked %q", got, asked)
	}
	if got := says("", "Authorization", "Bearer jane"); got == "" || !slices.Equal(asked, []string{log + "jane"}) {
		t.Errorf("a caller's: %q, asked %q", got, asked)
	}
	if got := says("", "Authorization", "Bearer denied"); got != "" || len(asked) != 1 {
		t.Errorf("a caller's who may not read it: %q, asked %q", got, asked)
	}
	for _, e := range decoded[api.Story](t, f.story(path)).Episodes {
		if logs := slices.ContainsFunc(e.Causes, func(c api.Cause) bool { return c.Field == "log of c" }); logs != (e.Kind == api.EpisodeFailure) {
			t.Errorf("%s: causes %+v", e.Title, e.Causes)
		}
	}
	if got := says("&until=10m"); got != "" || len(asked) != 0 {
		t.Errorf("of the past: %q, asked %q", got, asked)
	}
	f.handler.Recording = func() historyapi.RecordingState { return historyapi.RecordingState{State: api.RecordingEnded} }
	if got := says(""); got != "" || len(asked) != 0 {
		t.Errorf("of a recording: %q, asked %q", got, asked)
	}
}
