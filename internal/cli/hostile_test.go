// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/watchkeeper/watchkeeper/internal/cli"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// forged is a text that moves the cursor, erases a line, sets the title, hides text, turns the
// direction of writing, has a colour of the commands and begins its own line.
const forged = "\x1b[1A\x1b[2K\x1b]0;T\a\x1b[8m\u009b1A\u202e\x1b[31mRED\r\nFORGED "

// ours matches the colours of the commands.
var ours = regexp.MustCompile(`\x1b\[(0|1|2|31|32|33|36)m`)

// hostileRecording writes the recording of the demo with forged in the names of Pods,
// ReplicaSets and columns, and in what objects say and tables show.
func hostileRecording(t *testing.T) string {
	t.Helper()
	quoted, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	in := string(quoted[1 : len(quoted)-1])
	pairs := []string{`"name":"checkout-`, `"name":"checkout-` + in}
	for _, field := range []string{"manager", "message", "image", "reason", "command"} {
		pairs = append(pairs, `"`+field+`":"`, `"`+field+`":"`+in)
	}
	objects := strings.NewReplacer(append(pairs, `"cells":["`, `"cells":["`+in)...)
	columns := strings.NewReplacer(`"name":"Ready"`, `"name":"`+in+`Ready"`, `"name":"IP"`, `"name":"`+in+`IP"`)
	all := recordingLines(t, "../../demo/incident.wkr")
	for i, line := range all {
		if strings.HasPrefix(line, `{"columns":`) {
			all[i] = columns.Replace(line)
		} else {
			all[i] = objects.Replace(line)
		}
	}
	file := filepath.Join(t.TempDir(), "hostile.wkr")
	record(t, file, slices.Values(all))
	return file
}

// TestHostileTexts: no command lets a text of the cluster, of a recording or of a workbook
// control the terminal, or begin a line.
func TestHostileTexts(t *testing.T) {
	file := hostileRecording(t)
	server := openRecording(t, file)
	book := filepath.Join(t.TempDir(), "book.xlsx")
	edited := sheet.Workbook{Tabs: []sheet.Tab{{
		Name: "deployments", Resource: sheet.Resource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespace: "shop",
		Columns: []string{"metadata.annotations['" + forged + "']", "spec.replicas"},
		Rows:    []sheet.Row{{Namespace: "shop", Name: "checkout", UID: "u", Values: []json.RawMessage{json.RawMessage(`"a"`), json.RawMessage("1")}}},
		Cells:   []sheet.Cell{{Cell: "C2", Value: json.RawMessage(`"b"`)}, {Cell: "D2", Formula: "=FORGED(1)"}, {Cell: "D3", Value: json.RawMessage("7")}},
	}}}
	data, err := edited.XLSX(sheet.NewBudget(t.Context(), 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	applied := filepath.Join(t.TempDir(), "applied.xlsx")
	if err := os.WriteFile(applied, data, 0o600); err != nil {
		t.Fatal(err)
	}

	// They print nothing of a cluster, and at runs kubectl, which writes to the terminal itself.
	tried := []string{"serve", "completion", "version", "at"}
	const at = "2026-11-21T23:52:30Z"
	pod := "pod/checkout-" + forged + "979d84455-wkkmb"
	for _, line := range [][]string{
		{"get", "pods,deploy", "-n", "shop", "--at", at}, {"get", "pods", "-n", "shop", "-o", "name", "--at", at},
		{"get", "pods", "-n", "shop", "-o", "custom-columns=A:.metadata.name", "--at", at}, {"get", "pods", "-n", "shop", "--show-labels", "--at", at},
		{"history", "deployment/checkout", "-n", "shop", "-p", "--color=always"}, {"story", "deployment/checkout", "-n", "shop", "-v", "--color=always"},
		{"diagnose", "-A", "--color=always", "--at", at}, {"changes", "-A", "-p", "--since", "2026-11-21T23:49:00Z", "--color=always"},
		{"diff", "-A", "-p", "--from", "2026-11-21T23:50:00Z", "--to", at, "--color=always"},
		{"get", "pods", "-n", "shop", "-o", "wide", "--at", at}, {"get", pod, "-n", "shop", "--at", at},
		{"history", "deployment/checkout", "-n", "shop", "-p"}, {"history", pod, "-n", "shop"}, {"history", "pod/" + forged, "-n", "shop"},
		{"story", "deployment/checkout", "-n", "shop", "-v"}, {"story", "deployment/checkout", "-n", "shop", "-v", "-o", "markdown"}, {"story", pod, "-n", "shop"},
		{"diagnose", "-A", "--at", at}, {"diagnose", "-n", "shop", "--at", at}, {"diagnose", "-n", forged},
		{"changes", "-A", "-p", "--since", "2026-11-21T23:49:00Z"}, {"changes", "pods", "-n", forged},
		{"diff", "-A", "-p", "--from", "2026-11-21T23:50:00Z", "--to", at}, {"diff", pod, "-n", "shop", "--from", "2026-11-21T23:50:00Z", "--to", at},
		{"record", "status"}, {"record", "export", "-o", filepath.Join(t.TempDir(), "out.wkr")},
		{"sheet", book, "pods", "-n", "shop", "--columns", "spec.containers[0].image"}, {"sheet", book}, {"sheet", applied, "--apply", "--yes"},
		{"open", filepath.Join(t.TempDir(), forged)}, {forged}, {"history", "--" + forged},
		{"__complete", "history", "pod/"}, {"__complete", "get", "pods", "-n", "shop", ""},
	} {
		tried = append(tried, line[0])
		args := line
		if !slices.Contains([]string{"open", forged}, line[0]) {
			args = append([]string{line[0], "--server=" + server}, line[1:]...)
			if line[0] == "__complete" {
				args = append([]string{line[0], line[1], "--server=" + server}, line[2:]...)
			}
		}
		out, errs, _ := run(args...)
		t.Logf("%.60q: %d and %d bytes", line, len(out), len(errs))
		if out+errs == "" {
			t.Errorf("%q prints nothing", line)
		}
		for text := range strings.Lines(out + errs) {
			if strings.HasPrefix(text, "FORGED") && line[0] != "get" { // kubectl keeps the line ends of names
				t.Errorf("%q prints a line of the attacker: %q", line, text)
			}
			if slices.Contains(line, "--color=always") {
				if i := strings.Index(text, "\x1b[31mRED"); i >= 0 {
					t.Errorf("%q prints a colour of the attacker: %.200q", line, text[max(0, i-80):])
				}
				text = ours.ReplaceAllString(text, "")
			}
			if i := strings.IndexFunc(text, func(r rune) bool {
				return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
			}); i >= 0 {
				t.Errorf("%q prints a control character: %.200q", line, text[max(0, i-80):])
			}
		}
	}
	for _, cmd := range cli.Command().Commands() {
		if !slices.Contains(tried, cmd.Name()) {
			t.Errorf("the command %s was not tried", cmd.Name())
		}
	}
}
