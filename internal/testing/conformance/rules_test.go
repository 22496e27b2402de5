// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// TestRules reads all rule files, and checks that every file belongs to a section.
func TestRules(t *testing.T) {
	read := 0
	for _, s := range Sections {
		read += len(s.Files)
	}
	files, err := embedded.ReadDir("rules")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != read {
		t.Errorf("%d rule files, of which %d belong to a section", len(files), read)
	}
	code := 0
	for _, r := range Rules() {
		if r.inGo {
			code++
		}
	}
	t.Logf("%d rules, %d of them written in Go", len(Rules()), code)
}

// TestDifferencesAreExplained: the number in a rule's differs line is that of a
// line in the documentation that names the rule.
func TestDifferencesAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, differences, ok := strings.Cut(string(text), "\n## Differences from the API server\n")
	if !ok {
		t.Fatal("no differences in docs/semantics.md")
	}
	for _, r := range Rules() {
		if r.Differs == 0 {
			continue
		}
		explained := false
		for line := range strings.Lines(differences) {
			explained = explained || strings.HasPrefix(line, fmt.Sprintf("%d. ", r.Differs)) && strings.Contains(line, "`"+r.Name+"`")
		}
		if !explained {
			t.Errorf("%s differs for reason %d, which docs/semantics.md does not explain", r.Name, r.Differs)
		}
	}
}

// TestMalformedRules: a mistake in a rule file is an error that names the file,
// the line and the rule.
func TestMalformedRules(t *testing.T) {
	inGo := map[string]checkFunc{"InGo": func(context.Context, *Env) error { return nil }}
	for name, test := range map[string]struct {
		text string // the file, after its comment
		want string
	}{
		"no rules":              {"", "test.txtar: no rules"},
		"name":                  {"-- two words --\n# Doc.\n\n> GET /x\n", "test.txtar:3: rule two words: a rule's name is one word"},
		"no comment":            {"-- Rule --\n\n> GET /x\n", "test.txtar:5: rule Rule: no comment says what the rule is"},
		"empty":                 {"-- Rule --\n# Doc.\n", "test.txtar:4: rule Rule: no statements"},
		"unknown word":          {"-- Rule --\n# Doc.\n\n> GET /x\n\n-- Other --\n# Doc.\n\n> GET /x\nhass x\n", `test.txtar:12: rule Other: unknown word "hass"`},
		"request":               {"-- Rule --\n# Doc.\n\n> get /x\n", `test.txtar:6: rule Rule: "get /x" is no METHOD and path`},
		"relative path":         {"-- Rule --\n# Doc.\n\n> GET x\n", `"GET x" is no METHOD and path`},
		"status":                {"-- Rule --\n# Doc.\n\n> GET /x\n< OK\n", "test.txtar:7: rule Rule: < OK: neither a header nor a status"},
		"mask":                  {"-- Rule --\n# Doc.\n\n> GET /x\nmask rv\n", "mask rv: no such mask"},
		"pattern":               {"-- Rule --\n# Doc.\n\n> GET /x\nstarts (\n", "starts (: error parsing regexp"},
		"no text":               {"-- Rule --\n# Doc.\n\n> GET /x\nhas\n", "no text"},
		"variable":              {"-- Rule --\n# Doc.\n\n> GET $x\n", "test.txtar:6: rule Rule: no variable $x"},
		"variable in a row":     {"-- Rule --\n# Doc.\n\neach a\n  $b\n> GET /$a\n", "no variable $b"},
		"variables in a circle": {"-- Rule --\n# Doc.\n\neach a => b\n  $b => $a\n> GET /$a\n", "variables that refer to each other"},
		"filter":                {"-- Rule --\n# Doc.\n\n> GET /${nl|upper}\n", `no filter "upper"`},
		"cells":                 {"-- Rule --\n# Doc.\n\neach a => b\n  x\n> GET /$a\n", "test.txtar:7: rule Rule: a row of 1 cells in a table of 2 columns"},
		"no rows":               {"-- Rule --\n# Doc.\n\neach a\n> GET /$a\n", "test.txtar:6: rule Rule: a table without rows"},
		"no table":              {"-- Rule --\n# Doc.\n\n  x\n> GET /x\n", "an indented line that is in no table"},
		"late table":            {"-- Rule --\n# Doc.\n\n> GET /x\neach a\n  x\n", "a table comes before the block's statements"},
		"table in the head":     {"-- Rule --\n# Doc.\neach a\n  x\n\n> GET /x\n", "a table belongs to a block, not to the head"},
		"events":                {"-- Rule --\n# Doc.\n\nopen /x\nevents\n", "no events; none is -"},
		"frame":                 {"-- Rule --\n# Doc.\n\nopen /x\nframe x has y\n", "frame x has y: it takes a number"},
		"write":                 {"-- Rule --\n# Doc.\n\nwrite PUT /x\n", "write PUT /x: it takes POST, PATCH or DELETE"},
		"fresh":                 {"-- Rule --\n# Doc.\n\nfresh nodes\n", "fresh nodes: it takes one of"},
		"pages":                 {"-- Rule --\n# Doc.\n\npages /x limit=1\n", "pages needs a sync before it"},
		"keep":                  {"-- Rule --\n# Doc.\n\n> GET /x\nkeep token name\n", "keep token name: it takes a variable and a member"},
		"negotiate":             {"-- Rule --\n# Doc.\n\nnegotiate /x/y\nanswers 406\n", "it takes the answers to a list, a get and a watch"},
		"differs":               {"-- Rule --\n# Doc.\ndiffers somehow\n\n> GET /x\n", `differs "somehow": it takes the number`},
		"code without Go":       {"-- Rule --\n# Doc.\ncode\n", "there is no Go function for it"},
		"code and statements":   {"-- InGo --\n# Doc.\ncode\n\n> GET /x\n", "it is written in Go and has statements"},
		"Go without code":       {"-- InGo --\n# Doc.\n\n> GET /x\n", "it is written in Go, and the file does not say so"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseFile("test.txtar", []byte("# A test.\n# Source: the test\n"+test.text), inGo)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "test.txtar:") {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestNoSource: a rule file has to name its source.
func TestNoSource(t *testing.T) {
	if _, err := parseFile("test.txtar", []byte("# A test.\n-- Rule --\n# Doc.\n\n> GET /x\n"), nil); err == nil || !strings.Contains(err.Error(), "test.txtar: its comment has no Source line") {
		t.Errorf("got %v", err)
	}
}

// TestRulesAreKnownOnce: no two rules have the same name, and each rule in Go has an
// entry in a file.
func TestRulesAreKnownOnce(t *testing.T) {
	files := fstest.MapFS{}
	for _, s := range Sections {
		for _, f := range s.Files {
			files[f] = &fstest.MapFile{Data: []byte("# A test.\n# Source: the test\n-- In" + strings.TrimSuffix(f, ".txtar") + " --\n# Doc.\n\n> GET /x\n")}
		}
	}
	if _, err := readRules(files, nil); err != nil {
		t.Fatal(err)
	}
	inGo := map[string]checkFunc{"Forgotten": func(context.Context, *Env) error { return nil }}
	if _, err := readRules(files, inGo); err == nil || !strings.Contains(err.Error(), "Forgotten is written in Go and has no entry") {
		t.Errorf("a rule without an entry: %v", err)
	}
	files["urls.txtar"] = files["lists.txtar"]
	if _, err := readRules(files, nil); err == nil || !strings.Contains(err.Error(), "there are two rules Inlists") {
		t.Errorf("two rules of one name: %v", err)
	}
	delete(files, "fields.txtar")
	if _, err := readRules(files, nil); err == nil {
		t.Error("no error for a missing file")
	}
}

// testRule reads one rule.
func testRule(t *testing.T, text string) Rule {
	t.Helper()
	rules, err := parseFile("test.txtar", []byte("# A test.\n# Source: the test\n\n-- Rule --\n# Doc.\n\n"+text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return rules[0]
}

// runOn runs a rule against two endpoints.
func runOn(t *testing.T, r Rule, want, got *compare.Endpoint) error {
	t.Helper()
	env := &Env{Want: want, Got: got}
	res := env.run(t.Context(), r)
	return res.verdict()
}
