// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package findings describes what fails in a cluster at one moment, from the objects of that
// moment alone.
//
// A [State] is filled with objects, and [State.Find] applies the rules to it. Each rule is a
// function in its own file, and finds one kind of failure. A finding is about one subject:
// a workload with all of its Pods that fail alike, a Node, a claim. Rules do not guess: a
// finding repeats what objects say, in their status, conditions, and Events, in kubectl's
// words.
//
// The order of findings is that of their severity, then of the number of objects that they
// touch, then of the time since when they last, the latest first, and then of their subject.
// The same objects give the same findings, in whatever order they were added, except that
// Nodes and Events have to come before Pods (see [Order]).
//
// A State is used by one goroutine.
package findings

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// A Ref names an object.
type Ref struct {
	Resource string // deployments.apps; "" if it is not known
	Kind     string
	Key      kube.Key
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Resource, b.Resource))
}

// A Finding is something that fails.
type Finding struct {
	Rule     string
	Severity string // one of the api.Severity constants
	Subject  Ref
	// Title is one line without the subject: "3 Pods ImagePullBackOff".
	Title string
	// Messages are what objects say about it, the most frequent first.
	Messages []string
	// Since is since when, as far as the objects say; zero if they do not.
	Since time.Time
	// Others is how many of the objects fail only since OthersSince or later; see [Finding.Last].
	Others      int
	OthersSince time.Time
	// Objects are those that fail, in order. They are the subject or belong to it.
	Objects []Ref
	// Related are the objects whose changes may matter: the subject, its configuration,
	// Nodes, quota and autoscaler. They are not said to be causes.
	Related []Ref
	// Quota is set if changes of other workloads in the namespace may matter, because
	// they share a quota.
	Quota bool

	said  map[string]int
	times []time.Time // since when the objects fail
	// refine makes the title and the severity, once all objects are known.
	refine func(*Finding)
}

// A rule finds one kind of failure.
type rule struct {
	id   string
	find func(*State, *group)
}

// rules are all rules. docs/extensions.md lists them.
var rules = []rule{
	{"node", (*State).nodesFound},
	{"node-deleted", (*State).nodesDeleted},
	{"crash", (*State).crashes},
	{"image", (*State).images},
	{"start", (*State).starts},
	{"creating", (*State).creating},
	{"create", (*State).creations},
	{"endpoints", (*State).endpointsFound},
	{"apiservice", (*State).apiServices},
	{"claim", (*State).claimsFound},
	{"unscheduled", (*State).unscheduled},
	{"not-ready", (*State).notReady},
	{"pod-failed", (*State).failedPods},
	{"preempted", (*State).preempted},
	{"job", (*State).jobsFound},
	{"autoscaler", (*State).autoscalersFound},
	{"budget", (*State).budgetsFound},
	{"deletion", (*State).deletions},
	{"controller", (*State).controllers},
	{"vanished", (*State).vanished},
	{"rollout", (*State).rollouts}, // the last ones: they add to the titles of others
	{"missing", (*State).missing},
	{"short", (*State).shortOfPods},
}

// Rules returns the names of all rules.
func Rules() (ids []string) {
	for _, r := range rules {
		ids = append(ids, r.id)
	}
	return ids
}

// maxMessages bounds the different messages of a finding.
const maxMessages = 3

// Find returns what fails, the most important first.
func (s *State) Find() (all []*Finding) {
	for _, r := range rules {
		g := &group{rule: r.id, before: all, found: map[string]*Finding{}}
		r.find(s, g)
		for _, f := range g.list {
			if f.Since.After(s.At) { // by another clock
				f.Since = s.At.UTC()
			}
			slices.SortFunc(f.Objects, compareRefs)
			f.Objects = slices.Compact(f.Objects)
			f.Last(f.times)
			f.Messages = f.messages()
			if f.refine != nil {
				f.refine(f)
			}
			s.relate(f)
		}
		all = append(all, g.list...)
	}
	slices.SortStableFunc(all, Compare)
	return all
}

// ranks are the severities, the highest first.
var ranks = []string{api.SeverityCritical, api.SeverityWarning, api.SeverityInfo}

// Compare orders findings: the most important first.
func Compare(a, b *Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(ranks, a.Severity), slices.Index(ranks, b.Severity)),
		cmp.Compare(len(b.Objects), len(a.Objects)),
		b.Since.Compare(a.Since),
		compareRefs(a.Subject, b.Subject),
		strings.Compare(a.Rule+a.Title, b.Rule+b.Title),
	)
}

// messages returns what was said, the most frequent first.
func (f *Finding) messages() (all []string) {
	for text := range f.said {
		all = append(all, text)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(f.said[b], f.said[a]), strings.Compare(a, b))
	})
	return all[:min(len(all), maxMessages)]
}

// say adds what an object says; empty texts are left out.
func (f *Finding) say(texts ...string) {
	for _, text := range texts {
		if text = oneLine(text); text != "" {
			f.said[text]++
		}
	}
}

// from notes since when one of the objects fails: the first of them counts.
func (f *Finding) from(t time.Time) {
	if t.IsZero() {
		return
	}
	f.times = append(f.times, t.UTC())
	if f.Since.IsZero() || t.Before(f.Since) {
		f.Since = t.UTC()
	}
}

// maxApart is how much later than the one before an object may fail, to fail since the same time.
const maxApart = time.Minute

// Last sets Others, from since when each object fails; if that is not known of one, to none.
func (f *Finding) Last(times []time.Time) {
	f.Others, f.OthersSince = 0, time.Time{}
	if len(times) != len(f.Objects) {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	for i, t := range times {
		if i > 0 && t.Sub(times[i-1]) > maxApart {
			f.Others, f.OthersSince = len(times)-i, t
			return
		}
	}
}

// transition returns when a condition of an object has changed: not after its status was
// written, whatever the clock of the writer says.
func transition(o metav1.Object, t metav1.Time) time.Time {
	if written := change.Written(o.GetManagedFields(), "status", time.Time{}); !written.IsZero() && t.After(written) {
		return written
	}
	return t.Time
}

// A group collects the findings of a rule: one for each subject and key.
type group struct {
	rule   string
	before []*Finding // of other rules
	found  map[string]*Finding
	list   []*Finding
}

// has reports whether the rule has a finding of a subject.
func (g *group) has(subject Ref) bool {
	return slices.ContainsFunc(g.list, func(f *Finding) bool { return f.Subject == subject })
}

// of returns the finding of a subject and a key, which is new the first time.
func (g *group) of(subject Ref, key, severity string) *Finding {
	id := subject.Kind + "\x00" + string(subject.Key) + "\x00" + key
	f := g.found[id]
	if f == nil {
		f = &Finding{Rule: g.rule, Severity: severity, Subject: subject, said: map[string]int{}}
		g.found[id] = f
		g.list = append(g.list, f)
	}
	return f
}
