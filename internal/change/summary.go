// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// mostPhrases bounds a summary, longestValue a value in it, in bytes.
const (
	mostPhrases  = 8
	longestValue = 60
	longestText  = 160
)

// A summary is being written about two versions of an object.
type summary struct {
	before, after map[string]any
	phrases       []string
	// told are the paths that need not be told again.
	told map[string]bool
	// minor are changes that go along with others, told when there are none.
	minor []string
}

// summarize describes a change, neither version being missing.
func summarize(before, after map[string]any) []string {
	s := &summary{before: before, after: after, told: map[string]bool{}}
	s.told["kind"], s.told["apiVersion"] = true, true
	s.metadata()
	s.scale()
	s.podTemplate()
	s.node()
	s.pod()
	s.conditions()
	s.data()
	s.rest()
	if len(s.phrases) == 0 {
		s.phrases = s.minor
	}
	if more := len(s.phrases) - mostPhrases; more > 0 {
		s.phrases = append(s.phrases[:mostPhrases], fmt.Sprintf("and %d more", more))
	}
	return s.phrases
}

// arrival describes a version that has none beside it: nil is a deletion.
func arrival(tree map[string]any) string {
	switch {
	case tree == nil:
		return "deleted"
	case text(tree["kind"]) == "Event":
		note := text(tree["message"]) + text(tree["note"]) // events.k8s.io has another name for it
		return clip(fmt.Sprintf("%s %s: %s", text(tree["type"]), text(tree["reason"]), note), longestText)
	}
	return "created"
}

func (s *summary) say(format string, args ...any) {
	s.phrases = append(s.phrases, fmt.Sprintf(format, args...))
}

// tell marks a path as told.
func (s *summary) tell(path ...string) { s.told[strings.Join(path, ".")] = true }

// changed returns a scalar before and after, if it is another one, and marks it
// as told.
func (s *summary) changed(path ...string) (before, after string, ok bool) {
	s.tell(path...)
	before, after = text(at(s.before, path...)), text(at(s.after, path...))
	return before, after, before != after
}

// metadata tells of deletion, finalizers, labels, annotations and owners.
func (s *summary) metadata() {
	s.tell("metadata")
	if old, now, _ := s.changed("metadata", "uid"); old != now {
		s.say("deleted and created again")
	}
	if old, now, ok := s.changed("metadata", "deletionTimestamp"); ok && old == "" && now != "" {
		if grace := text(at(s.after, "metadata", "deletionGracePeriodSeconds")); grace != "" && grace != "0" {
			s.say("deletion began (grace %s s)", grace)
		} else {
			s.say("deletion began")
		}
	}
	for _, l := range s.differ("metadata", "finalizers") {
		s.say("finalizer %s %s", strings.Trim(l.last(), "[]"), l.verb())
	}
	for _, l := range s.differ("metadata", "labels") {
		s.say("label %s", l.assignment(l.last()))
	}
	for _, l := range s.differ("metadata", "annotations") {
		switch name := l.last(); {
		case name == "kubectl.kubernetes.io/last-applied-configuration":
			s.minor = append(s.minor, "applied configuration "+l.verb())
		case name == "deployment.kubernetes.io/revision":
			s.say("revision %s", l.arrow())
		case len(text(l.before)) > longestValue || len(text(l.after)) > longestValue:
			s.say("annotation %s %s", name, l.verb())
		default:
			s.say("annotation %s", l.assignment(name))
		}
	}
	for _, l := range s.differ("metadata", "ownerReferences") {
		owner, _ := l.after.(map[string]any)
		if owner == nil {
			owner, _ = l.before.(map[string]any)
		}
		if owner != nil {
			s.say("owner %s/%s %s", strings.ToLower(text(owner["kind"])), text(owner["name"]), l.verb())
		}
	}
}

// differ returns the differences below a path, and marks it as told.
func (s *summary) differ(path ...string) []leaf {
	s.tell(path...)
	return leaves(nil, path, at(s.before, path...), at(s.after, path...), nil)
}

// data tells which keys of a ConfigMap or Secret changed, not how.
func (s *summary) data() {
	kind := text(s.after["kind"])
	if kind != "Secret" && kind != "ConfigMap" {
		return
	}
	for _, member := range []string{"data", "binaryData", "stringData"} {
		for _, l := range s.differ(member) {
			s.say("key %s %s", l.last(), l.verb())
		}
	}
}

// rest tells what nothing else has told, by its path.
func (s *summary) rest() {
	all := leaves(nil, nil, s.before, s.after, func(path []string) bool { return s.told[leaf{path: path}.String()] })
	for _, l := range all {
		name := strings.TrimPrefix(l.String(), "spec.")
		switch {
		case isStamp(l.last()):
			s.minor = append(s.minor, name+" "+l.arrow())
		case isScalar(l.before) && isScalar(l.after):
			s.say("%s %s", name, l.arrow())
		default:
			s.say("%s %s", name, l.verb())
		}
	}
}

// isStamp reports whether a member says when something happened.
func isStamp(name string) bool {
	return strings.HasSuffix(name, "Time") || strings.HasSuffix(name, "Timestamp") || strings.HasSuffix(name, "At")
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// last returns the last name of the path.
func (l leaf) last() string {
	if len(l.path) == 0 {
		return ""
	}
	return l.path[len(l.path)-1]
}

// verb says what happened to the value.
func (l leaf) verb() string {
	switch {
	case l.before == nil:
		return "added"
	case l.after == nil:
		return "removed"
	}
	return "changed"
}

// arrow shows both values.
func (l leaf) arrow() string { return show(l.before) + " → " + show(l.after) }

// assignment shows what a name stands for.
func (l leaf) assignment(name string) string {
	switch {
	case l.before == nil:
		return fmt.Sprintf("%s=%s added", name, clip(text(l.after), longestValue))
	case l.after == nil:
		return name + " removed"
	}
	return name + " " + l.arrow()
}

// show returns a value as text, briefly.
func show(value any) string {
	if value == nil {
		return "none"
	}
	if s, ok := value.(string); ok {
		if s == "" {
			return `""`
		}
		return clip(s, longestValue)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return clip(string(b), longestValue)
}

// clip makes one line of a text, of no more than n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return strings.Join(strings.Fields(s), " ")
}
