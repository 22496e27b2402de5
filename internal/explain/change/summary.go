// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// maxPhrases limits a summary, maxValue the bytes of a value in it, and maxText those of a
// text for people.
const (
	maxPhrases = 8
	maxValue   = 60
	maxText    = 160
)

// A summary collects phrases about two versions of an object.
type summary struct {
	before, after map[string]any
	phrases       []string
	// described are the paths that phrases already cover.
	described map[string]bool
	// minor are changes that accompany others. They are shown if there are no
	// others.
	minor []string
	// counted is how many of the phrases are about counters.
	counted int
}

// summarize describes a change between two existing versions that differ. It
// returns at least one phrase, and whether all of them are about counters.
func summarize(before, after map[string]any) (phrases []string, onlyCounters bool) {
	s := &summary{before: before, after: after, described: map[string]bool{}}
	s.described["kind"], s.described["apiVersion"] = true, true
	s.metadata()
	// What was asked for comes before what became of it: a summary may be cut.
	s.scale()
	s.service()
	s.podTemplate()
	s.node()
	s.pod()
	s.data()
	isStatus := func(path []string) bool { return len(path) > 0 && path[0] == "status" }
	s.rest(isStatus)
	s.counters()
	s.conditions()
	s.rest(func(path []string) bool { return len(path) > 0 && !isStatus(path) })
	if len(s.phrases)+len(s.minor) == 0 {
		// Only what the phrases leave out has changed.
		clear(s.described)
		s.rest(func([]string) bool { return false })
	}
	if len(s.phrases) == 0 {
		s.phrases = s.minor
	}
	if len(s.phrases) == 0 {
		s.say("null fields added or removed")
	}
	if more := len(s.phrases) - maxPhrases; more > 0 {
		return append(s.phrases[:maxPhrases], fmt.Sprintf("and %d more", more)), s.counted == len(s.phrases)
	}
	return s.phrases, s.counted == len(s.phrases)
}

// event describes an Event by its reason, message and count. It returns "" for another object.
func (v *version) event() string {
	if text(v.tree["kind"]) != "Event" {
		return ""
	}
	note := text(v.tree["message"]) + text(v.tree["note"]) // named differently in events.k8s.io
	if text(v.tree["type"])+text(v.tree["reason"])+note == "" {
		return ""
	}
	words := clip(fmt.Sprintf("%s %s: %s", text(v.tree["type"]), text(v.tree["reason"]), note), maxText)
	for _, value := range v.noise[noiseEvent] {
		if series, ok := value.(map[string]any); ok {
			value = series["count"]
		}
		if count, ok := value.(json.Number); ok && count != "1" && count != "0" {
			return fmt.Sprintf("%s (%s times)", words, count)
		}
	}
	return words
}

func (s *summary) say(format string, args ...any) {
	s.phrases = append(s.phrases, fmt.Sprintf(format, args...))
}

// describe marks a path as described.
func (s *summary) describe(path ...string) { s.described[strings.Join(path, ".")] = true }

// changed returns a scalar before and after, if it differs, and marks it as
// described.
func (s *summary) changed(path ...string) (before, after string, ok bool) {
	s.describe(path...)
	before, after = text(at(s.before, path...)), text(at(s.after, path...))
	return before, after, before != after
}

// metadata describes deletion, finalizers, labels, annotations and owners.
func (s *summary) metadata() {
	s.describe("metadata")
	if old, now, _ := s.changed("metadata", "uid"); old != now {
		s.say("deleted and created again")
	}
	before, grace, shorter := s.changed("metadata", "deletionGracePeriodSeconds")
	switch old, now, ok := s.changed("metadata", "deletionTimestamp"); {
	case !ok || now == "":
	case old == "" && grace != "" && (grace != "0" || text(s.after["kind"]) == "Pod"): // others have none
		s.say("deletion requested (grace %s s)", grace)
	case old == "":
		s.say("deletion requested")
	case shorter:
		s.say("deletion grace period %s s → %s s", orZero(before), orZero(grace))
	}
	for _, l := range s.parts("metadata", "finalizers") {
		s.say("finalizer %s %s", strings.Trim(l.last(), "[]"), l.verb())
	}
	for _, l := range s.parts("metadata", "labels") {
		s.say("label %s", l.assignment(l.last()))
	}
	for _, l := range s.parts("metadata", "annotations") {
		switch name := l.last(); {
		case name == "kubectl.kubernetes.io/last-applied-configuration":
			s.minor = append(s.minor, "applied configuration "+l.verb())
		case name == "deployment.kubernetes.io/revision":
			s.say("revision %s", l.arrow())
		case len(text(l.before)) > maxValue || len(text(l.after)) > maxValue:
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

// differ returns the differences below a path, and marks it as described.
func (s *summary) differ(path ...string) []leaf {
	s.describe(path...)
	return leaves(nil, path, at(s.before, path...), at(s.after, path...), nil)
}

// parts returns the differences between the parts of a map or a list. If only the
// whole differs, because it is empty or in another order, that is a minor change.
func (s *summary) parts(path ...string) []leaf {
	all := s.differ(path...)
	if len(all) == 1 && len(all[0].path) == len(path) {
		s.minor = append(s.minor, fmt.Sprintf("%s %s", all[0], all[0].verb()))
		return nil
	}
	return all
}

// data describes which keys of a ConfigMap or Secret changed, without values.
func (s *summary) data() {
	kind := text(s.after["kind"])
	if kind != "Secret" && kind != "ConfigMap" {
		return
	}
	for _, member := range []string{"data", "binaryData", "stringData"} {
		for _, l := range s.parts(member) {
			s.say("key %s %s", l.last(), l.verb())
		}
	}
}

// rest describes the remaining differences by path, but those that are left for later.
func (s *summary) rest(later func(path []string) bool) {
	all := leaves(nil, nil, s.before, s.after, func(path []string) bool { return later(path) || s.described[leaf{path: path}.String()] })
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

// isStamp reports whether a member is a timestamp of an occurrence.
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

// last returns the last element of a path.
func (l leaf) last() string {
	if len(l.path) == 0 {
		return ""
	}
	return l.path[len(l.path)-1]
}

// verb describes what happened to the value.
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
func (l leaf) arrow() string {
	n := maxValue
	if len(l.path) > 1 && l.path[0] == "status" && l.last() == "message" {
		n = maxText
	}
	return show(l.before, n) + " → " + show(l.after, n)
}

// assignment shows a name and its value.
func (l leaf) assignment(name string) string {
	switch {
	case l.before == nil:
		return fmt.Sprintf("%s=%s added", name, clip(text(l.after), maxValue))
	case l.after == nil:
		return name + " removed"
	}
	return name + " " + l.arrow()
}

// show returns the first n bytes of a value as text.
func show(value any, n int) string {
	if value == nil {
		return "none"
	}
	if s, ok := value.(string); ok {
		if s == "" {
			return `""`
		}
		return clip(s, n)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return clip(string(b), n)
}

// clip returns the first n bytes of a text, on one line.
func clip(s string, n int) string {
	return strings.Join(strings.Fields(words.Clip(s, n)), " ")
}
