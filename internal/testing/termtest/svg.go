// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package termtest

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A Frame is a screen, as [Terminal.Styled] returns it, and how long it stays.
type Frame struct {
	Screen string
	For    time.Duration
}

// Sizes of the picture, in its units.
const (
	charWidth, lineHeight = 8.4, 18.0
	margin                = 12.0
)

const style = `text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:14px;white-space:pre;fill:#e6edf3}.bg{fill:#0d1117}`

// SVG draws screens of width columns and height lines, one after the other and again from the
// first. A single one is a picture that does not move. Each character has one column.
func SVG(width, height int, title string, frames []Frame) string {
	var b strings.Builder
	w, h := float64(width)*charWidth+2*margin, float64(height)*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s%s</style>\n", escape(title), style, animation(frames))
	fmt.Fprintf(&b, `<rect class="bg" width="%.0f" height="%.0f" rx="6"/>`+"\n", w, h)
	for i, frame := range frames {
		if len(frames) > 1 {
			fmt.Fprintf(&b, `<g class="f f%d">`+"\n", i)
		}
		var now span
		for n, line := range strings.Split(frame.Screen, "\n") {
			if n < height {
				drawLine(&b, n, spans(line, &now))
			}
		}
		if len(frames) > 1 {
			b.WriteString("</g>\n")
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// animation is the CSS that shows one frame at a time.
func animation(frames []Frame) string {
	if len(frames) < 2 {
		return ""
	}
	var total time.Duration
	for _, f := range frames {
		total += f.For
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".f{visibility:hidden;animation-duration:%.2fs;animation-iteration-count:infinite;animation-timing-function:step-end}", total.Seconds())
	var at time.Duration
	for i, f := range frames {
		from, to := 100*at.Seconds()/total.Seconds(), 100*(at+f.For).Seconds()/total.Seconds()
		at += f.For
		fmt.Fprintf(&b, ".f%[1]d{animation-name:k%[1]d}@keyframes k%[1]d{0%%{visibility:%[2]s}%.3[3]f%%{visibility:visible}%.3[4]f%%{visibility:hidden}100%%{visibility:hidden}}", i, map[bool]string{true: "visible", false: "hidden"}[i == 0], from, to)
	}
	// A reader who wants no motion sees the last frame.
	fmt.Fprintf(&b, "@media(prefers-reduced-motion:reduce){.f{animation:none}.f%d{visibility:visible}}", len(frames)-1)
	return b.String()
}

// drawLine draws a line of a screen: its backgrounds, and its text.
func drawLine(b *strings.Builder, n int, line []span) {
	x, y := 0, margin+float64(n)*lineHeight
	for _, span := range line {
		cells := utf8.RuneCountInString(span.text)
		left, wide := margin+float64(x)*charWidth, float64(cells)*charWidth
		fill, back := span.colors()
		if back != "" {
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, y, wide, lineHeight, back)
		}
		if strings.TrimSpace(span.text) != "" {
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f"%s>%s</text>`+"\n", left, y+0.76*lineHeight, wide, span.attributes(fill), escape(span.text))
		}
		x += cells
	}
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
