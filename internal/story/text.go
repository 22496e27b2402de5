// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"regexp"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/change"
)

// maxMessage limits the bytes of a message, maxDetail those of a detail in a title.
const (
	maxMessage = 300
	maxDetail  = 200
)

// brief shortens a message for a title, between words. The end of an error is as important as
// its begin.
func brief(s string) string {
	s = strings.TrimRight(withoutNoise(s), ". ")
	if len(s) <= maxDetail {
		return s
	}
	head, tail := s[:maxDetail/3], s[len(s)-2*maxDetail/3:]
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

// noise is what a runtime or the scheduler adds to an error for programs, and for itself.
var noise = regexp.MustCompile(`rpc error: code = \w+ desc = |(\d+/\d+ nodes are available: [^.]*\.) .*`)

// withoutNoise removes from a message what says nothing in a title. Causes have all of it.
func withoutNoise(s string) string { return noise.ReplaceAllString(s, "$1") }

// concise joins a reason and its message for a title: without the reason if the message has
// its words.
func concise(reason, message string) string {
	said, repeated := strings.ToLower(message), true
	for _, word := range camel.FindAllString(reason, -1) {
		if len(word) > 2 && !strings.Contains(said, strings.ToLower(word[:min(len(word), 5)])) {
			repeated = false
		}
	}
	if message != "" && repeated {
		reason = ""
	}
	return brief(change.Because(reason, message))
}

var camel = regexp.MustCompile(`[A-Z]+[a-z]*`)

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
