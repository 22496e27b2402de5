// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// MaxFile is the greatest size of an .xlsx file, in bytes, and maxUnzipped that of its
// parts.
const (
	MaxFile     = 32 << 20
	maxUnzipped = 256 << 20
)

// A File is an .xlsx file that was read, and what links it to objects.
type File struct {
	budget *Budget
	data   []byte // as it was opened
	// tabs are the worksheets, in their order, without the hidden one.
	tabs     []*fileTab
	problems []Problem
	edited   int // the cells that excelize has for it
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

// Open reads an .xlsx file. An error that wraps [ErrInvalid] is the file's, or says that the
// budget is too small.
func Open(b *Budget, data []byte) (*File, error) {
	p, err := openParts(data, b)
	if err != nil {
		return nil, err
	}
	sheets, defined, err := p.open()
	if err != nil {
		return nil, err
	}
	x := &File{budget: b, data: data}
	var links []Tab
	for _, s := range sheets {
		cells, edited, err := p.readCells(s.part)
		if err != nil {
			return nil, err
		}
		x.edited += edited
		if s.name == reservedTab {
			if links, err = readLinks(b, cells); err != nil {
				return nil, err
			}
			continue
		}
		x.tabs = append(x.tabs, &fileTab{sheet: s.name, cells: cells})
	}
	x.link(links, defined)
	return x, nil
}

// link links the worksheets to what was read.
func (x *File) link(links []Tab, defined map[string]string) {
	byName := map[string]*fileTab{}
	for _, t := range x.tabs {
		byName[t.sheet] = t
	}
	for i := range links {
		name := links[i].Name
		// A worksheet that was renamed has its name in the defined name.
		if sheet, _, ok := cutLast(defined[linkName+strconv.Itoa(i+1)], "!"); ok {
			name = strings.ReplaceAll(strings.Trim(sheet, "'"), "''", "'")
		}
		t := byName[name]
		switch {
		case t == nil:
			x.problems = append(x.problems, Problem{Tab: links[i].Name, Message: "its worksheet is not there any more"})
		case links[i].Bound():
			t.read = &links[i]
		}
	}
	for _, t := range x.tabs {
		if t.read != nil {
			x.problems = append(x.problems, t.link()...)
		}
	}
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// at returns a cell; a zero one outside of the table.
func (t *fileTab) at(row, column int) fileCell {
	if row < 0 || row >= len(t.cells) || column < 0 || column >= len(t.cells[row]) {
		return fileCell{}
	}
	return t.cells[row][column]
}

// maxNamed is how many rows that name no object are listed.
const maxNamed = 20

// link finds the columns by their heads, and the objects by their names.
func (t *fileTab) link() (problems []Problem) {
	heads := map[string]int{}
	if len(t.cells) > 0 {
		for column, c := range t.cells[0] {
			if head, ok := c.value.(string); ok && c.formula == "" {
				if _, twice := heads[head]; !twice {
					heads[head] = column
				}
			}
		}
	}
	for _, head := range append([]string{headNamespace, headName}, t.read.Columns...) {
		column, ok := heads[head]
		if !ok {
			column = -1
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
	var others []Problem // rows that name no object
	for i := 1; i < len(t.cells); i++ {
		namespace, name := t.at(i, t.columns[0]), t.at(i, t.columns[1])
		r := byKey[[2]string{cellText(namespace.value), cellText(name.value)}]
		if r == nil || namespace.formula != "" || name.formula != "" {
			if other := (&Row{Namespace: cellText(namespace.value), Name: cellText(name.value)}); other.Name != "" {
				others = append(others, Problem{Tab: t.sheet, Message: fmt.Sprintf("row %d is not used: no object was read as %s, and names are read-only", i+1, other.key())})
			}
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
	if len(at) < len(t.read.Rows) { // otherwise these are notes
		if more := len(others) - maxNamed; more > 0 {
			others = append(others[:maxNamed], Problem{Tab: t.sheet, Message: words.Count(more, "further row") + " not used either"})
		}
		problems = append(problems, others...)
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
