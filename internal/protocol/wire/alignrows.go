// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// NewestColumns returns the columns of the newest printed object, or otherwise if
// no object was printed.
func NewestColumns(items []*scan.Object, otherwise string) (columns string) {
	columns = otherwise
	newest := uint64(0)
	for _, o := range items {
		if o.Columns != "" && o.RV > newest {
			columns, newest = o.Columns, o.RV
		}
	}
	return columns
}

// AlignRows rewrites the rows of all objects to the columns. Recorded objects may
// have been printed by several versions of the API server, or of a definition, and
// are not printed again until they change. The cell of a column that an object was
// not printed with is null.
func AlignRows(items []*scan.Object, columns string) {
	var names []string
	indexes := map[string][]int{} // by old columns: the index of each new column's cell, or -1
	for i, o := range items {
		if o.Columns == "" || o.Columns == columns {
			continue
		}
		if names == nil {
			names = columnNames(columns)
		}
		from, ok := indexes[o.Columns]
		if !ok {
			old := columnNames(o.Columns)
			for _, name := range names {
				from = append(from, slices.Index(old, name))
			}
			indexes[o.Columns] = from
		}
		cells, rest, err := o.Cells(nil)
		if err != nil {
			continue // the encoder reports the error
		}
		items[i] = realigned(o, columns, cells, rest, from)
	}
}

// realigned returns a copy of an object with new columns, whose cells are those at the
// indexes from; null for an index that does not exist.
func realigned(o *scan.Object, columns string, cells []string, rest string, from []int) *scan.Object {
	moved := make([]string, len(from))
	for i, index := range from {
		if moved[i] = "null"; 0 <= index && index < len(cells) {
			moved[i] = cells[index]
		}
	}
	return o.WithRow(`"cells":[`+strings.Join(moved, ",")+"]"+rest, columns)
}

func columnNames(columns string) (names []string) {
	var all []struct{ Name string }
	if json.Unmarshal([]byte(columns), &all) != nil {
		return nil
	}
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}
