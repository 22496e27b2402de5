// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

const (
	// maxConfig is how long before a failure changes of configuration are mentioned with it.
	maxConfig = 10 * time.Minute
	// maxTogether is the pause after which another change of an object is another episode.
	maxTogether = 5 * time.Second
	// maxNotes limits the changes that are mentioned before an episode, and in it.
	maxNotes = 3
)

// Notes are changes that are mentioned with an episode, because its objects use, or are limited
// by, what was changed. That they are its cause is not said: no object says so.
type notes struct {
	t              *teller
	first          *state // with which the episode begins; nil if that is no state
	before, during []noted
}

// A noted change was made to a thing.
type noted struct {
	entry *entry
	text  string
	other bool // it belongs to its own episode
}

// add adds how a thing was changed shortly before a time, and from then until another. An
// explanation follows the name of the thing.
func (n *notes) add(of string, th *thing, from, to time.Time, explanation string) {
	described := false
	for _, e := range slices.Backward(th.entries()) {
		before := !n.later(e, from)
		if e.onlyStatus || e.counters || !within(e.Time, from.Add(-maxConfig), to) || before && described && e.Type == api.Added {
			continue
		}
		n.addOne(of, e, from, explanation, false)
		if before { // with the newest change, which comes first; that it was new says less
			described, explanation = true, ""
		}
	}
}

// later reports whether a change was made after the begin of the episode.
func (n *notes) later(e *entry, from time.Time) bool {
	if n.first != nil && e.state != nil {
		return n.t.order(e.state, n.first) > 0
	}
	return e.Time.After(from)
}

// addOne adds a change, and says how long before or after a time it was.
func (n *notes) addOne(of string, e *entry, from time.Time, explanation string, other bool) {
	verb, texts := "was changed", []string{change.Brief(strings.Join(e.What, ", "))}
	switch e.Type {
	case api.Added:
		verb, texts = "was created", nil
	case api.Deleted:
		verb, texts = "was deleted", nil
	}
	if details := e.with(texts...); details != "" {
		verb += " (" + details + ")"
	}
	if n.later(e, from) {
		n.during = append(n.during, noted{e, fmt.Sprintf("%s later %s %s", n.t.took(from, e.Time), of, verb), other})
		return
	}
	if explanation != "" {
		of += ", " + explanation + ","
	}
	when := n.t.took(e.Time, from)
	if earliest, _, ok := n.t.edges.Bounds(e.Time); ok && from.Sub(earliest) < 2*time.Second {
		when = "right"
	}
	n.before = append(n.before, noted{e, when + " after " + of + " " + verb, other})
}

// tell mentions the changes in an episode: what came before begins its title, what came later
// follows what its title says until now.
func (n *notes) tell(ep *episode) {
	ep.before = n.tellBefore(ep)
	n.tellDuring(ep)
}

func sorted(all []noted) []noted {
	return slices.SortedStableFunc(slices.Values(all), func(a, b noted) int { return a.entry.compare(b.entry) })
}

// tellBefore returns what came before. What belongs to the time of an episode is a part of it.
func (n *notes) tellBefore(ep *episode) string {
	before := sorted(n.before)
	if len(before) > maxNotes {
		before = before[len(before)-maxNotes:] // the newest
	}
	var texts []string
	for _, one := range slices.Backward(before) {
		texts = append(texts, one.text)
		if ep.From.Sub(one.entry.Time) <= maxTogether && !one.other {
			ep.claims = append(ep.claims, one.entry)
		}
	}
	return strings.Join(texts, " and ")
}

func (n *notes) tellDuring(ep *episode) {
	during := sorted(n.during)
	for i, one := range during {
		if !one.other {
			ep.claims = append(ep.claims, one.entry)
		}
		switch {
		case i < maxNotes:
			ep.Title += "; " + one.text
		case i == maxNotes:
			ep.Title += "; " + words.Count(len(during)-maxNotes, "further change")
		}
	}
}

// changes notes changes of the ConfigMaps and Secrets that failed Pods use: those that fail for an image, to pull it.
func (t *teller) changes(g *group) notes {
	n := notes{t: t, first: g.first}
	for _, th := range t.ofKind("ConfigMap", "Secret") {
		uses := slices.ContainsFunc(g.all, func(f *failure) bool {
			spec := f.pod.final().asPod().Spec
			if change.NoImage(f.fault.Reason) {
				spec = corev1.PodSpec{ImagePullSecrets: spec.ImagePullSecrets}
			}
			return f.pod.key.Namespace() == th.key.Namespace() && slices.Contains(change.Uses(&spec), change.Used{Kind: th.kind, Name: th.key.Name()})
		})
		if uses {
			n.add(t.called(th), th, g.from, g.to, "which the failed Pods use")
		}
	}
	return n
}

// quotaChanges notes changes of the ResourceQuotas that a message names.
func (t *teller) quotaChanges(message string, from, to time.Time) notes {
	n := notes{t: t}
	for _, th := range t.ofKind("ResourceQuota") {
		if !strings.Contains(message, "exceeded quota: "+th.key.Name()+",") {
			continue
		}
		n.add(t.called(th), th, from, to, "")
		for _, user := range t.ofKind("Deployment", "StatefulSet") {
			for _, s := range t.steps(user) {
				before, after := th.at(s.state.at), th.at(s.state.at.Add(maxTogether))
				grew := before != nil && after != nil && after.look().UsesMore(before.look())
				if s.to > s.from && s.state.entry != nil && user.key.Namespace() == th.key.Namespace() && within(s.state.at, from.Add(-maxConfig), from) && grew {
					n.addOne(t.called(user), s.state.entry, from, "", true)
				}
			}
		}
	}
	return n
}

// called names a thing: with its namespace, if that is not the one of the story.
func (t *teller) called(th *thing) string { return t.calledName(th.named()) }

func (t *teller) calledName(n name) string {
	if own := t.Key.Namespace(); n.namespace != "" && own != "" && n.namespace != own {
		return n.kind + " " + n.namespace + "/" + n.name
	}
	return n.String()
}
