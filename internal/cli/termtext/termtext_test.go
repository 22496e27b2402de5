// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package termtext

import "testing"

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
