// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// MaxFile is the greatest size of an .xlsx file, in bytes, and maxUnzipped that of its
// parts.
const (
	MaxFile     = 32 << 20
	maxUnzipped = 256 << 20
)

// A File is an open .xlsx file and what links it to objects.
type File struct {
	data []byte // as it was opened
	f    *excelize.File
	// tabs are the worksheets, in their order, without the hidden one.
	tabs     []*fileTab
	problems []Problem
}

// A fileTab is a worksheet.
type fileTab struct {
	sheet string
	// read is the tab as it was read from the cluster; nil for a free worksheet. Its Rows are
	// in the order in which they were written.
	read  *Tab
	cells [][]fileCell // by row and column, from 0
	// columns are where the heads are: of namespace, name and the paths; -1 if there is none.
	columns []int
	// rows are the objects of the rows, by their index in cells.
	rows map[int]*Row
}

// A fileCell is a cell as it was read.
type fileCell struct {
	value   any // nil, string, float64, bool or ErrorValue; of a formula, what was computed last
	formula string
}

// Open reads an .xlsx file. An error that wraps [ErrInvalid] is the file's.
func Open(data []byte) (file *File, err error) {
	// excelize panics at some broken files.
	defer func() {
		if broken := recover(); broken != nil {
			file, err = nil, invalid("it cannot be read as .xlsx: %v", broken)
		}
	}()
	if len(data) > MaxFile {
		return nil, invalid("it has more than %d MiB", MaxFile>>20)
	}
	if err := checkParts(data); err != nil {
		return nil, err
	}
	f, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{UnzipSizeLimit: maxUnzipped, UnzipXMLSizeLimit: maxUnzipped})
	if err != nil {
		return nil, invalid("it cannot be read as .xlsx: %v", err)
	}
	file = &File{data: data, f: f}
	if err := file.read(); err != nil {
		f.Close() //nolint:errcheck // its temporary files
		if !errors.Is(err, ErrInvalid) {
			err = invalid("%v", err)
		}
		return nil, err
	}
	return file, nil
}

// Close removes temporary files.
func (x *File) Close() error { return x.f.Close() }

// checkParts refuses files that excelize would need much memory for: it adds the cells that
// are missing in a row, and the rows before the last.
func checkParts(data []byte) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return invalid("it is no .xlsx file")
	}
	size, cells := uint64(0), 0
	for _, part := range z.File {
		if size += part.UncompressedSize64; size > maxUnzipped || part.UncompressedSize64 > maxUnzipped {
			return invalid("its parts have more than %d MiB", maxUnzipped>>20)
		}
		if !strings.HasPrefix(strings.ToLower(strings.ReplaceAll(part.Name, `\`, "/")), "xl/worksheets/") || !strings.HasSuffix(strings.ToLower(part.Name), ".xml") {
			continue
		}
		n, err := countCells(part)
		if err != nil {
			return err
		}
		if cells += n; cells > maxCells {
			return invalid("it has more than %d cells", maxCells)
		}
	}
	return nil
}

// countCells counts the cells that a worksheet has in memory.
func countCells(part *zip.File) (int, error) {
	in, err := part.Open()
	if err != nil {
		return 0, invalid("%s: %v", part.Name, err)
	}
	defer in.Close() //nolint:errcheck // only read
	broken := func(err error) (int, error) { return 0, invalid("%s: %v", part.Name, err) }
	decoder := xml.NewDecoder(in)
	cells, row, column := 0, 0, 0
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return cells + row, nil
		} else if err != nil {
			return broken(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		name := func(attribute string) string {
			i := slices.IndexFunc(start.Attr, func(a xml.Attr) bool { return a.Name.Local == attribute })
			if i < 0 {
				return ""
			}
			return start.Attr[i].Value
		}
		switch start.Name.Local {
		case "row":
			column = 0
			row++
			if n, err := strconv.Atoi(name("r")); err == nil {
				if n < 0 || n > excelize.TotalRows {
					return broken(fmt.Errorf("there is no row %d", n))
				}
				row = max(row, n)
			}
			if row > maxCells {
				return cells + row, nil
			}
		case "c":
			at := column + 1
			if text := name("r"); text != "" {
				if at, _, err = excelize.CellNameToCoordinates(text); err != nil {
					return broken(err)
				}
			}
			cells += max(1, at-column)
			column = max(column, at)
			if cells > maxCells {
				return cells, nil
			}
		case "mergeCell":
			from, to, _ := strings.Cut(name("ref"), ":")
			c1, r1, err1 := excelize.CellNameToCoordinates(from)
			c2, r2, err2 := excelize.CellNameToCoordinates(to)
			if err1 == nil && err2 == nil {
				cells += (max(c1, c2) - min(c1, c2) + 1) * (max(r1, r2) - min(r1, r2) + 1)
			}
		}
	}
}

// read reads the worksheets and links them to their objects.
func (x *File) read() error {
	links, err := readLinks(x.f)
	if err != nil {
		return err
	}
	linked := map[string]*Tab{}
	for i := range links {
		name := links[i].Name
		// A worksheet that was renamed has its name in the defined name.
		for _, defined := range x.f.GetDefinedName() {
			if defined.Name == linkName+strconv.Itoa(i+1) {
				if sheet, _, ok := cutLast(defined.RefersTo, "!"); ok {
					name = strings.ReplaceAll(strings.Trim(sheet, "'"), "''", "'")
				}
			}
		}
		if index, err := x.f.GetSheetIndex(name); err != nil || index < 0 {
			x.problems = append(x.problems, Problem{Tab: links[i].Name, Message: "its worksheet is not there any more"})
			continue
		}
		linked[name] = &links[i]
	}
	for _, name := range x.f.GetSheetList() {
		if name == reservedTab {
			continue
		}
		t := &fileTab{sheet: name, read: linked[name]}
		if t.read != nil && !t.read.Bound() {
			t.read = nil
		}
		if t.cells, err = readCells(x.f, name); err != nil {
			return err
		}
		if t.read != nil {
			x.problems = append(x.problems, t.link()...)
		}
		x.tabs = append(x.tabs, t)
	}
	return nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

func readCells(f *excelize.File, sheet string) ([][]fileCell, error) {
	rows, err := f.GetRows(sheet, excelize.Options{RawCellValue: true})
	if err != nil {
		return nil, err
	}
	cells := make([][]fileCell, len(rows))
	for i, row := range rows {
		cells[i] = make([]fileCell, len(row))
		for k := range row {
			name, err := excelize.CoordinatesToCellName(k+1, i+1)
			if err != nil {
				return nil, err
			}
			c := &cells[i][k]
			if c.formula, err = f.GetCellFormula(sheet, name); err != nil {
				return nil, err
			}
			if c.formula != "" {
				c.formula = fromFile(c.formula)
			}
			if row[k] == "" {
				continue
			}
			if c.value, err = cachedValue(f, cellRef{sheet, name}); err != nil {
				return nil, err
			}
		}
	}
	return cells, nil
}

// at returns a cell; a zero one outside of the table.
func (t *fileTab) at(row, column int) fileCell {
	if row < 0 || row >= len(t.cells) || column < 0 || column >= len(t.cells[row]) {
		return fileCell{}
	}
	return t.cells[row][column]
}

// link finds the columns by their heads, and the objects by their names.
func (t *fileTab) link() (problems []Problem) {
	heads := append([]string{headNamespace, headName}, t.read.Columns...)
	for _, head := range heads {
		column := -1
		if len(t.cells) > 0 {
			column = slices.IndexFunc(t.cells[0], func(c fileCell) bool { return c.formula == "" && c.value == head })
		}
		if column < 0 {
			problems = append(problems, Problem{Tab: t.sheet, Message: "row 1 has no column " + head + " any more"})
		}
		t.columns = append(t.columns, column)
	}
	t.rows = map[int]*Row{}
	if t.columns[1] < 0 || t.columns[0] < 0 {
		return problems
	}
	byKey := map[[2]string]*Row{}
	for i := range t.read.Rows {
		r := &t.read.Rows[i]
		byKey[[2]string{r.Namespace, r.Name}] = r
	}
	at := map[*Row]int{}
	twice := map[*Row]bool{}
	for i := 1; i < len(t.cells); i++ {
		namespace, name := t.at(i, t.columns[0]), t.at(i, t.columns[1])
		r := byKey[[2]string{cellText(namespace.value), cellText(name.value)}]
		if r == nil || namespace.formula != "" || name.formula != "" {
			continue
		}
		if first, ok := at[r]; ok {
			problems = append(problems, Problem{Tab: t.sheet, Message: fmt.Sprintf("%s is in the rows %d and %d: neither is used", r.key(), first+1, i+1)})
			twice[r] = true
			continue
		}
		at[r] = i
		t.rows[i] = r
	}
	for r := range twice {
		delete(t.rows, at[r])
	}
	return problems
}

func (r *Row) key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Problems returns what keeps cells from being linked to objects.
func (x *File) Problems() []Problem { return x.problems }
