// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A Data is what a source says of an object.
type Data struct {
	Key   kube.Key
	UID   string
	Cells []Cell
	// Sort is where the object is among the others, for [Table.Less].
	Sort any
}

// A Row is an object in a table. It is valid until the table changes.
type Row struct {
	Data
	// Added is when the object was created while the table was shown; zero if the first
	// list had it.
	Added time.Time
	// Deleted is when the object was deleted; zero if it exists.
	Deleted time.Time
	changed []int64 // when each cell changed last, in milliseconds since 1970; nil if none has
	shown   bool    // the filter matches
}

// Changed returns when a cell changed last while the table was shown; zero if it did not.
func (r *Row) Changed(column int) time.Time {
	if column >= len(r.changed) || r.changed[column] == 0 {
		return time.Time{}
	}
	return time.UnixMilli(r.changed[column])
}

// Last returns when the row changed in any way; zero if it did not.
func (r *Row) Last() time.Time {
	last := r.Added
	if r.Deleted.After(last) {
		last = r.Deleted
	}
	var newest int64
	for _, ms := range r.changed {
		newest = max(newest, ms)
	}
	if t := time.UnixMilli(newest); newest > 0 && t.After(last) {
		last = t
	}
	return last
}

// update sets the cells to those of d, and marks those that differ. It returns whether any
// does.
func (r *Row) update(d Data, now time.Time) (differs bool) {
	for i, c := range d.Cells {
		if i < len(r.Cells) && r.Cells[i] == c {
			d.Cells[i] = r.Cells[i] // lets go of the new text
			continue
		}
		differs = true
		if r.changed == nil {
			r.changed = make([]int64, len(d.Cells))
		}
		r.changed[i] = now.UnixMilli()
	}
	r.Data = d
	return differs
}

// unmark forgets what has changed.
func (r *Row) unmark() { r.Added, r.changed = time.Time{}, nil }

// matches reports whether a cell of the row contains the filter, which is in lower case.
// Times, which change by themselves, do not count.
func (r *Row) matches(filter string) bool {
	if filter == "" {
		return true
	}
	for _, c := range r.Cells {
		if strings.Contains(strings.ToLower(c.Text), filter) {
			return true
		}
	}
	return false
}
