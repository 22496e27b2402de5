// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Workbook is tabs of objects and of formulas. Its JSON is that of the page and of
// /watchkeeper/v1/workbook.
type Workbook struct {
	Tabs []Tab `json:"tabs"`
}

// A Resource is the resource of a tab's objects.
type Resource struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

// A Tab is a table of the objects of a resource: row 1 has the heads namespace, name and
// the columns; each row after it has an object. Every other cell is free. A tab without a
// Resource has only free cells.
type Tab struct {
	Name     string   `json:"name"`
	Resource Resource `json:"resource"`
	Kind     string   `json:"kind"`
	// Namespace is "" for all namespaces, and for resources without them.
	Namespace string   `json:"namespace"`
	Selector  string   `json:"selector"` // of labels; "" for all
	Columns   []string `json:"columns"`  // paths, as in fields=
	Rows      []Row    `json:"rows"`
	// Cells are the cells that are not just the value of an object: free ones, and those of
	// objects that have a formula or a value that was not applied.
	Cells []Cell `json:"cells"`
}

// A Row is an object. One without a Name is a row between those of objects: its cells are
// free.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Values are those of the columns: JSON, null if there is none.
	Values []json.RawMessage `json:"values"`
}

// A Cell has a Formula, which begins with =, or a Value: a text, a number, a boolean, or
// null for a value of an object that is to be removed.
type Cell struct {
	Cell    string          `json:"cell"`
	Formula string          `json:"formula,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// A Problem is a cell of a workbook that has to be known about: its formula is not
// supported, or it cannot be linked to an object.
type Problem struct {
	Tab     string `json:"tab"`
	Cell    string `json:"cell,omitempty"`
	Message string `json:"message"`
}

// The columns before those of the paths.
const (
	headNamespace = "namespace"
	headName      = "name"
	firstPath     = 3 // the number of the column of the first path; A is 1
)

// The limits of a workbook.
const (
	maxTabs = 100
	maxRows = 200_000 // of all tabs
	// maxCells bounds the cells of all tabs, counting the empty ones of a row before its last.
	maxCells = 3_000_000
	maxText  = 32_767 // UTF-16 units of a cell, in Excel
	maxName  = 31     // characters of a worksheet's name, in Excel
)

// reservedTab is the worksheet that links the others to their objects.
const reservedTab = "watchkeeper"

// ErrInvalid marks a workbook, or a file, that is not one that this package reads.
var ErrInvalid = errors.New("not a valid workbook")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Check returns why the workbook cannot be written: the error wraps [ErrInvalid].
func (w *Workbook) Check() error {
	if len(w.Tabs) == 0 || len(w.Tabs) > maxTabs {
		return invalid("it has %d tabs: 1 to %d are possible", len(w.Tabs), maxTabs)
	}
	names := map[string]bool{reservedTab: true}
	rows, cells := 0, 0
	for i := range w.Tabs {
		t := &w.Tabs[i]
		if err := checkTabName(t.Name); err != nil {
			return err
		}
		if lower := strings.ToLower(t.Name); names[lower] {
			return invalid("the name of the tab %q is taken", t.Name)
		} else {
			names[lower] = true
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("tab %q: %w", t.Name, err)
		}
		rows += len(t.Rows)
		cells += len(t.Rows)*(len(t.Columns)+2) + len(t.Cells)
	}
	if rows > maxRows || cells > maxCells {
		return invalid("it has %d rows and %d cells: at most %d and %d are possible", rows, cells, maxRows, maxCells)
	}
	return nil
}

// checkPlace returns an error if a path of the API that is made of the resource, the namespace and
// the name leads to another one: a file may come from anybody. Each of them may be empty.
func (r Resource) checkPlace(namespace, name string) error {
	for _, part := range []string{r.Group, r.Version, r.Resource} {
		if part != "" && len(validation.IsDNS1123Subdomain(part)) > 0 {
			return invalid("%q is no part of the name of a resource", part)
		}
	}
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return invalid("%q is no namespace", namespace)
	}
	if len(path.IsValidPathSegmentName(name)) > 0 {
		return invalid("%q is no name of an object", name)
	}
	return nil
}

func (t *Tab) check() error {
	if err := t.Resource.checkPlace(t.Namespace, ""); err != nil {
		return err
	}
	if !t.Bound() {
		if len(t.Rows)+len(t.Columns) > 0 {
			return invalid("it has rows or columns, but no resource")
		}
	} else if len(t.Columns) > excelize.MaxColumns-firstPath+1 {
		return invalid("it has %d columns: at most %d are possible", len(t.Columns), excelize.MaxColumns-firstPath+1)
	} else if len(t.Columns) > 0 {
		parsed, _, err := scan.ParseSteps(strings.Join(t.Columns, ","))
		if err != nil {
			return invalid("columns: %v", err)
		}
		if !slices.Equal(parsed, t.Columns) {
			return invalid("columns: each has to be one path")
		}
	}
	heads := map[string]bool{headNamespace: true, headName: true}
	for _, column := range t.Columns {
		if heads[column] {
			return invalid("the column %s is there twice", column)
		}
		heads[column] = true
	}
	objects := map[[2]string]bool{}
	for _, r := range t.Rows {
		if err := t.Resource.checkPlace(r.Namespace, r.Name); err != nil {
			return err
		}
		key := [2]string{r.Namespace, r.Name}
		switch {
		case r.Name == "":
			if r.Namespace != "" || r.UID != "" || len(r.Values) > 0 {
				return invalid("a row without a name has values")
			}
			continue
		case objects[key]:
			return invalid("%s/%s has two rows", r.Namespace, r.Name)
		case len(r.Values) != len(t.Columns):
			return invalid("%s/%s has %d values for %d columns", r.Namespace, r.Name, len(r.Values), len(t.Columns))
		}
		objects[key] = true
	}
	taken := map[string]bool{}
	for _, c := range t.Cells {
		column, row, err := excelize.CellNameToCoordinates(c.Cell)
		if err != nil || row > excelize.TotalRows {
			return invalid("%q is not the name of a cell", c.Cell)
		}
		name, _ := excelize.CoordinatesToCellName(column, row)
		switch {
		case name != c.Cell || taken[name]:
			return invalid("the cell %s is there twice, or not written as %s", c.Cell, name)
		case t.isHead(column, row), t.isIdentity(column, row):
			return invalid("the cell %s has the head of a column or the name of an object", name)
		case len(c.Formula) > maxFormula || c.Formula != "" && !strings.HasPrefix(c.Formula, "="):
			return invalid("the formula of %s does not begin with =, or is too long", name)
		}
		taken[name] = true
		if _, err := c.value(); err != nil {
			return invalid("the value of %s is neither a text, a number nor a boolean", name)
		}
	}
	return nil
}

// Bound reports whether the tab has objects.
func (t *Tab) Bound() bool { return t.Resource.Resource != "" }

func (t *Tab) isHead(column, row int) bool {
	return t.Bound() && row == 1 && column < firstPath+len(t.Columns)
}

func (t *Tab) isIdentity(column, row int) bool {
	return row > 1 && row < 2+len(t.Rows) && column < firstPath && t.Rows[row-2].Name != ""
}

// bound returns the value of an object at a cell; ok is false if the cell is free.
func (t *Tab) bound(column, row int) (value json.RawMessage, ok bool) {
	if row < 2 || row >= 2+len(t.Rows) || column < firstPath || column >= firstPath+len(t.Columns) || t.Rows[row-2].Name == "" {
		return nil, false
	}
	return t.Rows[row-2].Values[column-firstPath], true
}

// value returns the value of a cell: nil, string, float64 or bool.
func (c *Cell) value() (any, error) {
	if c.Value == nil {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(c.Value, &value); err != nil {
		return nil, err
	}
	switch value.(type) {
	case float64:
		return cellNumber(string(bytes.TrimSpace(c.Value)))
	case nil, string, bool:
		return value, nil
	}
	return nil, errors.New("an object or array")
}

// Problems returns the cells whose formulas are not supported.
func (w *Workbook) Problems() (problems []Problem) {
	for i := range w.Tabs {
		for _, c := range w.Tabs[i].Cells {
			if c.Formula == "" {
				continue
			}
			if err := Check(c.Formula); err != nil {
				problems = append(problems, Problem{Tab: w.Tabs[i].Name, Cell: c.Cell, Message: err.Error()})
			}
		}
	}
	return problems
}

// sortCells brings the cells in the order of their rows and columns.
func sortCells(cells []Cell) {
	slices.SortFunc(cells, func(a, b Cell) int {
		ac, ar, _ := excelize.CellNameToCoordinates(a.Cell)
		bc, br, _ := excelize.CellNameToCoordinates(b.Cell)
		return cmp.Or(cmp.Compare(ar, br), cmp.Compare(ac, bc))
	})
}

const notInNames = `[]:*?/\`

func checkTabName(name string) error {
	switch {
	case strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxName:
		return invalid("the name of the tab %q has to have 1 to %d characters", name, maxName)
	case strings.ContainsAny(name, notInNames) || strings.HasPrefix(name, "'") || strings.HasSuffix(name, "'") || strings.ContainsFunc(name, isControl):
		return invalid("the name of the tab %q has one of %s, or begins or ends with '", name, notInNames)
	case strings.EqualFold(name, reservedTab) || strings.EqualFold(name, "History"):
		return invalid("the name %q is reserved", name)
	}
	return nil
}

// TabName returns a valid name for a tab, near to the one that is wanted, which none of
// the others has.
func TabName(wanted string, others []string) string {
	name := strings.TrimSpace(strings.Map(func(r rune) rune {
		if isControl(r) || strings.ContainsRune(notInNames+"'", r) {
			return '-'
		}
		return r
	}, wanted))
	base := []rune(name)
	for i := 1; ; i++ {
		suffix := ""
		if i > 1 {
			suffix = fmt.Sprintf(" (%d)", i)
		}
		name = strings.TrimSpace(string(base[:min(len(base), maxName-len(suffix))])) + suffix
		taken := slices.ContainsFunc(others, func(o string) bool { return strings.EqualFold(o, name) })
		if !taken && checkTabName(name) == nil {
			return name
		}
	}
}
