// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

// A formulaCase is a case of testdata/formulas.json: a formula in column Z of a tab with
// cells, and its value. A cell whose text begins with = is a formula. The key Other!A1 is
// a cell of another tab, which is called Other.
type formulaCase struct {
	Cells   map[string]any `json:"cells"`
	Formula string         `json:"formula"`
	Value   any            `json:"value"`
}

// corpus returns the cases, in groups of those with the same cells.
func corpus(t *testing.T) (groups [][]formulaCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/formulas.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []formulaCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if last := len(groups) - 1; last >= 0 && reflect.DeepEqual(groups[last][0].Cells, c.Cells) {
			groups[last] = append(groups[last], c)
			continue
		}
		groups = append(groups, []formulaCase{c})
	}
	return groups
}

// corpusFile writes each group to a worksheet, and returns where the formulas are. As a
// group has tabs of its own, the tab Other is called otherN.
func corpusFile(t *testing.T, groups [][]formulaCase) (*excelize.File, [][]cellRef) {
	t.Helper()
	f := excelize.NewFile()
	refs := make([][]cellRef, len(groups))
	for i, group := range groups {
		main, other := fmt.Sprint("main", i), fmt.Sprint("other", i)
		put := func(sheet, cell string, value any) {
			var err error
			if index, _ := f.GetSheetIndex(sheet); index < 0 {
				_, err = f.NewSheet(sheet)
			}
			text, ok := value.(string)
			switch {
			case err != nil:
			case ok && strings.HasPrefix(text, "="):
				err = f.SetCellFormula(sheet, cell, inFile(strings.ReplaceAll(text, "Other", other)))
			case ok:
				err = f.SetCellStr(sheet, cell, text)
			default:
				err = f.SetCellValue(sheet, cell, value)
			}
			if err != nil {
				t.Fatalf("%s!%s: %v", sheet, cell, err)
			}
		}
		for _, cell := range slices.Sorted(maps.Keys(group[0].Cells)) {
			if in, ok := strings.CutPrefix(cell, "Other!"); ok {
				put(other, in, group[0].Cells[cell])
			} else {
				put(main, cell, group[0].Cells[cell])
			}
		}
		for k, c := range group {
			cell := fmt.Sprint("Z", k+1)
			put(main, cell, c.Formula)
			refs[i] = append(refs[i], cellRef{main, cell})
		}
	}
	return f, refs
}

// equal reports whether a computed value is that of a case. Error values are text there.
func equal(want, got any) bool {
	a, isNumber := want.(float64)
	if b, ok := got.(float64); ok && isNumber {
		return math.Abs(a-b) <= 1e-11*max(1e-2, math.Abs(a))
	}
	if e, ok := got.(ErrorValue); ok {
		return want == string(e)
	}
	return want == got
}

// TestCorpus: every case has its value, every function has cases, and each formula passes
// Check.
func TestCorpus(t *testing.T) {
	groups := corpus(t)
	f, refs := corpusFile(t, groups)
	defer f.Close()
	values, err := evaluate(f, slices.Concat(refs...))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]int{"NOW": 3, "TODAY": 3} // TestNow
	for i, c := range slices.Concat(groups...) {
		if !equal(c.Value, values[i]) {
			t.Errorf("%s is %#v, want %#v, with %v", c.Formula, values[i], c.Value, c.Cells)
		}
		if err := Check(c.Formula); err != nil {
			t.Errorf("%s: %v", c.Formula, err)
		}
		for _, name := range functions {
			if strings.Contains(c.Formula, name+"(") {
				cases[name]++
			}
		}
	}
	for _, name := range functions {
		if cases[name] < 3 {
			t.Errorf("%s has %d cases", name, cases[name])
		}
	}
	if !slices.IsSorted(functions) {
		t.Error("functions.json is not sorted")
	}
}

// TestCorpusLibreOffice: LibreOffice computes the same values.
func TestCorpusLibreOffice(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	groups := corpus(t)
	f, refs := corpusFile(t, groups)
	defer f.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "corpus.xlsx")
	if err := f.SaveAs(file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "soffice", "-env:UserInstallation=file://"+filepath.Join(dir, "profile"),
		"--headless", "--convert-to", "xlsx", "--outdir", filepath.Join(dir, "out"), file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("soffice: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out", "corpus.xlsx"))
	if err != nil {
		t.Fatal(err)
	}
	converted, err := Open(budget(t), data)
	if err != nil {
		t.Fatal(err)
	}
	for i, group := range groups {
		for k, c := range group {
			got := cellIn(t, converted, refs[i][k]).value
			if got == nil {
				got = "" // an empty text is no value
			}
			if !equal(c.Value, got) {
				t.Errorf("LibreOffice: %s is %#v, want %#v, with %v", c.Formula, got, c.Value, c.Cells)
			}
		}
	}
}
