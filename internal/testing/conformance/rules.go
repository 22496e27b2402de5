// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// A checkFunc returns nil when both endpoints follow a rule in the same way.
type checkFunc func(context.Context, *Env) error

// A Rule is one behaviour of the API.
type Rule struct {
	// Section is that of docs/kubernetes-watch.md, such as "§1".
	Section string
	Name    string
	// Doc describes the rule.
	Doc string
	// Source is the part of the documentation, or the KEP, that it comes from.
	Source string
	// Differs is the number of the line in docs/semantics.md, "Differences
	// from the API server", that explains why the endpoints differ; 0 when
	// they do not.
	Differs int

	check checkFunc
	file  string // from which it was read
	slow  bool   // it waits for half a minute or more, needs no fixture, and is started first
	inGo  bool
}

// A Section is one of docs/kubernetes-watch.md, with the files of its rules.
type Section struct {
	Number, Title string
	Files         []string
}

// Sections are in the order of the document.
var Sections = []Section{
	{"§1", "URLs and verbs", []string{"urls.txtar"}},
	{"§2", "query parameters", []string{"parameters.txtar", "versions.txtar", "lists.txtar", "watches.txtar"}},
	{"§3", "expired and future versions", []string{"expired.txtar"}},
	{"§4", "events", []string{"events.txtar", "bookmarks.txtar"}},
	{"§5", "negotiation and wire format", []string{"negotiation.txtar", "views.txtar", "wire.txtar", "websockets.txtar"}},
	{"§6", "timeouts", []string{"timeouts.txtar"}},
	{"§7", "clients", []string{"clients.txtar"}},
	{"§8", "Status objects", []string{"statuses.txtar"}},
	{"§9", "field selectors", []string{"fields.txtar"}},
}

//go:embed rules
var embedded embed.FS

// Rules returns all rules, in the order of the document. It panics if a rule
// file is malformed: the files are part of the program.
func Rules() []Rule {
	files, err := fs.Sub(embedded, "rules")
	if err != nil {
		panic(err)
	}
	all, err := readRules(files, rulesInGo)
	if err != nil {
		panic(err)
	}
	return all
}

// readRules reads the rules of all sections. Each rule in Go has an entry in a
// file, too.
func readRules(files fs.FS, inGo map[string]checkFunc) ([]Rule, error) {
	var all []Rule
	missing, seen := maps.Clone(inGo), map[string]bool{}
	for _, s := range Sections {
		rules, err := loadRules(files, s, inGo)
		if err != nil {
			return nil, err
		}
		for _, r := range rules {
			if seen[r.Name] {
				return nil, fmt.Errorf("there are two rules %s", r.Name)
			}
			seen[r.Name] = true
			delete(missing, r.Name)
		}
		all = append(all, rules...)
	}
	for name := range missing {
		return nil, fmt.Errorf("rule %s is written in Go and has no entry in a file", name)
	}
	return all, nil
}

// rulesInGo are the rules that compute something from answers, or need more than
// one watch at a time.
var rulesInGo = map[string]checkFunc{
	"ListConsistent":             listConsistent,
	"ListConsistentPages":        listConsistentPages,
	"ListLegacyExact":            listLegacyExact,
	"ListExact":                  listExact,
	"ListOfThePast":              listOfThePast,
	"GetConsistent":              getConsistent,
	"TokensOfEitherSide":         tokensOfEitherSide,
	"WatchFrom":                  watchFrom,
	"VersionsIncrease":           versionsIncrease,
	"OrderAcrossNamespaces":      orderAcrossNamespaces,
	"ManyUpdates":                manyUpdates,
	"DeleteCollection":           deleteCollection,
	"DefinitionDeleted":          definitionDeleted,
	"EndBookmarkOnce":            endBookmarkOnce,
	"BookmarkBeforeTheEnd":       bookmarkBeforeTheEnd,
	"BookmarkEveryMinute":        bookmarkEveryMinute,
	"BookmarkAcrossEndpoints":    bookmarkAcrossEndpoints,
	"EveryKindInJSON":            everyKindListed(compare.JSON, compare.JSON),
	"EveryKindInProtobuf":        everyKindInProtobuf,
	"EveryKindInYAML":            everyKindListed(compare.YAML, compare.YAML),
	"EveryKindAsTable":           everyKindListed(tableV1, tableV1),
	"EveryKindAsMetadata":        everyKindAsMetadata,
	"EveryKindWatchedInJSON":     everyKindWatched(compare.JSON, compare.JSON),
	"EveryKindWatchedInProtobuf": everyKindWatched(compare.Protobuf, compare.ProtobufWatch),
	"EveryKindWatchedAsTable":    everyKindWatched(tableV1, compare.JSON),
	"EveryKindWatchedAsMetadata": everyKindWatched(metadataProtobuf, compare.ProtobufWatch),
	"FieldsOfEveryKind":          fieldsOfEveryKind,
	"ProtobufEnvelope":           protobufEnvelope,
	"ProtobufList":               protobufList,
	"ProtobufFrames":             protobufFrames,
	"WatchFraming":               watchFraming,
	"WatchHeadersAtOnce":         watchHeadersAtOnce,
	"FrameByFrame":               frameByFrame,
	"WebSocketInProtobuf":        webSocketInProtobuf,
	"TimeoutSecondsIsExact":      timeoutSecondsIsExact,
	"KubectlGetWatch":            kubectlGetWatch,
}
