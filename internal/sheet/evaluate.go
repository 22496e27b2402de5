// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

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
		text, err := f.CalcCellValue(c.sheet, c.cell, excelize.Options{RawCellValue: true})
		if err != nil {
			if !slices.Contains(errorValues, err.Error()) {
				err = fmt.Errorf("%w [%s]", err, text)
				if !slices.Contains(errorValues, text) {
					return nil, fmt.Errorf("%s!%s: %w", c.sheet, c.cell, err)
				}
				values[i] = ErrorValue(text)
				continue
			}
			values[i] = ErrorValue(err.Error())
			continue
		}
		kind, err := f.CalcCellValue(scratch, "A"+strconv.Itoa(i+1), excelize.Options{RawCellValue: true})
		if err != nil {
			return nil, err
		}
		switch kind {
		case "1":
			n, err := strconv.ParseFloat(text, 64)
			if err != nil && text != "" {
				return nil, errors.New("number " + text)
			}
			values[i] = n
		case "4":
			values[i] = text == "TRUE"
		default:
			values[i] = text
		}
	}
	return values, nil
}

func quoteSheet(name string) string { return "'" + name + "'" }

// cachedValue returns the value of a cell that the file has, for a formula the one that
// was computed last: nil, float64, bool, string or [ErrorValue].
func cachedValue(f *excelize.File, c cellRef) (any, error) {
	text, err := f.GetCellValue(c.sheet, c.cell, excelize.Options{RawCellValue: true})
	if err != nil {
		return nil, err
	}
	kind, err := f.GetCellType(c.sheet, c.cell)
	if err != nil {
		return nil, err
	}
	switch kind {
	case excelize.CellTypeBool:
		return text == "1" || text == "TRUE", nil
	case excelize.CellTypeError:
		return ErrorValue(text), nil
	case excelize.CellTypeNumber, excelize.CellTypeUnset:
		if text == "" {
			return nil, nil
		}
		return strconv.ParseFloat(text, 64)
	}
	return text, nil
}
