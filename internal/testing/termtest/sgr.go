// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package termtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A span is text with the same attributes.
type span struct {
	text                                               string
	fore, back                                         string // "#rrggbb", or "" for the default
	bold, faint, italic, underline, inverse, struckOut bool
}

var escapeSequence = regexp.MustCompile(`\x1b\[([0-9;:]*)m`)

// spans splits a line at its escape sequences. now has the attributes at its begin, and then at
// its end. Other sequences do not occur in what tmux captures.
func spans(line string, now *span) (all []span) {
	add := func(text string) {
		if text != "" {
			now.text = text
			all = append(all, *now)
		}
	}
	from := 0
	for _, m := range escapeSequence.FindAllStringSubmatchIndex(line, -1) {
		add(line[from:m[0]])
		now.apply(strings.FieldsFunc(line[m[2]:m[3]], func(r rune) bool { return r == ';' || r == ':' }))
		from = m[1]
	}
	add(line[from:])
	return all
}

// apply changes the attributes by the parameters of a sequence.
func (s *span) apply(codes []string) {
	if len(codes) == 0 {
		codes = []string{"0"}
	}
	for i := 0; i < len(codes); i++ {
		code, _ := strconv.Atoi(codes[i])
		switch {
		case code == 0:
			*s = span{}
		case code == 1:
			s.bold = true
		case code == 2:
			s.faint = true
		case code == 3:
			s.italic = true
		case code == 4:
			s.underline = true
		case code == 7:
			s.inverse = true
		case code == 9:
			s.struckOut = true
		case code == 22:
			s.bold, s.faint = false, false
		case code == 23:
			s.italic = false
		case code == 24:
			s.underline = false
		case code == 27:
			s.inverse = false
		case code == 29:
			s.struckOut = false
		case code >= 30 && code <= 37:
			s.fore = palette[code-30]
		case code >= 90 && code <= 97:
			s.fore = palette[code-90+8]
		case code >= 40 && code <= 47:
			s.back = palette[code-40]
		case code >= 100 && code <= 107:
			s.back = palette[code-100+8]
		case code == 39:
			s.fore = ""
		case code == 49:
			s.back = ""
		case code == 38 || code == 48:
			color, used := extended(codes[i+1:])
			i += used
			if code == 38 {
				s.fore = color
			} else {
				s.back = color
			}
		}
	}
}

// palette has the sixteen colours of terminals, as on a dark background.
var palette = [16]string{
	"#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
}

// extended returns a colour of 256, or of red, green and blue, and how many parameters it has.
func extended(codes []string) (color string, used int) {
	number := func(i int) int {
		if i >= len(codes) {
			return 0
		}
		n, _ := strconv.Atoi(codes[i])
		return n
	}
	switch number(0) {
	case 2:
		return fmt.Sprintf("#%02x%02x%02x", number(1), number(2), number(3)), 4
	case 5:
		n := number(1)
		switch {
		case n < 16:
			return palette[n], 2
		case n < 232:
			level := func(v int) int { return []int{0, 95, 135, 175, 215, 255}[v%6] }
			n -= 16
			return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6), level(n)), 2
		}
		grey := 8 + 10*(n-232)
		return fmt.Sprintf("#%02[1]x%02[1]x%02[1]x", grey), 2
	}
	return "", 1
}

// colors returns the colours of the text, "" for the default, and behind it, "" for none.
func (s *span) colors() (fill, back string) {
	if !s.inverse {
		return s.fore, s.back
	}
	fill, back = s.back, s.fore
	if fill == "" {
		fill = "#0d1117"
	}
	if back == "" {
		back = "#e6edf3"
	}
	return fill, back
}

// attributes returns those of an SVG text.
func (s *span) attributes(fill string) string {
	var b strings.Builder
	if fill != "" {
		fmt.Fprintf(&b, ` style="fill:%s"`, fill)
	}
	if s.bold {
		b.WriteString(` font-weight="bold"`)
	}
	if s.faint {
		b.WriteString(` opacity="0.6"`)
	}
	if s.italic {
		b.WriteString(` font-style="italic"`)
	}
	switch {
	case s.struckOut:
		b.WriteString(` text-decoration="line-through"`)
	case s.underline:
		b.WriteString(` text-decoration="underline"`)
	}
	return b.String()
}
