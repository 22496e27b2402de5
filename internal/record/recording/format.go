// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A recording is one zstd stream of lines of JSON, so that
//
//	zstd -dc incident.wkr | jq -c .
//
// shows all of it. Each line is an object with one member, which is its type:
//
//	recording   first line: format, cluster and span
//	document    an API server's answer that is not about objects: discovery
//	stream      begins a resource, with the state at an rv, followed by its lines; in format 2
//	            again for each later epoch of it, whose versions do not continue those before
//	form        … an object without content, which shows the form of its objects
//	columns     … columnDefinitions of Tables, before the first object that uses them
//	object      … an object of that state
//	event       … a change, in the order of RVs
//	gap         … nothing was observed between two RVs; the events between them are
//	            inferred from the difference
//	step        … the clock of the recorder was set back at an RV
//	head        … end of the resource: it is complete up to an RV
//	end         last line: the number of lines before it, and the SHA-256 of them
//	            including their newlines
//
// The JSON of objects is the API server's, byte for byte, except for
// pseudonyms. A reader ignores members that it does not know. A change that
// readers must know about raises the format version.

// formatVersion is the newest format that this code reads. It writes 1, and formatOfEpochs if a
// resource has several epochs.
const formatVersion, formatOfEpochs = 2, 2

const (
	// maxLine limits the length of a line. The API server accepts requests of up to
	// 3 MiB, and etcd objects of up to 1.5 MiB; the discovery of a thousand resources
	// has less than 1 MiB.
	maxLine = 3 << 20
	// maxKey limits the length of an object's namespace and name. The store keeps
	// some of them in memory. Nearly all API servers' limit is 253 bytes for each.
	maxKey = 8 << 10
	// windowSize is how far back the compression finds repetitions. Versions of
	// one object are far apart, with versions of others between them.
	windowSize = 8 << 20
)

var (
	// ErrNotRecording: the file is not a recording.
	ErrNotRecording = errors.New("not a recording")
	// ErrNewerFormat: a later version of the program wrote the recording.
	ErrNewerFormat = errors.New("the recording was made by a newer version: use that version")
	// ErrTooLarge: the unpacked recording exceeds the limit.
	ErrTooLarge = errors.New("the recording is too large")
	// ErrDamaged: the recording was changed after it was written, or is incomplete.
	ErrDamaged = errors.New("the recording is damaged")
)

// A Header describes a recording.
type Header struct {
	Format  int       `json:"format"`
	Program string    `json:"program,omitempty"` // program that wrote it
	Cluster string    `json:"cluster,omitempty"` // UID of namespace kube-system
	Made    time.Time `json:"made"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Pseudonyms is set if names of objects were replaced.
	Pseudonyms bool `json:"pseudonyms,omitempty"`
	// Scope is what was selected; nil if that was everything, or is not known: programs
	// before it wrote none, and ignore it.
	Scope *Scope `json:"scope,omitempty"`
	// Exact is set if the head of a resource is until when it is known. Programs before it wrote
	// its last change, or when the API server last said that there was none.
	Exact bool `json:"exact,omitempty"`
	// Outages are the times in which the API server did not answer, which are why gaps are.
	// Programs before them wrote none, and ignore them.
	Outages []history.Outage `json:"outages,omitempty"`
}

// Slack is how much earlier than the others the record of a resource may end that was observed
// to the end of the recording: the API server says about once a minute that nothing has changed.
func (h *Header) Slack() time.Duration {
	if h.Exact {
		return time.Second
	}
	return 2 * time.Minute
}

// A Document is an API server's answer to a GET.
type Document struct {
	Path string          `json:"path"`
	Type string          `json:"type"` // Content-Type, and the Accept that it answers
	Body json.RawMessage `json:"body"`
}

// A line has exactly one of these members.
type line struct {
	Recording *Header      `json:"recording,omitempty"`
	Document  *Document    `json:"document,omitempty"`
	Stream    *streamLine  `json:"stream,omitempty"`
	Form      *objectLine  `json:"form,omitempty"`
	Columns   *columnsLine `json:"columns,omitempty"`
	Object    *objectLine  `json:"object,omitempty"`
	Event     *eventLine   `json:"event,omitempty"`
	Gap       *gapLine     `json:"gap,omitempty"`
	Step      *stepLine    `json:"step,omitempty"`
	Head      *momentLine  `json:"head,omitempty"`
	End       *endLine     `json:"end,omitempty"`
}

// members returns how many members are set.
func (l *line) members() (n int) {
	for _, set := range []bool{
		l.Recording != nil, l.Document != nil, l.Stream != nil, l.Form != nil, l.Columns != nil, l.Object != nil,
		l.Event != nil, l.Gap != nil, l.Step != nil, l.Head != nil, l.End != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

// times returns the times of the line.
func (l *line) times() []time.Time {
	switch {
	case l.Recording != nil:
		all := []time.Time{l.Recording.From, l.Recording.To}
		for _, o := range l.Recording.Outages {
			all = append(all, o.Since, o.Until)
		}
		return all
	case l.Stream != nil:
		return []time.Time{l.Stream.At}
	case l.Event != nil:
		return []time.Time{l.Event.At}
	case l.Gap != nil:
		return []time.Time{l.Gap.From.At, l.Gap.To.At}
	case l.Step != nil:
		return []time.Time{l.Step.From, l.Step.To}
	case l.Head != nil:
		return []time.Time{l.Head.At}
	}
	return nil
}

type momentLine struct {
	RV uint64    `json:"rv"`
	At time.Time `json:"at"`
}

type gapLine struct {
	From momentLine `json:"from"`
	To   momentLine `json:"to"`
}

type stepLine struct {
	RV   uint64    `json:"rv"`
	From time.Time `json:"from"` // shown by the clock
	To   time.Time `json:"to"`   // shown then
}

type streamLine struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	ListKind string `json:"listKind"`
	momentLine
}

func (s *streamLine) resource() kube.Resource {
	return kube.Resource{Group: s.Group, Version: s.Version, Name: s.Resource}
}

type columnsLine struct {
	Number      int             `json:"number"`
	Definitions json.RawMessage `json:"definitions"`
}

type objectLine struct {
	Columns int             `json:"columns,omitempty"` // id of the columns of Row, 0 for none
	Row     json.RawMessage `json:"row,omitempty"`     // an object with the members of scan.Object.Row
	JSON    json.RawMessage `json:"json"`
}

type eventLine struct {
	Type     kube.EventType `json:"type"`
	At       time.Time      `json:"at"`
	Inferred bool           `json:"inferred,omitempty"`
	objectLine
}

type endLine struct {
	Lines  int    `json:"lines"`
	SHA256 string `json:"sha256"`
}
