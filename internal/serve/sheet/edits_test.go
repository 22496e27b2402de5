// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
)

// change returns a file after a change.
func change(t *testing.T, data []byte, how func(f *excelize.File) error) []byte {
	t.Helper()
	f, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := how(f); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// setFormula sets a formula without the value of the cell before.
func setFormula(f *excelize.File, sheet, cell, formula string) error {
	if err := f.SetCellValue(sheet, cell, nil); err != nil {
		return err
	}
	return f.SetCellFormula(sheet, cell, formula)
}

// edits returns the edits of a file, in words.
func edits(t *testing.T, data []byte) (lines []string) {
	t.Helper()
	x, err := Open(budget(t), data)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := x.Edits()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		for _, e := range o.Edits {
			if e.Refused != nil {
				lines = append(lines, fmt.Sprintf("%s %s: %v", o.Key(), e.Cell, e.Refused))
			} else {
				lines = append(lines, fmt.Sprintf("%s %s %s: %s to %s", o.Key(), e.Cell, e.Path, e.Old, e.New))
			}
		}
	}
	return lines
}

func plain() *Workbook {
	return &Workbook{Tabs: []Tab{{
		Name: "it's", Resource: deployments, Kind: "Deployment",
		Columns: []string{"spec.replicas", "metadata.annotations.note", "status.ready"},
		Rows: []Row{
			{"shop", "web", "u1", raw("2", `"=x"`, "1")},
			{"shop", "api", "u2", raw("3", "null", "1")},
			{"shop", "db", "u3", raw("1", `"n"`, "1")},
		},
	}}}
}

const its = "it's"

// TestEdits: cells that were changed are found, also after rows were sorted, a column was
// inserted and the worksheet was renamed; formulas are computed.
func TestEdits(t *testing.T) {
	w := plain()
	w.Tabs[0].Name = "deploys"
	data := file(t, w)
	if got := edits(t, data); got != nil {
		t.Fatalf("without a change: %q", got)
	}
	got := edits(t, change(t, data, func(f *excelize.File) error {
		const s = "renamed here"
		for _, step := range []func() error{
			func() error { return f.SetSheetName("deploys", s) },
			func() error { return f.DuplicateRowTo(s, 2, 5) }, // sorted: the first row is the last now
			func() error { return f.RemoveRow(s, 2) },
			func() error { return f.InsertCols(s, "C", 1) },
			func() error { return setFormula(f, s, "D4", "SUM(C2:C4)*_xlfn.IFS(TRUE,2)") },
			func() error { return f.SetCellValue(s, "C2", 4) },
			func() error { return f.SetCellValue(s, "E2", 12) },
			func() error { return f.SetCellValue(s, "E3", nil) },
			func() error { return f.SetCellValue(s, "F2", 9) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}))
	want := []string{
		`deployments shop/api E2 metadata.annotations.note: null to "12"`,
		"deployments shop/api F2: the status is written by controllers",
		`deployments shop/db E3 metadata.annotations.note: "n" to null`,
		"deployments shop/web D4 spec.replicas: 2 to 8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestFormulaRefused: a value that cannot be trusted is not applied.
func TestFormulaRefused(t *testing.T) {
	data := file(t, plain())
	for name, test := range map[string]struct {
		cells map[string]string
		want  string
	}{
		"unknown function":       {map[string]string{"C2": "XLOOKUP(1,A1,A1)"}, "the function XLOOKUP is not supported"},
		"unknown function, free": {map[string]string{"C2": "SUM(H1:H9)", "H5": "RAND()"}, "it depends on H5: the function RAND is not supported"},
		"a whole column":         {map[string]string{"C2": "SUM($H:$H)", "H5": "RAND()"}, "it depends on H5"},
		"loop":                   {map[string]string{"C2": "H2+1", "H2": "C2+1"}, "form a loop"},
		"loop of itself":         {map[string]string{"C2": "SUM(A1:Z9)"}, "form a loop"},
		"error":                  {map[string]string{"C2": "1/0"}, "the value of =1/0 is an error: #DIV/0!"},
		"name":                   {map[string]string{"C2": "price*2"}, "the name price is not supported"},
		"no worksheet":           {map[string]string{"C2": "Other!A1"}, `the worksheet "Other", which is not there`},
		"no number":              {map[string]string{"C2": `"a"&"b"`}, `"ab" is no number`},
		"unary plus":             {map[string]string{"C2": "+5"}, "cannot be computed"},
		"own tab, quoted":        {map[string]string{"C2": "'it''s'!C3*2"}, "C2 spec.replicas: 2 to 6"},
		"the time":               {map[string]string{"C2": "IF(NOW()>0,5,6)"}, "C2 spec.replicas: 2 to 5"},
		"the same":               {map[string]string{"C2": "1+1"}, ""},
	} {
		got := edits(t, change(t, data, func(f *excelize.File) error {
			for cell, formula := range test.cells {
				if err := setFormula(f, its, cell, formula); err != nil {
					return err
				}
			}
			return nil
		}))
		if line := strings.Join(got, "\n"); !strings.Contains(line, test.want) || (line == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", name, line, test.want)
		}
	}
	// A long chain is computed, or refused, and does not end the program.
	chain := edits(t, change(t, data, func(f *excelize.File) error {
		for i := 1; i <= 1500; i++ {
			if err := f.SetCellFormula(its, fmt.Sprint("J", i), fmt.Sprintf("J%d+1", i+1)); err != nil {
				return err
			}
		}
		return setFormula(f, its, "C2", "J1")
	}))
	if len(chain) != 1 || !strings.Contains(chain[0], "2 to 1500") {
		t.Errorf("a chain: %q", chain)
	}
	// The program that saved the file computed another value.
	other := change(t, data, func(f *excelize.File) error {
		if err := f.SetCellValue(its, "C2", 7); err != nil {
			return err
		}
		return f.SetCellFormula(its, "C2", "2*3")
	})
	if got := edits(t, other); len(got) != 1 || !strings.Contains(got[0], "=2*3 is 6 here, and was 7 in the program that saved the file") {
		t.Errorf("%q", got)
	}
}

// TestLargeIntegers: an integer with more digits than a cell has is a text in the file, and
// keeps them; a formula, which would round it, is refused.
func TestLargeIntegers(t *testing.T) {
	w := plain()
	w.Tabs[0].Rows[0].Values[0] = json.RawMessage("9007199254740993")
	w.Tabs[0].Cells = []Cell{{Cell: "H1", Value: json.RawMessage(" 9007199254740995")}, {Cell: "C3", Value: json.RawMessage("-9223372036854775808")}}
	data := file(t, w)
	if got, want := edits(t, data), []string{"deployments shop/api C3 spec.replicas: 3 to -9223372036854775808"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	book, _, err := Read(budget(t), data)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %s", book.Tabs[0].Cells, book.Tabs[0].Rows[0].Values[0]); !strings.Contains(got, `"9007199254740995"`) || !strings.Contains(got, `"-9223372036854775808"`) || !strings.Contains(got, " 9007199254740993") {
		t.Errorf("read again: %s", got)
	}
	for formula, want := range map[string]string{
		"H1+0":                "formulas have only 15 digits: write the value instead",
		"999999999999998+1":   "C4 spec.replicas: 1 to 999999999999999",
		"-9999999999999999+0": "formulas have only 15 digits",
	} {
		got := edits(t, change(t, file(t, plain()), func(f *excelize.File) error {
			return setFormula(f, its, "C4", strings.Replace(formula, "H1", "9007199254740993", 1))
		}))
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q, want %s", formula, got, want)
		}
	}
	// A program that has all digits wrote a number.
	number := change(t, file(t, plain()), func(f *excelize.File) error { return f.SetCellValue(its, "C2", int64(9007199254740993)) })
	if got := edits(t, number); len(got) != 1 || !strings.HasSuffix(got[0], "2 to 9007199254740993") {
		t.Errorf("%q", got)
	}
}

// TestRefresh: a refresh writes the new values, and keeps what the user wrote.
func TestRefresh(t *testing.T) {
	data := change(t, file(t, plain()), func(f *excelize.File) error {
		for cell, value := range map[string]any{"C2": 9, "H1": "notes", "H3": "mine", "C7": "total"} {
			if err := f.SetCellValue(its, cell, value); err != nil {
				return err
			}
		}
		return f.SetCellFormula(its, "C3", "C4*2")
	})
	now := Tab{
		Name: its, Resource: deployments, Kind: "Deployment", Columns: plain().Tabs[0].Columns,
		Rows: []Row{
			{"shop", "new", "u5", raw("4", `"+1"`, "0")},
			{"shop", "web", "u1", raw("5", `"=y"`, "2")},
			{"shop", "api", "u2", raw("6", "null", "3")},
			{"shop", "more", "u6", raw("7", "null", "null")},
		},
	}
	for _, discard := range []bool{false, true} {
		x, err := Open(budget(t), data)
		if err != nil {
			t.Fatal(err)
		}
		pods := Tab{Name: "pods", Resource: Resource{"", "v1", "pods"}, Kind: "Pod", Columns: []string{"spec.nodeName"}, Rows: []Row{{"shop", "p", "u7", raw(`"n"`)}}, Cells: []Cell{}}
		fresh := now
		fresh.Rows = nil
		for _, r := range now.Rows {
			r.Values = append(raw(), r.Values...)
			fresh.Rows = append(fresh.Rows, r)
		}
		out, kept, err := x.Refresh([]Tab{fresh, pods}, func(tab, cell string) bool { return discard && tab == its && cell == "C2" })
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 0}[discard]; kept != want {
			t.Errorf("%d cells are kept, want %d", kept, want)
		}
		w, problems, err := Read(budget(t), out)
		if err != nil || problems != nil {
			t.Fatal(err, problems)
		}
		want := now
		want.Rows = []Row{now.Rows[1], now.Rows[2], now.Rows[0], now.Rows[3]}
		want.Cells = []Cell{{Cell: "H1", Value: raw(`"notes"`)[0]}, {Cell: "C3", Formula: "=C4*2"}, {Cell: "H3", Value: raw(`"mine"`)[0]}, {Cell: "C7", Value: raw(`"total"`)[0]}}
		if !discard {
			want.Rows[0].Values = raw("2", `"=y"`, "2") // the value that was read before
			want.Cells = append([]Cell{want.Cells[0], {Cell: "C2", Value: raw("9")[0]}}, want.Cells[1:]...)
		}
		if diff := cmp.Diff(&Workbook{[]Tab{want, pods}}, w); diff != "" {
			t.Errorf("discard %t: (-want +got)\n%s", discard, diff)
		}
	}
}

// TestChangedName: a row whose name was changed names no object that was read. It is said that
// its cells are not used. A row of notes is no such row.
func TestChangedName(t *testing.T) {
	data := file(t, plain())
	for _, test := range []struct {
		name any
		want string
	}{
		{"recomender", "row 3 is not used: no object was read as shop/recomender, and names are read-only"},
		{"api", ""},
	} {
		x, err := Open(budget(t), change(t, data, func(f *excelize.File) error {
			for cell, value := range map[string]any{"B3": test.name, "C3": 4, "A6": "all", "B7": "a note", "C6": 12} {
				if err := f.SetCellValue(its, cell, value); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		got := x.Problems()
		if test.want == "" && got != nil || test.want != "" && (len(got) == 0 || got[0].Message != test.want) {
			t.Errorf("%v: %+v", test.name, got)
		}
	}
}
