// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/util/duration"
)

// A Column is a column of a table.
type Column struct {
	// Name is the heading, in capitals as kubectl prints it.
	Name string
	// Name is set for the column with the object's name.
	IsName bool
}

// A Cell is what a row has in a column. Its text is clean: see [Clean].
type Cell struct {
	Text string
	// Since is a time in seconds since 1970, or 0. A cell with a time and no text shows
	// how long ago that was, as an age does: "5m". One with both shows "3 (5m ago)", as
	// RESTARTS does.
	Since int64
}

// At returns what the cell shows at a time.
func (c Cell) At(now time.Time) string {
	if c.Since == 0 {
		return c.Text
	}
	age := duration.HumanDuration(now.Sub(time.Unix(c.Since, 0)))
	if c.Text == "" {
		return age
	}
	return c.Text + " (" + age + " ago)"
}

// WidthAt returns how many columns of the terminal the cell takes at a time.
func (c Cell) WidthAt(now time.Time) int {
	if c.Since == 0 {
		return Width(c.Text)
	}
	return Width(c.At(now))
}

// compare orders cells for people: numbers in them by value, and times with the newest
// first, as ages grow.
func (c Cell) compare(d Cell) int {
	if c.Text == "" && d.Text == "" {
		return cmp.Compare(d.Since, c.Since)
	}
	if n := CompareNatural(c.Text, d.Text); n != 0 {
		return n
	}
	return cmp.Compare(d.Since, c.Since)
}

// CompareNatural compares texts so that "web-9" is before "web-10", and "9" before "10".
func CompareNatural(a, b string) int {
	for i, j := 0, 0; ; {
		switch {
		case i == len(a) && j == len(b):
			return strings.Compare(a, b) // "01" and "1" differ, in any order
		case i == len(a):
			return -1
		case j == len(b):
			return 1
		}
		if isDigit(a[i]) && isDigit(b[j]) {
			m, n := digits(a, i), digits(b, j)
			x, y := strings.TrimLeft(a[i:m], "0"), strings.TrimLeft(b[j:n], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			i, j = m, n
			continue
		}
		if a[i] != b[j] {
			return cmp.Compare(a[i], b[j])
		}
		i++
		j++
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits returns the end of the digits that begin at i.
func digits(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// isPlain reports whether a text is printable ASCII only.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Width returns how many columns of a terminal a clean text takes. Like most terminals, it
// counts runes one by one, and not by graphemes.
func Width(s string) int {
	if isPlain(s) {
		return len(s)
	}
	return ansi.StringWidthWc(s)
}

// Cut returns at most width columns of a clean text. If it has to leave something out, the
// last column is the tail, which is one column wide.
func Cut(s string, width int, tail string) string {
	switch {
	case width <= 0:
		return ""
	case isPlain(s) && len(s) <= width, !isPlain(s) && Width(s) <= width:
		return s
	case isPlain(s):
		return s[:width-1] + tail
	}
	return ansi.TruncateWc(s, width, tail)
}

// Clean returns a text that cannot break a line of the terminal or control it. As kubectl
// does, it cuts the text at the first line break, with "..." after it, and shows the escape
// character as ^[. Other control characters, also those of Unicode that turn the direction
// of writing, are shown alike, or as U+FFFD.
func Clean(s string) string {
	if isPlain(s) {
		return s
	}
	more := false
	if i := strings.IndexAny(s, "\n\r\f"); i >= 0 {
		s, more = s[:i], true
	}
	var b strings.Builder
	for i, w := 0, 0; i < len(s); i += w {
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case r < ' ':
			b.WriteByte('^')
			b.WriteByte(byte(r) + '@')
		case r == 0x7f:
			b.WriteString("^?")
		case r == utf8.RuneError, r < 0xa0 && r > 0x7f, isInvisible(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	if more {
		b.WriteString("...")
	}
	return b.String()
}

// isInvisible reports whether a rune changes how others are shown: marks of direction, and
// separators of lines.
func isInvisible(r rune) bool {
	switch {
	case r == 0x061c, r == 0xfeff, 0x200b <= r && r <= 0x200f, 0x2028 <= r && r <= 0x202e,
		0x2060 <= r && r <= 0x206f, 0xfff9 <= r && r <= 0xfffb, 0xe0000 <= r && r <= 0xe007f:
		return true
	}
	return false
}
