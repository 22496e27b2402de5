// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// recordingGateway starts a gateway that records, with further flags of serve.
func recordingGateway(t *testing.T, flags ...string) *clustertest.Gateway {
	t.Helper()
	g, err := cluster.Gateway(append([]string{"--data-dir", filepath.Join(t.TempDir(), "history"), "--record", "core,configmaps"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended(t, g)
		if t.Failed() {
			t.Log(g.Log())
		}
	})
	for _, path := range []string{"/api/v1/pods", "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets", "/api/v1/configmaps", "/api/v1/nodes", "/api/v1/namespaces"} {
		eventually(t, "a recording of "+path, func() bool {
			code, _ := get(t, http.DefaultClient, g.URL+"/at/now"+path)
			return code == http.StatusOK
		})
	}
	return g
}

// A glance is kubectl's output about the API server's state at one moment.
type glance struct {
	at      time.Time
	answers map[string]string    // by kubectl's arguments
	asked   map[string]time.Time // when kubectl was run, by its arguments
}

// TestPast: kubectl's output about a past moment equals its output at that moment.
func TestPast(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	g := recordingGateway(t)
	questions := [][]string{
		{"get", "deployments,replicasets", "-n", ns, "-o", "json"},
		{"get", "configmaps", "-n", ns, "-o", "yaml"},
		{"get", "pods", "-n", ns, "-o", "wide"},
		{"get", "pods,deployments,replicasets", "-n", ns, "-o", "wide", "--show-labels"},
		{"get", "pods", "-n", ns, "-o", "name", "-l", "app=web"},
		{"get", "configmaps", "-n", ns, "-o", "name", "--field-selector", "metadata.name=later", "--ignore-not-found"},
		{"get", "configmaps", "-n", ns, "-o", "name", "--chunk-size=1"},
		{"get", "configmap", "first", "-n", ns, "-o", "json"},
		{"get", "nodes", "-o", "name"},
		{"get", "namespace", ns, "-o", "json"},
	}
	var moments []glance
	look := func() {
		t.Helper()
		// Repeat until nothing changes meanwhile.
		for {
			before := rvOfAll(t, ns)
			observed(t, g, ns)
			s := glance{at: time.Now(), answers: map[string]string{}, asked: map[string]time.Time{}}
			for _, args := range questions {
				question := strings.Join(args, " ")
				s.asked[question] = time.Now()
				s.answers[question] = kubectl(t, args...)
			}
			if rvOfAll(t, ns) == before {
				moments = append(moments, s)
				return
			}
		}
	}
	kubectl(t, "-n", ns, "create", "configmap", "first", "--from-literal=a=1")
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx", "--replicas=2")
	settled(t, ns, "web", 2)
	look()
	kubectl(t, "-n", ns, "patch", "configmap", "first", "-p", `{"data":{"a":"2"}}`)
	kubectl(t, "-n", ns, "create", "configmap", "later")
	kubectl(t, "-n", ns, "scale", "deployment", "web", "--replicas=3")
	settled(t, ns, "web", 3)
	look()
	kubectl(t, "-n", ns, "delete", "configmap", "first")
	kubectl(t, "-n", ns, "delete", "deployment", "web", "--wait")
	eventually(t, "no Pods", func() bool {
		state, _ := listState(t, "/api/v1/namespaces/"+ns+"/pods")
		return len(state) == 0
	})

	for _, m := range moments {
		for _, args := range questions {
			question := strings.Join(args, " ")
			want := m.answers[question]
			got, ok := run(t, pastKubectl(t, g, m.at.UTC().Format(time.RFC3339Nano)), args...)
			if args[0] == "get" && slices.Contains(args, "wide") {
				var ages, then []time.Duration
				got, ages = cutAges(got)
				want, then = cutAges(want)
				for i := range min(len(ages), len(then)) {
					// The question was asked some time after the moment, and kubectl took a while.
					if d := ages[i] - then[i] + m.asked[question].Sub(m.at); d.Abs() > 20*time.Second {
						t.Errorf("kubectl %v at %v: an age of %v, it was %v", args, m.at, ages[i], then[i])
					}
				}
			}
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("kubectl %v at %v (-then +now)\n%s", args, m.at, diff)
			}
		}
	}
	for _, args := range [][]string{{"describe", "pods", "-n", ns}, {"describe", "configmap", "first", "-n", ns}, {"api-resources"}, {"explain", "pods.spec"}, {"version"}} {
		if out, ok := run(t, pastKubectl(t, g, moments[0].at.UTC().Format(time.RFC3339Nano)), args...); !ok {
			t.Errorf("kubectl %v: %s", args, out)
		}
	}
	for _, args := range [][]string{
		{"delete", "namespace", ns}, {"create", "configmap", "x", "-n", ns}, {"scale", "deployment", "web", "-n", ns, "--replicas=1"},
		{"label", "configmap", "first", "-n", ns, "a=b"},
	} {
		if out, ok := run(t, pastKubectl(t, g, moments[0].at.UTC().Format(time.RFC3339Nano)), args...); ok || !strings.Contains(out, "the past can only be read") {
			t.Errorf("kubectl %v: %s", args, out)
		}
	}
	t.Run("forms", func(t *testing.T) { pastForms(t, g, ns, moments[0]) })
	t.Run("watch", func(t *testing.T) { pastWatch(t, g, ns, moments[0]) })
}

// pastKubectl returns a kubectl command that reads the cluster at a moment.
func pastKubectl(t *testing.T, g *clustertest.Gateway, when string) []string {
	t.Helper()
	return append(cluster.Kubectl(t.Context()).Args, "-s", g.URL+"/at/"+url.PathEscape(when))
}

// rvOfAll returns a text that changes with every object that is read.
func rvOfAll(t *testing.T, ns string) (all string) {
	t.Helper()
	for _, path := range []string{"/api/v1/namespaces/" + ns + "/pods", "/apis/apps/v1/namespaces/" + ns + "/deployments", "/apis/apps/v1/namespaces/" + ns + "/replicasets",
		"/api/v1/namespaces/" + ns + "/configmaps", "/api/v1/namespaces?fieldSelector=metadata.name%3D" + ns} {
		state, _ := listState(t, path)
		all += fmt.Sprintln(path, state)
	}
	return all
}

// observed waits until the gateway has recorded all objects in the namespace.
func observed(t *testing.T, g *clustertest.Gateway, ns string) {
	t.Helper()
	for resource, path := range map[string]string{
		"pods.v1": "/api/v1", "configmaps.v1": "/api/v1", "deployments.v1.apps": "/apis/apps/v1", "replicasets.v1.apps": "/apis/apps/v1",
	} {
		recordedOf(t, g, ns, resource, path)
	}
}

// recordedOf waits until the gateway has recorded all objects in the namespace of a
// resource, whose group version is at path.
func recordedOf(t *testing.T, g *clustertest.Gateway, ns, resource, path string) {
	t.Helper()
	name, _, _ := strings.Cut(resource, ".")
	last := uint64(0)
	state, _ := listState(t, path+"/namespaces/"+ns+"/"+name)
	for _, rv := range state {
		last = max(last, rv)
	}
	eventually(t, fmt.Sprintf("a record of %s up to %d", resource, last), func() bool {
		head, _ := gauge(t, g, fmt.Sprintf("watchkeeper_history_head_rv{resource=%q}", resource))
		return head >= float64(last)
	})
}

// settled waits until the Deployment's rollout is complete.
func settled(t *testing.T, ns, name string, replicas int) {
	t.Helper()
	eventually(t, fmt.Sprint(replicas, " ready Pods"), func() bool {
		d, err := api.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Status.ObservedGeneration == d.Generation && int(d.Status.ReadyReplicas) == replicas && int(d.Status.Replicas) == replicas
	})
}

var anAge = regexp.MustCompile(`\b[0-9]+[smh]([0-9]+s)?\b`)

// cutAges removes the ages from a table, and the spaces that depend on their
// width.
func cutAges(table string) (rest string, ages []time.Duration) {
	rest = anAge.ReplaceAllStringFunc(table, func(text string) string {
		age, err := time.ParseDuration(text)
		if err != nil {
			return text
		}
		ages = append(ages, age)
		return "AGE"
	})
	return regexp.MustCompile(` +`).ReplaceAllString(rest, " "), ages
}

// pastForms reads the past in every encoding.
func pastForms(t *testing.T, g *clustertest.Gateway, ns string, m glance) {
	path := g.URL + "/at/" + m.at.UTC().Format(time.RFC3339Nano) + "/api/v1/namespaces/" + ns + "/pods"
	for _, accept := range []string{
		"application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	} {
		a, err := ask(t.Context(), http.DefaultClient, path, accept)
		media, _, _ := strings.Cut(accept, ";")
		if err != nil || a.code != 200 || a.contentType != media || strings.Count(a.body, "web-") < 2 {
			t.Errorf("%s: %+v, %v", accept, a, err)
		}
		a, err = ask(t.Context(), http.DefaultClient, path+"?limit=1", accept)
		if err != nil || a.code != 200 {
			t.Errorf("%s, a page: %+v, %v", accept, a, err)
		}
	}
	if a, err := ask(t.Context(), http.DefaultClient, path+"?fields=spec.nodeName", ""); err != nil || a.code != 200 || strings.Contains(a.body, "containers") || !strings.Contains(a.body, "nodeName") {
		t.Errorf("fields: %+v, %v", a, err)
	}
}

// pastWatch watches the ConfigMaps from a past moment up to live events.
func pastWatch(t *testing.T, g *clustertest.Gateway, ns string, m glance) {
	at := m.at.UTC().Format(time.RFC3339Nano)
	for _, speed := range []string{"", "&speed=1000"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		events := watchNames(t, ctx, g.URL+"/at/"+at+"/api/v1/namespaces/"+ns+"/configmaps?watch=1"+speed)
		name := "live" + strings.TrimPrefix(speed, "&speed=")
		want := []string{"ADDED first", "MODIFIED first", "ADDED later", "DELETED first"}
		if speed != "" {
			want = append(want, "ADDED live")
		}
		for _, w := range want {
			if got := <-events; got != w {
				t.Fatalf("%s, want %s", got, w)
			}
		}
		kubectl(t, "-n", ns, "create", "configmap", name)
		if got := <-events; got != "ADDED "+name {
			t.Fatalf("%s, want it to be live", got)
		}
	}
	// The same with kubectl.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := append(pastKubectl(t, g, at), "get", "configmaps", "-n", ns, "-w", "-o", "name")
	cmd := exec.CommandContext(ctx, watch[0], watch[1:]...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"configmap/first", "configmap/kube-root-ca.crt", "configmap/first", "configmap/later", "configmap/first", "configmap/live"}
	lines := bufio.NewScanner(out)
	for _, w := range want {
		if !lines.Scan() || lines.Text() != w {
			t.Fatalf("kubectl get -w: %q, want %q", lines.Text(), w)
		}
	}
	cancel()
	_ = cmd.Wait() // the context killed it
}

// watchNames returns the types and names of a watch's events, without those of the
// ConfigMap that every namespace has.
func watchNames(t *testing.T, ctx context.Context, url string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %s", url, resp.Status)
	}
	names := make(chan string)
	go func() {
		defer close(names)
		defer resp.Body.Close()
		for frames := watchread.Lines(resp.Body); ; {
			f, err := frames.Next()
			if err != nil {
				return
			}
			m, err := f.Meta()
			if err != nil {
				return
			}
			if m.Name != "kube-root-ca.crt" {
				select {
				case names <- f.Type + " " + m.Name:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return names
}

// TestPastWindow: on the ordinary paths, RVs before the window are served from the
// history, byte for byte as the API server does. For an RV that is not recorded,
// the Status names the recorded span.
func TestPastWindow(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	g := recordingGateway(t, "--window-bytes", "1Mi")
	client, server := direct(t)
	path := "/api/v1/namespaces/" + ns + "/configmaps"
	code, list := get(t, http.DefaultClient, g.URL+path+"?resourceVersion=0")
	if code != 200 {
		t.Fatal(list)
	}
	start := rvIn(t, list)
	filling := strings.Repeat("x", 60_000)
	for i := range 30 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}, Data: map[string]string{"x": filling}}
		if _, err := api.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(t, "-n", ns, "label", "configmap", "c1", "c3", "c5", "odd=yes")
	kubectl(t, "-n", ns, "delete", "configmap", "c1", "c2")
	// The RV of the last change, not of a list: a list's RV may belong to another
	// resource, and this one may not reach it for a minute.
	end := kubectl(t, "-n", ns, "label", "configmap", "c3", "odd-", "-o", "jsonpath={.metadata.resourceVersion}")
	eventually(t, "the last event", func() bool {
		_, now := get(t, http.DefaultClient, g.URL+path+"?resourceVersion=0")
		_, want := get(t, client, server+path)
		return !strings.Contains(now, `"c1"`) && strings.Count(now, "odd") == strings.Count(want, "odd")
	})
	var wg sync.WaitGroup
	same := func(query, accept string) {
		wg.Go(func() {
			watch := strings.Contains(query, "watch=1")
			d := compared(watch, func() (string, error) {
				want, err := ask(t.Context(), client, server+path+query, accept)
				if err != nil {
					return "", err
				}
				got, err := ask(t.Context(), http.DefaultClient, g.URL+path+query, accept)
				if err != nil || want == got && (!watch || want.code == 200 && want.body != "") {
					return "", err
				}
				return fmt.Sprintf("%d (-API server +gateway)\n%s", want.code, cmp.Diff(want, got, cmp.AllowUnexported(answer{}))), nil
			})
			if d != "" {
				t.Errorf("%s as %s: %s", query, accept, d)
			}
		})
	}
	for _, query := range []string{"", "&labelSelector=odd", "&fieldSelector=metadata.name%3Dc2"} {
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf;stream=watch", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"} {
			same("?watch=1&timeoutSeconds=2&resourceVersion="+start+query, accept)
		}
		for _, page := range []string{"&limit=3", ""} {
			same("?resourceVersionMatch=Exact&resourceVersion="+start+page+query, "application/json")
		}
	}
	wg.Wait()
	// The gateway served these requests, not the API server.
	metrics := curl(t, g.Admin+"/metrics")
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, `watchkeeper_requests_total{`) && strings.Contains(line, `source="passthrough"`) &&
			(strings.Contains(line, `verb="watch"`) || strings.Contains(line, `code="410"`)) {
			t.Errorf("passed through: %s", line)
		}
	}
	for when, want := range map[string]string{
		"rv:1": "(Expired)", "1d": "(Expired)", "rv:999999999": "(BadRequest)", "2199-01-01T00:00:00Z": "(BadRequest)", "rv:" + end: "",
	} {
		out, ok := run(t, pastKubectl(t, g, when), "get", "configmaps", "-n", ns)
		if ok != (want == "") || want != "" && (!strings.Contains(out, strings.Trim(want, "()")) && !strings.Contains(out, "are recorded from")) {
			t.Errorf("at %s: %s", when, out)
		}
	}
	if out, ok := run(t, pastKubectl(t, g, "now"), "get", "secrets", "-n", ns); ok || !strings.Contains(out, "--record-secrets") {
		t.Errorf("secrets: %s", out)
	}
	if code, body := get(t, http.DefaultClient, g.URL+"/at/xyz/api/v1/pods"); code != 400 || !strings.Contains(body, "use now, an age such as 10m") {
		t.Errorf("at xyz: %d %s", code, body)
	}
}

// rvIn returns the RV of a list.
func rvIn(t *testing.T, list string) string {
	t.Helper()
	var l metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(list), &l); err != nil {
		t.Fatal(err)
	}
	return l.ResourceVersion
}
