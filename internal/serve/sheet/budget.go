// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"context"

	"github.com/xuri/excelize/v2"
)

// A Budget is about how much memory reading or writing one workbook may still take, and the
// context that ends it. Memory is taken before it is allocated: a cell with those that are
// added before it in its row, a text each time that it is repeated. It is for one goroutine.
type Budget struct {
	ctx         context.Context
	limit, left int
	formulas    int // how many bytes of them may still be read
}

// maxFormulas bounds the formulas of a workbook, in bytes, each time that a cell has one: to
// read them takes a second for some MiB.
const maxFormulas = 8 << 20

// NewBudget returns a budget of some bytes.
func NewBudget(ctx context.Context, bytes int) *Budget {
	return &Budget{ctx, bytes, bytes, maxFormulas}
}

// take takes n bytes. The error wraps [ErrInvalid] if there are not as many, or is the cause
// of the end of the context.
func (b *Budget) take(n int) error {
	if n > b.left {
		return invalid("it is too large: it would take more than %d MiB of memory", b.limit>>20)
	}
	b.left -= n
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return nil
}

// takeFormula takes the time and the memory that a formula takes.
func (b *Budget) takeFormula(text string) error {
	if b.formulas -= len(text); b.formulas < 0 {
		return invalid("its formulas are too long: together they have more than %d MiB", maxFormulas>>20)
	}
	return b.take(len(text))
}

// The memory that things take, in bytes: measured with those of their maps, and of slices that
// grow.
const (
	costValue   = 48   // a value in a list of JSON
	costObject  = 200  // an object in JSON: a row or a cell of a Workbook
	costTab     = 1000 // a Tab besides
	costRow     = 48
	costCell    = 2 * 48 // a fileCell
	costWritten = 120    // a cell in XML, and in the buffers that it goes through
	costEdited  = 450    // a cell of excelize
)

// TakeJSON takes what the values of JSON take.
func (b *Budget) TakeJSON(text []byte) error {
	values, objects, _ := count(text)
	return b.take(2*len(text) + values*costValue + objects*costObject)
}

// TakeWorkbook takes what a [Workbook] of JSON takes.
func (b *Budget) TakeWorkbook(text []byte) error {
	values, objects, tabs := count(text)
	return b.take(2*len(text) + values*costValue + objects*costObject + tabs*costTab)
}

// count returns about how many values JSON has in lists, and how many objects, and how many of
// these are in a list of the outermost object.
func count(text []byte) (values, objects, inner int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			values++
		case c == '[':
			values++
			depth++
		case c == '{':
			if objects++; depth == 2 {
				inner++
			}
			depth++
		case c == ']' || c == '}':
			depth--
		}
	}
	return values, objects, inner
}

// takeCells takes what cells take in XML, with the escapes of their texts, and in the buffers
// that they go through.
func (b *Budget) takeCells(values []any) error {
	n := 0
	for _, value := range values {
		text := ""
		switch v := value.(type) {
		case nil:
			continue
		case string:
			text = v
		case excelize.Cell:
			text, _ = v.Value.(string)
			n += 2 * len(v.Formula)
		}
		n += costWritten + 2*len(text)
		for i := range len(text) {
			switch text[i] {
			case '"', '\'', '<', '>', '&', '\t', '\n', '\r':
				n += 2 * len("&#34;")
			}
		}
	}
	return b.take(n)
}
