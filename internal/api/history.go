// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/change"
)

// A Moment is a resourceVersion and when it was the newest. The time is left
// out where a moment was named by its resourceVersion.
type Moment struct {
	ResourceVersion string    `json:"resourceVersion"`
	Time            time.Time `json:"time,omitzero"`
}

// A Span is from the oldest complete state that is retained to the head.
type Span struct {
	From Moment `json:"from"`
	To   Moment `json:"to"`
}

// A Gap is a span of which only the outcome is known.
type Gap struct {
	From Moment `json:"from"`
	To   Moment `json:"to"`
}

// History is what is recorded: GET /watchkeeper/v1/history.
type History struct {
	Recording Recording         `json:"recording"`
	Store     Store             `json:"store"`
	Resources []ResourceHistory `json:"resources"`
}

// Recording says whether changes are being recorded.
type Recording struct {
	State  string `json:"state"`            // on, off, failed or ended
	Reason string `json:"reason,omitempty"` // why not
}

// States of a [Recording].
const (
	RecordingOn     = "on"
	RecordingOff    = "off"
	RecordingFailed = "failed"
	RecordingEnded  = "ended" // what is served is a recording
)

// Store is what the history takes, and may take; 0 is no bound.
type Store struct {
	Bytes         int64 `json:"bytes"`
	MaxBytes      int64 `json:"maxBytes"`
	MaxAgeSeconds int64 `json:"maxAgeSeconds"`
}

// ResourceHistory is what is recorded of one resource. A further epoch begins
// when the resourceVersions of the cluster have gone back.
type ResourceHistory struct {
	Resource string  `json:"resource"` // pods, deployments.apps
	Path     string  `json:"path"`     // /api/v1/pods
	Epochs   []Epoch `json:"epochs"`   // the newest first
}

// An Epoch is what is recorded of a resource while its resourceVersions grew.
type Epoch struct {
	Epoch int  `json:"epoch"`
	Span  Span `json:"span"`
	// Gaps are the last ones, the newest first, MoreGaps how many there are more.
	Gaps     []Gap `json:"gaps"`
	MoreGaps int   `json:"moreGaps,omitempty"`
}

// Types of a [Change].
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Initial  = "INITIAL" // it was there when what is retained begins
	Folded   = "FOLDED"  // versions that differ in noise only
)

// A Change is how one version of an object came about: by Type, or several
// versions that nothing but noise came with.
type Change struct {
	Type            string    `json:"type"`
	ResourceVersion string    `json:"resourceVersion"`
	Time            time.Time `json:"time"`
	UID             string    `json:"uid,omitempty"`
	Epoch           int       `json:"epoch,omitempty"`
	// Inferred marks what was not observed but learned from a list: it happened
	// some time since the version before.
	Inferred bool     `json:"inferred,omitempty"`
	Summary  []string `json:"summary"`
	// Changes make this version of the one before it.
	Changes change.Patch     `json:"changes,omitempty"`
	By      []change.Manager `json:"by,omitempty"`
	Noise   []string         `json:"noise,omitempty"`
	Folded  *Fold            `json:"folded,omitempty"`
	// Object is the version, Before the one before it, where they are asked for.
	Object json.RawMessage `json:"object,omitempty"`
	Before json.RawMessage `json:"before,omitempty"`
}

// A Fold is a number of versions that differ in noise only; the newest of them
// is the change's own.
type Fold struct {
	Count  int            `json:"count"`
	Oldest Moment         `json:"oldest"`
	Noise  map[string]int `json:"noise"` // in how many of them, by its kind
}

// Versions are those of one object, the newest first:
// GET /watchkeeper/v1/history/versions/….
type Versions struct {
	Resource  string   `json:"resource"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Items     []Change `json:"items"`
	// Continue is the parameter that asks for what is older; it is left out when
	// there is nothing more.
	Continue string `json:"continue,omitempty"`
}

// An ObjectChange is a change with whose it is.
type ObjectChange struct {
	Resource  string `json:"resource"`
	Path      string `json:"path"` // of the object
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Change
}

// Changes are those of several resources, the newest first:
// GET /watchkeeper/v1/history/changes.
type Changes struct {
	From  time.Time      `json:"from,omitzero"`
	To    time.Time      `json:"to,omitzero"`
	Items []ObjectChange `json:"items"`
	// Folded is how many changes were left out as noise.
	Folded   int    `json:"folded"`
	Continue string `json:"continue,omitempty"`
}

// Whether an object came into a selection, or left it, by a change of its own.
const (
	Entered = "entered"
	Left    = "left"
)

// A Difference is what is different of one object at two moments.
type Difference struct {
	Type      string `json:"type"` // Added, Modified or Deleted
	Path      string `json:"path"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Recreated is set when it is another object of that name: its UID changed.
	Recreated bool `json:"recreated,omitempty"`
	// Selection is Entered or Left when the object is there at both moments, and
	// selected at one.
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

// Differences are those of two moments, in the order of a list:
// GET /watchkeeper/v1/history/diff/….
type Differences struct {
	Resource string       `json:"resource"`
	From     Moment       `json:"from"`
	To       Moment       `json:"to"`
	Items    []Difference `json:"items"`
	// Folded is how many objects differ in noise only, Unchanged how many do not
	// differ; both of what this page went through.
	Folded    int    `json:"folded"`
	Unchanged int    `json:"unchanged"`
	Continue  string `json:"continue,omitempty"`
}

// Counts are events per bin: GET /watchkeeper/v1/history/counts.
type Counts struct {
	From       time.Time        `json:"from"` // the begin of the first bin
	To         time.Time        `json:"to"`
	BinSeconds float64          `json:"binSeconds"`
	Bins       int              `json:"bins"`
	Resources  []ResourceCounts `json:"resources"`
}

// ResourceCounts are those of one resource; each list has one number for each
// bin.
type ResourceCounts struct {
	Resource string `json:"resource"`
	Path     string `json:"path"`
	Added    []int  `json:"added"`
	Modified []int  `json:"modified"`
	Deleted  []int  `json:"deleted"`
	// Spans are what is retained inside the range, Gaps those in it; the oldest
	// first.
	Spans []TimeSpan `json:"spans"`
	Gaps  []TimeSpan `json:"gaps"`
}

// A TimeSpan is from one time to another.
type TimeSpan struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}
