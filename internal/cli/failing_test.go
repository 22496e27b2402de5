// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The first lines of a Pod's history say how its containers ended.
func TestHistoryOfCrashes(t *testing.T) {
	const path = "/api/v1/namespaces/default/pods/web-0"
	const stampFormat = "2006-01-02 15:04:05Z07:00"
	stamp := noon.Format(stampFormat)
	crash := `{"name":"web","state":"waiting","waiting":"CrashLoopBackOff","reason":"OOMKilled","exitCode":137,"signal":9,"finishedAt":"` + noon.Format(time.RFC3339) + `"}`
	image := `{"name":"log","state":"waiting","waiting":"ErrImagePull","reason":"ErrImagePull","message":"no such\n image\u001b[31m\n"}`
	deleted := `{"type":"DELETED","resourceVersion":"90","time":"` + noon.Format(time.RFC3339) + `","summary":["deleted"]}`
	for name, test := range map[string]struct{ versions, failing, at, want string }{
		"failing":        {"", `{"failing":true,"since":"` + noon.Format(time.RFC3339) + `","sinceKnown":true,"restarts":7,"containers":[` + crash + `]}`, "", "failing since NOON; restarts: 7\n  web is waiting (CrashLoopBackOff); it ended NOON with exit code 137 (signal 9): OOMKilled\n"},
		"before":         {"", `{"failing":true,"since":"` + noon.Format(time.RFC3339) + `","restarts":0,"containers":[` + image + `]}`, "", "failing since before NOON, when the recording starts; restarts: 0\n  log is waiting: ErrImagePull: no such image\uFFFD[31m\n"},
		"began in a gap": {"", `{"failing":true,"since":"` + noon.Format(time.RFC3339) + `","notBefore":"` + noon.Add(-time.Minute).Format(time.RFC3339) + `","sinceKnown":true,"restarts":0,"containers":[]}`, "", "failing since NOON (not before BEFORE); restarts: 0\n"},
		"recovered":      {"", `{"failing":false,"restarts":7,"containers":[` + crash + `]}`, "", "not failing; restarts: 7\n  web is waiting (CrashLoopBackOff); it ended NOON with exit code 137 (signal 9): OOMKilled\n"},
		"well":           {"", `{"failing":false,"restarts":0,"containers":[]}`, "", ""},
		"deleted":        {deleted, `{"failing":false,"restarts":7,"containers":[` + crash + `]}`, "?at=rv%3A89", "deleted NOON (restarts: 7)\n  web was waiting (CrashLoopBackOff); it ended NOON with exit code 137 (signal 9): OOMKilled\nNOON  90        deleted\n"},
		"its end": {deleted, `{"failing":false,"failedBefore":true,"since":"` + noon.Format(time.RFC3339) + `","sinceKnown":true,"restarts":1,"containers":[` + crash + `],"node":"node-ghost","phase":"Failed",` +
			`"disruption":{"since":"` + noon.Format(time.RFC3339) + `","reason":"DeletionByPodGC","message":"PodGC: node not found"}}`, "?at=rv%3A89",
			"deleted NOON (was on node-ghost; phase Failed; failing since NOON; restarts: 1)\n  DisruptionTarget since NOON: DeletionByPodGC: PodGC: node not found\n" +
				"  web was waiting (CrashLoopBackOff); it ended NOON with exit code 137 (signal 9): OOMKilled\nNOON  90        deleted\n"},
		"gone well":   {deleted, `{"failing":false,"restarts":0,"containers":[],"node":"n","phase":"Running"}`, "?at=rv%3A89", "deleted NOON (was on n; restarts: 0)\nNOON  90        deleted\n"},
		"terminating": {"", `{"failing":false,"failedBefore":true,"since":"` + noon.Format(time.RFC3339) + `","sinceKnown":true,"restarts":1,"containers":[]}`, "", "terminating; was failing since NOON; restarts: 1\n"},
		"not deleted": {"", `{"failing":false,"finding":{"title":"Terminating","since":"` + noon.Format(time.RFC3339) + `"},"restarts":0,"containers":[]}`, "", "Terminating since NOON; restarts: 0\n"},
		"not ready":   {"", `{"failing":false,"finding":{"title":"not ready\u001b"},"restarts":1,"containers":[` + crash + `]}`, "", "not ready\uFFFD; restarts: 1\n  web is waiting (CrashLoopBackOff); it ended NOON with exit code 137 (signal 9): OOMKilled\n"},
		"evicted": {"", `{"failing":true,"since":"` + noon.Format(time.RFC3339) + `","sinceKnown":true,"restarts":0,"containers":[],"phase":"Failed","reason":"Evicted","message":"low on\nmemory",` +
			`"disruption":{"since":"` + noon.Format(time.RFC3339) + `","reason":"TerminationByKubelet","message":"low on\nmemory"}}`, "",
			"failing since NOON; restarts: 0\n  Evicted: low on memory\n  DisruptionTarget since NOON: TerminationByKubelet\n"},
		"unschedulable": {"", `{"failing":false,"restarts":0,"containers":[],"phase":"Pending","unschedulable":{"since":"` + noon.Format(time.RFC3339) + `","reason":"Unschedulable","message":"0/5 nodes are available: 5 Insufficient\u001b cpu"}}`, "",
			"cannot be scheduled since NOON: 0/5 nodes are available: 5 Insufficient\uFFFD cpu\n"},
		"in a gap": {strings.Replace(deleted, `,"summary"`, `,"notBefore":"`+noon.Add(-time.Minute).Format(time.RFC3339)+`","summary"`, 1), `{"failing":false,"restarts":7,"containers":[` + crash + `]}`, "?at=rv%3A89",
			"deleted between BEFORE and NOON (restarts: 7)\n  web was waiting (CrashLoopBackOff); it ended NOON with exit code 137 (signal 9): OOMKilled\nNOON  90        deleted (not before BEFORE)\n"},
		"full disk": {deleted, `{"kind":"Status","code":503,"message":"not recorded: pods are recorded until …"}`, "?at=rv%3A89", "NOON  90        deleted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeGateway(t, map[string]string{"/versions" + path: `{"resource":"pods","items":[` + test.versions + `]}`, "/failing" + path: test.failing})
			out, errs, code := run("history", "pod/web-0")
			if diff := cmp.Diff(strings.NewReplacer("NOON", stamp, "BEFORE", noon.Add(-time.Minute).Format(stampFormat)).Replace(test.want), out); diff != "" || code != 0 {
				t.Errorf("%d %s %s", code, errs, diff)
			}
			if got := f.questions(); !slices.Contains(got, "/failing"+path+test.at) {
				t.Errorf("asked %q", got)
			}
			if out, errs, code := run("history", "pod/web-0", "-o", "json"); code != 0 || strings.Contains(out, "failing") {
				t.Errorf("%d %s %s", code, errs, out)
			}
		})
	}
}

// TestHistoryInGap: whether a Pod failed in a gap is not known, but when the gap began it is.
func TestHistoryInGap(t *testing.T) {
	const path = "/api/v1/namespaces/default/pods/web-0"
	f := newFakeGateway(t, map[string]string{
		"":                 recordedIndex, // its gap is from 14:00:00 to 14:00:30
		"/versions" + path: `{"resource":"pods","items":[{"type":"ADDED","resourceVersion":"8","time":"2026-01-02T12:00:00Z","summary":["created"]}]}`,
		"/failing" + path:  `{"kind":"Status","code":410,"message":"in a gap"}`,
		"/failing" + path + "?at=2026-01-02T14%3A00%3A00Z": `{"failing":true,"since":"2026-01-02T12:30:00Z","sinceKnown":true,"restarts":7,"containers":[]}`,
	})
	out, errs, code := run("history", "pod/web-0", "--until", "2026-01-02T14:00:10.5Z", "--utc")
	if want := "at 2026-01-02 14:00:00Z: failing since 2026-01-02 12:30:00Z; restarts: 7\n2026-01-02 12:00:00Z  8         created\n"; out != want || code != 0 {
		t.Errorf("%d %s", code, cmp.Diff(want, out))
	}
	if want := "whether the Pod failed at 2026-01-02 14:00:10Z is not known: not observed between 2026-01-02 14:00:00Z and 2026-01-02 14:00:30Z\n"; errs != want {
		t.Error(cmp.Diff(want, errs))
	}
	if got := f.questions(); !slices.Contains(got, "/failing"+path+"?at=2026-01-02T14%3A00%3A10.5Z") {
		t.Errorf("asked %q", got)
	}
}

// TestUntilBeforeRecord: a resourceVersion from before the record is no lack of changes.
func TestUntilBeforeRecord(t *testing.T) {
	newFakeGateway(t, map[string]string{
		"": strings.ReplaceAll(recordedIndex, `"resourceVersion":"1"`, `"resourceVersion":"278"`),
		"/versions/api/v1/namespaces/default/pods/web-0": `{"resource":"pods","items":[]}`,
		"/changes": `{"items":[]}`,
	})
	for _, line := range []string{"history pod/web-0 --until 100", "changes pods --since 99 --until 100"} {
		out, errs, code := run(append(strings.Fields(line), "--utc")...)
		if want := "watchkeeper: --until 100 of pods is before the recorded history, which begins at 278 (2026-01-01 00:00:00Z): use a later moment\n"; errs != want || out != "" || code != 1 {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
}

// TestClosedHistory: a command does not wait for the API server to say that no history is open.
func TestClosedHistory(t *testing.T) {
	f := newFakeGateway(t, map[string]string{"": `{"recording":{"state":"failed","reason":"no answer; what is recorded in /data is kept"},"resources":[]}`})
	for _, line := range []string{"changes", "history pod/web-0", "diff", "diff pods"} {
		if _, errs, code := run(strings.Fields(line)...); code == 0 || errs != "watchkeeper: the history is not open: no answer; what is recorded in /data is kept\n" {
			t.Errorf("%s: %d %q", line, code, errs)
		}
		if got := f.questions(); !slices.Equal(got, []string{"?namespace=default"}) {
			t.Errorf("%s asked %q", line, got)
		}
	}
}

// TestDenied: a command says what it leaves out, and what is missing if it could show nothing.
func TestDenied(t *testing.T) {
	const pods = `{"resource":"pods","path":"/api/v1/pods","epochs":[{"epoch":1,"span":{"from":{"resourceVersion":"1","time":"2026-01-01T00:00:00Z"},"to":{"resourceVersion":"9","time":"2026-01-01T01:00:00Z"}},"gaps":[]}]}`
	newFakeGateway(t, map[string]string{
		"?namespace=shop":                   `{"recording":{"state":"on"},"resources":[` + pods + `],"denied":["events","secrets"]}`,
		"":                                  `{"recording":{"state":"on"},"resources":[],"denied":["events","pods","secrets"]}`,
		"?namespace=foreign":                `{"recording":{"state":"on"},"resources":[` + strings.ReplaceAll(pods, "pods", "nodes") + `],"denied":["events","pods","secrets"]}`,
		"/changes":                          `{"items":[]}`,
		"/diff/api/v1/namespaces/shop/pods": `{"resource":"pods","items":[],"unchanged":1}`,
	})
	for line, want := range map[string]string{
		"changes -n shop":  "left out, because you may not list them now: secrets\n",
		"diff -n shop":     "left out, because you may not list them now: secrets\n",
		"changes -n other": "you may list none of the recorded resources in namespace other: 'kubectl auth can-i --list -n other' says what you may\n",
		"diff -n other":    "you may list none of the recorded resources in namespace other: ",
		// Nodes, which everybody may list here, are in no namespace.
		"changes -n foreign": "you may list none of the recorded resources in namespace foreign: ",
		"diff -n foreign":    "you may list none of the recorded resources in namespace foreign: ",
		"changes -A":         "you may list none of the recorded resources in all namespaces: name a namespace with -n\n",
	} {
		if _, errs, _ := run(strings.Fields(line)...); !strings.Contains(errs, want) {
			t.Errorf("%s says %q, want %q", line, errs, want)
		}
	}
}

// TestUnknownNamespace: a command about a namespace that the record does not have says so, not
// that nothing changed or fails there.
func TestUnknownNamespace(t *testing.T) {
	const epochs = `"epochs":[{"epoch":1,"span":{"from":{"resourceVersion":"1","time":"2026-01-01T00:00:00Z"},"to":{"resourceVersion":"9","time":"2026-01-01T01:00:00Z"}},"gaps":[]}]`
	newFakeGateway(t, map[string]string{
		"":                                  `{"recording":{"state":"on"},"resources":[{"resource":"namespaces",` + epochs + `},{"resource":"pods",` + epochs + `}]}`,
		"/changes":                          `{"items":[]}`,
		"/diff/api/v1/namespaces/nope/pods": `{"resource":"pods","items":[]}`,
		"/watchkeeper/v1/findings":          `{"items":[],"objects":15}`,
	})
	for _, line := range []string{"changes pods -n nope", "diff -n nope", "diagnose -n nope", "story pods/web -n nope", "history pods/web -n nope", "at 5s -n nope -- get pods", "record export -n nope -o " + filepath.Join(t.TempDir(), "a.wkr")} {
		if out, errs, code := run(strings.Fields(line)...); code == 0 || !strings.Contains(errs, "nothing is recorded in namespace nope since 2") {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
}

// TestNamespaceCannotBeKnown: a namespace of which nothing is found because the question fails, or
// because Namespaces are not recorded yet, is not reported as one that does not exist.
func TestNamespaceCannotBeKnown(t *testing.T) {
	const epochs = `"epochs":[{"epoch":1,"span":{"from":{"resourceVersion":"1","time":"2026-01-01T00:00:00Z"},"to":{"resourceVersion":"9","time":"2026-01-01T01:00:00Z"}},"gaps":[]}]`
	const index, asked = `{"recording":{"state":"on"},"resources":[{"resource":"namespaces",%s},{"resource":"pods",` + epochs + `}]}`, "/versions/api/v1/namespaces/shop"
	const unavailable, expired = `{"kind":"Status","code":503,"message":"the API server does not answer"}`, `{"kind":"Status","code":401,"message":"Unauthorized"}`
	export := "record export -o " + filepath.Join(t.TempDir(), "a.wkr")
	for _, test := range []struct {
		namespaces, answer, export string
		line, want                 string
	}{
		{epochs, unavailable, "", "changes pods", "the API server does not answer"},
		{epochs, expired, "", "changes pods", "Unauthorized"},
		{epochs, expired, "", "diagnose", "Unauthorized"},
		{epochs, "not JSON", "", "diff pods", "cannot be decoded"},
		{epochs, expired, unavailable, export, "the API server does not answer"},
		{epochs, `{"items":[]}`, unavailable, export, "the API server does not answer"},
		{`"epochs":[]`, `{"kind":"Status","code":404,"message":"nothing is recorded"}`, "", "changes pods", "of pods in namespace shop"},
	} {
		answers := map[string]string{
			"": fmt.Sprintf(index, test.namespaces), asked: test.answer, "/export": test.export,
			"/changes": `{"items":[]}`, "/diff/api/v1/namespaces/shop/pods": `{"resource":"pods","items":[]}`, "/watchkeeper/v1/findings": `{"items":[]}`,
		}
		newFakeGateway(t, answers)
		_, errs, _ := run(append(strings.Fields(test.line), "-n", "shop")...)
		if !strings.Contains(errs, test.want) || strings.Contains(errs, "nothing is recorded") {
			t.Errorf("%s, asked %s: %s, want %q", test.line, test.answer, errs, test.want)
		}
	}
}
