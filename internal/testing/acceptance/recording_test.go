// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestRecording exports a part of the history into a file. kubectl's output about
// the file, without a cluster, equals its output about the cluster.
func TestRecording(t *testing.T) {
	clustertest.SkipShort(t)
	ns := namespace(t)
	g := recordingGateway(t)
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=web:1", "--replicas=2")
	settled(t, ns, "web", 2)
	observed(t, g, ns)
	time.Sleep(1100 * time.Millisecond) // the command line takes times in seconds
	then := time.Now().UTC().Format(time.RFC3339)
	time.Sleep(1100 * time.Millisecond)
	kubectl(t, "-n", ns, "scale", "deployment", "web", "--replicas=4")
	settled(t, ns, "web", 4)
	reported(t, ns)

	file := filepath.Join(t.TempDir(), "a.wkr")
	states := func() string {
		events, _ := listState(t, "/api/v1/namespaces/"+ns+"/events")
		return fmt.Sprint(rvOfAll(t, ns), events)
	}
	// Repeat until nothing changes meanwhile: then the recording ends with the state of now.
	var now string
	for {
		before := states()
		observed(t, g, ns)
		recordedOf(t, g, ns, "events.v1", "/api/v1")
		now = time.Now().UTC().Format(time.RFC3339Nano)
		out, err := cluster.Command(t.Context(), "record", "export", "--server", g.URL, "-n", ns, "--since", "5m", "-o", file)
		if err != nil || !strings.Contains(string(out), "changes, 0 gaps") {
			t.Fatalf("%v: %s", err, out)
		}
		if states() == before {
			break
		}
	}
	opened := open(t, file)
	questions := [][]string{
		{"get", "pods,deployments,replicasets", "-n", ns, "-o", "json"},
		{"get", "pods", "-n", ns, "-o", "name", "--sort-by=.metadata.uid"},
		{"get", "deployment", "web", "-n", ns, "-o", "yaml"},
		{"get", "deployments", "-n", ns, "-l", "app=web", "-o", "custom-columns=:.metadata.name,:.spec.replicas"},
		{"get", "events", "-n", ns, "-o", "custom-columns=:.metadata.name", "--field-selector", "involvedObject.name=web"},
		{"api-resources"},
	}
	ask := func(base string, args []string) string {
		t.Helper()
		out, ok := run(t, append(cluster.Kubectl(t.Context()).Args, "-s", base), args...)
		if !ok {
			t.Errorf("%v: %s", args, out)
		}
		return out
	}
	for _, args := range questions {
		if diff := cmp.Diff(ask(g.URL+"/at/"+now, args), ask(opened.URL, args)); diff != "" {
			t.Errorf("%v at the end: - the cluster, + the recording\n%s", args, diff)
		}
		if diff := cmp.Diff(ask(g.URL+"/at/"+then, args), ask(opened.URL+"/at/"+then, args)); diff != "" {
			t.Errorf("%v then: - the cluster, + the recording\n%s", args, diff)
		}
	}
	if n := strings.Count(ask(opened.URL+"/at/"+then, questions[1]), "pod/"); n != 2 {
		t.Errorf("%d Pods then", n)
	}
	if text := ask(opened.URL, []string{"describe", "deployment", "web", "-n", ns}); !strings.Contains(text, "ScalingReplicaSet") {
		t.Errorf("described as\n%s", text)
	}
	for _, at := range []string{"", "/at/" + then} {
		for verb, want := range map[string]string{"list": "yes", "delete": "no - "} {
			out, ok := run(t, append(cluster.Kubectl(t.Context()).Args, "-s", opened.URL+at), "auth", "can-i", verb, "deployments.apps", "-n", ns)
			if ok != (want == "yes") || !strings.Contains(out, want) {
				t.Errorf("auth can-i %s at %q: %s", verb, at, out)
			}
		}
		if out := ask(opened.URL+at, []string{"auth", "can-i", "--list"}); !strings.Contains(out, "[get list watch]") {
			t.Errorf("auth can-i --list at %q: %s", at, out)
		}
		if out := ask(opened.URL+at, []string{"auth", "whoami"}); !strings.Contains(out, "system:anonymous") {
			t.Errorf("auth whoami at %q: %s", at, out)
		}
	}
	for _, args := range [][]string{
		{"-n", ns, "delete", "deployment", "web"},
		{"-n", ns, "exec", "deploy/web", "--", "true"},
		{"-n", ns, "get", "secrets"},
	} {
		if out, ok := run(t, append(cluster.Kubectl(t.Context()).Args, "-s", opened.URL), args...); ok || !strings.Contains(out, "this is a recording") && !strings.Contains(out, "this recording has no secrets") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// reported waits until the namespace has an Event about its Deployment, which comes
// some time after the change.
func reported(t *testing.T, ns string) {
	t.Helper()
	eventually(t, "an Event about a Deployment", func() bool {
		events, _ := listState(t, "/api/v1/namespaces/"+ns+"/events?fieldSelector=involvedObject.kind%3DDeployment")
		return len(events) > 0
	})
}

// TestRecordingPseudonyms: neither the file nor what is served from it contains
// the name of an object.
func TestRecordingPseudonyms(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	g := recordingGateway(t)
	kubectl(t, "-n", ns, "create", "deployment", "cinnamon", "--image=web:1", "--replicas=2")
	settled(t, ns, "cinnamon", 2)
	reported(t, ns)
	observed(t, g, ns)
	recordedOf(t, g, ns, "events.v1", "/api/v1")
	resp, err := http.Get(g.URL + "/watchkeeper/v1/history/export?pseudonyms=true&from=5m&resource=pods&resource=events&resource=replicasets.apps&resource=deployments.apps&namespace=" + ns)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	file := filepath.Join(t.TempDir(), "p.wkr")
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", resp.Status, err, body)
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := open(t, file)
	for _, path := range []string{"/api/v1/pods", "/api/v1/events", "/apis/apps/v1/replicasets", "/apis/apps/v1/deployments"} {
		resp, err := http.Get(opened.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // the body was read
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil || len(list.Items) == 0 {
			t.Errorf("%s: %v: %.200s", path, err, text)
		}
		// Label values are kept unless they are names of objects; "app: cinnamon" is the
		// name of the Deployment.
		if bytes.Contains(text, []byte("cinnamon")) || bytes.Contains(text, []byte(ns)) {
			t.Errorf("%s: a name can be read:\n%s", path, text)
		}
	}
}

// TestRecordingRefused: a file that is not a complete recording is not opened.
func TestRecordingRefused(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	g := recordingGateway(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "a.wkr")
	if out, err := cluster.Command(t.Context(), "record", "export", "nodes", "--server", g.URL, "-o", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"a part of it":   {[]string{"open", write(t, dir, "half.wkr", whole[:len(whole)/2])}, "the recording is damaged"},
		"no recording":   {[]string{"open", write(t, dir, "text.wkr", []byte("hello"))}, "not a recording"},
		"no file":        {[]string{"open", filepath.Join(dir, "none.wkr")}, "no such file"},
		"no output":      {[]string{"record", "export", "--server", g.URL}, "use --output"},
		"not recorded":   {[]string{"record", "export", "secrets", "--server", g.URL, "-o", filepath.Join(dir, "s.wkr")}, "--record-secrets"},
		"nothing of it":  {[]string{"record", "export", "pods", "-n", "nowhere", "--server", g.URL, "-o", filepath.Join(dir, "s.wkr")}, "nothing is recorded in namespace nowhere"},
		"no gateway":     {[]string{"record", "export", "--server", "http://127.0.0.1:1", "-o", filepath.Join(dir, "s.wkr")}, "watchkeeper serve"},
		"not a time":     {[]string{"record", "export", "--server", g.URL, "--since", "soon", "-o", filepath.Join(dir, "s.wkr")}, "--since"},
		"from is after":  {[]string{"record", "export", "--server", g.URL, "--since", "1m", "--until", "2m", "-o", filepath.Join(dir, "s.wkr")}, "--since 1m is after --until 2m: swap them"},
		"no place there": {[]string{"record", "export", "--server", g.URL, "-o", filepath.Join(dir, "none", "s.wkr")}, "--output"},
	}
	for name, test := range tests {
		out, err := cluster.Command(t.Context(), test.args...)
		if err == nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "s.wkr")); !os.IsNotExist(err) {
		t.Errorf("an export that failed left a file: %v", err)
	}
}

func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, file string) *clustertest.Gateway {
	t.Helper()
	g, err := cluster.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ended(t, g) })
	return g
}
