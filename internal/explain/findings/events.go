// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// An event is an Event of either API group.
type event struct {
	object      corev1.ObjectReference
	kind        string // Normal or Warning
	reason      string
	message     string
	count       int
	first, last time.Time
}

// wireEvent has the members of an Event in both groups.
type wireEvent struct {
	Metadata struct {
		UID               string                      `json:"uid"`
		CreationTimestamp metav1.Time                 `json:"creationTimestamp"`
		ManagedFields     []metav1.ManagedFieldsEntry `json:"managedFields"`
	} `json:"metadata"`
	change.Event

	FirstTimestamp           *metav1.Time `json:"firstTimestamp"`
	LastTimestamp            *metav1.Time `json:"lastTimestamp"`
	DeprecatedFirstTimestamp *metav1.Time `json:"deprecatedFirstTimestamp"`
	DeprecatedLastTimestamp  *metav1.Time `json:"deprecatedLastTimestamp"`

	EventTime *metav1.MicroTime `json:"eventTime"`
}

// usual are the reasons of Normal Events that rules read.
var usual = []string{`"SuccessfulRescale"`, `"Preempted"`, `"Killing"`, `"WaitForFirstConsumer"`}

// uidPattern finds UIDs in messages.
var uidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func (s *State) addEvent(o *scan.Object) {
	if !strings.Contains(o.JSON, `"Warning"`) && !slices.ContainsFunc(usual, func(reason string) bool { return strings.Contains(o.JSON, reason) }) {
		return
	}
	w := wireEvent{}
	if json.Unmarshal([]byte(o.JSON), &w) != nil {
		return
	}
	e := &event{object: w.About(), kind: w.Type, reason: w.Reason, message: oneLine(w.Message + w.Note), count: w.Times()}
	for _, t := range []*metav1.Time{w.FirstTimestamp, w.DeprecatedFirstTimestamp} {
		if t != nil && e.first.IsZero() {
			e.first = t.Time
		}
	}
	if w.EventTime != nil && e.first.IsZero() {
		e.first = w.EventTime.Time
	}
	if e.first.IsZero() {
		e.first = w.Metadata.CreationTimestamp.Time
	}
	for _, t := range []*metav1.Time{w.LastTimestamp, w.DeprecatedLastTimestamp} {
		if t != nil && t.After(e.last) {
			e.last = t.Time
		}
	}
	if w.Series != nil && w.Series.LastObservedTime.After(e.last) {
		e.last = w.Series.LastObservedTime.Time
	}
	if e.last.Before(e.first) {
		e.last = e.first
	}
	// It was not seen after it was written, whatever the clock of its reporter says.
	written := change.Written(w.Metadata.ManagedFields, "", s.At)
	if e.last.After(written) {
		e.last = written
	}
	if e.first.After(e.last) {
		e.first = e.last
	}
	if e.reason == "Preempted" {
		for _, uid := range uidPattern.FindAllString(e.message, -1) {
			if s.preemptors == nil {
				s.preemptors = map[string]*scan.Object{}
			}
			s.preemptors[uid] = nil
		}
	}
	s.events = append(s.events, e)
}

// sorted returns the Events, the latest first; each once, also if they were read from both
// groups.
func (s *State) sorted() []*event {
	if s.about != nil {
		return s.events
	}
	slices.SortFunc(s.events, func(a, b *event) int {
		return cmp.Or(b.last.Compare(a.last), strings.Compare(a.reason, b.reason), strings.Compare(a.message, b.message),
			strings.Compare(a.object.Namespace+"/"+a.object.Name, b.object.Namespace+"/"+b.object.Name), strings.Compare(string(a.object.UID), string(b.object.UID)),
			b.first.Compare(a.first), cmp.Compare(a.count, b.count))
	})
	s.events = slices.CompactFunc(s.events, func(a, b *event) bool { return *a == *b })
	s.about = map[string][]*event{}
	for _, e := range s.events {
		uid := string(e.object.UID)
		s.about[uid] = append(s.about[uid], e)
	}
	return s.events
}

// lastAbout returns the latest Event about an object that matches; nil if there is none.
func (s *State) lastAbout(uid string, match func(*event) bool) *event {
	s.sorted()
	if uid == "" {
		return nil
	}
	for _, e := range s.about[uid] {
		if match(e) {
			return e
		}
	}
	return nil
}

// warning returns the latest Warning about an object that is not one of some reasons.
func (s *State) warning(uid string, except ...string) *event {
	return s.lastAbout(uid, func(e *event) bool {
		return e.kind == corev1.EventTypeWarning && !slices.Contains(except, e.reason)
	})
}

// says returns what an Event says.
func (e *event) says() string {
	if e == nil {
		return ""
	}
	return because(e.reason, e.message)
}
