// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Links returns the tabs of the file that have objects, with the rows that were read. Their
// names are those of the worksheets now.
func (x *File) Links() (tabs []Tab) {
	for _, t := range x.tabs {
		if t.read != nil {
			tab := *t.read
			tab.Name, tab.Cells = t.sheet, nil
			tabs = append(tabs, tab)
		}
	}
	return tabs
}

// Refresh returns the file with the objects of tabs as they are now; tabs whose names the
// file does not have are added. Everything else stays: free cells, formulas, the order of the
// rows, widths and styles. So do cells that were changed, with the value that was read
// before, unless drop, which may be nil, returns true for one: it was applied, or is discarded.
// kept is how many stay.
//
// The rows of objects that are gone become empty. New objects take empty rows, or follow
// after the last.
func (x *File) Refresh(tabs []Tab, drop func(tab, cell string) bool) (data []byte, kept int, err error) {
	if drop == nil {
		drop = func(string, string) bool { return false }
	}
	f, err := x.edit()
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() //nolint:errcheck // its temporary files
	defer recovered(&err)
	if err := f.UpdateLinkedValue(); err != nil { // without the values of formulas
		return nil, 0, err
	}
	s, err := newStyles(f)
	if err != nil {
		return nil, 0, err
	}
	var links []Tab
	var names []string
	for _, t := range x.tabs {
		if t.read == nil {
			continue
		}
		link := *t.read
		for i := range tabs {
			if tabs[i].Name == t.sheet {
				n := 0
				if link, n, err = t.refresh(f, s, &tabs[i], drop); err != nil {
					return nil, 0, err
				}
				kept += n
			}
		}
		link.Name = t.sheet
		links, names = append(links, link), append(names, t.sheet)
	}
	for i := range tabs {
		t := &tabs[i]
		if index, err := f.GetSheetIndex(t.Name); err == nil && index >= 0 {
			continue
		}
		if _, err := f.NewSheet(t.Name); err != nil {
			return nil, 0, err
		}
		if err := t.write(x.budget, f, s); err != nil {
			return nil, 0, err
		}
		links, names = append(links, *t), append(names, t.Name)
	}
	for _, defined := range f.GetDefinedName() {
		if strings.HasPrefix(defined.Name, linkName) {
			if err := f.DeleteDefinedName(&excelize.DefinedName{Name: defined.Name, Scope: defined.Scope}); err != nil {
				return nil, 0, err
			}
		}
	}
	if err := f.DeleteSheet(reservedTab); err != nil {
		return nil, 0, err
	}
	check := Workbook{Tabs: links}
	if len(links) > 0 {
		if err := check.Check(); err != nil {
			return nil, 0, err
		}
	}
	if err := writeLinks(x.budget, f, links, names); err != nil {
		return nil, 0, err
	}
	data, err = save(f)
	return data, kept, err
}

// edit opens the file with excelize, which keeps what is in it when it is written.
func (x *File) edit() (f *excelize.File, err error) {
	if err := x.budget.take(x.edited * costEdited); err != nil {
		return nil, err
	}
	defer recovered(&err)
	f, err = excelize.OpenReader(bytes.NewReader(x.data), excelize.Options{UnzipSizeLimit: maxUnzipped, UnzipXMLSizeLimit: maxUnzipped})
	if err != nil {
		return nil, invalid("it cannot be changed: %v", err)
	}
	return f, nil
}

// recovered makes an error of a panic of excelize, which some broken files cause.
func recovered(err *error) {
	if broken := recover(); broken != nil {
		*err = invalid("it cannot be changed: %v", broken)
	}
}

// refresh writes the objects of a worksheet, and returns its link.
func (t *fileTab) refresh(f *excelize.File, s *styles, now *Tab, drop func(tab, cell string) bool) (link Tab, kept int, err error) {
	link = *now
	link.Rows, link.Cells = nil, nil
	fresh := map[[2]string]*Row{}
	for i := range now.Rows {
		r := &now.Rows[i]
		fresh[[2]string{r.Namespace, r.Name}] = r
	}
	for row := range t.cells {
		old := t.rows[row]
		if old == nil {
			continue
		}
		key := [2]string{old.Namespace, old.Name}
		r := fresh[key]
		delete(fresh, key)
		if n := t.pending(row, old, drop); n > 0 && (r == nil || r.UID != old.UID) { // the next plan says so
			link.Rows = append(link.Rows, *old)
			kept += n
			continue
		}
		if r == nil {
			if err := t.clear(f, row); err != nil {
				return link, 0, err
			}
			continue
		}
		for i, value := range r.Values {
			c := t.at(row, t.columns[i+firstPath-1])
			switch {
			case t.columns[i+firstPath-1] < 0 || c.formula != "" || same(value, c.value):
			case t.isPending(row, i, old, drop):
				r.Values[i] = old.Values[i]
				kept++
			default:
				if err := t.put(f, s, row, i, value); err != nil {
					return link, 0, err
				}
			}
		}
		link.Rows = append(link.Rows, *r)
	}
	row := 1
	for _, r := range now.Rows {
		if _, isNew := fresh[[2]string{r.Namespace, r.Name}]; !isNew {
			continue
		}
		if t.columns[0] < 0 || t.columns[1] < 0 {
			return link, 0, invalid("in the worksheet %q, row 1 has no column namespace or name: put it back", t.sheet)
		}
		for !t.free(row) {
			row++
		}
		for column, text := range []string{r.Namespace, r.Name} {
			if err := t.set(f, row, t.columns[column], textOrNil(text), s.fixed); err != nil {
				return link, 0, err
			}
		}
		for i, value := range r.Values {
			if err := t.put(f, s, row, i, value); err != nil {
				return link, 0, err
			}
		}
		link.Rows = append(link.Rows, r)
		row++
	}
	return link, kept, nil
}

// pending counts the cells of a row that were changed, and stay.
func (t *fileTab) pending(row int, old *Row, drop func(tab, cell string) bool) (n int) {
	for i := range old.Values {
		if t.isPending(row, i, old, drop) {
			n++
		}
	}
	return n
}

// isPending reports whether a value was changed in its cell, and stays.
func (t *fileTab) isPending(row, i int, old *Row, drop func(tab, cell string) bool) bool {
	column := t.columns[i+firstPath-1]
	c := t.at(row, column)
	if column < 0 || c.formula != "" || same(old.Values[i], c.value) {
		return false
	}
	name, _ := excelize.CoordinatesToCellName(column+1, row+1)
	return !drop(t.sheet, name)
}

// free reports whether the columns of objects are empty in a row.
func (t *fileTab) free(row int) bool {
	if row < len(t.cells) && t.rows[row] != nil {
		return false
	}
	for _, column := range t.columns {
		if c := t.at(row, column); c.value != nil || c.formula != "" {
			return false
		}
	}
	return true
}

// clear empties the cells of an object, but for formulas, and frees its row.
func (t *fileTab) clear(f *excelize.File, row int) error {
	for _, column := range t.columns {
		if c := t.at(row, column); column < 0 || c.formula != "" {
			continue
		}
		if err := t.set(f, row, column, nil, 0); err != nil {
			return err
		}
		if row < len(t.cells) && column < len(t.cells[row]) {
			t.cells[row][column] = fileCell{}
		}
	}
	delete(t.rows, row)
	return nil
}

// put writes the value of a column.
func (t *fileTab) put(f *excelize.File, s *styles, row, i int, value json.RawMessage) error {
	column := t.columns[i+firstPath-1]
	if column < 0 {
		return nil
	}
	v, complete := shown(value)
	return t.set(f, row, column, v, s.of(v, !complete || writable(t.read.Columns[i]) != nil))
}

// set writes a cell. A style is set where the cell has none, or has to be marked as text.
func (t *fileTab) set(f *excelize.File, row, column int, value any, style int) error {
	name, err := excelize.CoordinatesToCellName(column+1, row+1)
	if err != nil {
		return err
	}
	if text, ok := value.(string); ok {
		err = f.SetCellStr(t.sheet, name, text)
	} else {
		err = f.SetCellValue(t.sheet, name, value)
	}
	if err != nil || style == 0 {
		return err
	}
	was, err := f.GetCellStyle(t.sheet, name)
	if text, ok := value.(string); err == nil && (was == 0 || ok && looksLikeFormula(text)) {
		err = f.SetCellStyle(t.sheet, name, name, style)
	}
	return err
}
