// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// A fileCell is a cell as it was read.
type fileCell struct {
	value   any // nil, string, float64, bool or ErrorValue; of a formula, what was computed last
	formula string
}

// A sheetReader reads the cells of a worksheet (ECMA-376 part 1, 18.3.1.4 and 18.3.1.40).
type sheetReader struct {
	*parts
	cells       [][]fileCell // by row and column, from 0
	row, column int          // from 1
	rows        int          // the number of the last row
	// edited is how many cells excelize has for the worksheet.
	edited int

	// Of the cell that is being read.
	kind, number string
	text         []byte
	phonetic     bool
	formula      string
	share        string // the id of the formula, if several cells have it

	masters map[string]spot
	copies  []formulaCopy
}

// A spot is a cell of a worksheet, from 1.
type spot struct{ row, column int }

// A formulaCopy is a cell with the formula of another.
type formulaCopy struct {
	spot
	share string
}

// readCells returns the cells of a worksheet, and how many excelize has for them.
func (p *parts) readCells(part string) (cells [][]fileCell, edited int, err error) {
	r := &sheetReader{parts: p, masters: map[string]spot{}}
	if err := p.walk(part, r.start, r.end); err != nil {
		return nil, 0, err
	}
	for _, c := range r.copies {
		from, ok := r.masters[c.share]
		if !ok {
			return nil, 0, invalid("%s: a cell of row %d has the formula %s, which is not there", part, c.row, c.share)
		}
		formula := r.cells[from.row-1][from.column-1].formula
		if err := p.takeFormula(formula); err != nil {
			return nil, 0, err
		}
		r.cells[c.row-1][c.column-1].formula = shiftFormula(formula, c.row-from.row, c.column-from.column)
	}
	return r.cells, r.edited + r.rows, nil
}

func (r *sheetReader) start(name string, e element) error {
	switch name {
	case "row":
		r.row++
		if at := e.attr("r"); at != "" {
			n, err := strconv.Atoi(at)
			if err != nil || n < 1 || n > excelize.TotalRows {
				return invalid("there is no row %s", at)
			}
			r.row = n
		}
		r.column, r.rows = 0, max(r.rows, r.row)
	case "c":
		before := r.column
		r.column++
		if at := e.attr("r"); at != "" {
			column, row, err := excelize.CellNameToCoordinates(at)
			if err != nil || row != r.row {
				return invalid("there is no cell %s in row %d", at, r.row)
			}
			r.column = column
		}
		if r.row < 1 || r.column > excelize.MaxColumns {
			return invalid("a cell has no row, or too high a column")
		}
		r.edited += max(1, r.column-before)
		r.kind, r.number, r.text, r.formula, r.share = e.attr("t"), "", r.text[:0], "", ""
	case "f":
		if e.attr("t") == "shared" {
			r.share = e.attr("si")
		}
	case "rPh":
		r.phonetic = true
	case "mergeCell":
		from, to, _ := strings.Cut(e.attr("ref"), ":")
		c1, r1, err1 := excelize.CellNameToCoordinates(from)
		c2, r2, err2 := excelize.CellNameToCoordinates(to)
		if err1 == nil && err2 == nil {
			area := (max(c1, c2) - min(c1, c2) + 1) * (max(r1, r2) - min(r1, r2) + 1)
			r.edited = min(r.edited+area, 1<<40)
		}
	}
	return nil
}

func (r *sheetReader) end(name, text string) error {
	switch {
	case name == "v":
		r.number = text
	case name == "t" && !r.phonetic:
		if len(r.text)+len(text) > maxRun {
			return invalid("%v", errLong)
		}
		r.text = append(r.text, text...)
	case name == "rPh":
		r.phonetic = false
	case name == "f":
		r.formula = text
	case name == "c":
		return r.cell()
	}
	return nil
}

// cell keeps the cell that was read.
func (r *sheetReader) cell() error {
	value, err := r.value()
	if err != nil || value == nil && r.formula == "" && r.share == "" {
		return err
	}
	if text, ok := value.(string); ok && r.kind != "s" {
		err = r.take(len(text))
	}
	if more := r.row - len(r.cells); err == nil && more > 0 {
		if err = r.take(more * costRow); err == nil {
			r.cells = append(r.cells, make([][]fileCell, more)...)
		}
	}
	if err != nil {
		return err
	}
	row := &r.cells[r.row-1]
	if more := r.column - len(*row); more > 0 {
		if err := r.take(more * costCell); err != nil {
			return err
		}
		*row = append(*row, make([]fileCell, more)...)
	}
	c := fileCell{value: value}
	at := spot{r.row, r.column}
	switch {
	case r.formula != "":
		if err := r.takeFormula(r.formula); err != nil {
			return err
		}
		c.formula = fromFile(r.formula)
		if r.share != "" {
			r.masters[r.share] = at
		}
	case r.share != "":
		r.copies = append(r.copies, formulaCopy{at, r.share})
		err = r.take(costCell)
	}
	(*row)[r.column-1] = c
	return err
}

// value returns the value of the cell that was read.
func (r *sheetReader) value() (any, error) {
	text := r.number
	switch r.kind {
	case "s":
		if text == "" {
			return nil, nil
		}
		i, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || i < 0 || i >= len(r.shared) {
			return nil, invalid("a cell of row %d has the text %s, which is not there", r.row, text)
		}
		text = r.shared[i]
	case "inlineStr":
		text = unescape(string(r.text))
	case "str", "d":
	case "b":
		if text != "" {
			return text == "1" || text == "TRUE", nil
		}
	case "e":
		if text != "" {
			return ErrorValue(text), nil
		}
	default:
		if text != "" {
			n, err := cellNumber(text)
			if err != nil {
				return nil, invalid("a cell of row %d: %v", r.row, err)
			}
			return n, nil
		}
	}
	if text == "" {
		return nil, nil
	}
	return text, nil
}

// word matches what may be a part of a reference, the name of a function or of a worksheet.
var (
	word   = regexp.MustCompile(`[$A-Za-z0-9_.\\]+`)
	inCell = regexp.MustCompile(`^(\$?)([A-Za-z]{1,3})(\$?)([0-9]{1,7})$`)
	inSpan = regexp.MustCompile(`^(\$?)(?:([A-Za-z]{1,3})|([0-9]{1,7}))$`)
)

// shiftFormula returns a formula as it is in a cell some rows and columns further: references
// without a $ move.
func shiftFormula(formula string, rows, columns int) string {
	if rows == 0 && columns == 0 {
		return formula
	}
	column := func(fixed, name string) string {
		if fixed != "" {
			return fixed + name
		}
		n, err := excelize.ColumnNameToNumber(name)
		if err == nil {
			name, err = excelize.ColumnNumberToName(n + columns)
		}
		if err != nil {
			return "#REF!"
		}
		return name
	}
	row := func(fixed, text string) string {
		n, _ := strconv.Atoi(text)
		if fixed != "" {
			return fixed + text
		}
		if n += rows; n < 1 || n > excelize.TotalRows {
			return "#REF!"
		}
		return strconv.Itoa(n)
	}
	return cmp.Or(outsideQuotes(formula, func(text string) string {
		var out strings.Builder
		last := 0
		for _, at := range word.FindAllStringIndex(text, -1) {
			from, to := at[0], at[1]
			next, before := byte(0), byte(0)
			if to < len(text) {
				next = text[to]
			}
			if from > 0 {
				before = text[from-1]
			}
			moved := text[from:to]
			cell, span := inCell.FindStringSubmatch(moved), inSpan.FindStringSubmatch(moved)
			switch {
			case next == '(' || next == '!':
			case cell != nil:
				moved = column(cell[1], cell[2]) + row(cell[3], cell[4])
			case span != nil && (next == ':' || before == ':') && span[2] != "":
				moved = column(span[1], span[2])
			case span != nil && (next == ':' || before == ':'):
				moved = row(span[1], span[3])
			}
			if strings.Contains(moved, "#REF!") {
				moved = "#REF!"
			}
			out.WriteString(text[last:from] + moved)
			last = to
		}
		return out.String() + text[last:]
	}), formula)
}
