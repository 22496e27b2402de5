// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A pastState is the objects that were there at an RV. It reads those that it is
// asked for, each time anew. It is for one request.
type pastState struct {
	stream *history.Stream
	rv     uint64
	ctx    context.Context // of the request
	err    error           // what was read is not all there was
	counts bool            // a page tells how many objects are left
}

// Get implements state.
func (s *pastState) Get(key kube.Key) *scan.Object {
	o, err := s.stream.Get(key, s.rv)
	if err != nil {
		s.err = err
	}
	return o
}

// All implements state.
func (s *pastState) All(namespace string, from kube.Key) iter.Seq[*scan.Object] {
	return func(yield func(*scan.Object) bool) {
		for o, err := range s.stream.All(s.rv, namespace, from) {
			if err == nil {
				err = context.Cause(s.ctx)
			}
			if err != nil {
				s.err = err
				return
			}
			if o.Key < from {
				continue // from is just behind its key
			}
			if !yield(o) {
				return
			}
		}
	}
}

// Select implements state: there is no index of the past.
func (s *pastState) Select(namespace string, from kube.Key, _ *timeline.Attribute) iter.Seq[*scan.Object] {
	return s.All(namespace, from)
}

// count returns how many objects All would yield.
func (s *pastState) count(namespace string, from kube.Key) int64 {
	n, err := s.stream.Count(s.ctx, s.rv, namespace, from)
	if err != nil {
		s.err = err
	}
	return int64(n)
}

// newestColumns returns the columns that the newest of the objects was printed
// under; otherwise, if there is none.
func newestColumns(items []*scan.Object, otherwise string) (columns string) {
	columns = otherwise
	newest := uint64(0)
	for _, o := range items {
		if o.Columns != "" && o.RV > newest {
			columns, newest = o.Columns, o.RV
		}
	}
	return columns
}

// align has the rows of all objects be under the columns. What is recorded may
// have been printed by several versions of the API server, or of a definition, and
// is not printed anew while it does not change. A column that an object was not
// printed with is empty.
func align(items []*scan.Object, columns string) {
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
