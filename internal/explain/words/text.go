// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"slices"
	"strings"
	"unicode"
)

// IndexWord returns where a word is in a text, -1 if it is not there.
func IndexWord(text, word string) int {
	i := strings.Index(text, word)
	if i < 0 || i > 0 && text[i-1] != ' ' && text[i-1] != '"' || i+len(word) < len(text) && !strings.ContainsRune(" ,.\":", rune(text[i+len(word)])) {
		return -1
	}
	return i
}

// Masked replaces some words of a text.
func Masked(text string, mask func(word string) bool) string {
	all := strings.Fields(text)
	for i, w := range all {
		if mask(w) {
			all[i] = "*"
		}
	}
	return strings.Join(all, " ")
}

// HasDigit reports whether a word has a digit.
func HasDigit(word string) bool { return strings.ContainsAny(word, "0123456789") }

// IsName reports whether a word has the name of an object, or looks like one that a controller
// has made, such as web-7d4b9c-x2x1z. Numbers do not.
func IsName(word, name string) bool {
	return name != "" && strings.Contains(word, name) || HasDigit(word) && strings.Contains(word, "-") && strings.ContainsFunc(word, unicode.IsLetter)
}

// AppendOnce appends what a list does not have.
func AppendOnce[T comparable](list []T, more ...T) []T {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// Runs splits a list where two that follow each other are apart.
func Runs[T any](list []T, apart func(a, b T) bool) (runs [][]T) {
	begin := 0
	for i := range list {
		if i+1 == len(list) || apart(list[i], list[i+1]) {
			runs, begin = append(runs, list[begin:i+1]), i+1
		}
	}
	return runs
}
