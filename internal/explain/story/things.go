// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
)

// A thing is one object, from its creation or the begin of the span to its deletion. Another
// object of the same name is another thing.
type thing struct {
	resource kube.Resource
	key      kube.Key
	uid      string
	kind     string
	states   []*state
	// gone is when it was deleted; zero if it was not.
	gone time.Time
	last *entry // of its deletion, if gone
}

type condition = workload.Condition

// A state is what a thing was from a time on.
type state struct {
	thing   *thing
	at      time.Time
	o       *scan.Object
	initial bool   // at the begin of the span
	entry   *entry // nil if it differs from the state before in noise only, or is initial

	light *workload.Object
	pod   *corev1.Pod
}

// look returns the members of a state that rules read. Invalid members are empty.
func (s *state) look() *workload.Object {
	if s.light == nil {
		s.light = workload.Read(s.o)
	}
	return s.light
}

// asPod returns a state of a Pod.
func (s *state) asPod() *corev1.Pod {
	if s.pod == nil {
		s.pod = &corev1.Pod{}
		_ = json.Unmarshal([]byte(s.o.JSON), s.pod)
		change.Align(s.pod, s.at)
	}
	return s.pod
}

// condition returns a condition of a state.
func (s *state) condition(typ string) (condition, bool) { return s.look().Condition(typ) }

// cause returns what a field of a state says.
func (s *state) cause(field, text string) api.Cause {
	th := s.thing
	return api.Cause{
		Kind: th.kind, Namespace: th.key.Namespace(), Name: th.key.Name(), Field: field, Text: text,
		Path: th.resource.ObjectPath(th.key), ResourceVersion: kube.FormatRV(s.o.RV),
	}
}

// because returns what a condition of a state says.
func (s *state) because(c condition) api.Cause {
	return s.cause("status.conditions["+c.Type+"]", cmp.Or(c.Says(), c.Status))
}

// terminating reports whether deletion was requested.
func (s *state) terminating() bool { return s.look().Metadata.DeletionTimestamp != nil }

// begin returns the time from which a thing is known, and whether it was created then.
func (th *thing) begin() (at time.Time, created bool) {
	return th.states[0].at, !th.states[0].initial
}

// entries returns the entries about a thing.
func (th *thing) entries() (all []*entry) {
	for _, s := range th.states {
		all = append(all, claim(s)...)
	}
	if th.last != nil {
		all = append(all, th.last)
	}
	return all
}

// existed reports whether a thing may have existed at some time of a span.
func (th *thing) existed(from, to time.Time) bool {
	begin := th.states[0].at
	if e := th.states[0].entry; e != nil && !e.NotBefore.IsZero() {
		begin = e.NotBefore
	}
	return !begin.After(to) && (th.gone.IsZero() || !th.gone.Before(from))
}

// at returns the state at a time: the last one that began until then; nil if there was none.
func (th *thing) at(when time.Time) *state {
	if !th.gone.IsZero() && !when.Before(th.gone) {
		return nil
	}
	for _, s := range slices.Backward(th.states) {
		if !s.at.After(when) {
			return s
		}
	}
	return nil
}

// before returns the state before another one.
func (th *thing) before(s *state) *state { return th.states[slices.Index(th.states, s)-1] }

// final returns the last state.
func (th *thing) final() *state { return th.states[len(th.states)-1] }

// controller returns the ownerReference of a thing's controller, nil if it has none.
func (th *thing) controller() *metav1.OwnerReference { return th.final().look().Controller() }

// controlledBy reports whether an object with a UID controls a thing.
func (th *thing) controlledBy(uid string) bool {
	c := th.controller()
	return c != nil && string(c.UID) == uid
}

// A name names an object. Another object that has the same one later has another UID.
type name struct{ kind, namespace, name, uid string }

func (n name) String() string { return n.kind + " " + n.name }

func (th *thing) named() name { return name{th.kind, th.key.Namespace(), th.key.Name(), th.uid} }

// workload returns what a thing belongs to: for a Pod, its controller, and for a ReplicaSet
// or a Job, the Deployment or CronJob that controls it; otherwise the thing itself.
func (t *teller) workload(th *thing) name {
	at := th.named()
	for range 2 {
		if th == nil || at.kind != "Pod" && at.kind != "ReplicaSet" && at.kind != "Job" {
			break
		}
		c := th.controller()
		if c == nil {
			break
		}
		at = name{c.Kind, th.key.Namespace(), c.Name, string(c.UID)}
		th = t.byUID[string(c.UID)]
	}
	return at
}

// until returns the end of a state: the time of the next one, of the deletion, or the end of the span.
func (t *teller) until(th *thing, i int) time.Time {
	switch {
	case i+1 < len(th.states):
		return th.states[i+1].at
	case !th.gone.IsZero():
		return th.gone
	}
	return t.To
}

// ofKind yields the things of a kind.
func (t *teller) ofKind(kinds ...string) (all []*thing) {
	for _, th := range t.things {
		if slices.Contains(kinds, th.kind) {
			all = append(all, th)
		}
	}
	return all
}

// order compares when two states began: it is 0 if that is not known. In a time that was not observed,
// their resourceVersions say it; that of a state which a list found may be of a later change.
func (t *teller) order(a, b *state) int {
	earliestA, latestA, _ := t.edges.Bounds(a.at)
	earliestB, latestB, _ := t.edges.Bounds(b.at)
	listed := func(s *state) bool { return s.initial || s.entry != nil && s.entry.Inferred }
	switch {
	case latestA.Before(earliestB), latestB.Before(earliestA):
		return a.at.Compare(b.at)
	case a.o.RV > b.o.RV && listed(a), a.o.RV < b.o.RV && listed(b):
		return 0
	}
	return cmp.Compare(a.o.RV, b.o.RV)
}

// took formats how long it was from a time to another, as far as that is known.
func (t *teller) took(from, to time.Time) string { return t.edges.Took(from, to) }

// observed adds to an episode how its begin and its end are known.
func (t *teller) observed(ep *api.Episode) {
	if e, ok := t.edges[ep.From.UnixNano()]; ok {
		ep.BegunBefore, ep.NotBefore = e.Before, e.NotBefore.UTC()
	}
	if e, ok := t.edges[ep.To.UnixNano()]; ok && !ep.Ongoing && !e.NotBefore.IsZero() {
		if ep.EndNotBefore = e.NotBefore.UTC(); ep.EndNotBefore.Before(ep.From) && !ep.From.Equal(ep.To) {
			ep.EndNotBefore = ep.From
		}
	}
}
