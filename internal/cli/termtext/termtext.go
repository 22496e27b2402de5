// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package termtext makes foreign text safe to print on a terminal.
package termtext

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Plain replaces control characters and line ends in foreign text, so that it cannot control
// the terminal.
func Plain(text string) string {
	return strings.Map(plain, text)
}

// Line is [Plain] for a line that may have tabs, as of YAML.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return plain(r)
	}, text)
}

func plain(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
		return '\uFFFD'
	}
	return r
}

// A Writer replaces what could control a terminal in all that is written through it, except
// line ends, tabs and, if the command uses colours, those. It is the last guard: a text of an
// object goes through [Plain], which takes its line ends and colours, too. What it got only a
// part of is written with the rest. It is safe for concurrent use if that is.
type Writer struct {
	w       io.Writer
	colored bool
	mu      sync.Mutex // guards rest
	rest    []byte     // the beginning of a character or a colour
}

// NewWriter returns a writer to w; colored is whether the command uses colours.
func NewWriter(w io.Writer, colored bool) *Writer { return &Writer{w: w, colored: colored} }

// Under returns what a writer of this package writes to, for a program that writes itself;
// any other writer is returned as it is.
func Under(w io.Writer) io.Writer {
	if w, ok := w.(*Writer); ok {
		return w.w
	}
	return w
}

// colour matches what sets a colour of a command, or resets it.
var colour = regexp.MustCompile(`^\x1b\[(0|1|2|31|32|33|36)m`)

// Write implements io.Writer. An error is that of the writer behind it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	var out []byte
	for len(text) > 0 {
		if c := colour.Find(text); c != nil && w.colored {
			out, text = append(out, c...), text[len(c):]
			continue
		}
		if len(text) < len("\x1b[00m") && (w.colored && text[0] == '\x1b' || !utf8.FullRune(text)) {
			break
		}
		r, size := utf8.DecodeRune(text)
		if r != '\n' && r != '\t' {
			r = plain(r)
		}
		out, text = utf8.AppendRune(out, r), text[size:]
	}
	w.rest = append([]byte(nil), text...)
	if _, err := w.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
