// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// A Moment is a resourceVersion and the time at which it was the newest. The time
// is left out if the request named the moment by its resourceVersion.
type Moment struct {
	ResourceVersion string    `json:"resourceVersion"`
	Time            time.Time `json:"time,omitzero"`
}

// A Span reaches from the oldest complete state that is retained to the head.
type Span struct {
	From Moment `json:"from"`
	To   Moment `json:"to"`
}

// A Gap is a span in which nothing was observed: only the state at its end is known. If both
// resourceVersions are the same, no event was missed, but those of that time came at its end,
// and have the time of its end.
type Gap struct {
	From Moment `json:"from"`
	To   Moment `json:"to"`
}

// History describes all that is recorded: GET /watchkeeper/v1/history.
type History struct {
	// Now is the time from which ages count back: the end of a finished recording,
	// otherwise the present.
	Now       time.Time         `json:"now"`
	Recording Recording         `json:"recording"`
	Upstream  *Upstream         `json:"upstream,omitempty"` // nil for a finished recording
	Store     Store             `json:"store"`
	Resources []ResourceHistory `json:"resources"`
	// Denied are the recorded resources that the caller may not list.
	Denied []string `json:"denied,omitempty"`
}

// Upstream says whether the API server answers the gateway, and is ready.
type Upstream struct {
	Answers bool   `json:"answers"`
	Reason  string `json:"reason,omitempty"` // why it does not, or is not ready
	// LastContact is when the API server last sent something; if it does not answer or is not
	// ready, the time since which nothing newer is known.
	LastContact time.Time `json:"lastContact,omitzero"`
}

// Recording says whether changes are being recorded.
type Recording struct {
	State  string `json:"state"`            // on, off, failed or ended
	Reason string `json:"reason,omitempty"` // why the state is not on
	// Scope is what a finished recording is limited to; nil if that is nothing.
	Scope *RecordingScope `json:"scope,omitempty"`
}

// A RecordingScope is the part of a cluster that a finished recording has.
type RecordingScope struct {
	// Namespace is the only one; "" for all.
	Namespace string `json:"namespace,omitempty"`
	// Selected is set if a label selector chose the objects. LabelSelector is "" then if names
	// were replaced.
	Selected      bool   `json:"selected,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Resources are those that were named; none for all.
	Resources []string `json:"resources,omitempty"`
	// Denied are those that who made it might not list.
	Denied []string `json:"denied,omitempty"`
}

// String describes the scope, without what was denied; "" is all.
func (s *RecordingScope) String() string {
	parts := s.objects()
	if len(s.Resources) > 0 {
		parts = append(parts, strings.Join(s.Resources, ", "))
	}
	return strings.Join(parts, "; ")
}

// objects describes how the objects of a resource are limited.
func (s *RecordingScope) objects() (parts []string) {
	if s.Namespace != "" {
		parts = append(parts, "namespace "+s.Namespace)
	}
	switch {
	case s.LabelSelector != "":
		parts = append(parts, "objects with "+s.LabelSelector)
	case s.Selected:
		parts = append(parts, "objects that a label selector chose")
	}
	return parts
}

// Lacks says what the recording may lack of the objects in a namespace, "" for all, of the
// resources that it has; "" for nothing.
func (s *RecordingScope) Lacks(namespace string) string {
	if s == nil || !s.Selected && (s.Namespace == "" || s.Namespace == namespace) {
		return ""
	}
	return "what is not in this recording, which has only " + strings.Join(s.objects(), "; ")
}

// States of a [Recording].
const (
	RecordingOn     = "on"
	RecordingOff    = "off"
	RecordingFailed = "failed"
	RecordingEnded  = "ended" // a finished recording is served
)

// Store is the disk space that the history takes, and its limits; 0 is no limit.
type Store struct {
	Bytes         int64 `json:"bytes"`
	MaxBytes      int64 `json:"maxBytes"`
	MaxAgeSeconds int64 `json:"maxAgeSeconds"`
}

// ResourceHistory describes the record of one resource. A new epoch begins when the
// resourceVersions of the cluster have gone back, or objects have another form.
type ResourceHistory struct {
	Resource string  `json:"resource"` // pods, deployments.apps
	Path     string  `json:"path"`     // /api/v1/pods
	Epochs   []Epoch `json:"epochs"`   // the newest first
}

// An Epoch is a part of a resource's record in which its resourceVersions only grow.
type Epoch struct {
	Epoch int  `json:"epoch"`
	Span  Span `json:"span"`
	// Gaps are the newest gaps, the newest first; MoreGaps counts the older ones.
	Gaps     []Gap `json:"gaps"`
	MoreGaps int   `json:"moreGaps,omitempty"`
}

// Types of a [Change].
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Initial  = "INITIAL" // the object existed when the retained record begins
	Folded   = "FOLDED"  // several versions that differ in noise only
)

// A Change is one change of an object, or several successive ones that are only
// noise.
type Change struct {
	Type            string    `json:"type"`
	ResourceVersion string    `json:"resourceVersion"`
	Time            time.Time `json:"time"`
	UID             string    `json:"uid,omitempty"`
	Epoch           int       `json:"epoch,omitempty"`
	// Inferred marks a change that was not observed, but found by a relist. It
	// happened at some time since the version before.
	Inferred bool `json:"inferred,omitempty"`
	// NotBefore is the begin of the gap that ends at Time, if there is one: the change
	// happened at some time in between.
	NotBefore time.Time `json:"notBefore,omitzero"`
	Summary   []string  `json:"summary"`
	// Changes is the patch from the version before to this one.
	Changes change.Patch     `json:"changes,omitempty"`
	By      []change.Manager `json:"by,omitempty"`
	Noise   []string         `json:"noise,omitempty"`
	Folded  *Fold            `json:"folded,omitempty"`
	// Object is this version and Before the one before it, if the request asks for
	// whole objects.
	Object json.RawMessage `json:"object,omitempty"`
	Before json.RawMessage `json:"before,omitempty"`
}

// A Fold stands for a number of versions that differ in noise only. The newest of
// them is the one in the Change.
type Fold struct {
	Count  int            `json:"count"`
	Oldest Moment         `json:"oldest"`
	Noise  map[string]int `json:"noise"` // the number of versions with it, by its kind
}

// Versions lists the versions of one object, the newest first:
// GET /watchkeeper/v1/history/versions/….
type Versions struct {
	Resource  string   `json:"resource"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Items     []Change `json:"items"`
	// Unobserved are the times in which changes in the range may have been missed, as in
	// [Changes].
	Unobserved []UnobservedSpan `json:"unobserved,omitempty"`
	// Continue is the parameter for the next page, with older versions. It is left
	// out on the last page.
	Continue string `json:"continue,omitempty"`
}

// An ObjectChange is a change with the object that it belongs to.
type ObjectChange struct {
	Resource  string `json:"resource"`
	Path      string `json:"path"` // of the object
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Change
}

// Changes lists the changes of several resources, the newest first:
// GET /watchkeeper/v1/history/changes.
type Changes struct {
	From  time.Time      `json:"from,omitzero"`
	To    time.Time      `json:"to,omitzero"`
	Items []ObjectChange `json:"items"`
	// Folded counts the changes that were left out as noise.
	Folded int `json:"folded"`
	// LeftOut counts the changes that the parameters by and spec left out.
	LeftOut int `json:"leftOut,omitempty"`
	// Unobserved are the times in which changes in the range may have been missed, the
	// earliest first. They are on the first page. A gap may begin before the range, and
	// end after it.
	Unobserved []UnobservedSpan `json:"unobserved,omitempty"`
	// Denied are the recorded resources that are left out, since the caller may not list them.
	Denied   []string `json:"denied,omitempty"`
	Continue string   `json:"continue,omitempty"`
}

// An UnobservedSpan is a time in which changes of a resource may have been missed, or came
// later.
type UnobservedSpan struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
	// NoAnswer is true of a gap if the API server did not answer for most of it.
	NoAnswer bool `json:"noAnswer,omitempty"`
	TimeSpan
}

// Reasons of an [UnobservedSpan]. Only in a gap, the outcome is known: the state at its end.
const (
	BeforeRecord     = "before"  // nothing was recorded yet
	InGap            = "gap"     // nothing was heard, or nothing could be recorded
	Late             = "late"    // the changes came at its end, and have the time of its end
	RecordingStopped = "stopped" // nothing newer is recorded, as on a full disk
	NoAnswer         = "silent"  // the API server does not answer, or is not ready
)

// NothingKnown reports whether the spans, the earliest first, leave nothing of a range, in any
// of the resources. What came late is known if the range has its end.
func NothingKnown(spans []UnobservedSpan, resources []string, from, to time.Time) bool {
	for _, name := range resources {
		known := from
		for _, s := range spans {
			if s.Resource == name && !s.From.After(known) && s.To.After(known) && (s.Reason != Late || s.To.After(to)) {
				known = s.To
			}
		}
		if known.Before(to) {
			return false
		}
	}
	return len(resources) > 0
}

// The values of Difference.Selection.
const (
	Entered = "entered"
	Left    = "left"
)

// A Difference compares one object at two moments.
type Difference struct {
	Type      string `json:"type"` // Added, Modified or Deleted
	Path      string `json:"path"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Recreated is set if the UID changed: the object was deleted and created again.
	Recreated bool `json:"recreated,omitempty"`
	// Selection is Entered or Left if the object exists at both moments, but only
	// one of its versions matches the selectors.
	Selection string `json:"selection,omitempty"`
	// From and To are the resourceVersions of the two versions.
	From    string           `json:"from,omitempty"`
	To      string           `json:"to,omitempty"`
	Summary []string         `json:"summary"`
	Changes change.Patch     `json:"changes,omitempty"`
	By      []change.Manager `json:"by,omitempty"`
	Noise   []string         `json:"noise,omitempty"`
	Before  json.RawMessage  `json:"before,omitempty"`
	Object  json.RawMessage  `json:"object,omitempty"`
}

// Differences lists what differs between two moments, in the order of a LIST:
// GET /watchkeeper/v1/history/diff/….
type Differences struct {
	Resource string       `json:"resource"`
	From     Moment       `json:"from"`
	To       Moment       `json:"to"`
	Items    []Difference `json:"items"`
	// Folded counts the objects that differ in noise only, and Unchanged those that
	// do not differ, among the objects compared for this page.
	Folded    int `json:"folded"`
	Unchanged int `json:"unchanged"`
	// Unobserved are the times between the moments in which changes may have been missed, as
	// in [Changes].
	Unobserved []UnobservedSpan `json:"unobserved,omitempty"`
	Continue   string           `json:"continue,omitempty"`
}

// Counts are events per bin: GET /watchkeeper/v1/history/counts.
type Counts struct {
	From       time.Time        `json:"from"` // the beginning of the first bin
	To         time.Time        `json:"to"`
	BinSeconds float64          `json:"binSeconds"`
	Bins       int              `json:"bins"`
	Resources  []ResourceCounts `json:"resources"`
	// Denied are the recorded resources that are left out, since the caller may not list them.
	Denied []string `json:"denied,omitempty"`
}

// ResourceCounts are the counts of one resource; each list has one number per bin.
type ResourceCounts struct {
	Resource string `json:"resource"`
	Path     string `json:"path"`
	Added    []int  `json:"added"`
	Modified []int  `json:"modified"`
	Deleted  []int  `json:"deleted"`
	// Spans are the parts of the range that are retained, Gaps the gaps inside the
	// range; the oldest first.
	Spans []TimeSpan `json:"spans"`
	Gaps  []TimeSpan `json:"gaps"`
}

// A TimeSpan reaches from one time to another.
type TimeSpan struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Bounds returns the two times.
func (s TimeSpan) Bounds() (from, to time.Time) { return s.From, s.To }

// Failing says whether a Pod fails at a moment, since when, and why:
// GET /watchkeeper/v1/history/failing/…. A Pod that keeps crashing fails until it has been
// ready for its back-off. One that terminates, or that cannot be scheduled, does not fail.
type Failing struct {
	Failing bool `json:"failing"`
	// FailedBefore is set if the Pod terminates, and failed until its deletion was requested.
	FailedBefore bool `json:"failedBefore,omitempty"`
	// Since is when it began to fail. If SinceKnown is false, it failed before. NotBefore is the
	// begin of the gap that ends at Since, if there is one: it began between them.
	Since      time.Time          `json:"since,omitzero"`
	NotBefore  time.Time          `json:"notBefore,omitzero"`
	SinceKnown bool               `json:"sinceKnown,omitempty"`
	Restarts   int32              `json:"restarts"`   // of all containers
	Containers []FailingContainer `json:"containers"` // that have crashed, or cannot start
	Node       string             `json:"node,omitempty"`
	// Phase, Reason and Message are those of the Pod's status: why it was evicted, for example.
	Phase   string `json:"phase,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Unschedulable is set while the scheduler finds no node for the Pod, Disruption if
	// it is or was evicted, preempted or the like.
	Unschedulable *PodCondition `json:"unschedulable,omitempty"`
	Disruption    *PodCondition `json:"disruption,omitempty"`
	// Finding is what findings say of a Pod that does not fail in their sense: that it is not
	// ready, or cannot be deleted.
	Finding *PodFinding `json:"finding,omitempty"`
}

// A PodFinding is the title of a finding about one Pod, and since when it is one, as far as the
// Pod says.
type PodFinding struct {
	Title string    `json:"title"`
	Since time.Time `json:"since,omitzero"`
}

// A PodCondition is why a condition of a Pod has its status, and since when.
type PodCondition struct {
	Since   time.Time `json:"since,omitzero"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
}

// A FailingContainer is a container that cannot start, or how one that crashed ended last.
type FailingContainer struct {
	Name     string `json:"name"`
	State    string `json:"state"`             // waiting, running or terminated
	Waiting  string `json:"waiting,omitempty"` // why it waits
	Restarts int32  `json:"restarts"`
	// Reason and Message say how it ended, or why it waits if it has not crashed.
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	ExitCode   *int32    `json:"exitCode,omitempty"` // nil if it has not ended
	Signal     int32     `json:"signal,omitempty"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
}
