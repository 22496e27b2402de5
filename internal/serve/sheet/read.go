// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/xuri/excelize/v2"
)

// Read reads an .xlsx file as a workbook. The problems are those of its formulas, and
// what could not be linked to an object. The error wraps [ErrInvalid] if the file is not
// one that can be read, or the budget is too small.
func Read(b *Budget, data []byte) (*Workbook, []Problem, error) {
	x, err := Open(b, data)
	if err != nil {
		return nil, nil, err
	}
	return x.Workbook()
}

// Workbook returns the file as a workbook. Its columns are where they were written: if
// they were moved, there is an error that wraps [ErrInvalid].
func (x *File) Workbook() (*Workbook, []Problem, error) {
	w := &Workbook{}
	for _, t := range x.tabs {
		tab, err := t.tab(x.budget)
		if err != nil {
			return nil, nil, err
		}
		w.Tabs = append(w.Tabs, tab)
	}
	if err := w.Check(); err != nil {
		return nil, nil, err
	}
	return w, slices.Concat(x.problems, w.Problems()), nil
}

func (t *fileTab) tab(b *Budget) (Tab, error) {
	tab := Tab{Name: t.sheet, Columns: []string{}, Rows: []Row{}, Cells: []Cell{}}
	if t.read != nil {
		tab = *t.read
		tab.Name, tab.Rows, tab.Cells = t.sheet, []Row{}, []Cell{}
		for i, column := range t.columns {
			if column != i {
				name, _ := excelize.CoordinatesToCellName(i+1, 1)
				return tab, invalid("in the worksheet %q, %s has to be in %s: move the column back", t.sheet, slices.Concat([]string{headNamespace, headName}, tab.Columns)[i], name)
			}
		}
		last := 0
		if len(t.rows) > 0 {
			last = slices.Max(slices.Collect(maps.Keys(t.rows)))
		}
		if err := b.take(last * costObject); err != nil {
			return tab, err
		}
		for i := 1; i <= last; i++ {
			if r := t.rows[i]; r != nil {
				tab.Rows = append(tab.Rows, *r)
			} else {
				tab.Rows = append(tab.Rows, Row{})
			}
		}
	}
	for i := range t.cells {
		for k, c := range t.cells[i] {
			if tab.isHead(k+1, i+1) || tab.isIdentity(k+1, i+1) {
				continue
			}
			old, bound := tab.bound(k+1, i+1)
			if c.formula == "" && (bound && same(old, c.value) || !bound && c.value == nil) {
				continue
			}
			cell, err := cellOf(b, c, k+1, i+1)
			if err != nil {
				return tab, err
			}
			tab.Cells = append(tab.Cells, cell)
		}
		// Values that were removed at the end of a row.
		for k := len(t.cells[i]); k < firstPath-1+len(tab.Columns); k++ {
			if old, bound := tab.bound(k+1, i+1); bound && !same(old, nil) {
				name, _ := excelize.CoordinatesToCellName(k+1, i+1)
				if err := b.take(costObject); err != nil {
					return tab, err
				}
				tab.Cells = append(tab.Cells, Cell{Cell: name, Value: json.RawMessage("null")})
			}
		}
	}
	return tab, nil
}

func cellOf(b *Budget, c fileCell, column, row int) (Cell, error) {
	if err := b.take(costObject + 3*len(c.formula) + 4*len(cellText(c.value))); err != nil {
		return Cell{}, err
	}
	name, err := excelize.CoordinatesToCellName(column, row)
	if err != nil {
		return Cell{}, err
	}
	cell := Cell{Cell: name, Formula: c.formula}
	value := c.value
	if e, ok := value.(ErrorValue); ok {
		value = string(e)
	}
	if c.formula == "" || value != nil {
		if cell.Value, err = json.Marshal(value); err != nil {
			return Cell{}, invalid("the value of %s: %v", name, err)
		}
	}
	return cell, nil
}
