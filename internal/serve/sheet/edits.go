// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Object is an object with cells that were changed.
type Object struct {
	Tab             string
	Resource        Resource
	Namespace, Name string
	UID             string // of the object that was read
	Edits           []Edit
}

// An Edit is a changed cell.
type Edit struct {
	Cell string // such as C2
	Path string
	// Old is the value that was read, and New that of the cell; null is none.
	Old, New json.RawMessage
	// Refused is why the value cannot be changed; nil if it can.
	Refused error
}

// Edits returns the objects whose cells have another value than the one that was read, in
// the order of the rows. Formulas are computed.
func (x *File) Edits() ([]Object, error) {
	values, err := x.formulas()
	if err != nil {
		return nil, err
	}
	d := x.dependences()
	var objects []Object
	for _, t := range x.tabs {
		for row := range t.cells {
			r := t.rows[row]
			if r == nil {
				continue
			}
			o := Object{Tab: t.sheet, Resource: t.read.Resource, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
			for i, path := range t.read.Columns {
				column := t.columns[i+firstPath-1]
				if column < 0 {
					continue
				}
				e := Edit{Path: path, Old: r.Values[i]}
				e.Cell, _ = excelize.CoordinatesToCellName(column+1, row+1)
				c := t.at(row, column)
				value := c.value
				if c.formula != "" {
					value = values[cellRef{t.sheet, e.Cell}]
					e.Refused = checkFormula(c, value, d.of(t, row, column, 0))
				}
				if e.Refused == nil {
					if same(e.Old, value) {
						continue
					}
					e.New, e.Refused = newValue(e.Old, path, value)
				}
				o.Edits = append(o.Edits, e)
			}
			if len(o.Edits) > 0 {
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// formulas computes the formulas of the objects' cells, in a copy of the file.
func (x *File) formulas() (map[cellRef]any, error) {
	var refs []cellRef
	d := x.dependences()
	for _, t := range x.tabs {
		for row := range t.rows {
			for _, column := range t.columns[min(firstPath-1, len(t.columns)):] {
				if column >= 0 && t.at(row, column).formula != "" && d.of(t, row, column, 0).err == nil {
					name, _ := excelize.CoordinatesToCellName(column+1, row+1)
					refs = append(refs, cellRef{t.sheet, name})
				}
			}
		}
	}
	if len(refs) == 0 {
		return nil, nil
	}
	f, err := x.edit()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // its temporary files
	values, err := evaluate(f, refs)
	if err != nil {
		return nil, err
	}
	all := make(map[cellRef]any, len(refs))
	for i, ref := range refs {
		all[ref] = values[i]
	}
	return all, nil
}

// checkFormula returns why the value of a formula is not used; nil if it is. If the program
// that saved the file computed another value, one of the two is wrong; but a value that
// depends on the time changes.
func checkFormula(c fileCell, value any, d *dependence) error {
	if d.err != nil {
		return d.err
	}
	if failed, ok := value.(ErrorValue); ok {
		return fmt.Errorf("the value of %s is an error: %s", c.formula, string(failed))
	}
	if n, ok := value.(float64); ok && math.Abs(n) >= math.Pow10(maxDigits) {
		return fmt.Errorf("%s is %s here, and formulas have only %d digits: write the value instead", c.formula, cellText(value), maxDigits)
	}
	if c.value != nil && !d.volatile && cellText(c.value) != cellText(value) {
		return fmt.Errorf("%s is %s here, and was %s in the program that saved the file: write the value instead", c.formula, cellText(value), cellText(c.value))
	}
	return nil
}

// newValue returns a cell as the value of a path: in the type of the old value, or, if there
// was none, that of the cell; but labels, annotations and the like are texts. null removes the
// value.
func newValue(old json.RawMessage, path string, cell any) (json.RawMessage, error) {
	_, steps, err := scan.ParseSteps(path)
	if err != nil {
		return nil, err
	}
	if err := writableSteps(steps[0]); err != nil {
		return nil, err
	}
	if _, complete := shown(old); !complete {
		if old[0] == '"' {
			return nil, errors.New("the text is longer than a cell can show")
		}
		return nil, errors.New("objects and arrays cannot be changed in a cell")
	}
	text := cellText(cell)
	if _, failed := cell.(ErrorValue); failed {
		return nil, fmt.Errorf("the cell has the error %s", text)
	}
	switch {
	case text == "":
		if last := steps[0][len(steps[0])-1]; last.Element || last.Where {
			return nil, errors.New("an element of an array cannot be removed in a cell")
		}
		return json.RawMessage("null"), nil
	case !isNull(old) && old[0] == '"' || isText(steps[0]):
		return json.Marshal(text)
	case !isNull(old) && (old[0] == 't' || old[0] == 'f'):
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			return json.RawMessage(lower), nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	case !isNull(old):
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("%q is no number", text)
		}
		return json.RawMessage(text), nil
	}
	if _, isString := cell.(string); isString {
		return json.Marshal(text)
	}
	return json.RawMessage(text), nil
}

// Key returns the object as kubectl names it: deployments shop/web.
func (o *Object) Key() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Resource.Resource + " " + name
}

// Refuse returns an object with the edits that are refused, nil if there are none.
func (o *Object) Refuse() *Object { return o.only(func(e Edit) bool { return e.Refused != nil }) }

func (o *Object) only(want func(Edit) bool) *Object {
	out := *o
	out.Edits = slices.DeleteFunc(slices.Clone(o.Edits), func(e Edit) bool { return !want(e) })
	if len(out.Edits) == 0 {
		return nil
	}
	return &out
}
