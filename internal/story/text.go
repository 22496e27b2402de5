// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"strings"
	"time"
	"unicode/utf8"
)

// maxMessage limits the bytes of a message, maxDetail those of a detail in a title.
const (
	maxMessage = 300
	maxDetail  = 200
)

// because joins what is known of a reason, on one line.
func because(parts ...string) string {
	var known []string
	for _, part := range parts {
		if part = strings.Join(strings.Fields(part), " "); part != "" {
			known = append(known, part)
		}
	}
	return strings.Join(known, ": ")
}

// clip returns the first n bytes of a text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// brief shortens a message for a title. The end of an error is as important as its begin.
func brief(s string) string {
	s = strings.TrimRight(s, ". ")
	if len(s) <= maxDetail {
		return s
	}
	i, j := maxDetail/3, len(s)-2*maxDetail/3
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	for j < len(s) && !utf8.RuneStart(s[j]) {
		j++
	}
	return s[:i] + "…" + s[j:]
}

// lasted formats a duration in seconds.
func lasted(d time.Duration) string {
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

// list joins a few texts, and counts the others.
func list(all []string, most int) string {
	if len(all) > most {
		return strings.Join(all[:most], ", ") + " and " + plural(len(all)-most, "other")
	}
	return strings.Join(all, ", ")
}

// indexWord returns where a word is in a text, -1 if it is not there.
func indexWord(text, word string) int {
	i := strings.Index(text, word)
	if i < 0 || i > 0 && text[i-1] != ' ' && text[i-1] != '"' || i+len(word) < len(text) && !strings.ContainsRune(" ,.\":", rune(text[i+len(word)])) {
		return -1
	}
	return i
}

// unnamed removes from the message of an error the name of the object that could not be
// created, which is another one each time: pods "web-x7x8z" is forbidden: exceeded quota.
func unnamed(text string) string {
	if _, rest, ok := strings.Cut(text, " is forbidden: "); ok {
		return rest
	}
	return text
}
