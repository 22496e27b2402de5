// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package words writes numbers, durations and lists in English.
package words

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Count returns a number with what is counted: "1 Pod", "2 Pods", "0 policies".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + Plural(one)
}

// Plural returns the plural of a word that forms it by rule.
func Plural(one string) string {
	switch {
	case strings.HasSuffix(one, "y") && !strings.HasSuffix(one, "ay"):
		return strings.TrimSuffix(one, "y") + "ies"
	case strings.HasSuffix(one, "ss"), strings.HasSuffix(one, "x"), strings.HasSuffix(one, "ch"):
		return one + "es"
	case strings.HasSuffix(one, "s"): // Endpoints
		return one
	}
	return one + "s"
}

// List joins a few texts, and counts the others, which are so many of a kind.
func List(all []string, most int, kind string) string {
	if len(all) > most {
		return strings.Join(all[:most], ", ") + " and " + Count(len(all)-most, "other "+kind)
	}
	return strings.Join(all, ", ")
}

// Clip returns the first n bytes of a text.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// Duration returns a duration in seconds.
func Duration(d time.Duration) string {
	if d < time.Second {
		return "less than 1s"
	}
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
