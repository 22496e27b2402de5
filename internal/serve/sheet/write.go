// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"slices"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

// The widths of columns, in characters.
const minWidth, maxWidth = 9, 60

// XLSX returns the workbook as an .xlsx file. The error wraps [ErrInvalid] if the workbook
// cannot be written, or the budget is too small.
func (w *Workbook) XLSX(b *Budget) ([]byte, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	f := excelize.NewFile()
	defer f.Close() //nolint:errcheck // its temporary files
	s, err := newStyles(f)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range w.Tabs {
		t := &w.Tabs[i]
		if i == 0 {
			err = f.SetSheetName(f.GetSheetName(0), t.Name)
		} else {
			_, err = f.NewSheet(t.Name)
		}
		if err != nil {
			return nil, err
		}
		if err := t.write(b, f, s); err != nil {
			return nil, err
		}
		names = append(names, t.Name)
	}
	if err := writeLinks(b, f, w.Tabs, names); err != nil {
		return nil, err
	}
	return save(f)
}

// save returns a file that makes the program that opens it compute its formulas.
func save(f *excelize.File) ([]byte, error) {
	yes := true
	if err := f.SetCalcProps(&excelize.CalcPropsOptions{FullCalcOnLoad: &yes}); err != nil {
		return nil, err
	}
	out, err := f.WriteToBuffer()
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// styles are the styles of cells, as excelize numbers them.
type styles struct {
	head, fixed int
	text        int // a text that looks like a formula
	fixedText   int
}

func newStyles(f *excelize.File) (*styles, error) {
	s := &styles{}
	grey := &excelize.Font{Color: "666666"}
	pale := excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"F2F2F2"}}
	for _, style := range []struct {
		id    *int
		style excelize.Style
		quote bool
	}{
		{&s.head, excelize.Style{Font: &excelize.Font{Bold: true}, Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"DDE6F0"}}}, false},
		{&s.fixed, excelize.Style{Font: grey, Fill: pale}, false},
		{&s.text, excelize.Style{Alignment: &excelize.Alignment{Horizontal: "left"}}, true},
		{&s.fixedText, excelize.Style{Font: grey, Fill: pale, Alignment: &excelize.Alignment{Horizontal: "left"}}, true},
	} {
		var err error
		if *style.id, err = f.NewStyle(&style.style); err != nil {
			return nil, err
		}
		if style.quote {
			yes := true
			f.Styles.CellXfs.Xf[*style.id].QuotePrefix = &yes
		}
	}
	return s, nil
}

// of returns the style of a value of an object.
func (s *styles) of(value any, fixed bool) int {
	text, ok := value.(string)
	switch {
	case ok && looksLikeFormula(text) && fixed:
		return s.fixedText
	case ok && looksLikeFormula(text):
		return s.text
	case fixed:
		return s.fixed
	}
	return 0
}

// put returns a cell with a value; nil is no cell.
func (s *styles) put(value any, fixed bool) any {
	style := s.of(value, fixed)
	if value == nil && style == 0 {
		return nil
	}
	return excelize.Cell{StyleID: style, Value: value}
}

// write writes a tab, row by row.
func (t *Tab) write(b *Budget, f *excelize.File, s *styles) error {
	w, err := f.NewStreamWriter(t.Name)
	if err != nil {
		return err
	}
	cells := slices.Clone(t.Cells)
	sortCells(cells)
	fixed := t.fixedColumns()
	if t.Bound() {
		for i, width := range t.widths() {
			if err := w.SetColWidth(i+1, i+1, float64(width)); err != nil {
				return err
			}
		}
		if err := w.SetPanes(&excelize.Panes{Freeze: true, XSplit: firstPath - 1, YSplit: 1, TopLeftCell: "C2", ActivePane: "bottomRight"}); err != nil {
			return err
		}
	}
	last := len(t.Rows) + 1
	var values []any
	for row := 1; row <= last || len(cells) > 0; row++ {
		values = values[:0]
		if t.Bound() {
			values = t.appendRow(values, row, s, fixed)
		}
		for len(cells) > 0 {
			column, at, _ := excelize.CellNameToCoordinates(cells[0].Cell)
			if at != row {
				if row >= last && len(values) == 0 {
					row = at - 1 // the rows between are empty
				}
				break
			}
			for len(values) < column {
				values = append(values, nil)
			}
			values[column-1] = t.cell(cells[0], column, row, s, fixed)
			cells = cells[1:]
		}
		if len(values) == 0 {
			continue
		}
		if err := b.takeCells(values); err != nil {
			return err
		}
		name, _ := excelize.CoordinatesToCellName(1, row)
		if err := w.SetRow(name, values); err != nil {
			return err
		}
	}
	return w.Flush()
}

// appendRow appends the cells of the heads or of an object.
func (t *Tab) appendRow(values []any, row int, s *styles, fixed []bool) []any {
	switch {
	case row == 1:
		for _, head := range append([]string{headNamespace, headName}, t.Columns...) {
			values = append(values, excelize.Cell{StyleID: s.head, Value: head})
		}
	case row <= len(t.Rows)+1 && t.Rows[row-2].Name != "":
		r := t.Rows[row-2]
		values = append(values, s.put(textOrNil(r.Namespace), true), s.put(r.Name, true))
		for i, value := range r.Values {
			v, complete := shown(value)
			values = append(values, s.put(v, fixed[i] || !complete))
		}
	}
	return values
}

func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// cell returns a cell that is not just the value of an object.
func (t *Tab) cell(c Cell, column, row int, s *styles, fixed []bool) any {
	value, _ := c.value()
	if text, ok := value.(string); ok {
		value = printable(cutText(text))
	}
	style := s.of(value, false)
	if old, ok := t.bound(column, row); ok {
		_, complete := shown(old)
		style = s.of(value, fixed[column-firstPath] || !complete)
	} else if t.Bound() && row == 1 {
		style = s.head
	}
	if c.Formula != "" {
		return excelize.Cell{StyleID: style, Formula: inFile(c.Formula)}
	}
	return excelize.Cell{StyleID: style, Value: value}
}

// fixedColumns reports which columns are read-only.
func (t *Tab) fixedColumns() []bool {
	fixed := make([]bool, len(t.Columns))
	for i, column := range t.Columns {
		fixed[i] = writable(column) != nil
	}
	return fixed
}

// widths returns the widths of the columns, from those of the first thousand values.
func (t *Tab) widths() []int {
	widths := make([]int, len(t.Columns)+2)
	fit := func(i int, text string) {
		widths[i] = min(max(widths[i], utf8.RuneCountInString(text)+2), maxWidth)
	}
	for i, head := range append([]string{headNamespace, headName}, t.Columns...) {
		widths[i] = minWidth
		fit(i, head)
	}
	for _, r := range t.Rows[:min(len(t.Rows), 1000)] {
		fit(0, r.Namespace)
		fit(1, r.Name)
		for i, value := range r.Values {
			v, _ := shown(value)
			fit(i+2, cellText(v))
		}
	}
	return widths
}
