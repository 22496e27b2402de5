// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A Section is one table on the screen.
type Section struct {
	Table *table.Table
	// Title names the resource, where there are no rows to show.
	Title string
	// Note says why there is nothing to show, or why it may be wrong. It is clean.
	Note string

	top    int      // index of the first row of the window
	topKey kube.Key // the row there
	size   int      // rows of the window
	moved  time.Time
}

const (
	padding  = 3 // spaces after a column, as kubectl has
	minWidth = 6 // of a column with its spaces, as kubectl has

	// settled is how long nothing in a window has to change before it moves to a change
	// outside.
	settled = 2 * time.Second
)

// Window returns the index of the first row that is shown, and how many are.
func (s *Section) Window() (top, size int) { return s.top, s.size }

// place sets the window of size rows: around the cursor, the last change, or where it was.
func (s *Section) place(size int, cursor kube.Key, now time.Time) {
	s.size = size
	rows := s.Table.Rows()
	if s.top > 0 {
		if i := s.Table.Index(s.topKey); i >= 0 {
			s.top = i
		}
	}
	if cursor != "" {
		s.scrollTo(s.Table.Index(cursor))
	} else if r, at := s.Table.LastChange(); r != nil && len(rows) > size && now.Sub(at) < settled && s.quiet(now) {
		if i := s.Table.Index(r.Key); i >= 0 && (i < s.top || i >= s.top+size) {
			s.top, s.moved = i-size/2, now
		}
	}
	s.top = max(min(s.top, len(rows)-size), 0)
	if s.topKey = ""; s.top < len(rows) {
		s.topKey = rows[s.top].Key
	}
}

// scrollTo moves the window as little as possible, so that a row is in it.
func (s *Section) scrollTo(i int) {
	switch {
	case i < 0:
	case i < s.top:
		s.top = i
	case i >= s.top+s.size:
		s.top = i - s.size + 1
	}
}

// quiet reports whether nothing in the window has changed lately.
func (s *Section) quiet(now time.Time) bool {
	if now.Sub(s.moved) < settled {
		return false
	}
	for _, r := range s.visible() {
		if now.Sub(r.Last()) < settled {
			return false
		}
	}
	return true
}

// visible returns the rows in the window.
func (s *Section) visible() []*table.Row {
	rows := s.Table.Rows()
	from := min(s.top, len(rows))
	return rows[from:min(from+s.size, len(rows))]
}

// lines draws the section.
func (s *Section) lines(d *drawing, cursor kube.Key) {
	if s.Note != "" {
		d.line(dim, s.Title+": "+s.Note)
	}
	rows := s.Table.Rows()
	if len(rows) == 0 {
		switch {
		case s.Note != "":
		case s.Table.Len() > 0:
			d.line(dim, s.Title+": none of "+fmt.Sprint(s.Table.Len())+" matches")
		default:
			d.line(dim, s.Title+": none")
		}
		return
	}
	visible := s.visible()
	widths := s.widths(visible, d.now, d.clock)
	if !d.NoHeaders {
		s.header(d, widths)
	}
	for _, r := range visible {
		d.row(r, widths, r.Key == cursor)
	}
	if above, below := s.top, len(rows)-s.top-len(visible); above+below > 0 {
		d.line(dim, d.tail()+" "+elsewhere(above, below))
	}
}

// elsewhere says how many rows are outside a window.
func elsewhere(above, below int) string {
	switch {
	case above == 0:
		return fmt.Sprintf("%d below", below)
	case below == 0:
		return fmt.Sprintf("%d above", above)
	}
	return fmt.Sprintf("%d above, %d below", above, below)
}

// widths returns the widths of the columns, which the ages that are shown may widen.
func (s *Section) widths(visible []*table.Row, now, clock time.Time) []int {
	widths := s.Table.Widths(now)
	for _, r := range visible {
		for i, c := range r.Cells {
			if c.Since != 0 && i < len(widths)-1 {
				if w := c.WidthAt(clock); w > widths[i] {
					s.Table.Grow(i, w)
				}
			}
		}
	}
	return widths
}

func (s *Section) header(d *drawing, widths []int) {
	sorted, descending := s.Table.Sorted()
	d.begin(plain, "")
	for i, c := range s.Table.Columns() {
		name := c.Name
		if i == sorted {
			name += d.arrow(descending)
		}
		d.cell(name, widths[i], i == len(widths)-1, bold)
	}
	d.end()
}
