// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A recording is one zstd stream of lines of JSON, so that
//
//	zstd -dc incident.wkr | jq -c .
//
// shows all there is. Each line is an object of one member, which says what it
// is:
//
//	recording   first: the format, whose it is, what it spans
//	document    an answer of the API server that is not about objects: discovery
//	stream      a resource begins, with the state at an rv …
//	form        … what its objects look like, without any content
//	columns     … columnDefinitions of Tables, before an object is under them
//	object      … an object of that state
//	event       … a change, in the order of rvs
//	gap         … nothing was observed between two rvs; the events between them,
//	            which are inferred, are the difference
//	head        … the resource ends: all up to an rv is there
//	end         last: the number of the lines before it, and the SHA-256 of them
//	            with their newlines
//
// The JSON of objects is that of the API server to the byte (but for names, if
// they are pseudonyms). Members that a reader does not know are to be ignored;
// what it must know raises the format.

// formatVersion is what this code writes, and the newest it reads.
const formatVersion = 1

const (
	// longestLine is the longest line that is read: an object is some MiB at
	// the most, discovery of a large cluster too.
	longestLine = 64 << 20
	// windowSize is how far back the compression looks for what is alike:
	// versions of one object are apart by those of others.
	windowSize = 8 << 20
)

var (
	// ErrNotRecording marks a file that is none.
	ErrNotRecording = errors.New("not a recording")
	// ErrNewerFormat marks a recording that a later version of the program wrote.
	ErrNewerFormat = errors.New("the recording was made by a newer version")
	// ErrTooLarge marks a recording that is larger than it may be, unpacked.
	ErrTooLarge = errors.New("the recording is too large")
	// ErrDamaged marks a recording that is not as it was written, or not whole.
	ErrDamaged = errors.New("the recording is damaged")
)

// A Header says what a recording is.
type Header struct {
	Format  int       `json:"format"`
	Program string    `json:"program,omitempty"` // that wrote it
	Cluster string    `json:"cluster,omitempty"` // UID of its namespace kube-system
	Made    time.Time `json:"made"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Pseudonyms tells that the names of objects are not their own.
	Pseudonyms bool `json:"pseudonyms,omitempty"`
}

// A Document is an answer of the API server to a GET of a path.
type Document struct {
	Path string          `json:"path"`
	Type string          `json:"type"` // its Content-Type, and the Accept it answers
	Body json.RawMessage `json:"body"`
}

// line is a line: one of its members is there.
type line struct {
	Recording *Header      `json:"recording,omitempty"`
	Document  *Document    `json:"document,omitempty"`
	Stream    *streamLine  `json:"stream,omitempty"`
	Form      *objectLine  `json:"form,omitempty"`
	Columns   *columnsLine `json:"columns,omitempty"`
	Object    *objectLine  `json:"object,omitempty"`
	Event     *eventLine   `json:"event,omitempty"`
	Gap       *gapLine     `json:"gap,omitempty"`
	Head      *momentLine  `json:"head,omitempty"`
	End       *endLine     `json:"end,omitempty"`
}

type momentLine struct {
	RV uint64    `json:"rv"`
	At time.Time `json:"at"`
}

type gapLine struct {
	From momentLine `json:"from"`
	To   momentLine `json:"to"`
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
	Columns int             `json:"columns,omitempty"` // the number of those that Row is under, 0 for none
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
