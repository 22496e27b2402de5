// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

const (
	// maxConfig is how long before a failure changes of configuration are mentioned with it.
	maxConfig = 10 * time.Minute
	// maxNotes limits the changes that are mentioned before an episode, and in it.
	maxNotes = 3
)

// Notes are changes that are mentioned with an episode, because its objects use, or are limited
// by, what was changed. That they are its cause is not said: no object says so.
type notes struct {
	before, during []noted
}

// A noted change was made to a thing.
type noted struct {
	entry *entry
	text  string
}

// add adds how a thing was changed shortly before a time, and from then until another. An
// explanation follows the name of the thing.
func (n *notes) add(th *thing, from, to time.Time, explanation string) {
	all := make([]*entry, 0, len(th.states)+1)
	for _, s := range th.states {
		all = append(all, claim(s)...)
	}
	if th.last != nil {
		all = append(all, th.last)
	}
	if explanation = " " + explanation; explanation != " " {
		explanation = ", " + explanation[1:] + ", "
	}
	of := th.kind + " " + th.key.Name()
	for _, e := range all {
		if e.onlyStatus || e.counters || !within(e.Time, from.Add(-maxConfig), to) {
			continue
		}
		verb := "was changed"
		texts := []string{brief(strings.Join(e.What, ", "))}
		switch e.Type {
		case api.Added:
			verb, texts = "was created", nil
		case api.Deleted:
			verb, texts = "was deleted", nil
		}
		details := e.with(texts...)
		if details != "" {
			details = " (" + details + ")"
		}
		if e.Time.After(from) {
			n.during = append(n.during, noted{e, fmt.Sprintf("%s later %s %s%s", took(from, e.Time), of, verb, details)})
			continue
		}
		n.before = append(n.before, noted{e, after(e.Time, from) + of + explanation + verb + details})
	}
}

// after says how long after a time another is.
func after(first, then time.Time) string {
	if then.Sub(first) < 2*time.Second {
		return "right after "
	}
	return took(first, then) + " after "
}

// tell mentions the changes in an episode: what came before begins its title, what came later
// follows what its title says until now. Those that belong to its time are a part of it.
func (n *notes) tell(ep *episode) {
	sorted := func(all []noted) []noted {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b noted) int { return a.entry.compare(b.entry) })
		return all
	}
	before, during := sorted(n.before), sorted(n.during)
	if len(before) > maxNotes {
		before = before[len(before)-maxNotes:] // the newest
	}
	var texts []string
	for _, one := range slices.Backward(before) {
		texts = append(texts, one.text)
		if ep.From.Sub(one.entry.Time) <= maxTogether {
			ep.claims = append(ep.claims, one.entry)
		}
	}
	for _, e := range ep.claims {
		if e.Time.Before(ep.From) && slices.ContainsFunc(before, func(one noted) bool { return one.entry == e }) {
			ep.From = e.Time
		}
	}
	ep.before = strings.Join(texts, " and ")
	for i, one := range during {
		ep.claims = append(ep.claims, one.entry)
		switch {
		case i < maxNotes:
			ep.Title += "; " + one.text
		case i == maxNotes:
			ep.Title += "; " + plural(len(during)-maxNotes, "further change")
		}
	}
}

// changes notes changes of the ConfigMaps and Secrets that failed Pods use.
func (t *teller) changes(g *group) (n notes) {
	for _, th := range t.ofKind("ConfigMap", "Secret") {
		uses := slices.ContainsFunc(g.all, func(f *failure) bool {
			return f.pod.key.Namespace() == th.key.Namespace() && slices.Contains(Uses(f.pod.final().asPod()), Used{th.kind, th.key.Name()})
		})
		if uses {
			n.add(th, g.from, g.to, "which the failed Pods use")
		}
	}
	return n
}

// quotaChanges notes changes of the ResourceQuotas that a message names.
func (t *teller) quotaChanges(message string, from, to time.Time) (n notes) {
	for _, th := range t.ofKind("ResourceQuota") {
		if strings.Contains(message, "exceeded quota: "+th.key.Name()+",") {
			n.add(th, from, to, "")
		}
	}
	return n
}
