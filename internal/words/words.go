// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package words writes numbers of things in English.
package words

import (
	"strconv"
	"strings"
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
