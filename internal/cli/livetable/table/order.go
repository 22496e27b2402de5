// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"slices"
	"strings"
	"time"
)

// SortBy sorts by what a column shows; -1 returns to the table's own order.
func (t *Table) SortBy(column int, descending bool) {
	t.sortBy, t.sorted, t.descending = column, column >= 0 && column < len(t.columns), descending
	t.reorder()
}

// Sorted returns the column of SortBy, -1 if there is none.
func (t *Table) Sorted() (column int, descending bool) {
	if !t.sorted {
		return -1, false
	}
	return t.sortBy, t.descending
}

// compare is the order of rows. No two rows are equal.
func (t *Table) compare(a, b *Row) int {
	if t.sorted {
		n := a.cell(t.sortBy).compare(b.cell(t.sortBy))
		if t.descending {
			n = -n
		}
		if n != 0 {
			return n
		}
	}
	if t.Less != nil {
		switch {
		case t.Less(a.Sort, b.Sort):
			return -1
		case t.Less(b.Sort, a.Sort):
			return 1
		}
	}
	return strings.Compare(string(a.Key), string(b.Key))
}

func (r *Row) cell(i int) Cell {
	if i < len(r.Cells) {
		return r.Cells[i]
	}
	return Cell{}
}

// find returns where a row is in the order, or would be.
func (t *Table) find(r *Row) int {
	i, _ := slices.BinarySearchFunc(t.order, r, t.compare)
	return i
}

// hide takes a row out of the order. What it is sorted by must not have changed before.
func (t *Table) hide(r *Row) {
	if !r.shown {
		return
	}
	r.shown = false
	i := t.find(r)
	if i >= len(t.order) || t.order[i] != r {
		i = slices.Index(t.order, r) // Less is not an order
	}
	t.order = slices.Delete(t.order, i, i+1)
}

// show puts a row into the order if the filter matches.
func (t *Table) show(r *Row) {
	if r.shown = r.matches(t.filter); r.shown {
		t.order = slices.Insert(t.order, t.find(r), r)
	}
}

// reorder applies filter and order to all rows.
func (t *Table) reorder() {
	t.order = slices.Grow(t.order[:0], len(t.rows))
	for _, r := range t.rows {
		if r.shown = r.matches(t.filter); r.shown {
			t.order = append(t.order, r)
		}
	}
	slices.SortFunc(t.order, t.compare)
}

// remeasure is how long a column stays wider than it has to be.
const remeasure = 10 * time.Second

// Widths returns the width of each column: that of its widest cell, or heading, among all rows.
// It grows at once and shrinks after a while, so that a change does not move a whole screen.
func (t *Table) Widths(now time.Time) []int {
	if t.narrower && now.Sub(t.measured) >= remeasure {
		t.Measure(now)
	}
	return t.widths
}

// Measure makes each column as wide as it has to be now.
func (t *Table) Measure(now time.Time) {
	t.widths = make([]int, len(t.columns))
	for i, c := range t.columns {
		t.widths[i] = Width(c.Name)
	}
	for _, r := range t.rows {
		if r.Deleted.IsZero() {
			t.grow(r, now)
		}
	}
	t.measured, t.narrower = now, false
}

// grow makes columns as wide as a row's cells.
func (t *Table) grow(r *Row, now time.Time) {
	for i, c := range r.Cells {
		if i < len(t.widths) {
			t.widths[i] = max(t.widths[i], c.WidthAt(now))
		}
	}
}

// Grow makes a column at least so wide: a view calls it for the ages that it shows.
func (t *Table) Grow(column, width int) {
	if column < len(t.widths) && width > t.widths[column] {
		t.widths[column] = width
	}
	t.narrower = true
}

// A rate counts events in the last seconds.
type rate struct {
	counts [rateSeconds]int
	second int64 // of the newest count
	first  int64 // of the first event
}

const rateSeconds = 5

func (r *rate) advance(now time.Time) {
	second := now.Unix()
	if r.first == 0 {
		r.first = second
	}
	for r.second = max(r.second, second-rateSeconds); r.second < second; {
		r.second++
		r.counts[r.second%rateSeconds] = 0
	}
}

func (r *rate) count(now time.Time, n int) {
	r.advance(now)
	r.counts[r.second%rateSeconds] += n
}

// at returns the mean over the full seconds before now.
func (r *rate) at(now time.Time) float64 {
	if r.first == 0 {
		return 0
	}
	r.advance(now)
	sum := 0
	for i, n := range r.counts {
		if int64(i) != r.second%rateSeconds {
			sum += n
		}
	}
	return float64(sum) / float64(min(max(r.second-r.first, 1), rateSeconds-1))
}
