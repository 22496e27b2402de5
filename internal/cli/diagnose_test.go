// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// TestDiagnoseRecordings: what fails in the recordings of demo, at the moments of
// testdata/diagnose/moments.txt. A recording that is there has moments.
func TestDiagnoseRecordings(t *testing.T) {
	const demo, dir = "../../demo", "testdata/diagnose"
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	b, err := os.ReadFile(dir + "/moments.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	moments := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		name, moment, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		if moments[name] == nil {
			names = append(names, name)
		}
		moments[name] = append(moments[name], moment)
	}
	files, err := filepath.Glob(demo + "/*.wkr")
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := filepath.Glob(demo + "/scenarios/*.wkr")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, scenarios...) {
		if name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), demo+"/"), ".wkr"); moments[name] == nil {
			t.Errorf("%s has no moments in %s/moments.txt", name, dir)
		}
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file := filepath.Join(demo, name+".wkr")
			got := ""
			for _, moment := range moments[name] {
				out, errs, code := run("diagnose", file, "--utc", "--at", moment)
				got += fmt.Sprintf("$ watchkeeper diagnose demo/%s.wkr --utc --at %s\n%s%sexit code %d\n", name, moment, out, errs, code)
			}
			golden(t, filepath.Join("diagnose", filepath.Base(name)+".txt"), got)
		})
	}
}

// TestDiagnoseFile: a recording is read in all namespaces or in one, and what is asked of it
// wrongly is an error.
func TestDiagnoseFile(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	t.Setenv("TMPDIR", t.TempDir())
	const file = "../../demo/incident.wkr"
	out, errs, code := run("diagnose", file, "--at", "3m20s", "-o", "json")
	var found api.Findings
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 4 || errs != "" || len(found.Items) != 1 || found.Items[0].Rule != "crash" || found.Items[0].Touches != 6 {
		t.Errorf("%d %v %s %s", code, err, errs, out)
	}
	other, _, code := run("diagnose", file, "--at", "3m20s", "-o", "yaml")
	asJSON, err := yaml.YAMLToJSON([]byte(other))
	var again api.Findings
	if err != nil || json.Unmarshal(asJSON, &again) != nil || code != 4 || cmp.Diff(found, again) != "" {
		t.Errorf("as YAML: %d %v %s", code, err, other)
	}
	short := filepath.Join(t.TempDir(), "short.wkr")
	stream := func(kind, head string) string {
		return fmt.Sprintf(`{"stream":{"version":"v1","resource":"%ss","listKind":"%sList","rv":5,"at":"2026-11-21T10:00:00Z"}}`, strings.ToLower(kind), kind) +
			"\n" + fmt.Sprintf(`{"form":{"json":{"kind":%q,"apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"5"}}}}`, kind) + "\n" + `{"head":{"rv":5,"at":"2026-11-21T10:0` + head + `Z"}}`
	}
	record(t, short, strings.SplitSeq(`{"recording":{"format":1,"exact":true}}`+"\n"+stream("Pod", "0:50")+"\n"+stream("Node", "1:50"), "\n"))
	if out, errs, code := run("diagnose", short, "--utc"); code != 3 || !strings.Contains(out, "not observed: pods") || strings.Contains(out, "nothing fails") {
		t.Errorf("of Pods for less of its time: %d %s %s", code, out, errs)
	}
	if out, _, code := run("diagnose", file, "--at", "3m20s", "-n", "kube-system"); code != 0 || !strings.Contains(out, "in namespace kube-system: nothing fails of ") {
		t.Errorf("in another namespace: %d %s", code, out)
	}
	for _, test := range []struct{ args, want string }{
		{"none.wkr", "no such file"},
		{"diagnose_test.go", "is not a recording"},
		{".", "is a directory"},
		{damagedAt(t, file, 100), "the recording is damaged: line 1: from here it cannot be unpacked: "},
		{damagedAt(t, file, 30_000), "copy it again"},
		{file + " --at rv:100", "a resourceVersion is that of one resource"},
		{file + " --at 20h", "before the recorded history"},
		{file + " -o wide", `--output "wide" is unknown`},
		{file + " " + file, "takes one FILE"},
		{file + " --max-bytes 1Ki", "raise --max-bytes"},
	} {
		out, errs, code := run(append([]string{"diagnose"}, strings.Fields(test.args)...)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, "watchkeeper: ") || !strings.Contains(errs, test.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %q %q", test.args, code, out, errs)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestDiagnoseNamespaceOfMoment: a namespace that did not exist at the moment is not one in which
// nothing fails.
func TestDiagnoseNamespaceOfMoment(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	file := filepath.Join(t.TempDir(), "shop.wkr")
	shop := func(typ, minute string, rv int) string {
		return fmt.Sprintf(`{"event":{"type":%q,"at":"2026-11-21T10:%s:00Z","json":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","uid":"u","resourceVersion":"%d"}}}}`, typ, minute, rv)
	}
	record(t, file, slices.Values([]string{
		`{"recording":{"format":1,"exact":true}}`, `{"stream":{"version":"v1","resource":"namespaces","listKind":"NamespaceList","rv":5,"at":"2026-11-21T10:00:00Z"}}`,
		`{"form":{"json":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"a","resourceVersion":"5"}}}}`,
		shop("ADDED", "01", 6), shop("DELETED", "03", 7), `{"head":{"rv":7,"at":"2026-11-21T10:04:00Z"}}`,
		`{"stream":{"version":"v1","resource":"pods","listKind":"PodList","rv":5,"at":"2026-11-21T10:00:00Z"}}`,
		`{"form":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"","resourceVersion":"5"}}}}`, `{"head":{"rv":7,"at":"2026-11-21T10:04:00Z"}}`,
	}))
	for at, code := range map[string]int{"2026-11-21T10:00:30Z": 1, "2026-11-21T10:02:00Z": 0, "2026-11-21T10:03:30Z": 1} {
		want := "watchkeeper: namespace shop did not exist at " + strings.Replace(at, "T", " ", 1) + ": 'watchkeeper history ns/shop' says when it did\n"
		if out, errs, got := run("diagnose", file, "-n", "shop", "--utc", "--at", at); got != code || (code == 1) != (errs == want) {
			t.Errorf("at %s: %d %s%s", at, got, out, errs)
		}
	}
}

// damagedAt returns a copy of a file with four more bytes.
func damagedAt(t *testing.T, file string, at int) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "damaged.wkr")
	if err := os.WriteFile(copied, slices.Insert(data, at, []byte("#*#*")...), 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestDiagnose asks a gateway: the exit code is by the worst severity, and foreign text cannot
// control the terminal.
func TestDiagnose(t *testing.T) {
	finding := func(severity string) string {
		return `{"rule":"create","severity":"` + severity + `","kind":"Deployment","namespace":"shop","name":"web","title":"Pods cannot be created: 0 of 1 exist","messages":["FailedCreate: \u001b[31m"],` +
			`"since":"2026-01-02T11:59:00Z","touches":5,"objects":[{"kind":"ReplicaSet","namespace":"shop","name":"web-1"},{"kind":"ReplicaSet","name":"web-2"},{"kind":"ReplicaSet","name":"web-3"},{"kind":"ReplicaSet","name":"web-4"}],` +
			`"before":[{"resource":"resourcequotas","path":"/x","kind":"ResourceQuota","namespace":"shop","name":"compute","type":"MODIFIED","resourceVersion":"7","time":"2026-01-02T11:58:00Z","notBefore":"2026-01-02T11:57:00Z","summary":["hard.pods 5 → 1"],"by":[{"manager":"kubectl","operation":"Update"}]},{"kind":"ResourceQuota","namespace":"shop","name":"compute","type":"DELETED","time":"2026-01-02T11:59:30Z","summary":["deleted"]}],` +
			`"unobserved":[{"from":"2026-01-02T11:50:00Z","to":"2026-01-02T11:55:00Z"}]}`
	}
	const rest = `,"at":"2026-01-02T12:00:00Z","objects":7,"denied":["nodes"],"notRecorded":["events"],"leftOut":["3 findings"]`
	for _, test := range []struct {
		items string
		code  int
	}{{"", 0}, {finding("info"), 0}, {finding("warning"), 3}, {finding("info") + "," + finding("critical") + "," + finding("warning"), 4}} {
		f := newFakeGateway(t, map[string]string{"/watchkeeper/v1/findings": `{"items":[` + test.items + `]` + rest + `}`})
		out, errs, code := run("diagnose", "-n", "shop", "--utc")
		if code != test.code || errs != "" {
			t.Errorf("%s: %d %s%s", test.items, code, out, errs)
		}
		if asked := f.questions(); !slices.Contains(asked, "/watchkeeper/v1/findings?at=now&namespace=shop") {
			t.Errorf("asked %q", asked)
		}
		if test.code != 3 {
			continue
		}
		want := `2026-01-02 12:00:00Z: 1 warning
! Deployment shop/web  Pods cannot be created: 0 of 1 exist
    since before 2026-01-02 11:59:00Z, for more than 1m0s: web-1, web-2, web-3, and 2 more
    says: FailedCreate: ` + "\uFFFD" + `[31m
    just before: 2026-01-02 11:58:00Z (not before 2026-01-02 11:57:00Z)  ResourceQuota shop/compute  hard.pods 5 → 1  by kubectl
    since then: 2026-01-02 11:59:30Z  ResourceQuota shop/compute  deleted
    just before: not observed from 2026-01-02 11:50:00Z to 2026-01-02 11:55:00Z: a cause may lie there
left out, because you may not list them now: nodes
not recorded, so not looked at: events
left out: 3 findings
`
		if diff := cmp.Diff(want, out); diff != "" {
			t.Error(diff)
		}
	}
	newFakeGateway(t, map[string]string{"/watchkeeper/v1/findings": `{"items":[],"namespace":"default","at":"2026-01-02T12:00:00Z","objects":7}`})
	for line, want := range map[string]string{
		"diagnose --utc":            "2026-01-02 12:00:00Z in namespace default: nothing fails of 7 objects\nother namespaces were not looked at: -A looks at all\n",
		"diagnose --utc -n default": "2026-01-02 12:00:00Z in namespace default: nothing fails of 7 objects\n",
	} {
		if out, errs, code := run(strings.Fields(line)...); code != 0 || out != want {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
	newFakeGateway(t, map[string]string{"/watchkeeper/v1/findings": `{"kind":"Status","code":403,"message":"you may not"}`})
	if out, errs, code := run("diagnose", "-A"); code != 1 || out != "" || errs != "watchkeeper: you may not\n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

// TestDiagnoseSince: a finding whose objects began to fail at different times, or in a gap, says so.
func TestDiagnoseSince(t *testing.T) {
	for since, want := range map[string]string{
		`"touches":20,"others":19,"othersSince":"2026-01-02T11:58:00Z"`: "the first since 2026-01-02 11:35:00Z, for 25m0s, 19 since 2026-01-02 11:58:00Z\n",
		`"touches":5,"others":2,"othersSince":"2026-01-02T11:58:00Z"`:   "3 since 2026-01-02 11:35:00Z, for 25m0s, 2 since 2026-01-02 11:58:00Z\n",
		`"touches":1,"notBefore":"2026-01-02T11:34:00Z"`:                "since 2026-01-02 11:35:00Z (not before 2026-01-02 11:34:00Z), for at least 25m0s\n",
	} {
		newFakeGateway(t, map[string]string{"/watchkeeper/v1/findings": `{"at":"2026-01-02T12:00:00Z","items":[{"severity":"warning","kind":"Deployment","name":"web","title":"Pods not ready","since":"2026-01-02T11:35:00Z","sinceKnown":true,` + since + `}]}`})
		if out, errs, code := run("diagnose", "-A", "--utc"); code != 3 || !strings.HasSuffix(out, "\n    "+want) {
			t.Errorf("%d %s%s, want %s", code, out, errs, want)
		}
	}
}

// TestSuggestions: a command that is suggested has the flags that say what was asked.
func TestSuggestions(t *testing.T) {
	f := newFakeGateway(t, map[string]string{"": recordedIndex,
		"/watchkeeper/v1/findings": `{"at":"2026-01-02T12:00:00Z","items":[{"severity":"info","kind":"Deployment","name":"web","title":"x","beforeLeftOut":2}]}`})
	server := " -s " + f.URL
	for line, want := range map[string]string{
		"changes deploy/web":                        "see 'watchkeeper history deploy/web" + server + "' for",
		"history deploy -n shop":                    "'watchkeeper diff deploy -n shop" + server + "' compares",
		"diagnose deploy/web -n shop":               "says 'watchkeeper story deploy/web -n shop" + server + "'",
		"changes pods nodes --since 7 -n shop":      "as in 'watchkeeper changes pods --since 7 -n shop" + server + "'",
		"diagnose -A":                               "'watchkeeper changes" + server + " -A' lists",
		"changes deploy/web -n a&b":                 "deploy/web -n 'a&b'" + server + "'",
		"changes deploy/web --kubeconfig /dev/null": "deploy/web" + server + " --kubeconfig /dev/null'",
	} {
		out, errs, _ := run(append(strings.Fields(line), "-s", f.URL)...)
		if !strings.Contains(out+errs, want) {
			t.Errorf("%s: %s%s, want %s", line, out, errs, want)
		}
	}
}

// TestDiagnoseAtBegin: that the record begins just before findings is said once, and no gap.
func TestDiagnoseAtBegin(t *testing.T) {
	const one = `{"severity":"warning","kind":"Node","name":"n","title":"NotReady","recordedSince":"2026-01-02T11:5%d:00Z"}`
	newFakeGateway(t, map[string]string{"/watchkeeper/v1/findings": fmt.Sprintf(`{"at":"2026-01-02T12:00:00Z","items":[`+one+`,`+one+`]}`, 1, 2)})
	want := "2026-01-02 12:00:00Z: 2 warning\n! Node n  NotReady\n! Node n  NotReady\nnothing is recorded before 2026-01-02 11:52:00Z: a cause may lie there\n"
	if out, errs, code := run("diagnose", "-A", "--utc"); code != 3 || out != want {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

// TestDiagnoseMistakes: an object is no file, and a moment before the record is refused in the words
// and the zone of the other commands.
func TestDiagnoseMistakes(t *testing.T) {
	newFakeGateway(t, map[string]string{"": recordedIndex})
	for line, want := range map[string]string{
		"diagnose deploy/web":                      "there is no file deploy/web: diagnose takes a recording, or nothing: what happened to deploy web says 'watchkeeper story deploy/web'\n",
		"diagnose --utc --at 2025-12-31T00:00:00Z": "2025-12-31 00:00:00Z is before the recorded history, which begins at 2026-01-01 00:00:00Z: use a later moment\n",
	} {
		if out, errs, code := run(strings.Fields(line)...); code != 1 || out != "" || errs != "watchkeeper: "+want {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}
