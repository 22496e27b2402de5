// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// Final returns the tables as kubectl prints them, without marks, for the terminal to keep:
// at most lines lines, none wider than Width. If there are more rows, it returns those of
// the windows. With a width or a number of lines of 0 there is no limit. The tables have to
// be settled.
func (s *Screen) Final(lines int, now time.Time) []string {
	total := 0
	for _, section := range s.Sections {
		total += len(section.Table.Rows()) + 2
	}
	all := lines <= 0 || total-1 <= lines
	width := s.Width
	if width <= 0 {
		width = 1 << 20
	}
	d := &drawing{Screen: &Screen{Style: Style{ASCII: s.ASCII}, Width: width, NoHeaders: s.NoHeaders}, now: now, clock: now}
	for _, section := range s.Sections {
		rows := section.Table.Rows()
		if !all {
			rows = section.visible()
		}
		if len(rows) == 0 {
			continue
		}
		if len(d.lines) > 0 {
			d.lines = append(d.lines, "")
		}
		section.Table.Measure(now)
		section.final(d, rows)
		if hidden := len(section.Table.Rows()) - len(rows); hidden > 0 {
			d.line(plain, fmt.Sprintf("%s %d more", d.tail(), hidden))
		}
	}
	if lines > 0 && len(d.lines) > lines {
		d.lines = d.lines[:lines]
	}
	return d.lines
}

func (s *Section) final(d *drawing, rows []*table.Row) {
	widths, columns := s.Table.Widths(d.now), s.Table.Columns()
	if !d.NoHeaders {
		d.begin(plain, "")
		for i, c := range columns {
			d.cell(c.Name, widths[i], i == len(widths)-1, plain)
		}
		d.end()
	} else {
		widths = s.withoutHeaders(d.now)
	}
	for _, r := range rows {
		d.begin(plain, "")
		for i, c := range r.Cells {
			if i < len(widths) {
				d.cell(c.At(d.now), widths[i], i == len(widths)-1, plain)
			}
		}
		d.end()
	}
}

// withoutHeaders returns the widths of the cells alone.
func (s *Section) withoutHeaders(now time.Time) []int {
	widths := make([]int, len(s.Table.Columns()))
	for _, r := range s.Table.Rows() {
		for i, c := range r.Cells {
			if i < len(widths) {
				widths[i] = max(widths[i], c.WidthAt(now))
			}
		}
	}
	return widths
}
