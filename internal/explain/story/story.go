// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package story describes what happened to a set of related objects: it groups their changes
// into episodes, such as a rollout that failed and was rolled back.
//
// [Tell] reads the versions of the objects once into things (an object from its creation to its deletion), each with
// its states. Every change that is more than noise becomes an entry. Then each rule, in its own file, looks for
// its kind of episode: rollouts, scaling, failures of Pods, lost and drained Nodes, and so on. Rules see only the
// things, never each other's results, except that failures of a rollout's own Pods are described with the rollout,
// and those of a failed Job's with the Job. Last, every entry is assigned to exactly one episode: to the one that
// claims it, to one that covers its object and time, or to the changes that no rule is about.
//
// A cause is named only where an object says so: a status, a condition, an Event, an ownerReference, an entry of
// managedFields. That something was changed shortly before is said as that, and not called a cause.
//
// Results depend on the input only: the same input gives the same bytes. Invalid objects are
// read as far as they can be.
package story

import (
	"cmp"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/spans"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/edges"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// A Version is one change of an object.
type Version struct {
	Type      kube.EventType
	Time      time.Time
	NotBefore time.Time // the begin of the gap that ends at Time; zero for none
	Inferred  bool      // found by a list
	// Object is the state after the change; for a deletion, the last one with the RV of the deletion.
	Object *scan.Object
}

// An Object is a name of a resource, with what it named.
type Object struct {
	Resource kube.Resource
	Key      kube.Key
	Initial  *scan.Object // at the begin of the span; nil for none
	// Since is when Initial was first known, if the record begins in the span.
	Since    time.Time
	Versions []Version // in the span, in order
}

// An Input is what a story is written from.
type Input struct {
	Resource kube.Resource // of the object that the story is of
	Key      kube.Key
	From, To time.Time
	Last     time.Time // after which nothing is known of the object until To; zero if it is
	Objects  []Object  // among them the object itself; Events are objects, too

	Unobserved []api.UnobservedSpan // of the resources of the objects, in order
}

// A teller writes one story.
type teller struct {
	Input
	things    []*thing
	byUID     map[string]*thing
	edges     edges.Edges
	strangers map[*thing]bool // of which the story is not
	lives     []*thing        // the story's own, if it is only about the time in which they existed
	events    []*entry        // about Events
	entries   []*entry
	episodes  []*episode
	comparer  change.Comparer

	failures  []*failure
	rolled    map[*thing][]*rollout // by workload
	readiness map[name]spans.Counts // see ready
	all       []*episode            // in order, after assemble
}

// rules find episodes. Failures are found first; rollouts, disruptions and Jobs tell some of them,
// and then the others are described. Disruptions are those that no Node's episode describes, and
// shortages those that nothing else does.
var rules = []func(*teller){
	(*teller).failuresOfPods,
	(*teller).rollouts,
	(*teller).pauses,
	(*teller).scaling,
	(*teller).nodes,
	(*teller).disruptions,
	(*teller).jobs,
	(*teller).otherFailures,
	(*teller).creations,
	(*teller).autoscalers,
	(*teller).deletions,
	(*teller).config,
	(*teller).shortages,
}

// Tell writes a story.
func Tell(in Input) api.Story {
	t := newTeller(in)
	out := api.Story{
		Resource: in.Resource.GroupResource(), Namespace: in.Key.Namespace(), Name: in.Key.Name(),
		From: in.From.UTC(), To: in.To.UTC(), Episodes: []api.Episode{}, Objects: len(in.Objects),
	}
	for i := range in.Objects {
		out.Versions += len(in.Objects[i].Versions)
	}
	for _, th := range t.things {
		if th.resource == in.Resource && th.key == in.Key {
			out.Kind = th.kind
		}
	}
	if in.Last.IsZero() || in.Last.After(in.From) { // else nothing was observed
		out.Episodes = append(out.Episodes, t.assemble()...)
	}
	return out
}

// newTeller reads the objects and applies the rules.
func newTeller(in Input) *teller {
	if !in.Last.IsZero() {
		in.To = edges.Later(in.From, in.Last)
	}
	t := &teller{Input: in, byUID: map[string]*thing{}, edges: edges.Edges{}, strangers: map[*thing]bool{}, rolled: map[*thing][]*rollout{}, readiness: map[name]spans.Counts{}, comparer: change.Comparer{Brief: true}}
	objects := slices.Clone(in.Objects)
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Key, b.Key))
	})
	for i := range objects {
		t.read(&objects[i])
	}
	t.link()
	t.findStrangers()
	slices.SortStableFunc(t.entries, (*entry).compare)
	for _, rule := range rules {
		rule(t)
	}
	return t
}

// add adds an episode that a rule has found.
func (t *teller) add(e *episode) { t.episodes = append(t.episodes, e) }

// Workloads are the kinds of which the story of a Pod or a ReplicaSet needs all that they own:
// what happened to it is a part of what happened to all, and is told as that.
var Workloads = []string{"ReplicaSet", "Deployment", "StatefulSet", "DaemonSet"}

// findStrangers finds the objects that the story is not about: for a Pod or a workload, those that it
// neither owns nor is owned by, which may share a quota with it, and for a Node, the Pods of others.
func (t *teller) findStrangers() {
	own := slices.DeleteFunc(slices.Clone(t.things), func(th *thing) bool { return !t.isOwn(th) })
	for _, th := range t.ofKind(append([]string{"Pod"}, Workloads...)...) {
		t.strangers[th] = len(own) > 0 && !slices.ContainsFunc(own, func(one *thing) bool {
			switch one.kind {
			case "Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController":
				return slices.Contains(t.owners(th), one) || slices.Contains(t.owners(one), th)
			case "Node":
				return th.kind != "Pod" || th.final().asPod().Spec.NodeName == one.key.Name()
			}
			return true
		})
	}
	if len(own) > 0 && (own[0].kind == "Pod" || own[0].kind == "ReplicaSet") {
		t.lives = own
	}
}

// owners returns a thing and what it ever was owned by.
func (t *teller) owners(th *thing) []*thing {
	all := []*thing{th}
	for i := 0; i < len(all); i++ {
		for _, s := range all[i].states {
			for _, o := range s.look().Metadata.OwnerReferences {
				if owner := t.byUID[string(o.UID)]; owner != nil {
					all = words.AppendOnce(all, owner)
				}
			}
		}
	}
	return all
}

// concerns reports whether the story is about a thing at some time of a span. A Node concerns it
// while one of its Pods is there, and what a Pod or a ReplicaSet is owned by while that exists.
func (t *teller) concerns(th *thing, from, to time.Time) bool {
	switch {
	case t.isOwn(th):
		return true
	case t.strangers[th]:
		return false
	case th != nil && th.kind == "Node":
		return t.Resource.Name == "nodes" && th.key == t.Key || slices.ContainsFunc(t.podsOn(th.key.Name(), from, to), func(pod *thing) bool { return !t.strangers[pod] })
	}
	return t.lives == nil || slices.ContainsFunc(t.lives, func(th *thing) bool { return th.existed(from, to) })
}

// tells reports whether the story has an entry if no episode does. What controllers change of the
// ReplicaSet of a Deployment follows from what is told of the Deployment.
func (t *teller) tells(e *entry) bool {
	follows := e.Type == api.Modified && e.Kind == "ReplicaSet" && !t.isTarget(e) && e.thing.controller() != nil
	if follows && (e.onlyStatus || slices.Equal(e.By, []string{"kube-controller-manager"})) {
		return false
	}
	return t.concerns(e.thing, e.Time.Add(-maxTrail), e.Time.Add(maxTrail))
}

// foreign reports whether an episode is not one of the story.
func (t *teller) foreign(ep *episode) bool {
	to := edges.Later(ep.From, ep.To)
	about := len(ep.claims)+len(ep.workloads) == 0 || slices.ContainsFunc(ep.claims, func(e *entry) bool { return e != nil && t.concerns(e.thing, ep.From, to) })
	if len(ep.claims) == 0 { // it had begun before
		about = about || slices.ContainsFunc(ep.workloads, func(n name) bool { return t.concerns(t.byUID[n.uid], ep.From, to) })
	}
	return !ep.own && !(about && t.concerns(nil, ep.From, to))
}

// isTarget reports whether an entry is about the object of the story.
func (t *teller) isTarget(e *entry) bool { return e != nil && t.isOwn(e.thing) }

// isOwn reports whether a thing is the object of the story.
func (t *teller) isOwn(th *thing) bool {
	return th != nil && th.resource == t.Resource && th.key == t.Key
}
