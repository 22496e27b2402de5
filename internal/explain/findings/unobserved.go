// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// Unobserved is the name of the rule of [Unknowns] and [NoAnswer], which is about the record
// and not about objects.
const Unobserved = "unobserved"

// An Unknown is a resource whose objects at the moment are not known, or not for certain.
type Unknown struct {
	Resource string
	Reason   string // why
	// Since and Until are the nearest moments at which they are known, zero if there is none.
	Since, Until time.Time
	// LastKnown is set if the findings have the state of Since.
	LastKnown bool
	// Before is set if the record of the resource begins after the moment, so that nobody
	// expects it to be known.
	Before bool
}

// Unknowns finds resources that are not observed: they may have failed since. There is one
// finding for each reason.
func Unknowns(all []Unknown) (found []*Finding) {
	byReason := map[string][]Unknown{}
	for _, u := range all {
		byReason[u.Reason] = append(byReason[u.Reason], u)
	}
	for reason, some := range byReason {
		f := &Finding{Rule: Unobserved, Severity: api.SeverityWarning, Subject: Ref{Kind: "Recording", Key: "watchkeeper"}}
		if some[0].Before {
			f.Severity = api.SeverityInfo
		}
		var names []string
		var last, until time.Time
		for _, u := range some {
			names = append(names, u.Resource)
			f.from(u.Since)
			if u.Since.After(last) {
				last = u.Since
			}
			if u.Until.After(until) {
				until = u.Until
			}
		}
		f.Messages = []string{oneLine(reason) + knownAt(f.Since, until)}
		if some[0].LastKnown {
			f.Messages = []string{oneLine(reason) + lastKnown(f.Since, last)}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		f.Title = fmt.Sprintf("%s not observed: %s", words.Count(len(names), "resource"), strings.Join(names, ", "))
		for _, name := range names {
			f.Objects = append(f.Objects, Ref{Kind: name})
		}
		found = append(found, f)
	}
	slices.SortFunc(found, Compare)
	return found
}

// knownAt says at which moments all of some resources are known. Whole seconds can be typed.
func knownAt(since, until time.Time) string {
	switch text := until.Add(time.Second - 1).UTC().Format(time.RFC3339); {
	case until.IsZero():
		return ""
	case since.IsZero():
		return ": all is known from " + text
	default:
		return ": the nearest moments at which all is known are " + since.UTC().Format(time.RFC3339) + " and " + text
	}
}

// lastKnown says of when the state of some resources is.
func lastKnown(first, last time.Time) string {
	from, to := first.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)
	if from != to {
		from += " to " + to
	}
	return ": the last known state is shown, that of " + from
}

// NoAnswer is the finding that the API server has a fault since a time, such as "does not answer":
// the state of a later moment is the last known one. The objects are the resources that it is of.
func NoAnswer(fault string, answers bool, cause string, since time.Time, resources []string) *Finding {
	f := &Finding{Rule: Unobserved, Severity: api.SeverityCritical, Subject: Ref{Kind: "APIServer", Key: "kubernetes"}, Messages: []string{oneLine(cause)}}
	f.Title = fault + ": the state is the last known one, and what fails since then is not known"
	if answers {
		f.Title = fault + ": later changes may be missing"
	}
	f.from(since)
	for _, name := range resources {
		f.Objects = append(f.Objects, Ref{Kind: name})
	}
	return f
}
