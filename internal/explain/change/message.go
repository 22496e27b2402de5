// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"regexp"
	"slices"
	"strings"
)

// MaxBrief limits the bytes of what [Brief] returns.
const MaxBrief = 200

// Because joins what is known of a reason, on one line.
func Because(parts ...string) string {
	var known []string
	for _, part := range parts {
		if part = strings.Join(strings.Fields(part), " "); part != "" {
			known = append(known, part)
		}
	}
	return strings.Join(known, ": ")
}

// Brief shortens a message for a title, between words. The end of an error is as important as
// its begin. Causes have all of it.
func Brief(s string) string {
	s = strings.TrimRight(boilerplate.ReplaceAllString(s, "$1"), ". ")
	if len(s) <= MaxBrief {
		return s
	}
	head, tail := s[:MaxBrief/3], s[len(s)-2*MaxBrief/3:]
	if i := strings.LastIndexByte(head, ' '); i > 0 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, ' '); i >= 0 {
		tail = tail[i+1:]
	}
	if strings.Count(head, `"`)%2 != 0 {
		head = head[:strings.LastIndexByte(head, '"')]
	}
	if strings.Count(tail, `"`)%2 != 0 {
		tail = tail[strings.IndexByte(tail, '"')+1:]
	}
	return strings.ToValidUTF8(strings.TrimRight(head, " ")+" … "+strings.TrimLeft(tail, " :,"), "")
}

// boilerplate is what a runtime or the scheduler adds to an error for programs, and for itself.
var boilerplate = regexp.MustCompile(`rpc error: code = \w+ desc = |(\d+/\d+ nodes are available: [^.]*\.) .*`)

// Concise joins a reason and its message for a title: without the reason if the message has
// its words.
func Concise(reason, message string) string {
	said, repeated := strings.ToLower(message), true
	for _, word := range camel.FindAllString(reason, -1) {
		if len(word) > 2 && !strings.Contains(said, strings.ToLower(word[:min(len(word), 5)])) {
			repeated = false
		}
	}
	if message != "" && repeated {
		reason = ""
	}
	return Brief(Because(reason, message))
}

var camel = regexp.MustCompile(`[A-Z]+[a-z]*`)

// Unnamed removes from the message of an error the name of the object that could not be
// created, which is another one each time: pods "web-x7x8z" is forbidden: exceeded quota.
func Unnamed(text string) string {
	if _, rest, ok := strings.Cut(text, " is forbidden: "); ok {
		return rest
	}
	return text
}

// LastLine returns the last line of a message that has text.
func LastLine(message string) string {
	for _, line := range slices.Backward(strings.Split(message, "\n")) {
		if line = Because(line); line != "" {
			return line
		}
	}
	return ""
}

// Shortened leaves out long values: hashes say nothing to people.
func Shortened(phrases []string) (out []string) {
	for _, phrase := range phrases {
		if name, _, ok := strings.Cut(phrase, " "); ok && len(phrase) > 80 && strings.Contains(phrase, " → ") {
			phrase = name + " changed"
		}
		phrase = strings.Replace(phrase, "template.metadata.annotations.", "annotation ", 1)
		out = append(out, phrase)
	}
	return out
}
