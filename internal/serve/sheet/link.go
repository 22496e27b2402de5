// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

// The hidden worksheet "watchkeeper" links the others to their objects. Its cells are text
// only, so that no program changes them:
//
//	watchkeeper workbook | 1
//	tab                  | {"name":"deployments","resource":{…},"columns":[…],…}
//	row                  | {"namespace":"shop","name":"web","uid":"…","values":[3,…]}
//	row                  | …
//	tab                  | …
//
// JSON that is too long for one cell continues in the next. The rows after a tab are its
// objects, with the values that were read. A defined name, watchkeeper.tab1, refers to each
// tab's cell A1, so that the tab is found when the worksheet was renamed.
const (
	linkTitle   = "watchkeeper workbook"
	linkVersion = "1"
	linkTab     = "tab"
	linkRow     = "row"
	linkName    = "watchkeeper.tab"
)

// linkPart is the length of a part of the JSON, in bytes.
const linkPart = 30_000

// linkRecord returns a row of the hidden worksheet.
func linkRecord(kind string, value any) ([]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	text = escapeXML(text)
	record := []any{kind}
	for len(text) > linkPart {
		n := linkPart
		for !utf8.RuneStart(text[n]) {
			n--
		}
		record, text = append(record, string(text[:n])), text[n:]
	}
	return append(record, string(text)), nil
}

// escapeXML writes the two characters of JSON that XML does not have as escapes.
func escapeXML(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\uFFFE"), []byte(`\uFFFE`))
	return bytes.ReplaceAll(text, []byte("\uFFFF"), []byte(`\uFFFF`))
}

// writeLinks writes the hidden worksheet, which must not exist yet. sheets are the names of
// the tabs' worksheets.
func writeLinks(b *Budget, f *excelize.File, tabs []Tab, sheets []string) error {
	if _, err := f.NewSheet(reservedTab); err != nil {
		return err
	}
	w, err := f.NewStreamWriter(reservedTab)
	if err != nil {
		return err
	}
	row := 0
	write := func(record []any) error {
		row++
		if err := b.takeCells(record); err != nil {
			return err
		}
		return w.SetRow("A"+strconv.Itoa(row), record)
	}
	err = write([]any{linkTitle, linkVersion})
	for i, t := range tabs {
		rows := t.Rows
		t.Rows, t.Cells = nil, nil
		record, failed := linkRecord(linkTab, t)
		if err == nil {
			err = failed
		}
		if err == nil {
			err = write(record)
		}
		for _, r := range rows {
			if err != nil {
				return err
			}
			if r.Name == "" {
				continue
			}
			if record, err = linkRecord(linkRow, r); err == nil {
				err = write(record)
			}
		}
		if err == nil {
			err = f.SetDefinedName(&excelize.DefinedName{Name: linkName + strconv.Itoa(i+1), RefersTo: quoteSheet(sheets[i]) + "!$A$1"})
		}
	}
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	// SetSheetVisible reads all worksheets.
	index, err := f.GetSheetIndex(reservedTab)
	if err == nil {
		f.WorkBook.Sheets.Sheet[index].State = "hidden"
	}
	return err
}

// readLinks returns the tabs of the hidden worksheet, with the rows that were written.
func readLinks(b *Budget, cells [][]fileCell) ([]Tab, error) {
	text := func(row []fileCell, column int) string {
		if column >= len(row) {
			return ""
		}
		return cellText(row[column].value)
	}
	if len(cells) == 0 || text(cells[0], 0) != linkTitle {
		return nil, invalid("its worksheet %q was changed", reservedTab)
	}
	if version := text(cells[0], 1); version != linkVersion {
		return nil, invalid("it was written by a newer Watchkeeper: its version is %s", version)
	}
	var tabs []Tab
	for i, record := range cells[1:] {
		var value []byte
		for k := 1; k < len(record); k++ {
			part := text(record, k)
			if err := b.take(2 * len(part)); err != nil {
				return nil, err
			}
			value = append(value, part...)
		}
		if err := b.TakeJSON(value); err != nil {
			return nil, err
		}
		broken := func(err error) error {
			return invalid("row %d of its worksheet %q was changed: %v", i+2, reservedTab, err)
		}
		switch kind := text(record, 0); {
		case kind == linkTab:
			var t Tab
			if err := json.Unmarshal(value, &t); err != nil {
				return nil, broken(err)
			}
			t.Cells, t.Rows = nil, nil
			tabs = append(tabs, t)
		case kind == linkRow && len(tabs) > 0:
			t := &tabs[len(tabs)-1]
			var r Row
			if err := json.Unmarshal(value, &r); err != nil {
				return nil, broken(err)
			}
			t.Rows = append(t.Rows, r)
		}
	}
	check := Workbook{Tabs: tabs}
	if len(tabs) > 0 {
		if err := check.Check(); err != nil {
			return nil, err
		}
	}
	return tabs, nil
}
