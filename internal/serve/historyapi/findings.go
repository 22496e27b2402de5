// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// FindingsPath serves findings. They need the same rights as the history.
const FindingsPath = "/watchkeeper/v1/findings"

// The limits of findings. What they leave out is said in the answer.
const (
	// maxFindings bounds the findings, and maxExplained those of them for which the
	// history is read: since when, and what changed before.
	maxFindings  = 200
	maxExplained = 50
	// maxTouched bounds the objects that are listed of a finding.
	maxTouched = 20
	// maxSuspects bounds the objects of a resource that are kept because they may fail.
	maxSuspects = 10_000
	// maxFailing bounds the versions of Pods that are read to know since when they fail.
	maxFailing = 10_000
)

// readFrom are the resources that findings are read from.
var readFrom = []string{
	"apiservices.apiregistration.k8s.io", "cronjobs.batch", "daemonsets.apps", "deployments.apps", "endpointslices.discovery.k8s.io", "events", "horizontalpodautoscalers.autoscaling", "jobs.batch",
	"namespaces", "nodes", "persistentvolumeclaims", "poddisruptionbudgets.policy", "pods", "replicasets.apps", "statefulsets.apps",
}

// A finder reads the findings of a moment.
type finder struct {
	*call
	namespace string                // "" for all
	states    map[string]past.State // up to the end of the record, of a resource in live
	live      map[string]*timeline.Snapshot
	// recordedUntil is the first end of the records of the resources in live.
	recordedUntil time.Time
	resource      map[string]kube.Resource
	page          page            // for the changes
	seen          map[string]bool // changes, by path and RV, in which a Node's conditions changed
	failing       int             // how many versions may still be read for since
	out           api.Findings
	found         []*findings.Finding
}

// findings describes what fails at a moment.
func (c *call) findings() (any, error) {
	when, err := c.when("at", "now")
	if err != nil {
		return nil, err
	}
	if when.RV != 0 {
		return nil, refuseBad("at is a resourceVersion, which is that of one resource: name a time or an age")
	}
	release, err := c.Past.Lists.Acquire(c.r.Context()) // it reads as much as a list
	if err != nil {
		return nil, err
	}
	defer release()
	f := &finder{call: c, namespace: c.query.Get("namespace"), states: map[string]past.State{}, live: map[string]*timeline.Snapshot{}, seen: map[string]bool{}, resource: map[string]kube.Resource{}, failing: maxFailing}
	f.page.ctx, f.page.limit = c.r.Context(), maxLimit
	f.out = api.Findings{At: when.At.UTC(), Namespace: f.namespace, Items: []api.Finding{}}
	if err := f.read(when); err != nil {
		return nil, err
	}
	switch why := cmp.Or(f.Recording().Reason, "recording stopped"); {
	case len(f.live) > 0 && f.recordedUntil.IsZero():
		what := "nothing is recorded"
		if f.Past.Store() == nil {
			what = "the history is not open"
		}
		f.out.LeftOut = append(f.out.LeftOut, fmt.Sprintf("what changed before: %s (%s)", what, why))
	case len(f.live) > 0:
		f.out.LeftOut = append(f.out.LeftOut, fmt.Sprintf("what changed since %s: %s are not recorded since then (%s)",
			past.Stamp(f.recordedUntil), strings.Join(slices.Sorted(maps.Keys(f.live)), ", "), why))
	}
	if text := f.outside(f.namespace); text != "" {
		f.out.LeftOut = append(f.out.LeftOut, text)
	}
	if more := len(f.found) - maxFindings; more > 0 {
		f.found = f.found[:maxFindings]
		f.out.LeftOut = append(f.out.LeftOut, fmt.Sprintf("%s of less importance, over the limit of %d", words.Count(more, "finding"), maxFindings))
	}
	for i, one := range f.found {
		item, err := f.item(one, i < maxExplained)
		if err != nil {
			return nil, err
		}
		f.out.Items = append(f.out.Items, item)
	}
	if f.page.full() {
		f.out.LeftOut = append(f.out.LeftOut, fmt.Sprintf("some of the changes before: more than %d were compared, or %d MiB", maxCompared, maxPageBytes>>20))
	}
	if more := len(f.found) - maxExplained; more > 0 {
		f.out.LeftOut = append(f.out.LeftOut, fmt.Sprintf("the changes before the last %s: they are read for %d", words.Count(more, "finding"), maxExplained))
	}
	return f.out, nil
}

// relevant returns the recorded resources that are read.
func (f *finder) relevant() (all []kube.Resource) {
	for _, r := range f.store.Resources() {
		name := r.GroupResource()
		if f.namespace != "" && f.clusterScoped(r) && name != "nodes" && name != "namespaces" {
			continue // it is not in the namespace
		}
		all = append(all, r)
	}
	return all
}

// read finds what fails.
func (f *finder) read(when kube.Moment) error {
	allowed, err := f.resources()
	if err != nil {
		return err
	}
	if err := f.knownNamespace(f.namespace); err != nil {
		return err
	}
	recorded := f.relevant()
	if len(f.store.Resources()) == 0 && f.Recording().State == api.RecordingFailed && when.Ago && when.At.Equal(f.now) {
		if recorded, allowed, err = f.unrecorded(); err != nil {
			return err
		}
	}
	var read []kube.Resource
	for _, r := range recorded {
		if slices.Contains(allowed, r) {
			read = append(read, r)
		} else {
			f.out.Denied = append(f.out.Denied, r.GroupResource())
		}
	}
	if len(f.out.Denied) > 0 && !slices.ContainsFunc(read, f.within) {
		return f.mayListNone()
	}
	for _, name := range readFrom {
		if !slices.ContainsFunc(recorded, func(r kube.Resource) bool { return r.GroupResource() == name }) && (f.namespace == "" || name != "apiservices.apiregistration.k8s.io") {
			f.out.NotRecorded = append(f.out.NotRecorded, name)
		}
	}
	if !slices.ContainsFunc(recorded, func(r kube.Resource) bool { return slices.Contains(readFrom, r.GroupResource()) }) {
		if err := f.notRecording(); err != nil {
			return err
		}
		return refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "none of the resources that findings are read from is recorded: %s", strings.Join(readFrom, ", "))
	}
	findings.Order(read)
	s := &findings.State{At: f.lastKnown(when.At), Get: f.get, LastSeen: f.lastSeen, Observed: f.observed, Deleted: f.deleted, Known: map[string]time.Time{}}
	var unknown, stale []findings.Unknown
	var unlocated []error
	states, errs := f.locateAll(read, when)
	for i, r := range read {
		f.resource[r.GroupResource()] = r
		state, err := states[i], errs[i]
		if errors.Is(err, past.ErrUnrecorded) && when.Ago && when.At.Equal(f.now) {
			if state, err = f.present(r, err); err != nil {
				if last, ok := f.lastState(r); ok {
					state, err = last, nil
					s.Known[r.GroupResource()] = last.At
					stale = append(stale, findings.Unknown{Resource: r.GroupResource(), Reason: f.nothingNewer(), Since: last.At, LastKnown: true})
				}
			}
		}
		switch {
		case errors.Is(err, history.ErrBefore), errors.Is(err, history.ErrGap), errors.Is(err, past.ErrUnrecorded):
			unlocated = append(unlocated, err)
			unknown = append(unknown, f.unknown(r, when.At, err))
			continue
		case err != nil:
			return err
		}
		if state.Stream != nil {
			f.states[r.GroupResource()] = state
		}
		if err := f.add(s, r, state); err != nil {
			return err
		}
		if _, isStale := s.Known[r.GroupResource()]; !isStale && f.live[r.GroupResource()] == nil && f.Recording().State != api.RecordingEnded {
			if since, reason := f.recordEnd(r); reason == api.RecordingStopped && when.At.After(since) {
				unknown = append(unknown, f.unknown(r, when.At, past.ErrUnrecorded))
			}
		}
	}
	if len(f.states) == 0 && len(f.live) == 0 && len(unlocated) > 0 {
		if len(f.store.Resources()) == 0 {
			return f.notRecording()
		}
		return ofAll(unlocated)
	}
	for _, one := range s.Find() {
		if f.shows(one) {
			f.found = append(f.found, one)
		}
	}
	f.found = append(f.found, findings.Unknowns(unknown)...)
	slices.SortStableFunc(f.found, findings.Compare)
	unobserved := findings.Unknowns(stale)
	for _, one := range unobserved {
		if len(stale) == len(read) {
			one.Severity = api.SeverityCritical // nothing is observed
		}
	}
	f.found = slices.Concat(unobserved, f.found) // they say of when the others are
	if f.contact.Err != nil {
		f.found = slices.Insert(f.found, 0, f.noAnswer())
	}
	return nil
}

// locateAll returns the states of resources at a moment, or why they are not known. Those whose
// watch is not yet resumed are waited for at the same time.
func (f *finder) locateAll(resources []kube.Resource, when kube.Moment) ([]past.State, []error) {
	states, errs := make([]past.State, len(resources)), make([]error, len(resources))
	f.sync(resources...)
	var all sync.WaitGroup
	for i, r := range resources {
		all.Go(func() { states[i], errs[i] = f.locate(r, when) })
	}
	all.Wait()
	return states, errs
}

// objects yields the objects of a resource at the moment.
func (f *finder) objects(r kube.Resource, state past.State, namespace string) iter.Seq2[*scan.Object, error] {
	snapshot := f.live[r.GroupResource()]
	if snapshot == nil {
		return state.Stream.List(f.page.ctx, state.RV, namespace, "")
	}
	return func(yield func(*scan.Object, error) bool) {
		for o := range snapshot.All(namespace, "") {
			if !yield(o, f.ended()) {
				return
			}
		}
	}
}

// add adds the objects of a resource to a state.
func (f *finder) add(s *findings.State, r kube.Resource, state past.State) error {
	within := f.namespace
	if f.cluster[r] {
		within = ""
	}
	before := s.Suspects()
	for o, err := range f.objects(r, state, within) {
		if err != nil {
			return err
		}
		if f.out.Objects++; s.Suspects()-before >= maxSuspects {
			f.out.LeftOut = append(f.out.LeftOut, fmt.Sprintf("some %s: more than %d objects may fail", r.GroupResource(), maxSuspects))
			return nil
		}
		s.Add(r, o)
	}
	s.AllNodes = s.AllNodes || r.GroupResource() == "nodes"
	scope := f.Recording().Scope // may have the controllers, and not their Pods
	s.AllPods = s.AllPods || r.GroupResource() == "pods" && (scope == nil || !scope.Selected)
	return nil
}

// shows reports whether a finding belongs to the namespace that was asked for: a Node does if
// Pods of the namespace are on it.
func (f *finder) shows(one *findings.Finding) bool {
	switch subject := one.Subject; {
	case f.namespace == "", subject.Key.Namespace() == f.namespace:
		return true
	case subject.Kind == "Node":
		return len(one.Objects) > 1
	default:
		return subject.Kind == "Namespace" && subject.Key.Name() == f.namespace
	}
}

// stateOf returns the state of a resource that has an object; ok is false if the caller may
// not read it, or it is not known.
func (f *finder) stateOf(resource string, key kube.Key) (state past.State, ok bool) {
	state, ok = f.states[resource]
	return state, ok && !f.elsewhere(key)
}

// elsewhere reports whether an object is in another namespace than that which was asked for: the
// caller may have no right to read it there.
func (f *finder) elsewhere(key kube.Key) bool {
	return f.namespace != "" && key.Namespace() != "" && key.Namespace() != f.namespace
}

// get returns an object of the moment; nil if it is not known. It is of a resource that was
// read before, or is read later.
func (f *finder) get(resource string, key kube.Key) *scan.Object {
	if snapshot := f.live[resource]; snapshot != nil && !f.elsewhere(key) {
		return snapshot.Get(key)
	}
	state, ok := f.stateOf(resource, key)
	if !ok {
		return nil
	}
	o, err := state.Stream.Get(f.page.ctx, state.RV, key)
	if err != nil {
		return nil // it is only what another object belongs to
	}
	return o
}

// lastSeen returns the last version of an object until the moment.
func (f *finder) lastSeen(resource string, key kube.Key) *scan.Object {
	if snapshot := f.live[resource]; snapshot != nil && !f.elsewhere(key) {
		if o := snapshot.Get(key); o != nil {
			return o
		}
	}
	state, ok := f.stateOf(resource, key)
	if !ok {
		return nil
	}
	last, err := state.Stream.LastVersions(f.page.ctx, key, 0, state.RV, 1)
	if err != nil || len(last) == 0 {
		return nil
	}
	return last[0].Object
}

// observed returns when the version of an object at the moment was observed; zero if that is
// not known.
func (f *finder) observed(resource string, key kube.Key) time.Time {
	state, ok := f.stateOf(resource, key)
	if !ok || f.live[resource] != nil {
		return time.Time{}
	}
	seen, _ := observed(f.page.ctx, state.Stream, key, state.RV)
	return seen
}

// vanishedSpan is how long before the moment Pods may have been deleted that a status still has,
// and maxVanished how many objects of that time are looked at.
const (
	vanishedSpan = time.Hour
	maxVanished  = 10_000
)

// deleted returns when a Pod of each controller in a namespace was last deleted, by the UID of the
// controller, in the hour before the moment; nil if that is not known, or too much has changed.
func (f *finder) deleted(namespace string) map[string]time.Time {
	state, ok := f.states["pods"]
	if !ok || f.live["pods"] != nil {
		return nil
	}
	st, ctx := state.Stream, f.page.ctx
	from, err := st.At(ctx, state.At.Add(-vanishedSpan))
	if err != nil {
		from = st.Span().From
	}
	keys, err := st.Changed(ctx, from.RV, state.RV, namespace, maxVanished)
	if err != nil {
		return nil
	}
	last := map[string]time.Time{}
	for _, key := range keys {
		events, err := st.LastVersions(ctx, key, from.RV, state.RV, 1)
		if err != nil || len(events) == 0 || events[0].Type != kube.Deleted {
			continue
		}
		if uid := findings.ControllerOf(events[0].Object); events[0].At.After(last[uid]) {
			last[uid] = events[0].At
		}
	}
	return last
}

// item returns a finding as it is answered; with what the history knows of it if explained
// is set.
func (f *finder) item(one *findings.Finding, explained bool) (out api.Finding, err error) {
	subject := one.Subject
	out = api.Finding{
		Rule: one.Rule, Severity: one.Severity, Kind: subject.Kind, Namespace: subject.Key.Namespace(), Name: subject.Key.Name(),
		Title: one.Title, Messages: one.Messages, Since: one.Since, SinceKnown: !one.Since.IsZero(),
		Others: one.Others, OthersSince: one.OthersSince, Touches: len(one.Objects), Objects: []api.FindingObject{},
	}
	if path := f.path(subject); path != "" {
		out.Resource, out.Path = subject.Resource, path
	}
	for _, o := range one.Objects[:min(len(one.Objects), maxTouched)] {
		if one.Rule != findings.Unobserved {
			out.Objects = append(out.Objects, api.FindingObject{Kind: o.Kind, Namespace: o.Key.Namespace(), Name: o.Key.Name(), Path: f.path(o)})
		}
	}
	failing := slices.Contains(failingRules, one.Rule)
	if failing {
		// Without the history, the last crash is known only, and it is asked for few Pods.
		out.SinceKnown, out.Others, out.OthersSince = false, 0, time.Time{}
	}
	if !explained || one.Rule == findings.Unobserved {
		return out, nil
	}
	if failing && f.live["pods"] == nil {
		if err := f.since(one, &out); err != nil {
			return out, err
		}
	}
	switch one.Rule {
	case "deletion":
		err = f.requestedSince(one, &out)
	case "node-deleted":
		err = f.deletedSince(one, &out)
	}
	if err != nil {
		return out, err
	}
	return out, f.before(one, &out)
}

// failingRules are the rules whose Pods fail in the sense of [change.Failing]: the history
// knows since when.
var failingRules = []string{"crash", "image", "start"}

func (f *finder) path(ref findings.Ref) string {
	r, ok := f.resource[ref.Resource]
	if !ok {
		return ""
	}
	if state, ok := f.states[ref.Resource]; ok { // perhaps in an API version from before
		r = state.Stream.Resource()
	}
	return r.ObjectPath(ref.Key)
}

// since asks the history since when the Pods of a finding fail: their own status begins again
// with each crash.
func (f *finder) since(one *findings.Finding, out *api.Finding) error {
	state, ok := f.states["pods"]
	if !ok {
		return nil
	}
	var times []time.Time
	all := true
	for _, o := range one.Objects {
		if o.Kind != "Pod" {
			continue
		}
		if all = f.failing > 0; !all {
			break
		}
		pod, err := state.Stream.Get(f.page.ctx, state.RV, o.Key)
		if err != nil || pod == nil {
			return err
		}
		at, notBefore, known, err := f.failingSince(state, o.Key, pod.UID, &f.failing)
		if err != nil {
			return err
		}
		if len(times) == 0 || at.Before(out.Since) {
			out.Since, out.NotBefore, out.SinceKnown = at.UTC(), notBefore, known
		}
		times = append(times, at.UTC())
	}
	out.SinceKnown = out.SinceKnown && all
	one.Last(times)
	out.Others, out.OthersSince = one.Others, one.OthersSince
	return nil
}

// ended returns an error if the request has ended.
func (f *finder) ended() error { return context.Cause(f.page.ctx) }

// justBefore is how long before something fails changes are looked for, and maxBefore how
// many are listed. A rollout that does not progress is one after 10 minutes.
const (
	justBefore = 15 * time.Minute
	maxBefore  = 5
)
