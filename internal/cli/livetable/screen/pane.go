// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// Pane returns the lines of a text with a title and tabs above it, and a status line below. All
// texts are clean.
func (s *Screen) Pane(title string, tabs []string, tab int, text, status []string) []string {
	d := &drawing{Screen: s}
	d.begin(plain, "")
	d.cell(title, 0, true, bold)
	for i, name := range tabs {
		d.write("  ")
		if i == tab {
			d.cell("["+name+"]", 0, true, bold)
		} else {
			d.cell(" "+name+" ", 0, true, dim)
		}
	}
	d.end()
	for _, l := range text {
		d.lines = append(d.lines, table.Cut(l, s.Width, s.tail()))
	}
	d.line(dim, strings.Join(status, s.Separator()))
	if len(d.lines) > s.Height {
		d.lines = d.lines[:s.Height]
	}
	return d.lines
}
