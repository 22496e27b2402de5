// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package termtext makes foreign text safe to print on a terminal.
package termtext

import (
	"strings"
	"unicode"
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
