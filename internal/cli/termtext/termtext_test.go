// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package termtext

import (
	"strings"
	"testing"
)

// TestPlain: text in an object cannot control the terminal.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"image web:1 → 2":          "image web:1 → 2",
		"a\x1b[8mb":                "a\uFFFD[8mb",
		"a\n2026-01-01 deleted":    "a\uFFFD2026-01-01 deleted",
		"a\u009b2Jb\u202eevil":     "a\uFFFD2Jb\uFFFDevil",
		"\x1b]52;c;ZXZpbA==\x07ok": "\uFFFD]52;c;ZXZpbA==\uFFFDok",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestWithoutColour: where a command uses no colours, none passes.
func TestWithoutColour(t *testing.T) {
	var got strings.Builder
	if _, err := NewWriter(&got, false).Write([]byte("\x1b[31mred\x1b[0m\n")); err != nil || got.String() != "\uFFFD[31mred\uFFFD[0m\n" {
		t.Errorf("got %q, error %v", got.String(), err)
	}
}

// TestWriter: what is written cannot control the terminal, however it is cut; colours can.
func TestWriter(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[31mred\x1b[0m \x1b[2mdim\x1b[0m\n": "\x1b[31mred\x1b[0m \x1b[2mdim\x1b[0m\n",
		"a\x1b[1A\x1b[2Kb\tc\r\n":                "a\uFFFD[1A\uFFFD[2Kb\tc\uFFFD\n",
		"\x1b]52;c;ZXZpbA==\a\u009b2J\u202eé😀\n": "\uFFFD]52;c;ZXZpbA==\uFFFD\uFFFD2J\uFFFDé😀\n",
		"\xff\x9b2J and the end":                 "\uFFFD\uFFFD2J and the end",
		"\x1b[38;5;1mno\x1b[8":                   "\uFFFD[38;5;1mno",
		"\x1b[8mhidden\x1b[7m\n":                 "\uFFFD[8mhidden\uFFFD[7m\n",
	} {
		for size := 1; size <= len(text); size++ {
			var got strings.Builder
			w := NewWriter(&got, true)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := w.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got.String() != want {
				t.Errorf("%q in parts of %d: got %q, want %q", text, size, got.String(), want)
			}
		}
	}
}
