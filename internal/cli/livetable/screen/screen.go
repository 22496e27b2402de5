// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A Screen is the tables, and how they are shown. It is for one goroutine.
type Screen struct {
	Style
	Width, Height int
	NoHeaders     bool
	Sections      []*Section
	// Section and Key are the row of the cursor; without a key there is none.
	Section int
	Key     kube.Key
	// Clock is the time for ages, if it is not that of the marks.
	Clock time.Time
	// Status is the last line: its parts, the most important first. They are clean.
	Status []string
}

// Lines returns at most Height lines, none of them wider than Width.
func (s *Screen) Lines(now time.Time) []string {
	d := &drawing{Screen: s, now: now, clock: now}
	if !s.Clock.IsZero() {
		d.clock = s.Clock
	}
	s.layout(s.Height-1, now)
	for i, section := range s.Sections {
		if s.folded(section) {
			continue
		}
		if len(d.lines) > 0 && d.room() > 1 {
			d.lines = append(d.lines, "")
		}
		section.lines(d, s.cursorIn(i))
	}
	if none := s.none(); none != "" {
		if len(d.lines) > 0 && d.room() > 1 {
			d.lines = append(d.lines, "")
		}
		d.line(dim, none)
	}
	if room := max(s.Height-1, 0); len(d.lines) > room {
		d.lines = d.lines[:room]
	}
	if s.Height > 0 {
		d.line(dim, strings.Join(s.Status, s.Separator()))
	}
	return d.lines
}

func (s *Screen) cursorIn(i int) kube.Key {
	if i == s.Section {
		return s.Key
	}
	return ""
}

// folded reports whether a table is only named, in one line with all that are empty. One
// that still shows a deleted row is not.
func (s *Screen) folded(section *Section) bool {
	return len(s.Sections) > 1 && section.Table.Len() == 0 && len(section.Table.Rows()) == 0 && section.Note == ""
}

// none is the line that names the empty tables, "" if there is none.
func (s *Screen) none() string {
	var titles []string
	for _, section := range s.Sections {
		if s.folded(section) {
			titles = append(titles, section.Title)
		}
	}
	if len(titles) == 0 {
		return ""
	}
	return strings.Join(titles, ", ") + ": none"
}

// layout gives each table its part of the lines.
func (s *Screen) layout(lines int, now time.Time) {
	lines++ // there is a line between two tables, and none after the last
	if s.none() != "" {
		lines -= 2
	}
	wants := make([]int, len(s.Sections))
	for i, section := range s.Sections {
		if s.folded(section) {
			continue
		}
		lines--
		wants[i] = section.Table.Len()
		if wants[i] = len(section.Table.Rows()); !s.NoHeaders || wants[i] == 0 {
			lines--
		}
		if section.Note != "" && wants[i] > 0 {
			lines--
		}
	}
	sizes := share(lines, wants)
	for i, section := range s.Sections {
		section.place(sizes[i], s.cursorIn(i), now)
	}
}

// share divides lines among tables: each gets what it wants or, if that is too much, as many
// as the others that want more. A table with fewer than it wants needs a line to say so.
func share(lines int, wants []int) []int {
	sizes := make([]int, len(wants))
	for left := lines; ; {
		var open []int // tables that want more
		for i, w := range wants {
			if sizes[i] < w {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return sizes
		}
		each := left / len(open)
		if each == 0 {
			for _, i := range open[:max(min(left, len(open)), 0)] {
				sizes[i]++
			}
			break
		}
		for _, i := range open {
			n := min(each, wants[i]-sizes[i])
			sizes[i] += n
			left -= n
		}
	}
	for i, w := range wants {
		if sizes[i] < w {
			sizes[i] = max(sizes[i]-1, 0)
		}
	}
	return sizes
}

// A drawing is the lines of a frame, as they are drawn.
type drawing struct {
	*Screen
	now      time.Time // for marks
	clock    time.Time // for ages
	lines    []string
	b        strings.Builder
	left     int // columns of the line that are free
	rowStyle string
}

// room is the number of lines that are free.
func (d *drawing) room() int { return d.Height - 1 - len(d.lines) }

// line draws a text.
func (d *drawing) line(attributes, text string) {
	text = table.Cut(text, d.Width, d.tail())
	if text != "" && attributes != plain {
		text = attributes + text + reset
	}
	d.lines = append(d.lines, text)
}

// begin starts a row, all of which has the attributes.
func (d *drawing) begin(attributes, mark string) {
	d.b.Reset()
	d.b.Grow(2 * d.Width)
	d.left, d.rowStyle = d.Width, attributes
	d.b.WriteString(attributes)
	if d.gutter() > 0 {
		d.write((mark + "  ")[:d.gutter()])
	}
}

func (d *drawing) write(text string) {
	text = table.Cut(text, d.left, d.tail())
	d.left -= table.Width(text)
	d.b.WriteString(text)
}

const spaces = "                                                                "

func (d *drawing) pad(n int) {
	for n = min(n, d.left); n > 0; {
		k := min(n, len(spaces))
		d.b.WriteString(spaces[:k])
		d.left -= k
		n -= k
	}
}

// cell draws a cell with attributes, and the spaces after it unless it is the last.
func (d *drawing) cell(text string, width int, last bool, attributes string) {
	if d.left == 0 {
		return
	}
	if attributes != plain && text != "" {
		d.b.WriteString(attributes)
		d.write(text)
		d.b.WriteString(reset + d.rowStyle)
	} else {
		d.write(text)
	}
	if !last {
		d.pad(max(width+padding, minWidth) - table.Width(text))
	}
}

func (d *drawing) end() {
	if d.rowStyle != plain {
		d.b.WriteString(reset)
	}
	d.lines = append(d.lines, d.b.String())
}

// row draws a row of a table.
func (d *drawing) row(r *table.Row, widths []int, cursor bool) {
	attributes, before := d.rowMark(r, cursor)
	d.begin(attributes, before)
	for i, c := range r.Cells {
		if i >= len(widths) {
			break
		}
		text, of := c.At(d.clock), plain
		if r.Deleted.IsZero() {
			of = mark(r.Changed(i), d.now, fresh, faded)
		}
		if of != plain && d.NoColor {
			text, of = text+"*", plain
		}
		d.cell(text, widths[i], i == len(widths)-1, of)
	}
	d.end()
}

// rowMark returns the attributes of a row, and the mark before it.
func (d *drawing) rowMark(r *table.Row, cursor bool) (attributes, before string) {
	isNew := mark(r.Added, d.now, freshNew, fadedNew)
	switch {
	case !r.Deleted.IsZero() && d.NoColor:
		attributes, before = struckOut, "-"
	case !r.Deleted.IsZero():
		attributes = struck
	case isNew != plain && d.NoColor:
		before = "+"
	case isNew != plain:
		attributes = isNew
	case d.NoColor && d.now.Sub(r.Last()) < table.Fade:
		before = "~"
	}
	if cursor {
		attributes += inverse
		if before == "" {
			before = ">"
		}
	}
	return attributes, before
}
