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
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// A Writer replaces what could control a terminal in all that is written through it, except
// line ends, tabs and the colours of commands. It is the last guard: a text of an object
// goes through [Plain], which takes its line ends, too. What it got only a part of is written
// with the rest. It is safe for concurrent use if that is.
type Writer struct {
	w    io.Writer
	mu   sync.Mutex // guards rest
	rest []byte     // the beginning of a character or a colour
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Under returns what a writer of this package writes to, for a program that writes itself;
// any other writer is returned as it is.
func Under(w io.Writer) io.Writer {
	if w, ok := w.(*Writer); ok {
		return w.w
	}
	return w
}

// colour matches what sets a colour or resets it.
var colour = regexp.MustCompile(`^\x1b\[[0-9]{1,2}m`)

// Write implements io.Writer. An error is that of the writer behind it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	var out []byte
	for len(text) > 0 {
		if c := colour.Find(text); c != nil {
			out, text = append(out, c...), text[len(c):]
			continue
		}
		if len(text) < len("\x1b[00m") && (text[0] == '\x1b' || !utf8.FullRune(text)) {
			break
		}
		r, size := utf8.DecodeRune(text)
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			r = '\uFFFD'
		}
		out, text = utf8.AppendRune(out, r), text[size:]
	}
	w.rest = append([]byte(nil), text...)
	if _, err := w.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
