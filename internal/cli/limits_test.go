// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// A recorded is a gateway with a history, and its API server.
type recorded struct {
	*pasttest.Cluster
	up     *upstream.Server
	down   atomic.Bool  // the API server does not answer
	caller atomic.Value // whose token all requests bear, a string
}

// newRecorded serves a history of Pods, Deployments and Namespaces, observed in the seconds 0 to
// 200, and since 300.
func newRecorded(t *testing.T) *recorded {
	t.Helper()
	r := &recorded{Cluster: pasttest.NewCluster(t)}
	for _, id := range []kube.Resource{pasttest.Pods, pasttest.Deployments, {Version: "v1", Name: "namespaces"}} {
		key, object := kube.Key("default/web"), `{kind: Pod, apiVersion: v1, status: {phase: Running}}`
		switch id.Name {
		case "deployments":
			object = `{kind: Deployment, apiVersion: apps/v1}`
		case "namespaces":
			key, object = "default", `{kind: Namespace, apiVersion: v1}`
		}
		st := r.Stream(id, 100, 0, pasttest.Thing(t, key, 90, object))
		r.Events(st, 300)
		if err := st.AppendGap(nil, 400, r.At(300)); err != nil {
			t.Fatal(err)
		}
		r.Events(st, 500)
	}
	apiserver := fakeapi.New(fakeapi.Options{Allow: func(req *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
		return req.Header.Get("Authorization") == "Bearer gateway" || a.Resource == "pods" && a.Namespace == "default"
	}})
	network := fakeapi.NewNetwork(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.down.Load() {
			panic(http.ErrAbortHandler)
		}
		apiserver.ServeHTTP(w, req)
	}))
	up, err := upstream.New(&rest.Config{Host: "http://apiserver", Dial: network.Dial, BearerToken: "gateway"}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.up = up
	background := upstream.NewBackground()
	p := past.New(&pasttest.Record{History: r.Store}, background, slog.New(slog.DiscardHandler))
	history := historyapi.New(historyapi.Handler{
		Past: p, Access: access.NewPast(up, p, background), Upstream: up,
		Recording: func() historyapi.RecordingState { return historyapi.RecordingState{State: api.RecordingOn} },
		Filter:    func(*http.Request) *metav1.Status { return nil },
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if token, _ := r.caller.Load().(string); token != "" {
			req.Header.Set("Authorization", token)
		}
		if strings.HasPrefix(req.URL.Path, "/watchkeeper/") {
			history.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		more := `"resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list"]},{"name":"namespaces","singularName":"namespace","kind":"Namespace","verbs":["list"]},`
		fmt.Fprint(w, strings.Replace(discoveryAnswers[req.URL.Path], `"resources":[`, more, 1))
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		background.Stop()
		up.Close()
		network.Close()
	})
	t.Setenv("WATCHKEEPER_SERVER", server.URL)
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	return r
}

// TestLimitsNamed: what a command cannot know, it names. If that is all, it does not say that
// nothing failed or changed, and does not succeed; if it is a part, that is limited to the rest.
func TestLimitsNamed(t *testing.T) {
	r := newRecorded(t)
	second := func(n float64) string { return r.At(n).UTC().Format(time.RFC3339) }
	commands := func(what, object, from, to string, more ...string) (all [][]string) {
		for _, line := range []string{
			"diagnose --at " + from, "story " + object + " --since " + from + " --until " + to, "history " + object + " --since " + from + " --until " + to,
			"changes --since " + from + " --until " + to, "changes " + what + " --since " + from + " --until " + to,
			"diff --from " + from + " --to " + to, "diff " + what + " --from " + from + " --to " + to, "diff " + object + " --from " + from + " --to " + to,
		} {
			all = append(all, append(append(strings.Fields(line), "--utc"), more...))
		}
		return all
	}
	calm := regexp.MustCompile(`nothing fails|nothing has changed|has not changed|no changes|no observed changes|no differences`)
	check := func(kind, limit string, some bool, lines [][]string) {
		t.Helper()
		for _, line := range lines {
			out, errs, code := run(line...)
			text := fmt.Sprintf("%s: watchkeeper %s: exit code %d\n%s%s", kind, strings.Join(line, " "), code, out, errs)
			if !regexp.MustCompile(limit).MatchString(out + errs) {
				t.Errorf("%sdoes not say %q", text, limit)
			}
			if !some && (calm.MatchString(out+errs) || code == 0) {
				t.Errorf("%snothing is known", text)
			}
		}
	}
	check("before the record", `before`, false, commands("pods", "pods/web", second(-100), second(-50)))
	check("in a gap", `not observed between|not observed from`, false, commands("pods", "pods/web", second(220), second(280)))
	check("not recorded", `not recorded`, true, commands("configmaps", "configmaps/a", second(310), second(350)))
	check("no such namespace", `nothing is recorded|did not exist`, false, commands("pods", "pods/web", second(310), second(350), "-n", "nosuch"))
	r.caller.Store("Bearer somebody")
	check("a caller who may read some", `may not`, true, commands("deployments", "deployments/web", second(310), second(350)))
	r.caller.Store("")
	r.down.Store(true)
	if err := r.up.Check(t.Context()); err == nil {
		t.Fatal("the API server answers")
	}
	time.Sleep(20 * time.Millisecond)
	since := r.up.LastAnswer().Add(5 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	check("since before an outage", `no differences of pods.* and [^,]*, the last moment that is known`, true, [][]string{{"diff", "pods", "--from", second(350)}})
	check("in an outage", `not answer`, false, commands("pods", "pods/web", since, "now"))
	check("no such namespace, in an outage", `nothing is recorded in namespace`, false, [][]string{{"diagnose", "-n", "nosuch"}, {"changes", "-n", "nosuch"}})
}
