// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// stamp is the layout of printed times.
const stamp = "2006-01-02 15:04:05Z07:00"

// TestDiffOfYoungRecord: without --from, diff begins where the record does, and says so.
func TestDiffOfYoungRecord(t *testing.T) {
	began := time.Now().Add(-10 * time.Minute).UTC().Truncate(time.Second)
	resource := func(name string, from time.Time) string {
		return fmt.Sprintf(`{"resource":%q,"epochs":[{"span":{"from":{"resourceVersion":"1","time":%q},"to":{"resourceVersion":"9","time":%q}},"gaps":[]}]}`,
			name, from.Format(time.RFC3339Nano), time.Now().UTC().Format(time.RFC3339Nano))
	}
	old := began.Add(-24 * time.Hour)
	for _, test := range []struct {
		args, pods, nodes string
		says              string
		asked             []string // the parameter from of nodes, and of pods
	}{
		{"diff -A", resource("pods", began.Add(200*time.Microsecond)), resource("nodes", began), "the recorded history begins at " + began.Local().Format(stamp) + ": differences since then",
			[]string{began.Format(time.RFC3339Nano), began.Add(time.Millisecond).Format(time.RFC3339Nano)}},
		{"diff -A", resource("pods", began), resource("nodes", old), "recorded only since: pods " + began.Local().Format(stamp), []string{"", began.Format(time.RFC3339Nano)}},
		{"diff -A", resource("pods", old), resource("nodes", old), "", []string{"", ""}},
		{"diff -A --from 30m", resource("pods", old), resource("nodes", began), "", []string{"", ""}},
	} {
		f := newFakeGateway(t, map[string]string{
			"":                   fmt.Sprintf(`{"recording":{"state":"on"},"store":{},"resources":[%s,%s]}`, test.nodes, test.pods),
			"/diff/api/v1/pods":  `{"items":[],"unchanged":1}`,
			"/diff/api/v1/nodes": `{"items":[],"unchanged":1}`,
		})
		_, errs, code := run(strings.Fields(test.args)...)
		says := ""
		if test.says != "" {
			says = test.says + "\n"
		}
		errs, lacks, _ := strings.Cut(errs, "not recorded, so not listed: configmaps, ")
		if rest, ok := strings.CutPrefix(errs, says); lacks == "" || code != 0 || !ok || !strings.HasPrefix(rest, "no differences") || strings.Count(rest, "\n") != 1 {
			t.Errorf("%s: %d %q, want %q", test.args, code, errs, test.says)
		}
		var asked []string
		for _, question := range f.questions() {
			if _, from, ok := strings.Cut(question, "?from="); ok {
				from, _, _ = strings.Cut(strings.ReplaceAll(from, "%3A", ":"), "&")
				asked = append(asked, from)
			}
		}
		for i, want := range test.asked {
			if len(asked) != 2 || want != "" && asked[i] != want || want == "" && strings.HasPrefix(asked[i], began.Format("2006-01-02T15:04")) {
				t.Errorf("%s: asked from %q, want %q", test.args, asked, test.asked)
			}
		}
	}
}

// TestNoDiffOfYoungRecord: without objects, diff does not say that there were none before the
// record began.
func TestNoDiffOfYoungRecord(t *testing.T) {
	began := time.Now().Add(-10 * time.Minute).UTC().Truncate(time.Second)
	newFakeGateway(t, map[string]string{
		"":                  strings.ReplaceAll(recordedIndex, "2026-01-01T00:00:00Z", began.Format(time.RFC3339)),
		"/diff/api/v1/pods": `{"items":[]}`,
	})
	at := began.Format(stamp)
	want := "the recorded history begins at " + at + ": differences since then\n" +
		"no differences of pods between " + at + " and now: there are no objects at either moment\n"
	if _, errs, code := run("diff", "pods", "-A", "--utc"); code != 0 || errs != want {
		t.Errorf("%d %q, want %q", code, errs, want)
	}
}

// TestBeginOfExport: the resources of an export begin at different times. Without --from and
// --since, diff and changes say since when all are known, and claim nothing of before.
func TestBeginOfExport(t *testing.T) {
	index := `{"now":"2026-01-02T14:00:00Z","recording":{"state":"ended"},"resources":[`
	for i, name := range []string{"configmaps", "deployments.apps", "pods"} {
		index += fmt.Sprintf(`{"resource":%q,"epochs":[{"span":{"from":{"resourceVersion":"1","time":"2026-01-02T13:5%d:16Z"},"to":{"resourceVersion":"9","time":"2026-01-02T14:00:00Z"}}}]},`, name, 2*i)
	}
	newFakeGateway(t, map[string]string{
		"":                               strings.TrimSuffix(index, ",") + "]}",
		"/diff/apis/apps/v1/deployments": `{"items":[],"unchanged":1}`,
		"/diff/api/v1/pods":              `{"items":[],"unchanged":1}`,
		"/changes":                       `{"from":"2026-01-02T13:00:00Z","to":"2026-01-02T14:00:00Z","items":[{"resource":"pods","name":"a"}]}`,
	})
	for command, want := range map[string]string{
		"diff -A": "the recorded history begins at 2026-01-02 13:52:16Z, that of all 2 resources at 2026-01-02 13:54:16Z: differences since then\n" +
			"no differences between 2026-01-02 13:54:16Z and 2026-01-02 14:00:00Z in the recorded resources (deployments.apps, pods)\n",
		"changes -A": "the recorded history begins at 2026-01-02 13:50:16Z, that of all 3 resources at 2026-01-02 13:54:16Z: changes since then\n",
	} {
		if _, errs, code := run(append(strings.Fields(command), "--utc")...); code != 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %q, want %q", command, code, errs, want)
		}
	}
}

// TestDiffBeforeRecord: an earlier moment than the record has is one line, and diff does not
// run backwards.
func TestDiffBeforeRecord(t *testing.T) {
	f := newFakeGateway(t, map[string]string{
		"":                  strings.Replace(recordedIndex, `"resources"`, `"now":"2026-01-03T00:00:00Z","resources"`, 1),
		"/diff/api/v1/pods": `{"from":{"resourceVersion":"9","time":"2026-01-02T12:00:00.3Z"},"to":{"resourceVersion":"8","time":"2026-01-02T11:59:00Z"},"items":[{"type":"MODIFIED","name":"a","summary":["label team removed"]}]}`,
	})
	for line, want := range map[string]string{
		"diff -A --from 2025-12-31T00:00:00Z":                           "--from is before the recorded history, which begins at 2026-01-01 00:00:00Z: use a later moment",
		"diff -A --from 2025-12-30T00:00:00Z --to 2025-12-31T00:00:00Z": "--to is before the recorded history, which begins at 2026-01-01 00:00:00Z: use a later moment",
		"diff po -A --from 1m --to 12m":                                 "--from 1m is after --to 12m: swap them",
		"diff po -A --from now --to 1m":                                 "--from now is after --to 1m: swap them",
		"diff po -A --from 9 --to 2026-01-02T12:00:00Z":                 "--from 9 is after --to 2026-01-02T12:00:00Z in pods: swap them",
	} {
		if out, errs, code := run(append(strings.Fields(line), "--utc")...); code != 2 || out != "" || errs != "watchkeeper: "+want+"\n" {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
	f.questions()
	run("diff", "po", "-A", "--to", "2026-01-02T12:00:00Z")
	if got := f.questions(); !slices.ContainsFunc(got, func(q string) bool { return strings.Contains(q, "from=2026-01-02T11%3A00%3A00Z") }) {
		t.Errorf("asked %q", got)
	}
}

// TestDiffInGap: a moment in the gaps of many resources is one line, with the moments that
// work.
func TestDiffInGap(t *testing.T) {
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	gapped := func(name string, from, to int) string {
		return fmt.Sprintf(`{"resource":%q,"epochs":[{"span":{"from":{"resourceVersion":"1","time":%q},"to":{"resourceVersion":"99","time":%q}},"gaps":[{"from":{"resourceVersion":"5","time":%q},"to":{"resourceVersion":"8","time":%q}}]}]}`,
			name, at(-1000).Format(time.RFC3339Nano), at(1000).Format(time.RFC3339Nano), at(from).Add(300*time.Millisecond).Format(time.RFC3339Nano), at(to).Add(300*time.Millisecond).Format(time.RFC3339Nano))
	}
	refused := func(name string) string {
		return fmt.Sprintf(`{"kind":"Status","code":410,"message":"x","details":{"kind":%q,"causes":[{"reason":"NotObserved","field":"from","message":"2026-01-02T12:00:10.300Z"}]}}`, name)
	}
	f := newFakeGateway(t, map[string]string{
		"":                   fmt.Sprintf(`{"recording":{"state":"on"},"store":{},"resources":[%s,%s]}`, gapped("nodes", 10, 20), gapped("pods", 12, 25)),
		"/diff/api/v1/pods":  refused("pods"),
		"/diff/api/v1/nodes": refused("nodes"),
	})
	_, errs, code := run("diff", "-A", "--utc", "--from", at(15).Format(time.RFC3339), "--to", at(30).Format(time.RFC3339))
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	want := fmt.Sprintf("watchkeeper: nodes, pods: not observed between %s and %s: these two are the nearest moments that are known",
		at(10).UTC().Format(stamp), at(26).UTC().Format(stamp))
	if code != 2 || len(lines) != 3 || !strings.HasPrefix(lines[1], "not recorded, so not listed: ") || !slices.Contains(lines, want) {
		t.Errorf("%d %s, want %s", code, errs, want)
	}
	if _, errs, _ := run("diff", "-A", "--utc", "--from", at(15).Format(time.RFC3339), "--to", at(18).Format(time.RFC3339)); strings.Count(errs, want) != 1 {
		t.Errorf("both moments are in the gap: %s", errs)
	}
	many := ""
	for range 16 {
		many += gapped("pods", 12, 25) + ","
	}
	f.answers[""] = fmt.Sprintf(`{"recording":{"state":"on"},"store":{},"resources":[%s%s]}`, many, gapped("nodes", 10, 20))
	_, errs, _ = run("diff", "-A", "--utc", "--from", at(15).Format(time.RFC3339), "--to", at(30).Format(time.RFC3339))
	if want := " resources: not observed between "; !strings.Contains(errs, want) {
		t.Errorf("of many: %s", errs)
	}
}

// TestUnknownIsNotUnchanged: of a time that was not observed, diff and history say that
// nothing is known, not that nothing has changed.
func TestUnknownIsNotUnchanged(t *testing.T) {
	f := newFakeGateway(t, map[string]string{
		"":                   strings.Replace(recordedIndex, `"recording":`, `"now":"2026-01-02T15:59:59Z","upstream":{"answers":false,"lastContact":"2026-01-02T15:00:00Z"},"recording":`, 1),
		"/diff/api/v1/nodes": `{"items":[],"unchanged":1}`,
		"/versions/api/v1/nodes/n": `{"resource":"nodes","items":[],"unobserved":[
			{"resource":"nodes","reason":"gap","from":"2026-01-02T14:00:00Z","to":"2026-01-02T14:00:30Z"},
			{"resource":"nodes","reason":"silent","from":"2026-01-02T15:00:00Z","to":"2026-01-02T16:00:00Z"}]}`,
		"/failing/api/v1/nodes/n": `{"items":[]}`,
	})
	for line, want := range map[string]string{ // what begins with "watchkeeper: " is an error
		"diff no --from 2026-01-02T15:10:00Z --to 2026-01-02T15:20:00Z":          "watchkeeper: nothing is known of differences of nodes between 2026-01-02 15:10:00Z and ",
		"diff no --from 2026-01-02T14:10:00Z --to 2026-01-02T15:20:00Z":          "no differences of nodes between 2026-01-02 14:10:00Z and ",
		"history no/n --since 2026-01-02T14:00:10Z --until 2026-01-02T14:00:20Z": "watchkeeper: nothing is known of nodes n in that time\n",
		"history no/n --since 2026-01-02T15:10:00Z --until 2026-01-02T15:20:00Z": "watchkeeper: nothing is known of nodes n in that time\n",
		"history no/n --since 2026-01-02T15:10:00Z":                              "watchkeeper: nothing is known of nodes n in that time\n",
		"history no/n --since 2026-01-02T13:00:00Z --until 2026-01-02T14:00:20Z": "nodes n has no observed changes in that time.\nnot observed between 2026-01-02 14:00:00Z and ",
	} {
		f.questions()
		wantCode := 0
		if strings.HasPrefix(want, "watchkeeper: ") {
			if wantCode = 1; strings.HasPrefix(line, "diff") {
				wantCode = 2
			}
		}
		if out, errs, code := run(append(strings.Fields(line), "--utc")...); out != "" || code != wantCode || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %q %q, want %d %q", line, code, out, errs, wantCode, want)
		}
	}
}

// TestDiffOnFullDisk: resources whose record ends for the same reason have one line, with a
// moment that works.
func TestDiffOnFullDisk(t *testing.T) {
	const refused = `{"kind":"Status","code":410,"message":"x","details":{"causes":[{"reason":"RecordEnded"}]}}`
	index := strings.Replace(recordedIndex, `"recording":{"state":"on"}`, `"recording":{"state":"failed","reason":"the disk is full"}`, 1)
	i := strings.Index(index, `"nodes"`)
	f := newFakeGateway(t, map[string]string{
		"":                  index[:i] + strings.Replace(index[i:], "2026-01-03T00:00:00Z", "2026-01-02T23:59:20.5Z", 1),
		"/diff/api/v1/pods": refused, "/diff/api/v1/nodes": refused,
	})
	_, errs, code := run("diff", "po,no", "-A", "--from", "2026-01-02T15:00:00Z", "--utc")
	want := "watchkeeper: pods, nodes: nothing is recorded since 2026-01-03 00:00:00Z: the disk is full; all of them are known until 2026-01-02 23:59:20Z\n"
	if !strings.HasPrefix(errs, want) || code != 2 || len(f.questions()) == 0 {
		t.Errorf("%d %q, want %q", code, errs, want)
	}
}

// TestDiffAcrossGap: diff says what was not observed between its moments, of all resources,
// as changes does. An object may have lived and died meanwhile.
func TestDiffAcrossGap(t *testing.T) {
	span := func(resource, reason, clock string) string {
		return fmt.Sprintf(`{"resource":%q,"reason":%q,"from":"2026-01-02T14:%[3]s:00Z","to":"2026-01-02T14:%[3]s:30Z"}`, resource, reason, clock)
	}
	answer := func(spans ...string) string {
		return `{"items":[{"type":"ADDED","name":"a","summary":["created"]}],"unobserved":[` + strings.Join(spans, ",") + `]}`
	}
	f := newFakeGateway(t, map[string]string{
		"":                   recordedIndex,
		"/diff/api/v1/pods":  answer(span("pods", "gap", "10"), span("pods", "late", "30")),
		"/diff/api/v1/nodes": answer(span("nodes", "gap", "00")),
	})
	gap := func(minute, rest string) string {
		return fmt.Sprintf("not observed between 2026-01-02 14:%[1]s:00Z and 2026-01-02 14:%[1]s:30Z: %s\n", minute, rest)
	}
	const outcome = "of changes in that time, only the outcome is known"
	pods := gap("10", outcome) + gap("30", "changes in that time have the time of its end")
	for line, want := range map[string]string{
		"diff po -A":      pods,
		"diff po,no -A":   gap("00", outcome) + pods,
		"diff no -o json": gap("00", outcome),
	} {
		out, errs, code := run(append(strings.Fields(line), "--utc", "--from", "2026-01-02T13:00:00Z", "--to", "2026-01-02T15:00:00Z")...)
		if code != 1 || out == "" || errs != want {
			t.Errorf("%s: %d %q, want %q", line, code, errs, want)
		}
		if strings.HasSuffix(line, "json") && !strings.Contains(out, `"unobserved": [`) {
			t.Errorf("%s: %s", line, out)
		}
	}
	f.answers["/diff/api/v1/pods"] = `{"items":[{"type":"ADDED","name":"a","summary":["created"]}],"continue":"x","unobserved":[` + span("pods", "gap", "10") + `]}`
	f.answers["older"] = answer()
	if _, errs, _ := run("diff", "po", "-A", "--utc", "--from", "2026-01-02T13:00:00Z", "--to", "2026-01-02T15:00:00Z"); errs != gap("10", outcome) {
		t.Errorf("of two pages: %q", errs)
	}
}
