// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// Ghost is how long a deleted row is shown.
	Ghost = 2 * time.Second
	// Fade is how long a change is marked.
	Fade = 4 * time.Second
)

// A Table is the state of a live table. The zero value is an empty one, in the order of keys.
type Table struct {
	// Less orders rows by [Data].Sort; rows between which it does not decide are in the
	// order of their keys, as in the API server's lists. nil leaves all to the keys. Do not
	// set it once there are rows.
	Less func(a, b any) bool

	columns    []Column
	rows       map[kube.Key]*Row
	order      []*Row // those that the filter matches
	ghosts     []*Row // the deleted ones, in the order of their deletion
	deleted    int    // rows that are ghosts
	listed     bool   // a first list is complete
	filter     string // in lower case
	sortBy     int    // a column, or -1; valid if sorted
	sorted     bool
	descending bool

	widths   []int
	measured time.Time // when the widths were last computed
	narrower bool      // a cell that was as wide as its column may be gone

	last    time.Time // of the last change
	lastRow *Row
	rate    rate
}

// Columns returns the columns. Do not modify them.
func (t *Table) Columns() []Column { return t.columns }

// Listed reports whether the table has had a complete list.
func (t *Table) Listed() bool { return t.listed }

// Len returns the number of objects, which the filter does not change.
func (t *Table) Len() int { return len(t.rows) - t.deleted }

// Rows returns the rows to show, in their order, deleted ones among them. The slice is valid
// until the table changes.
func (t *Table) Rows() []*Row { return t.order }

// Get returns the row of an object, nil if there is none.
func (t *Table) Get(key kube.Key) *Row { return t.rows[key] }

// Index returns the position of an object in Rows, -1 if it is not there.
func (t *Table) Index(key kube.Key) int {
	r := t.rows[key]
	if r == nil || !r.shown {
		return -1
	}
	return t.find(r)
}

// LastChange returns the row that has changed last, among those that are shown, and when;
// nil if none has.
func (t *Table) LastChange() (*Row, time.Time) { return t.lastRow, t.last }

// Replace sets the columns and all rows, as a list does. Whatever differs from the rows
// before is marked, unless it is the first list. The table keeps the rows' cells.
func (t *Table) Replace(columns []Column, list []Data, now time.Time) {
	if !slices.Equal(columns, t.columns) {
		t.columns = columns
		t.rows, t.order, t.ghosts, t.deleted, t.lastRow = nil, nil, nil, 0, nil
		t.sorted, t.listed = false, false
	}
	if !t.listed {
		t.begin(list, now)
		return
	}
	in := make(map[kube.Key]bool, len(list))
	for _, d := range list {
		in[d.Key] = true
		t.Put(d, now)
	}
	for key, r := range t.rows {
		if !in[key] && r.Deleted.IsZero() {
			t.Delete(key, now)
		}
	}
}

// begin takes a first list, which is sorted once.
func (t *Table) begin(list []Data, now time.Time) {
	t.rows = make(map[kube.Key]*Row, len(list))
	for _, d := range list {
		t.rows[d.Key] = &Row{Data: d}
	}
	t.listed = true
	t.reorder()
	t.Measure(now)
}

// Put adds a row or changes it.
func (t *Table) Put(d Data, now time.Time) {
	r := t.rows[d.Key]
	if r == nil {
		if t.rows == nil {
			t.rows = map[kube.Key]*Row{}
		}
		r = &Row{Data: d, Added: now}
		t.rows[d.Key] = r
		t.show(r)
		t.grow(r, now)
		t.touched(r, now)
		return
	}
	if !r.Deleted.IsZero() || r.UID != d.UID { // recreated
		t.hide(r)
		if !r.Deleted.IsZero() {
			t.deleted--
			t.ghosts = slices.DeleteFunc(t.ghosts, func(g *Row) bool { return g == r })
		}
		r.Data, r.Added, r.Deleted, r.changed = d, now, time.Time{}, nil
		t.show(r)
		t.grow(r, now)
		t.narrower = true
		t.touched(r, now)
		return
	}
	if slices.Equal(r.Cells, d.Cells) && r.Sort == nil && d.Sort == nil {
		t.rate.count(now, 1) // nothing to see, but a change
		return
	}
	t.hide(r)
	differs := r.update(d, now)
	t.show(r)
	if differs {
		t.narrower = true
		t.grow(r, now)
		t.touched(r, now)
	} else {
		t.rate.count(now, 1)
	}
}

// Delete marks a row as deleted. It is gone after [Ghost], see [Table.Expire].
func (t *Table) Delete(key kube.Key, now time.Time) {
	r := t.rows[key]
	if r == nil || !r.Deleted.IsZero() {
		return
	}
	r.Deleted = now
	t.deleted++
	t.ghosts = append(t.ghosts, r)
	t.touched(r, now)
}

// Expire removes the rows that were deleted long enough ago. It returns whether there were
// any.
func (t *Table) Expire(now time.Time) (removed bool) {
	n := 0
	for _, r := range t.ghosts {
		if now.Sub(r.Deleted) < Ghost {
			break
		}
		n++
		t.hide(r)
		delete(t.rows, r.Key)
		t.deleted--
		t.narrower, removed = true, true
		if t.lastRow == r {
			t.lastRow = nil
		}
	}
	t.ghosts = slices.Delete(t.ghosts, 0, n)
	return removed
}

// DropDeleted removes deleted rows at once.
func (t *Table) DropDeleted(now time.Time) {
	for _, r := range t.ghosts {
		r.Deleted = now.Add(-Ghost)
	}
	t.Expire(now)
}

// Settle removes deleted rows at once and forgets what has changed: the table is then as a
// list shows it.
func (t *Table) Settle(now time.Time) {
	t.DropDeleted(now)
	for _, r := range t.rows {
		r.unmark()
	}
	t.lastRow, t.last = nil, time.Time{}
}

func (t *Table) touched(r *Row, now time.Time) {
	t.rate.count(now, 1)
	if r.shown {
		t.last, t.lastRow = now, r
	}
}

// Count adds changes that were merged into others before the table received them.
func (t *Table) Count(n int, now time.Time) { t.rate.count(now, n) }

// Rate returns the number of changes per second over the last seconds.
func (t *Table) Rate(now time.Time) float64 { return t.rate.at(now) }

// Filter shows only rows with a cell that contains the text, regardless of case.
func (t *Table) Filter(text string) {
	if text = strings.ToLower(text); text != t.filter {
		t.filter = text
		t.reorder()
	}
}
