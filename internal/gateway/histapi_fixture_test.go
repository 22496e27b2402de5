// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/gateway"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/recorder"
)

// past is a history that the test writes.
type past struct {
	t     *testing.T
	store *history.Store
	start time.Time

	withholds bool // Secrets
}

func newPast(t *testing.T) *past {
	t.Helper()
	s, err := history.Open(t.TempDir(), history.Options{Cluster: "c", MaxAge: 48 * time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &past{t: t, store: s, start: time.Now().Add(-time.Hour).Truncate(time.Second)}
}

func (p *past) Store() *history.Store { return p.store }

func (p *past) Sync(context.Context, kube.Resource) error { return nil }

func (p *past) Status() (recorder.Status, bool) { return recorder.Status{Recording: true}, true }

func (p *past) Withholds(r kube.Resource) bool { return p.withholds && r == secretResource }

// at returns the time so many seconds after the start.
func (p *past) at(seconds float64) time.Time {
	return p.start.Add(time.Duration(seconds * float64(time.Second)))
}

// when returns that time as a query parameter.
func (p *past) when(seconds float64) string { return p.at(seconds).UTC().Format(time.RFC3339Nano) }

var (
	podResource        = kube.Resource{Version: "v1", Name: "pods"}
	nodeResource       = kube.Resource{Version: "v1", Name: "nodes"}
	secretResource     = kube.Resource{Version: "v1", Name: "secrets"}
	deploymentResource = kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}
)

// thing parses an object from YAML, and sets its name, namespace, RV and uid.
func thing(t *testing.T, key kube.Key, rv uint64, text string) *scan.Object {
	t.Helper()
	tree := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	meta, _ := tree["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["resourceVersion"] = key.Name(), fmt.Sprint(rv)
	if ns := key.Namespace(); ns != "" {
		meta["namespace"] = ns
	}
	if meta["uid"] == nil {
		meta["uid"] = "uid-of-" + key.Name()
	}
	tree["metadata"] = meta
	b, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	o, err := scan.ParseObject(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// stream begins a stream with objects.
func (p *past) stream(r kube.Resource, rv uint64, seconds float64, objects ...*scan.Object) *history.Stream {
	p.t.Helper()
	st, err := p.store.Stream(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.begin(st, rv, seconds, objects...)
	return st
}

func (p *past) begin(st *history.Stream, rv uint64, seconds float64, objects ...*scan.Object) {
	p.t.Helper()
	form, err := scan.ParseTemplate(`{"kind":"X","apiVersion":"v1","metadata":{}}`)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := st.Begin(history.Form{ListKind: "XList", Item: form}, slices.Values(objects), rv, p.at(seconds)); err != nil {
		p.t.Fatal(err)
	}
}

// event appends an event, observed RV - 100 seconds after the start.
func (p *past) event(st *history.Stream, typ kube.EventType, key kube.Key, rv uint64, text string) {
	p.t.Helper()
	p.events(st, rv, history.Event{Type: typ, Object: thing(p.t, key, rv, text), At: p.at(float64(rv) - 100)})
}

func (p *past) events(st *history.Stream, rv uint64, events ...history.Event) {
	p.t.Helper()
	if err := st.Append(events, rv, p.at(float64(rv)-100)); err != nil {
		p.t.Fatal(err)
	}
}

// rig returns a gateway with this past; it may not list Secrets. Callers with
// credentials may read namespace default.
func (p *past) rig() *rig {
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		allowed := !strings.Contains(string(body), `"secrets"`)
		if r.Header.Get("Authorization") != "" {
			allowed = strings.Contains(string(body), `"namespace":"default"`)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%v}}`, allowed)
	})
	r := newRig(p.t, upstream, rigOptions{gateway: gateway.Options{Filter: gateway.FilterOptions{RejectPaths: "^/apis/rejected/"}}})
	r.gateway.ReadHistory(p)
	return r
}

// ask sends a GET to the history API and decodes the answer.
func ask[T any](r *rig, path string) (answer T) {
	r.t.Helper()
	res := r.get("/watchkeeper/v1/history" + path)
	body := readAll(r.t, res)
	if res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Content-Type") != "application/json" {
		r.t.Fatalf("%s: %s %v %s", path, res.Status, res.Header, body)
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&answer); err != nil {
		r.t.Fatalf("%s: %v in %s", path, err, body)
	}
	return answer
}

// cluster writes the objects that the tests read: a Deployment that is scaled, gets
// another image, is deleted and created again; a Node with heartbeats; Pods; Secrets.
func (p *past) cluster() {
	deployment := func(replicas int, image, more string) string {
		return fmt.Sprintf(`{kind: Deployment, apiVersion: apps/v1, metadata: {generation: %d%s}, spec: {replicas: %d, template: {spec: {containers: [{name: app, image: %q}]}}}}`, replicas, more, replicas, image)
	}
	by := func(manager, time string) string {
		return fmt.Sprintf(`, managedFields: [{manager: %s, operation: Update, time: %q}]`, manager, time)
	}
	d := p.stream(deploymentResource, 100, 0,
		thing(p.t, "default/web", 90, deployment(3, "nginx:1.25", by("kubectl-create", "1"))),
		thing(p.t, "default/old", 91, deployment(1, "old:1", "")),
		thing(p.t, "kube-system/dns", 92, deployment(2, "dns:1", ", labels: {app: dns}")))
	p.event(d, kube.Modified, "default/web", 110, deployment(5, "nginx:1.25", by("kubectl-scale", "2")))
	p.event(d, kube.Modified, "default/web", 111, deployment(5, "nginx:1.25", by("kube-controller-manager", "3")))
	p.event(d, kube.Modified, "default/web", 112, deployment(5, "nginx:1.25", by("kube-controller-manager", "4")))
	p.event(d, kube.Modified, "default/web", 120, deployment(5, "nginx:1.27", by("kubectl-set", "5")))
	p.event(d, kube.Deleted, "default/old", 130, deployment(1, "old:1", ""))
	p.event(d, kube.Modified, "kube-system/dns", 135, deployment(2, "dns:1", ", labels: {app: other}"))
	p.event(d, kube.Deleted, "default/web", 140, deployment(5, "nginx:1.27", ""))
	p.event(d, kube.Added, "default/web", 150, deployment(1, "nginx:1.27", ", uid: another"))
	if err := d.AppendGap([]history.Event{
		{Type: kube.Modified, Object: thing(p.t, "default/web", 165, deployment(2, "nginx:1.27", ", uid: another")), Inferred: true, At: p.at(80)},
	}, 170, p.at(80)); err != nil {
		p.t.Fatal(err)
	}
	p.events(d, 200)

	node := func(beat int, ready string) string {
		return fmt.Sprintf(`{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: %q, reason: R, lastHeartbeatTime: "%d"}]}}`, ready, beat)
	}
	n := p.stream(nodeResource, 100, 0, thing(p.t, "n1", 80, node(0, "True")))
	for rv := uint64(101); rv < 160; rv++ {
		p.event(n, kube.Modified, "n1", rv, node(int(rv), map[bool]string{true: "True", false: "Unknown"}[rv < 145]))
	}

	pods := p.stream(podResource, 100, 0)
	p.event(pods, kube.Added, "default/a", 105, `{kind: Pod, apiVersion: v1, spec: {nodeName: n1}}`)
	p.event(pods, kube.Added, "kube-system/b", 106, `{kind: Pod, apiVersion: v1, spec: {nodeName: n2}}`)
	p.event(pods, kube.Deleted, "default/a", 155, `{kind: Pod, apiVersion: v1, spec: {nodeName: n1}}`)

	p.stream(secretResource, 100, 0, thing(p.t, "default/s", 70, `{kind: Secret, apiVersion: v1}`))
}
