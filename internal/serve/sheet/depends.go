// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/xuri/efp"
	"github.com/xuri/excelize/v2"
)

// A dependence is what a formula and all that it depends on have in common.
type dependence struct {
	done     bool  // false while it is being computed, which is a loop
	volatile bool  // it depends on the time
	err      error // why it is not computed
}

// dependences finds what formulas depend on.
type dependences struct {
	tabs map[string]*fileTab // by name, in lower case
	seen map[cellRef]*dependence
	left int // cells that may still be visited
}

// maxVisits bounds the cells that the formulas of a file refer to, counting a cell again for
// each formula.
const maxVisits = 20_000_000

func (x *File) dependences() *dependences {
	d := &dependences{tabs: map[string]*fileTab{}, seen: map[cellRef]*dependence{}, left: maxVisits}
	for _, t := range x.tabs {
		d.tabs[strings.ToLower(t.sheet)] = t
	}
	return d
}

// maxDepth bounds chains of formulas, which excelize computes by recursion.
const maxDepth = 2000

// of returns the dependence of the formula in a cell.
func (d *dependences) of(t *fileTab, row, column, depth int) *dependence {
	name, _ := excelize.CoordinatesToCellName(column+1, row+1)
	ref := cellRef{t.sheet, name}
	if known := d.seen[ref]; known != nil {
		if !known.done {
			return &dependence{err: fmt.Errorf("the formulas of %s form a loop", name)}
		}
		return known
	}
	at := &dependence{}
	d.seen[ref] = at
	formula := t.at(row, column).formula
	if at.err = Check(formula); at.err != nil && depth > 0 {
		at.err = fmt.Errorf("it depends on %s: %w", name, at.err)
	}
	if depth > maxDepth {
		at.err = fmt.Errorf("it depends on a chain of more than %d formulas", maxDepth)
	}
	at.volatile = isVolatile(formula)
	parser := efp.ExcelParser()
	for _, token := range parser.Parse(strings.TrimPrefix(formula, "=")) {
		if at.err != nil {
			break
		}
		if token.TType == efp.TokenTypeOperand && token.TSubType == efp.TokenSubTypeRange {
			d.area(t, token.TValue, depth, at)
		}
	}
	at.done = true
	return at
}

// reference matches a cell, columns or rows, or a range of them.
var reference = regexp.MustCompile(`^\$?([A-Za-z]{1,3})?\$?([0-9]{1,7})?$`)

// area adds the dependences of the cells of a reference.
func (d *dependences) area(t *fileTab, text string, depth int, into *dependence) {
	cells := text
	if sheet, rest, ok := cutLast(text, "!"); ok {
		sheet = strings.ReplaceAll(strings.Trim(sheet, "'"), "''", "'")
		if t = d.tabs[strings.ToLower(sheet)]; t == nil {
			into.err = fmt.Errorf("it refers to the worksheet %q, which is not there", sheet)
			return
		}
		cells = rest
	}
	from, to, isArea := strings.Cut(cells, ":")
	if !isArea {
		to = from
	}
	a, b := reference.FindStringSubmatch(from), reference.FindStringSubmatch(to)
	if a == nil || b == nil || a[1]+a[2] == "" || b[1]+b[2] == "" || !isArea && (a[1] == "" || a[2] == "") {
		into.err = fmt.Errorf("the name %s is not supported in a formula", text)
		return
	}
	span := func(i, all int) (lo, hi int, ok bool) {
		if a[i] == "" || b[i] == "" {
			return 0, all - 1, a[i] == b[i]
		}
		x, y := position(a[i]), position(b[i])
		return max(0, min(x, y)-1), min(all, max(x, y)) - 1, true
	}
	top, bottom, ok1 := span(2, len(t.cells))
	for row := top; row <= bottom; row++ {
		left, right, ok2 := span(1, len(t.cells[row]))
		if !ok1 || !ok2 {
			into.err = fmt.Errorf("the name %s is not supported in a formula", text)
			return
		}
		for column := left; column <= right; column++ {
			if d.left--; d.left < 0 {
				into.err = errors.New("the formulas refer to too many cells")
				return
			}
			if t.at(row, column).formula == "" {
				continue
			}
			of := d.of(t, row, column, depth+1)
			into.volatile = into.volatile || of.volatile
			if of.err != nil {
				into.err = of.err
				return
			}
		}
	}
}

// position returns the number of a column or a row.
func position(text string) int {
	if text[0] < 'A' {
		n := 0
		for _, c := range text {
			n = n*10 + int(c-'0')
		}
		return n
	}
	n, err := excelize.ColumnNameToNumber(strings.ToUpper(text))
	if err != nil {
		return excelize.MaxColumns
	}
	return n
}

// volatile matches the functions of the time.
var volatile = regexp.MustCompile(`(?i)\b(NOW|TODAY)\s*\(`)

func isVolatile(formula string) (found bool) {
	outsideQuotes(strings.TrimPrefix(formula, "="), func(text string) string {
		found = found || volatile.MatchString(text)
		return text
	})
	return found
}
