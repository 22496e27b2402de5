// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/edges"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// An entry is a line of the story, while it is written.
type entry struct {
	api.StoryEntry
	rv    uint64
	thing *thing // of an Event, the one that it is about; nil if that is not among the things
	about name   // what thing belongs to, or the Event is about
	state *state // after the change; nil for a deletion, and for Events

	before, after *scan.Object // of a change of counters only, to fold it with others
	counters      bool
	onlyStatus    bool
	event         *event // for Events
	episode       *episode
}

// compare orders entries: by time, then by resourceVersion.
func (e *entry) compare(other *entry) int {
	return cmp.Or(e.Time.Compare(other.Time), cmp.Compare(e.rv, other.rv), cmp.Compare(e.Path, other.Path), cmp.Compare(e.Type, other.Type))
}

// read adds an object's things and entries.
func (t *teller) read(o *Object) {
	for _, v := range o.Versions {
		if !v.NotBefore.IsZero() {
			t.edges.Add(v.Time, edges.Edge{NotBefore: v.NotBefore})
		}
	}
	if o.Resource.Name == "events" && (o.Resource.Group == "" || o.Resource.Group == "events.k8s.io") {
		t.readEvent(o)
		return
	}
	var th *thing
	begin := func(s *state) {
		if th == nil || th.uid != s.o.UID {
			th = &thing{resource: o.Resource, key: o.Key, uid: s.o.UID, kind: s.o.Kind}
			t.things = append(t.things, th)
			if th.uid != "" {
				t.byUID[th.uid] = th
			}
		}
		s.thing = th
		th.states = append(th.states, s)
	}
	before := o.Initial
	if before != nil {
		at, begun := t.From, api.StoryBegin
		if o.Since.After(at) {
			at, begun = o.Since, api.RecordBegin
		}
		t.edges.Add(at, edges.Edge{Before: begun})
		begin(&state{at: at, o: before, initial: true})
	}
	for _, v := range o.Versions {
		if v.Object == nil {
			continue
		}
		if v.Type == kube.Deleted {
			if th != nil {
				e := t.entry(o, v, api.Deleted, []string{"deleted"})
				e.thing, th.gone, th.last = th, v.Time, e
			}
			before, th = nil, nil
			continue
		}
		s := &state{at: v.Time, o: v.Object}
		if before != nil && before.UID != v.Object.UID {
			before = nil
		}
		begin(s)
		s.entry = t.entryOf(o, v, before)
		if s.entry != nil {
			s.entry.thing, s.entry.state = th, s
			text, ended := lastLog(s)
			if n := len(th.states); n > 1 {
				if _, before := lastLog(th.states[n-2]); before.Equal(ended) {
					text = "" // it was said
				}
			}
			s.entry.LastLog = text
		}
		before = v.Object
	}
}

// entryOf returns the entry of a version, nil if it differs in noise only.
func (t *teller) entryOf(o *Object, v Version, before *scan.Object) *entry {
	d, err := t.comparer.Between(before, v.Object)
	if err != nil {
		d = &change.Change{Summary: []string{"is not valid JSON"}}
	}
	if d.OnlyNoise {
		return nil
	}
	typ := api.Modified
	if before == nil {
		typ = api.Added
	}
	e := t.entry(o, v, typ, d.Summary)
	for _, m := range d.By {
		if m.Manager != "" {
			e.By = words.AppendOnce(e.By, m.Manager)
		}
	}
	e.onlyStatus = d.OnlyStatus
	if d.OnlyCounters || d.OnlyStatus && v.Object.Kind == "ResourceQuota" && before != nil {
		e.counters, e.before, e.after = true, before, v.Object
	}
	return e
}

// entry adds an entry for a version.
func (t *teller) entry(o *Object, v Version, typ string, what []string) *entry {
	e := &entry{rv: v.Object.RV, StoryEntry: api.StoryEntry{
		Time: v.Time.UTC(), NotBefore: v.NotBefore.UTC(), Inferred: v.Inferred, Type: typ, ResourceVersion: kube.FormatRV(v.Object.RV),
		Resource: o.Resource.GroupResource(), Path: o.Resource.ObjectPath(o.Key),
		Kind: v.Object.Kind, Namespace: o.Key.Namespace(), Name: o.Key.Name(), What: what,
	}}
	t.entries = append(t.entries, e)
	return e
}

// by returns the authors of an entry for a title, with a leading space; "" if they are not known.
func (e *entry) by() string {
	if e == nil || len(e.By) == 0 {
		return ""
	}
	return " by " + strings.Join(e.By, ", ")
}

// fold joins entries of one episode that are alike: changes of the same object's counters
// that follow each other, and Events that say the same about objects of one workload.
func (t *teller) fold(entries []*entry) (out []*entry) {
	last := map[*thing]*entry{}
	events := map[string]*entry{}
	said := map[string]*entry{}
	for _, e := range entries {
		switch {
		case e.event != nil:
			key := e.event.class(t)
			if first := events[key]; first != nil {
				first.join(e)
				continue
			}
			events[key] = e
		case e.thing == nil:
		default:
			if before := last[e.thing]; before != nil && before.counters && e.counters && (e.Kind != "ResourceQuota" || t.comparer.SameSpec(before.before, e.after)) {
				before.join(e)
				before.after = e.after
				continue
			}
			last[e.thing] = e
			// A container that crashes again and again changes in the same ways.
			if key := e.Path + "\x00" + strings.Join(e.What, "\x00"); !e.counters && e.Type == api.Modified {
				if first := said[key]; first != nil {
					first.join(e)
					continue
				}
				said[key] = e
			}
		}
		out = append(out, e)
	}
	for _, e := range out {
		if e.counters && e.Count > 1 {
			e.What = t.foldedCounters(e)
		}
		if e.event != nil {
			e.What = e.event.what()
		}
	}
	return out
}

// join adds another entry to the ones that an entry stands for.
func (e *entry) join(other *entry) {
	e.Count = max(e.Count, 1) + max(other.Count, 1)
	e.Until = edges.Later(e.Until, cmp.Or(other.Until, other.Time))
	e.By = words.AppendOnce(slices.Clip(e.By), other.By...)
	if e.event != nil && other.event != nil {
		e.event.messages = words.AppendOnce(e.event.messages, other.event.messages...)
		e.event.objects = words.AppendOnce(e.event.objects, other.event.objects...)
	}
}

// foldedCounters describes several changes of counters by the first and the last state.
func (t *teller) foldedCounters(e *entry) []string {
	d, err := t.comparer.Between(e.before, e.after)
	if err != nil || d.OnlyNoise {
		if e.Kind == "ResourceQuota" {
			return []string{"what is used changed, and returned"}
		}
		return []string{"numbers of replicas changed, and returned"}
	}
	return d.Summary
}

// with joins texts and the authors of an entry, for parentheses.
func (e *entry) with(texts ...string) string {
	if by := e.by(); by != "" {
		texts = append(slices.Clone(texts), by[1:])
	}
	return strings.Join(texts, ", ")
}
