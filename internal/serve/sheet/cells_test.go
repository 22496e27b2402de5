// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

// cellIn returns a cell of a file.
func cellIn(t *testing.T, x *File, ref cellRef) fileCell {
	t.Helper()
	column, row, err := excelize.CellNameToCoordinates(ref.cell)
	if err != nil {
		t.Fatal(err)
	}
	for _, tab := range x.tabs {
		if tab.sheet == ref.sheet {
			return tab.at(row-1, column-1)
		}
	}
	t.Fatalf("there is no worksheet %s", ref.sheet)
	return fileCell{}
}

// TestReadsAsExcelize: cells are read as excelize reads them, in all forms in which a file
// can have them.
func TestReadsAsExcelize(t *testing.T) {
	shared := []string{"A1+B$1*$A2-$B$2", "SUM(A1:B2,A:B,C$1:$D3)", "A1&A10&AA1", "TRUE"}
	f := excelize.NewFile()
	defer f.Close()
	for _, name := range []string{"it's A1", "plain"} {
		if _, err := f.NewSheet(name); err != nil {
			t.Fatal(err)
		}
	}
	const s = "Sheet1"
	steps := []error{
		f.SetCellRichText(s, "A1", []excelize.RichTextRun{{Text: "a "}, {Text: "b_x0041_", Font: &excelize.Font{Bold: true}}}),
		f.SetCellStr(s, "B1", "_x0041_ and _x005F_"), f.SetCellBool(s, "C1", true), f.SetCellBool(s, "D1", false),
		f.SetCellFloat(s, "E1", 0.1, -1, 64), f.SetCellInt(s, "F1", 9007199254740993), f.SetCellStr(s, "H1", ""), f.SetCellStr(s, "XFD3", "last"),
		f.SetCellFormula(s, "B3", `"x"&A1`), f.MergeCell("plain", "A1", "B2"), f.SetCellStr("plain", "A1", "merged"),
	}
	for i, formula := range shared {
		kind, area := excelize.STCellFormulaTypeShared, fmt.Sprintf("%s5:%s20", string(rune('J'+i)), string(rune('J'+i)))
		steps = append(steps, f.SetCellFormula(s, fmt.Sprint(string(rune('J'+i)), 5), formula, excelize.FormulaOpts{Type: &kind, Ref: &area}))
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	x, err := Open(budget(t), out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, tab := range x.tabs {
		for i, row := range tab.cells {
			for k, c := range row {
				name, _ := excelize.CoordinatesToCellName(k+1, i+1)
				formula, err1 := f.GetCellFormula(tab.sheet, name)
				text, err2 := f.GetCellValue(tab.sheet, name, excelize.Options{RawCellValue: true})
				if err := errors.Join(err1, err2); err != nil {
					t.Fatal(err)
				}
				if formula != "" {
					formula = "=" + formula
				}
				got := cellText(c.value)
				if value, ok := c.value.(bool); ok {
					got = map[bool]string{true: "1", false: "0"}[value]
				} else if n, err := strconv.ParseFloat(text, 64); err == nil && c.value == n {
					got = text
				}
				if got != text || c.formula != formula {
					t.Errorf("%s!%s is %q %s, excelize has %q %s", tab.sheet, name, got, c.formula, text, formula)
				}
				if text != "" || formula != "" {
					seen++
				}
			}
		}
	}
	if want := 16*len(shared) + 9; seen != want {
		t.Errorf("%d cells are compared, want %d", seen, want)
	}
}

// TestShiftFormula: a formula that several cells share moves as in Excel. (excelize does not
// move references to other worksheets, and loses the quotes of their names.)
func TestShiftFormula(t *testing.T) {
	for formula, want := range map[string]string{
		"=A1+B$1*$A2-$B$2":                    "=C4+D$1*$A5-$B$2",
		"=SUM(A1:B2,A:B,1:2,$A:B,A:$B,$1:2)":  "=SUM(C4:D5,C:D,4:5,$A:D,C:$B,$1:5)",
		`=IF(A1>1,"A1 ""B2""",'it''s A1'!A1)`: `=IF(C4>1,"A1 ""B2""",'it''s A1'!C4)`,
		"=Sheet1!A1+LOG10(B2)+1.5e3+12":       "=Sheet1!C4+LOG10(D5)+1.5e3+12",
		"='A 1'!C3:D4":                        "='A 1'!E6:F7",
		"=Table1[A1]&tax_1&TRUE":              "=Table1[C4]&tax_1&TRUE",
		"=XFC1+XFD1+A1048575":                 "=#REF!+#REF!+#REF!",
		`="A1`:                                `="A1`,
	} {
		if got := shiftFormula(formula, 3, 2); got != want {
			t.Errorf("%s: got %s, want %s", formula, got, want)
		}
		if back := shiftFormula(want, -3, -2); !strings.Contains(want, "#REF!") && back != formula {
			t.Errorf("%s back: got %s", want, back)
		}
	}
	if got := shiftFormula("=A1+B2+$A$1", -1, -1); got != "=#REF!+A1+$A$1" {
		t.Error(got)
	}
}

// TestBudget: what a file would take is known before it is allocated, and reading and writing
// end with the context.
func TestBudget(t *testing.T) {
	text := strings.Repeat("x", 30_000)
	repeated := func(cells func(i int) string) []byte {
		f := excelize.NewFile()
		defer f.Close()
		for i := range 3000 {
			if err := f.SetCellStr("Sheet1", cells(i), text); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := f.Write(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	wide := &Workbook{Tabs: []Tab{{Name: "a", Columns: []string{}, Rows: []Row{}}}}
	for i := range 3000 {
		wide.Tabs[0].Cells = append(wide.Tabs[0].Cells, Cell{Cell: fmt.Sprint("XFD", i+1), Value: raw("1")[0]})
	}
	many := file(t, wide) // it is small, and written with little
	for name, data := range map[string][]byte{
		"one text in many cells": repeated(func(i int) string { return fmt.Sprint("A", i+1) }),
		"cells in a far column":  many,
	} {
		if len(data) > 200_000 {
			t.Errorf("%s: the file has %d bytes", name, len(data))
		}
		if _, _, err := Read(NewBudget(t.Context(), 256<<20), data); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "it would take more than 256 MiB") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	// XML that the decoder would keep: a part of 50 MiB is read up to the first thing that is too
	// long or too deep.
	for name, xml := range map[string]string{
		"nested elements": strings.Repeat("<a>", 16<<20), "attributes": "<a" + strings.Repeat(` b=""`, 10<<20), "an attribute": `<a b="` + strings.Repeat("x", 50<<20),
		"a text": "<a>" + strings.Repeat("x", 50<<20), "a comment": "<!--" + strings.Repeat("x", 50<<20), "a name": "<" + strings.Repeat("x", 50<<20),
	} {
		for _, part := range []string{"_rels/.rels", "xl/workbook.xml", "xl/worksheets/sheet1.xml"} {
			data := rebuild(t, file(t, example()), func(name, text string) string {
				if name == part {
					return xml
				}
				return text
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := Read(NewBudget(t.Context(), 256<<20), data)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s in %s: the error is %v", name, part, err)
			}
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 64 {
				t.Errorf("%s in %s: reading takes %d MiB", name, part, n)
			}
			if testing.Short() {
				break // make test-all reads all parts
			}
		}
	}
	for name, text := range map[string]string{
		"tabs": `{"tabs":[` + strings.Repeat(`{},`, 1<<20), "values": `{"tabs":[{"rows":[{"values":[` + strings.Repeat(`1,`, 8<<20), "columns": `{"tabs":[{"columns":[` + strings.Repeat(`"",`, 8<<20),
	} {
		if err := NewBudget(t.Context(), 256<<20).TakeWorkbook([]byte(text)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, _, err := Read(NewBudget(ctx, 1<<30), file(t, example())); !errors.Is(err, gone) {
		t.Errorf("reading: the error is %v", err)
	}
	if _, err := example().XLSX(NewBudget(ctx, 1<<30)); !errors.Is(err, gone) {
		t.Errorf("writing: the error is %v", err)
	}
}

// TestFormulasBound: a formula that many cells share is expanded for each of them, which takes
// time. How much is bounded, not only the memory.
func TestFormulasBound(t *testing.T) {
	rows := `<row><c><f t="shared" ref="A1:A3000" si="0">` + strings.Repeat("B1+", 2000) + `1</f></c></row>` +
		strings.Repeat(`<row><c><f t="shared" si="0"/></c></row>`, 3000)
	data := rebuild(t, file(t, example()), func(name, text string) string {
		if name == "xl/worksheets/sheet1.xml" {
			return `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>` + rows + `</sheetData></worksheet>`
		}
		return text
	})
	b := NewBudget(t.Context(), 1<<40)
	b.formulas = 1 << 20
	if _, _, err := Read(b, data); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "its formulas are too long") {
		t.Errorf("the error is %v", err)
	}
}
