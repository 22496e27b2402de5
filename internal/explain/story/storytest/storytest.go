// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package storytest compares stories of the same history.
package storytest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// Added returns the episodes of the story of a part of a time that the story of all of it does
// not have.
func Added(whole, part api.Story) (all []api.Episode) {
	for _, e := range part.Episodes {
		if !slices.ContainsFunc(whole.Episodes, func(w api.Episode) bool { return isPart(whole, e, w) }) {
			all = append(all, e)
		}
	}
	return all
}

// isPart reports whether an episode of a part of a time may be one of the whole story. Pods that
// fail during a rollout, or cannot be created, may be seen without it, and that too few are ready
// without what led to it.
func isPart(s api.Story, e, whole api.Episode) bool {
	short := e.Kind == api.EpisodeFailure && len(e.Causes) > 0 && e.Causes[0].Name == s.Name && whole.Severity != api.EpisodeInfo
	lead, trail := time.Duration(0), time.Duration(0)
	inRollout := (e.Kind == api.EpisodeFailure || e.Kind == api.EpisodeCreation) && whole.Kind == api.EpisodeRollout && whole.Severity == api.EpisodeFailed
	if e.Kind == api.EpisodeOther || short || inRollout { // what follows an episode belongs to it
		trail = 30 * time.Second
	}
	if e.Severity == api.EpisodeInfo && (e.Kind == api.EpisodeOther || e.Kind == api.EpisodeConfig) { // and what it came of
		lead = time.Minute
	}
	if e.From.After(whole.To.Add(trail)) || whole.From.Add(-lead).After(e.To) {
		return false
	}
	if e.Kind != whole.Kind && (e.Kind == api.EpisodeRollout || e.Kind == api.EpisodeOther && e.Severity == api.EpisodeFailed) {
		return false
	}
	// There is one rollout at a time, and of the Pods that fail in it a few are named.
	if short || inRollout || e.Kind == api.EpisodeRollout {
		return true
	}
	key := func(entry api.StoryEntry) string { return fmt.Sprint(entry.Path, entry.Kind, entry.Name) }
	var about []string
	for _, entry := range whole.Entries {
		about = append(about, key(entry), entry.Kind+entry.Name)
	}
	for _, c := range whole.Causes {
		about = append(about, c.Kind+c.Name)
	}
	return slices.ContainsFunc(e.Entries, func(entry api.StoryEntry) bool {
		return slices.Contains(about, key(entry)) || entry.Type == api.EventType && slices.Contains(about, entry.Kind+entry.Name)
	}) || slices.ContainsFunc(e.Causes, func(c api.Cause) bool { return slices.Contains(about, c.Kind+c.Name) })
}

// Titles returns what a story says, a line for each episode.
func Titles(s api.Story) string {
	var b strings.Builder
	for _, e := range s.Episodes {
		b.WriteString("\t" + Title(e) + "\n")
	}
	return b.String()
}

// Title returns what an episode says, with its times.
func Title(e api.Episode) string {
	times := e.From.Format("15:04:05.000") + "–" + e.To.Format("15:04:05.000")
	if e.BegunBefore != "" {
		times = "before " + e.BegunBefore + " " + times
	}
	return fmt.Sprintf("%s %s %s %s", times, e.Kind, e.Severity, e.Title)
}
