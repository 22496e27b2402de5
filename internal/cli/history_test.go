// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

const web = "/versions/apis/apps/v1/namespaces/default/deployments/web"

var (
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	before = json.RawMessage(`{"kind":"Deployment","metadata":{"name":"web","resourceVersion":"90","managedFields":[]},"spec":{"replicas":3}}`)
	after  = json.RawMessage(`{"kind":"Deployment","metadata":{"name":"web","resourceVersion":"95","managedFields":[1]},"spec":{"replicas":5}}`)
)

func versions(t *testing.T) string {
	return text(t, api.Versions{Resource: "deployments.apps", Namespace: "default", Name: "web", Continue: "0.93", Items: []api.Change{
		{Type: api.Deleted, ResourceVersion: "99", Time: noon, Summary: []string{"deleted"}, Before: after},
		{Type: api.Folded, ResourceVersion: "98", Time: noon, Summary: []string{}, Folded: &api.Fold{Count: 2, Oldest: api.Moment{Time: noon}, Noise: map[string]int{"heartbeat": 2, "generation": 1}}},
		{Type: api.Modified, ResourceVersion: "95", Time: noon, Summary: []string{"replicas 3 → 5", "label a=b added"}, Inferred: true, Before: before, Object: after,
			By: []change.Manager{{Manager: "kubectl"}, {Manager: "hpa"}, {Manager: "kubectl"}}},
	}})
}

const older = `{"resource":"deployments.apps","name":"web","items":[{"type":"INITIAL","resourceVersion":"90","time":"2026-01-02T12:00:00Z","summary":["was there"]}]}`

func TestHistory(t *testing.T) {
	f := newFakeGateway(t, map[string]string{web: versions(t), "older": older})
	first := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05Z07:00")
	want := strings.ReplaceAll(`NOON  99        deleted
NOON  98        2 versions with noise only (generation, heartbeat) since NOON
NOON  95        replicas 3 → 5; label a=b added (inferred from a list)  by kubectl, hpa
`, "NOON", noon.Format("2006-01-02 15:04:05Z07:00")) + first + `  90        was there
`
	for _, args := range [][]string{{"deploy/web"}, {"deployments", "web"}, {"Deployment/web"}, {"deployments.apps/web"}, {"deployments.v1.apps/web"}, {"deploy/web", "-n", "default"}} {
		out, errs, code := run(append([]string{"history"}, args...)...)
		if diff := cmp.Diff(want, out); diff != "" || errs != "" || code != 0 {
			t.Errorf("%q: %d %s %s", args, code, errs, diff)
		}
	}
	if got := f.questions(); len(got) != 18 || got[1] != web || got[2] != web+"?continue=0.93" {
		t.Errorf("asked %q", got)
	}
	if out, _, _ := run("history", "deploy/web", "--utc"); !strings.HasPrefix(out, noon.UTC().Format("2006-01-02 15:04:05")+"Z  99 ") {
		t.Errorf("--utc prints\n%s", out)
	}
	out, _, _ := run("history", "deploy/web", "-p", "--color", "always")
	for _, part := range []string{
		"\x1b[31m-  replicas: 3\x1b[0m\n", "\x1b[32m+  replicas: 5\x1b[0m\n", "\x1b[36m@@ -1,5 +0,0 @@\x1b[0m",
		"\x1b[1m--- a/deployments.apps/web\x1b[0m", "\x1b[33m99      \x1b[0m",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
	if strings.Contains(out, "managedFields") || strings.Contains(out, "resourceVersion") {
		t.Errorf("noise in\n%s", out)
	}
	f.questions()
	out, _, code := run("history", "deploy/web", "-o", "json", "--limit", "2")
	var v api.Versions
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || len(v.Items) != 2 || v.Items[1].Folded.Count != 2 || v.Continue == "" {
		t.Errorf("%v %d %s", err, code, out)
	}
	if out, _, code = run("history", "deploy/web", "-o", "yaml", "--since", "rv:12", "--until", "now", "--show-noise"); code != 0 || !strings.Contains(out, "resource: deployments.apps\n") {
		t.Errorf("%d %s", code, out)
	}
	if got := f.questions(); !slices.Contains(got, web+"?noise=show&since=rv%3A12&until=now") {
		t.Errorf("asked %q", got)
	}
}

// TestHistoryWithout: an object without a change in a range may not have existed then.
func TestHistoryWithout(t *testing.T) {
	const query = "?since=2026-01-02T13%3A00%3A00Z"
	for _, test := range []struct{ before, flags, want string }{
		{`{"type":"DELETED","time":"2026-01-02T10:15:32Z"}`, "", "did not exist in that time: deleted 2026-01-02 10:15:32Z.\n"},
		{`{"type":"DELETED","time":"2026-01-02T10:15:32Z","notBefore":"2026-01-02T10:14:00Z"}`, "", "deleted 2026-01-02 10:15:32Z (not before 2026-01-02 10:14:00Z).\n"},
		{"", " --until 2026-01-02T13:30:00.0Z", "did not exist yet in that time.\n"},
		{`{"type":"MODIFIED","time":"2026-01-02T10:15:32Z"}`, "", "has not changed in that time.\n"},
	} {
		until := ""
		if test.flags != "" {
			until = "until=2026-01-02T13%3A30%3A00Z"
		}
		newFakeGateway(t, map[string]string{
			"":                        recordedIndex,
			web + query:               `{"items":[]}`,
			web + query + "&" + until: `{"items":[]}`,
			web + "?limit=1":          `{"items":[` + test.before + `]}`,
			web + "?limit=1&" + until: `{"items":[` + test.before + `]}`,
		})
		if _, errs, code := run(strings.Fields("history deploy/web --utc --since 2026-01-02T13:00:00Z" + test.flags)...); code != 0 || !strings.HasSuffix(errs, test.want) {
			t.Errorf("%d %q, want %q", code, errs, test.want)
		}
	}
}

// TestNoMoment: a moment that is empty, that is 0 without a unit, or that is not recorded yet is
// refused in all commands alike.
func TestNoMoment(t *testing.T) {
	newFakeGateway(t, map[string]string{"": recordedIndex, "/changes": `{"items":[]}`})
	flags := map[string][]string{
		"history pods/a": {"since", "until"}, "story pods/a": {"since", "until"}, "diagnose": {"at"}, "changes pods": {"since", "until"},
		"diff pods": {"from", "to"}, "record export -o -": {"since", "until"},
	}
	for line, names := range flags {
		for _, name := range names {
			for text, want := range map[string]string{"": "a moment cannot be empty: name one", "0": `--` + name + `: "0" is not a moment: use now, an age such as 10m`} {
				if out, errs, code := run(append(strings.Fields(line), "--"+name, text)...); code == 0 || out != "" || !strings.Contains(errs, want) {
					t.Errorf("%s --%s %q: %d %s", line, name, text, code, errs)
				}
			}
		}
	}
	for _, line := range []string{"history pods/a --until rv:100", "history pods/a --since rv:100", "changes pods --since rv:5 --until rv:100"} {
		if _, errs, code := run(strings.Fields(line)...); code == 0 || !strings.Contains(errs, " 100: the newest recorded resourceVersion of pods is 99") {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}

// TestLargeIntegers: the values of objects and patches keep their digits.
func TestLargeIntegers(t *testing.T) {
	answer := func(kind string) string {
		return `{"resource":"deployments.apps","namespace":"default","name":"web","from":{"resourceVersion":"1","time":"2026-01-02T12:00:00Z"},"to":{"resourceVersion":"2","time":"2026-01-02T12:00:00Z"},"items":[{"type":"MODIFIED",` + kind +
			`"time":"2026-01-02T12:00:00Z","namespace":"default","name":"web","summary":["n changed"],"changes":[{"op":"replace","path":"/spec/n","value":9007199254740993}],"before":{"spec":{"n":1}},"object":{"spec":{"n":9007199254740993}}}]}`
	}
	newFakeGateway(t, map[string]string{web: answer(`"resourceVersion":"2",`), "/diff/apis/apps/v1/namespaces/default/deployments/web": answer(`"from":"1","to":"2",`)})
	for _, args := range [][]string{{"history", "deploy/web"}, {"diff", "deploy/web", "--from", "10m"}} {
		for _, format := range []string{"json", "yaml"} {
			out, errs, code := run(append(args, "-o", format)...)
			if code > 1 || strings.Count(out, "90071992547409") != strings.Count(out, "9007199254740993") || !strings.Contains(out, "value\": 9007199254740993") && !strings.Contains(out, "value: 9007199254740993") || strings.Contains(out, "e+15") {
				t.Errorf("%q as %s: %d %s\n%s", args, format, code, errs, out)
			}
		}
	}
}

// TestNotRecording: a recording that is named in place of a resource has to be served.
func TestNotRecording(t *testing.T) {
	newFakeGateway(t, nil)
	file := filepath.Join(t.TempDir(), "inc.wkr")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"story", "history", "diff", "changes"} {
		want := fmt.Sprintf("watchkeeper: %s is a recording: %s reads it while 'watchkeeper open %[1]s' serves it\n", file, command)
		if out, errs, code := run(command, file); code == 0 || out != "" || errs != want {
			t.Errorf("%s: %d %q %q", command, code, out, errs)
		}
	}
}

func TestHistoryMistakes(t *testing.T) {
	newFakeGateway(t, nil)
	for line, want := range map[string]string{
		"history":                    "name it as RESOURCE/NAME, such as deployment/web (see 'watchkeeper history --help')",
		"history deploy":             "name it as deploy/NAME, or as deployment/deploy if that is its name; 'watchkeeper diff deploy' compares all of a resource",
		"history a b c":              "history takes one resource or object",
		"history a/b c":              "use either RESOURCE/NAME or RESOURCE NAME",
		"history a/":                 "\"a/\" is not RESOURCE/NAME",
		"history widget/a":           "there is no resource \"widget\": 'kubectl api-resources' lists all resources",
		"history pod/a":              "nothing is recorded of it",
		"history pod/a --since soon": "--since: \"soon\" is not a moment",
		"history pod/a --since 2099-01-01T00:00:00Z": "is in the future",
		"history pod/a --limit -1":                   "--limit -1 is negative: use a number above 0, or 0 for all",
		"history pod/a --since 1h --until 2h":        "--since 1h is after --until 2h",
		"history pod/a --since rv:9 --until rv:8":    "--since rv:9 is after --until rv:8",
		"record export deplyo -o x":                  "there is no resource \"deplyo\": 'kubectl api-resources' lists all resources",
		"record export deploy/web -o x":              "record export takes resources, and \"deploy/web\" is an object: use deploy, with -l for those with a label",
		"sheet x.xlsx deploy/web":                    "sheet takes kinds, and \"deploy/web\" is an object: use deploy, with -l for those with a label",
		"changes deploy/web":                         "see 'watchkeeper history deploy/web' for one object",
		"history pod/a -o wide":                      "--output \"wide\" is unknown: use text, json or yaml",
		"history pod/a --color red":                  "--color \"red\" is unknown: use auto, always or never",
		"history pod/a -s 127.0.0.1":                 "--server \"127.0.0.1\" is not a URL: use one such as http://127.0.0.1:8001",
		"history pod/a -s http://127.0.0.1:1":        "no server at http://127.0.0.1:1: start it with 'watchkeeper serve', or use --server",
		"at":                                         "watchkeeper at 10m -- get pods",
		"at 10m":                                     "watchkeeper at 10m -- get pods",
		"at soon -- get pods":                        "WHEN: \"soon\" is not a moment",
		"at -5m -- get pods":                         "WHEN: \"-5m\" is not a moment: use now, an age such as 10m",
		"change -n shop":                             "unknown command \"change\": did you mean changes?",
		"at -x 5m -- get pods":                       "unknown shorthand flag: 'x' in -x",
	} {
		if out, errs, code := run(strings.Fields(line)...); code != 1 || out != "" || !strings.HasPrefix(errs, "watchkeeper: ") || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	if _, errs, code := run("diff", "widget"); code != 2 || !strings.Contains(errs, "there is no resource") {
		t.Errorf("diff: %d %s", code, errs)
	}
	if _, errs, code := run("diff", "deploy/web,pods"); code != 2 || !strings.Contains(errs, `compare "deploy/web" alone, or leave out its name`) {
		t.Errorf("diff: %d %s", code, errs)
	}
	if _, errs, code := run("diff", "-l", "app=web,,"); code != 2 || !strings.HasPrefix(errs, `watchkeeper: --selector "app=web,,": found ','`) || strings.Count(errs, "\n") != 1 {
		t.Errorf("diff: %d %s", code, errs)
	}
	if _, errs, code := run("diff", "--nonsense"); code != 2 || !strings.Contains(errs, "unknown flag") {
		t.Errorf("diff: %d %s", code, errs)
	}
}

func TestDiff(t *testing.T) {
	at := api.Moment{ResourceVersion: "100", Time: noon}
	pods := api.Differences{Resource: "pods", From: at, To: at, Items: []api.Difference{}, Unchanged: 3}
	deployments := api.Differences{Resource: "deployments.apps", From: at, To: at, Items: []api.Difference{
		{Type: api.Modified, Namespace: "default", Name: "web", Summary: []string{"replicas 3 → 5"}, By: []change.Manager{{Manager: "hpa"}}, Before: before, Object: after},
		{Type: api.Deleted, Namespace: "default", Name: "x", Selection: api.Left, Summary: []string{"label a removed"}},
	}}
	nodes := api.Differences{Resource: "nodes", From: at, To: at, Items: []api.Difference{{Type: api.Added, Name: "n", Summary: []string{"created"}}}}
	f := newFakeGateway(t, map[string]string{
		"":                                     `{"recording":{"state":"on"},"store":{},"resources":[{"resource":"deployments.apps"},{"resource":"events"},{"resource":"nodes"},{"resource":"pods"},{"resource":"gone.example.com"}]}`,
		"/diff/api/v1/namespaces/default/pods": text(t, pods),
		"/diff/api/v1/namespaces/shop/pods":    text(t, pods),
		"/diff/api/v1/pods":                    text(t, pods),
		"/diff/api/v1/nodes":                   text(t, nodes),
		"/diff/api/v1/nodes/nope":              `{"items":[]}`,
		"/diff/api/v1/namespaces/none/pods":    `{"items":[]}`,
		"/diff/apis/apps/v1/deployments":       text(t, deployments),
		"/diff/apis/apps/v1/namespaces/default/deployments":     text(t, deployments),
		"/diff/apis/apps/v1/namespaces/default/deployments/web": text(t, deployments),
	})
	// Without a RESOURCE, it is said which of the usual suspects are not recorded, as changes does.
	const all = "not recorded, so not listed: configmaps, secrets, ingresses.networking.k8s.io, networkpolicies.networking.k8s.io, horizontalpodautoscalers.autoscaling, resourcequotas, nodes, services, deployments.apps, statefulsets.apps, daemonsets.apps\n"
	lacks := strings.Replace(all, "nodes, ", "", 1) // they are in no namespace
	const two = "~ deployments.apps default/web  replicas 3 → 5  by hpa\n- deployments.apps default/x  left the selection: label a removed\n"
	for _, tc := range []struct {
		line, want string
		code       int
	}{
		{"diff pods --from rv:7", "no differences of pods in namespace default between rv:7 and now\n", 0},
		{"diff po -n shop --from rv:7 --to 9", "no differences of pods in namespace shop between rv:7 and rv:9\n", 0},
		{"diff -n shop pods --from 2026-01-01T12:00:00Z --to 2026-01-02T12:00:00+02:00 --utc", "no differences of pods in namespace shop between 2026-01-01 12:00:00Z and 2026-01-02 10:00:00Z\n", 0},
		{"diff pods -A --from rv:7", "no differences of pods between rv:7 and now\n", 0},
		{"diff", two + lacks, 1},
		{"diff -A --from 2h --to 1h", two + "+ nodes n  created\n" + all, 1},
		{"diff deploy/web", two, 1},
		{"diff nodes -l a=b --field-selector metadata.name=n", "+ nodes n  created\n", 1},
	} {
		out, errs, code := run(strings.Fields(tc.line)...)
		if diff := cmp.Diff(tc.want, out+errs); diff != "" || (strings.TrimSuffix(strings.TrimSuffix(errs, lacks), all) != "") != (code == 0) || code != tc.code {
			t.Errorf("%s: %d %s %s", tc.line, code, errs, diff)
		}
	}
	if got := f.questions(); !strings.HasPrefix(got[len(got)-1], "/diff/api/v1/nodes?fieldSelector=metadata.name%3Dn&from=2") || !strings.HasSuffix(got[len(got)-1], "&labelSelector=a%3Db&to=now") {
		t.Errorf("asked %q", got)
	}
	if out, _, code := run("diff", "deploy", "-p"); code != 1 || !strings.Contains(out, "    -  replicas: 3\n    +  replicas: 5\n") {
		t.Errorf("%d %s", code, out)
	}
	if out, errs, code := run("diff", "node/nope"); code != 2 || out != "" || errs != "watchkeeper: nodes nope did not exist at either moment: 'watchkeeper history nodes/nope' says whether it did between them\n" {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if out, errs, code := run("diff", "pods", "-n", "none", "--from", "rv:7"); code != 0 || out != "" || errs != "no differences of pods in namespace none between rv:7 and now: there are no objects at either moment\n" {
		t.Errorf("%d %s %s", code, out, errs)
	}
	var d api.Differences
	if out, _, code := run("diff", "nodes", "-o", "json"); code != 1 || json.Unmarshal([]byte(out), &d) != nil || len(d.Items) != 1 {
		t.Errorf("%d %s", code, out)
	}
	if _, errs, code := run("diff", "pods/a", "-A"); code != 2 || !strings.Contains(errs, "leave out -A") {
		t.Errorf("%d %s", code, errs)
	}
	if out, errs, code := run("diff", "-n", "else"); code != 2 || out != "" || !strings.Contains(errs, "watchkeeper: deployments.apps, pods: nothing is recorded of it\n") || !strings.Contains(errs, "some resources could not be compared") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestWrongUpstream: a gateway in front of a server that is no API server is still
// watchkeeper.
func TestWrongUpstream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watchkeeper/v1/history" {
			_, _ = io.WriteString(w, recordedIndex)
			return
		}
		http.Error(w, "<h1>not found</h1>", http.StatusNotFound)
	}))
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	for line, want := range map[string]string{
		"changes":          "watchkeeper: the server behind " + server.URL + " answered 404 Not Found to /api: it is no Kubernetes API server\n",
		"history pods/web": "watchkeeper: the server behind " + server.URL + " answered 404 Not Found to /api: it is no Kubernetes API server\n",
	} {
		if _, errs, code := run(append(strings.Fields(line), "-s", server.URL)...); code != 1 || errs != want {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}

// TestConnectionCut: a connection that ends before or within an answer is said to be cut.
func TestConnectionCut(t *testing.T) {
	demo, err := os.ReadFile("../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	begin := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watchkeeper/v1/history" {
			_, _ = io.WriteString(w, recordedIndex)
			return
		}
		if !strings.HasPrefix(r.URL.Path, "/watchkeeper/") {
			_, _ = io.WriteString(w, "{}") // discovery
			return
		}
		_, _ = io.WriteString(w, begin)
		if begin != "" {
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	cut := "watchkeeper: the connection to " + server.URL + " was cut: "
	for _, test := range []struct{ line, begin, want string }{
		{"diagnose -A", "", cut + "EOF: try again\n"},
		{"changes -A -w", `{"items":[`, cut + "unexpected EOF: try again\n"},
		{"diagnose -A", `{"items":[`, cut + "unexpected EOF: try again\n"},
		{"record export -A -o -", string(demo[:1000]), "watchkeeper: the recording ended early, after 1000 bytes: "},
	} {
		begin = test.begin
		if _, errs, code := run(append(strings.Fields(test.line), "-s", server.URL)...); code != 1 || !strings.Contains(errs, test.want) {
			t.Errorf("%s: %d %s", test.line, code, errs)
		}
	}
}

// TestPrefix: --server includes the path below which a gateway serves.
func TestPrefix(t *testing.T) {
	f := newFakeGateway(t, map[string]string{web: versions(t), "older": older,
		"": `{"recording":{"state":"on"},"store":{},"resources":[{"resource":"deployments.apps"}]}`,
		"/diff/apis/apps/v1/namespaces/default/deployments": `{"resource":"deployments.apps","items":[]}`,
	})
	f.prefix = "/k8s"
	for _, line := range []string{"history deploy/web", "diff deploy", "diff"} {
		for _, server := range []string{f.URL + "/k8s", f.URL + "/k8s/"} {
			if _, errs, code := run(append(strings.Fields(line), "--server", server)...); code != 0 {
				t.Errorf("%s at %s: %d %s", line, server, code, errs)
			}
		}
		if _, errs, code := run(strings.Fields(line)...); code == 0 || !strings.Contains(errs, "the API is served below /k8s/: use --server "+f.URL+"/k8s") {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}

// TestAt runs a kubectl that prints its arguments.
func TestAt(t *testing.T) {
	f := newFakeGateway(t, map[string]string{
		"": `{"recording":{"state":"on"},"store":{},"resources":[{"resource":"pods","epochs":[{"span":{"from":{"resourceVersion":"100","time":"2026-01-01T00:00:00Z"},"to":{"resourceVersion":"200"}}}]}]}`,
	})
	bin := t.TempDir()
	script := "#!/bin/sh\nfor a; do echo \"$a\"; done\ncat\necho oops >&2\nexit 7\n"
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, moment := range []string{"rv:150", "2026-01-02T12:00:00Z", "now"} {
		for _, args := range [][]string{{"at", moment, "--", "get", "pods", "-A"}, {"at", moment, "get", "pods", "-A"}} {
			out, errs, code := run(args...)
			lines := strings.Split(out, "\n")
			if code != 7 || errs != "oops\n" || lines[0] != "get" || lines[1] != "--server="+f.URL+"/at/"+moment || !slices.Equal(lines[len(lines)-3:], []string{"pods", "-A", ""}) {
				t.Errorf("%q: %d %q %q", args, code, errs, lines)
			}
			if cache := strings.TrimPrefix(lines[3], "--cache-dir="); cache == lines[3] {
				t.Errorf("%q", lines)
			} else if _, err := os.Stat(cache); err == nil {
				t.Errorf("%s is left", cache)
			}
		}
	}
	// Flags between the moment and -- are ours, those after it kubectl's.
	t.Setenv("WATCHKEEPER_SERVER", "http://127.0.0.1:1")
	for _, line := range []string{"at rv:150 -s URL -n shop -- get -l x", "at rv:150 --server=URL --namespace shop get -l x", "at -s URL rv:150 -n=shop -- get -l x"} {
		out, errs, code := run(strings.Fields(strings.ReplaceAll(line, "URL", f.URL))...)
		if lines := strings.Split(out, "\n"); code != 7 || lines[0] != "get" || lines[1] != "--server="+f.URL+"/at/rv:150" || !slices.Equal(lines[4:], []string{"--namespace=shop", "-l", "x", ""}) {
			t.Errorf("%s: %d %q %s", line, code, lines, errs)
		}
	}
	if out, _, _ := run("at", "rv:150", "-s", f.URL, "--", "-v=1", "get"); !strings.HasPrefix(out, "--server=") || !strings.HasSuffix(out, "\n-v=1\nget\n") {
		t.Errorf("a flag of kubectl first: %s", out)
	}
	for line, want := range map[string]string{
		"at rv:150 -A -- get pods":                                   "unknown shorthand flag: 'A' in -A: kubectl's flags follow after --",
		"at rv:150 kubectl get pods":                                 "at runs kubectl itself: write only its arguments after --, such as: watchkeeper at 10m -- get pods",
		"at rv:150 -n shop --":                                       "at needs a moment",
		"at rv:150 -s URL -- delete --raw /api/v1/pods":              "kubectl --raw ignores the path of the server, and would reach the present: use 'curl URL/at/rv:150/api/v1/pods'",
		"at rv:150 -s URL get --raw=/api/v1/pods":                    "kubectl --raw ignores",
		"at rv:150 -s URL -- proxy --port 1":                         "kubectl proxy ignores",
		"at rv:150 -s URL -- -v 1 proxy":                             "kubectl proxy ignores",
		"at rv:150 -s URL -- get pods -s http://live":                "-s chooses another server than the gateway",
		"at rv:150 -s URL -- get pods -Ashttp://live":                "chooses another server than the gateway",
		"at rv:150 -s URL -- get pods --server=http://live":          "--server chooses another server than the gateway",
		"at rv:150 -s URL -- --kubeconfig k --context live get pods": "--kubeconfig chooses another server than the gateway",
		"at rv:150 -s URL -- get pods --context live":                "--context chooses another server than the gateway",
		"at rv:150 -s URL -- get pods --cluster live":                "--cluster chooses another server than the gateway",
		"at": "at needs a moment",
	} {
		line, want = strings.ReplaceAll(line, "URL", f.URL), strings.ReplaceAll(want, "URL", f.URL)
		if out, errs, code := run(strings.Fields(line)...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s %s", line, code, out, errs)
		}
	}
	for _, line := range []string{"get pods -A -ojson -lapp=s", "get pod proxy", "-n=shop get pod proxy", "logs a -- --raw", "get pods --selector s -o wide"} {
		if _, errs, code := run(append([]string{"at", "rv:150", "-s", f.URL, "--"}, strings.Fields(line)...)...); code != 7 {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	t.Setenv("WATCHKEEPER_SERVER", "junk")
	if _, errs, _ := run("at", "5m", "get"); !strings.Contains(errs, `WATCHKEEPER_SERVER "junk" is not a URL`) {
		t.Error(errs)
	}
	if out, _, code := run("at", "10m", "--help"); code != 0 || !strings.Contains(out, "Run kubectl (from PATH)") {
		t.Errorf("%d %s", code, out)
	}
	t.Setenv("WATCHKEEPER_SERVER", f.URL)
	if out, _, _ := run("at", "5m", "get"); !strings.Contains(out, "/at/2") {
		t.Errorf("an age was not resolved before the requests: %s", out)
	}
	for moment, want := range map[string]string{"rv:99": "rv:99 is before the recorded history, which begins at 20", "2025-12-31T00:00:00Z": time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05Z07:00") + " is before the recorded history"} {
		if out, errs, code := run("at", moment, "--", "get", "pods"); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", moment, code, errs)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, errs, code := run("at", "now", "get"); code != 1 || !strings.Contains(errs, "kubectl is not in PATH: install it") {
		t.Errorf("%d %s", code, errs)
	}
}
