// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	docTest  = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// TestDocsNameTests: the tests that docs/*.md name as evidence exist.
func TestDocsNameTests(t *testing.T) {
	exist := map[string]bool{}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				exist[string(m[1])] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docTest.FindAllSubmatch(text, -1) {
			if named++; !exist[string(m[1])] {
				t.Errorf("%s names %s, which does not exist", filepath.Base(path), m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no document names a test")
	}
}
