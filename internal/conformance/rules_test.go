// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRulesAreComplete: every exported check is in the table of rules once,
// and its comment says of which section it is.
func TestRulesAreComplete(t *testing.T) {
	sections := map[string]string{}
	for _, r := range Rules() {
		if _, twice := sections[r.Name()]; twice {
			t.Errorf("%s is in the table twice", r.Name())
		}
		sections[r.Name()] = r.Section
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Params.NumFields() != 2 || f.Type.Results.NumFields() != 1 {
				continue
			}
			found++
			section, known := sections[f.Name.Name]
			if !known {
				t.Errorf("%s is not in the table of rules", f.Name.Name)
			} else if doc := f.Doc.Text(); !strings.HasPrefix(doc, f.Name.Name+": "+section) {
				t.Errorf("the comment of %s does not begin with its section, %s", f.Name.Name, section)
			}
		}
	}
	if found != len(sections) {
		t.Errorf("%d rules are in the table, %d functions were found", len(sections), found)
	}
}

// TestDifferencesAreExplained: the number that a rule has for being different
// is that of a line in the documentation, which names the rule.
func TestDifferencesAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/semantics.md")
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
			explained = explained || strings.HasPrefix(line, fmt.Sprintf("%d. ", r.Differs)) && strings.Contains(line, "`"+r.Name()+"`")
		}
		if !explained {
			t.Errorf("%s differs for reason %d, which docs/semantics.md does not give", r.Name(), r.Differs)
		}
	}
}
