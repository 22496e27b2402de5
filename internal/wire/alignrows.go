// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// NewestColumns returns the columns that the newest of the objects was printed
// under; otherwise, if none was printed.
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

// AlignRows moves the cells of all objects under the columns. Recorded objects may
// have been printed by several versions of the API server, or of a definition, and
// are not printed again until they change. A column that an object was not printed
// with is empty.
func AlignRows(items []*scan.Object, columns string) {
	var names []string
	places := map[string][]int{} // by columns: where its cells come from
	for i, o := range items {
		if o.Columns == "" || o.Columns == columns {
			continue
		}
		if names == nil {
			names = columnNames(columns)
		}
		from, ok := places[o.Columns]
		if !ok {
			old := columnNames(o.Columns)
			for _, name := range names {
				from = append(from, slices.Index(old, name))
			}
			places[o.Columns] = from
		}
		cells, rest, err := o.Cells(nil)
		if err != nil {
			continue // which shows when it is to be printed
		}
		items[i] = realigned(o, columns, cells, rest, from)
	}
}

// realigned returns an object with its cells taken from the places given.
func realigned(o *scan.Object, columns string, cells []string, rest string, from []int) *scan.Object {
	moved := make([]string, len(from))
	for i, place := range from {
		if moved[i] = "null"; 0 <= place && place < len(cells) {
			moved[i] = cells[place]
		}
	}
	out := *o
	out.Row, out.Columns = `"cells":[`+strings.Join(moved, ",")+"]"+rest, columns
	return &out
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
