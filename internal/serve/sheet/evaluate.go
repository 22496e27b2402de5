// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// An ErrorValue is the value of a formula that failed, such as #DIV/0!.
type ErrorValue string

// errorValues are the error values of spreadsheets.
var errorValues = []string{"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"}

// A cellRef is a cell of a worksheet.
type cellRef struct{ sheet, cell string }

// evaluate computes the formulas of cells. The values are float64, bool, string or
// [ErrorValue]. The file is changed: it gets a worksheet with formulas for the types,
// which excelize does not return.
func evaluate(f *excelize.File, cells []cellRef) ([]any, error) {
	const scratch = "watchkeeper types"
	if _, err := f.NewSheet(scratch); err != nil {
		return nil, err
	}
	for i, c := range cells {
		if err := f.SetCellFormula(scratch, "A"+strconv.Itoa(i+1), "TYPE("+quoteSheet(c.sheet)+"!"+c.cell+")"); err != nil {
			return nil, err
		}
	}
	values := make([]any, len(cells))
	for i, c := range cells {
		values[i] = compute(f, c, cellRef{scratch, "A" + strconv.Itoa(i+1)})
	}
	return values, nil
}

// compute returns the value of one formula; kind is the cell with its type.
func compute(f *excelize.File, c, kind cellRef) (value any) {
	// excelize panics at some arguments of functions.
	defer func() {
		if failed := recover(); failed != nil {
			value = ErrorValue(fmt.Sprintf("it cannot be computed: %v", failed))
		}
	}()
	raw := excelize.Options{RawCellValue: true}
	text, err := f.CalcCellValue(c.sheet, c.cell, raw)
	switch {
	case err != nil && slices.Contains(errorValues, err.Error()):
		return ErrorValue(err.Error())
	case err != nil && slices.Contains(errorValues, text):
		return ErrorValue(text)
	case err != nil:
		return ErrorValue("it cannot be computed: " + err.Error())
	case slices.Contains(errorValues, text):
		return ErrorValue(text)
	}
	of, err := f.CalcCellValue(kind.sheet, kind.cell, raw)
	if err != nil {
		return ErrorValue("it cannot be computed: " + err.Error())
	}
	switch of {
	case "1":
		if text == "" {
			return 0.0
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return ErrorValue("it cannot be computed: the number " + text)
		}
		return n
	case "4":
		return text == "TRUE"
	}
	return text
}

func quoteSheet(name string) string { return "'" + strings.ReplaceAll(name, "'", "''") + "'" }
