// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxDepth limits how often JSON inside of a JSON string is parsed, as in the
// annotation of kubectl apply.
const maxDepth = 4

// A walker replaces each string of an object by the result of visit, including member
// names that users choose. All other bytes stay the same.
type walker struct {
	kind  string // of the object
	visit func(text string, c class) string
	deep  int
	free  bool // users choose all member names: it is not an object of the API
}

// walk returns the changed text. It stops at the first byte that is not valid
// JSON.
func (w *walker) walk(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	stack := []scope{{array: true}} // a value follows
	member := ""                    // the member whose value follows
	from := 0                       // b contains everything before
	for i := 0; i < len(text); {
		top := &stack[len(stack)-1]
		switch c := text[i]; c {
		case '{', '[':
			in := scope{root: true, array: c == '[', free: w.free}
			if len(stack) > 1 {
				in = top.enter(member, w.kind, c == '[')
			}
			in.wants = c == '{'
			stack = append(stack, in)
		case '}', ']':
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			member = stack[len(stack)-1].member
		case ',':
			top.wants = !top.array
		case ':':
			top.wants = false
		case '"':
			end := stringEnd(text, i+1)
			content := text[i+1 : end]
			b.WriteString(text[from : i+1])
			if top.wants {
				member = content
				if top.fields {
					member = strings.TrimPrefix(content, "f:")
				}
				b.WriteString(w.member(top, content, member))
			} else {
				b.WriteString(w.value(top, member, content))
			}
			from, i = end, end
		}
		i++
	}
	b.WriteString(text[min(from, len(text)):])
	return b.String()
}

// stringEnd returns the end of the string that begins at i.
func stringEnd(text string, i int) int {
	for i < len(text) && text[i] != '"' {
		if text[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(text))
}

// member returns the changed name of a member.
func (w *walker) member(s *scope, content, member string) string {
	if s.fields && (strings.HasPrefix(content, "k:") || strings.HasPrefix(content, "v:")) {
		return content[:2] + w.change(content[2:], func(value string) string {
			in := walker{kind: w.kind, visit: w.visit, deep: w.deep + 1}
			return in.walk(value)
		})
	}
	if !s.named(member) {
		return content
	}
	before := content[:len(content)-len(member)] // f:
	return before + w.change(member, func(text string) string { return w.visit(text, freeText) })
}

// value returns the changed value of a string.
func (w *walker) value(s *scope, member, content string) string {
	c := s.value(member, content)
	if c == plainText {
		return content
	}
	return w.change(content, func(text string) string {
		switch {
		case c == base64Text:
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(decoded) {
				text = base64.StdEncoding.EncodeToString([]byte(w.text(string(decoded), freeText)))
			}
			return text
		default:
			return w.text(text, c)
		}
	})
}

// text returns a changed text, which may itself be JSON.
func (w *walker) text(text string, c class) string {
	start := strings.TrimLeft(text, " \t\r\n")
	if w.deep < maxDepth && start != "" && (start[0] == '{' || start[0] == '[') && json.Valid([]byte(text)) {
		var object struct{ Kind string }
		json.Unmarshal([]byte(text), &object) //nolint:errcheck // then it has no kind
		in := walker{kind: object.Kind, visit: w.visit, deep: w.deep + 1}
		if object.Kind == "" { // not an object: it could contain any name
			in.free = true
			in.visit = func(text string, _ class) string { return w.visit(text, freeText) }
		}
		return in.walk(text)
	}
	return w.visit(text, c)
}

// change changes the content of a JSON string. An unchanged string keeps its
// bytes.
func (w *walker) change(content string, f func(string) string) string {
	text := content
	if strings.IndexByte(content, '\\') >= 0 {
		if err := json.Unmarshal([]byte(`"`+content+`"`), &text); err != nil {
			return content // not valid JSON
		}
	}
	changed := f(text)
	if changed == text {
		return content
	}
	if changed == content || !needsQuoting(changed) {
		return changed
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(changed); err != nil {
		return content // strings can always be encoded
	}
	quoted := bytes.TrimSpace(b.Bytes())
	return string(quoted[1 : len(quoted)-1])
}

func needsQuoting(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == '"' || s[i] == '\\' || s[i] >= 0x7f {
			return true
		}
	}
	return false
}
