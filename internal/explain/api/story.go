// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// A Story is what happened to an object, and to the objects that it owns, is owned by, runs
// on and mounts: GET /watchkeeper/v1/story/….
type Story struct {
	Resource  string    `json:"resource"`
	Kind      string    `json:"kind,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	// Episodes are in the order in which they begin. Every entry is in one of them.
	Episodes []Episode `json:"episodes"`
	// Objects counts the objects that the story was written from, Versions their versions.
	Objects  int `json:"objects"`
	Versions int `json:"versions"`
	// NotRecorded are resources that a story is also about, and that are not recorded.
	NotRecorded []string `json:"notRecorded,omitempty"`
	// Denied are recorded resources that the caller may not read.
	Denied []string `json:"denied,omitempty"`
	// LeftOut says what was not read, because the story would have been too large.
	LeftOut []string `json:"leftOut,omitempty"`
	// Unobserved are the times in which changes may have been missed, as in [Changes].
	Unobserved []UnobservedSpan `json:"unobserved,omitempty"`
}

// Values of Episode.BegunBefore.
const (
	StoryBegin  = "story"
	RecordBegin = "record" // nothing was recorded before From
)

// Severities of an [Episode].
const (
	EpisodeFailed  = "failed"
	EpisodeWarning = "warning"
	EpisodeInfo    = "info"
)

// Kinds of an [Episode].
const (
	EpisodeRollout    = "rollout"    // a Pod template was changed
	EpisodeScaling    = "scaling"    // the number of replicas was changed
	EpisodeFailure    = "failure"    // Pods failed
	EpisodeNode       = "node"       // a Node was not ready, or was drained
	EpisodeDisruption = "disruption" // Pods were evicted or preempted
	EpisodeCreation   = "creation"   // Pods could not be created
	EpisodeAutoscaler = "autoscaler" // an autoscaler could not decide
	EpisodeDeletion   = "deletion"   // an object was deleted
	EpisodeJob        = "job"        // a Job failed
	EpisodeConfig     = "config"     // a ConfigMap, a Secret or a limit was changed
	EpisodeOther      = "other"
)

// An Episode is a group of changes that belong together.
type Episode struct {
	Kind     string    `json:"kind"`
	Severity string    `json:"severity"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	// BegunBefore is StoryBegin or RecordBegin if the episode has begun before From, at a time
	// that is not known.
	BegunBefore string `json:"begunBefore,omitempty"`
	// NotBefore is set if it began between NotBefore and From, which was not observed, and
	// EndNotBefore if it ended between EndNotBefore and To.
	NotBefore    time.Time `json:"notBefore,omitzero"`
	EndNotBefore time.Time `json:"endNotBefore,omitzero"`
	// Ongoing is set if the episode had not ended at the end of the story, or when it was last
	// observed.
	Ongoing bool `json:"ongoing,omitempty"`
	// Main marks the most important episode of the story.
	Main bool `json:"main,omitempty"`
	// Title is one line, without times.
	Title string `json:"title"`
	// Causes are what the objects themselves say about why it happened.
	Causes  []Cause      `json:"causes,omitempty"`
	Entries []StoryEntry `json:"entries"`
}

// A Cause is what a field of an object, or an Event about it, says.
type Cause struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Field     string `json:"field"` // status.conditions[Ready], Event
	Text      string `json:"text"`
	// Path and ResourceVersion are those of the version that says so; of an Event, the Event's.
	Path            string `json:"path,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Objects counts the objects that say so, if there are several.
	Objects int `json:"objects,omitempty"`
}

// EventType is the Type of a [StoryEntry] that stands for an Event about an object.
const EventType = "EVENT"

// A StoryEntry is a change of an object, or several that are alike.
type StoryEntry struct {
	Time time.Time `json:"time"`
	// Until is the time of the last change, if the entry stands for several.
	Until           time.Time `json:"until,omitzero"`
	NotBefore       time.Time `json:"notBefore,omitzero"` // as in [Change]
	Inferred        bool      `json:"inferred,omitempty"` // as in [Change]
	Type            string    `json:"type"`               // ADDED, MODIFIED, DELETED or EVENT
	ResourceVersion string    `json:"resourceVersion"`
	Resource        string    `json:"resource"`
	Path            string    `json:"path"` // of the object; of an Event, the Event's
	// Kind, Namespace and Name are those of the object; for an Event, of the object that it is
	// about.
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	What      []string `json:"what"`
	By        []string `json:"by,omitempty"` // field managers; for an Event, its reporter
	// Count is how many changes or occurrences the entry stands for, if there are several.
	Count int `json:"count,omitempty"`
	// LastLog is the last output of a container that has ended, as its status has it.
	LastLog string `json:"lastLog,omitempty"`
}
