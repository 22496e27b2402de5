// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wI2L/jsondiff"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
	"github.com/watchkeeper/watchkeeper/internal/explain/spans"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

const (
	// slack is how much later than since a change may be observed that was before it: the
	// times of a status have whole seconds.
	slack = time.Second
	// maxVersionsOf bounds the versions that are read of an object.
	maxVersionsOf = 100
	// maxSharing bounds the changes that are read of workloads that share a quota, and the
	// deleted Pods of a namespace.
	maxSharing = 100
	// maxSeen is how many changes of Nodes' conditions are listed where others would be left out
	// for them.
	maxSeen = 2
	// maxLeft bounds the Nodes that Pods have left, in justLeft before others fail, and maxOwners
	// the Pods whose owners' Pods these are.
	maxLeft   = 10
	justLeft  = 5 * time.Minute
	maxOwners = 3
)

// sharing are the workloads that share a quota.
var sharing = []string{"cronjobs.batch", "daemonsets.apps", "deployments.apps", "jobs.batch", "statefulsets.apps"}

// before notes the last changes, before something failed, of the objects that a finding is
// related to, and the times in which some may have been missed. Changes of a status are left
// out, except those of a quota, and of what a Node is. That the quota was deleted which a message
// names, or has other limits, is noted also if it was later.
func (f *finder) before(one *findings.Finding, out *api.Finding) error {
	since := out.Since
	if since.IsZero() {
		since = f.out.At
	}
	until, begin := since.Add(slack), since.Add(-justBefore)
	left, err := f.leftNodes(one, since.Add(-justLeft), until)
	if err != nil {
		return err
	}
	var all []api.ObjectChange
	var read []kube.Resource
	for _, ref := range slices.Concat(one.Related, left) {
		state, ok := f.stateOf(ref.Resource, ref.Key)
		if !ok {
			f.lacks(ref.Resource)
			continue
		}
		if r := state.Stream.Resource(); !slices.Contains(read, r) {
			read = append(read, r)
		}
		versions := 0
		for e, err := range f.backward(state, ref.Key, begin) {
			if err != nil {
				return err
			}
			if versions++; e.At.Before(begin) || versions > maxVersionsOf || f.page.full() {
				break
			}
			later := f.after(e, until)
			if later && ref.Kind != "ResourceQuota" { // what it refused may not have been tried since
				continue
			}
			if all, err = f.describe(all, one.Subject, e, later); err != nil {
				return err
			}
		}
	}
	if one.Quota {
		if all, err = f.sharing(all, one.Subject, begin, until); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, newest)
	all = slices.CompactFunc(all, func(a, b api.ObjectChange) bool { return a.Path == b.Path && a.ResourceVersion == b.ResourceVersion })
	own := func(c api.ObjectChange) bool {
		return c.Kind == one.Subject.Kind && kube.MakeKey(c.Namespace, c.Name) == one.Subject.Key
	}
	if i := slices.IndexFunc(all, own); i > 0 { // the last change of the subject itself is one of the few
		last := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, last)
	}
	out.Before = f.important(all, one.Related)
	out.BeforeLeftOut = len(all) - len(out.Before)
	out.Unobserved = merged(slices.DeleteFunc(f.unobserved(read, begin, since), func(s api.UnobservedSpan) bool { return s.Reason == api.Late || s.Reason == api.BeforeRecord }))
	for _, r := range read {
		if at := f.begin(r).UTC(); len(all) == 0 && at.After(begin) && at.After(out.RecordedSince) {
			out.RecordedSince = at
		}
	}
	return f.ended()
}

// newest orders changes: the newest first.
func newest(a, b api.ObjectChange) int {
	return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Path, b.Path), strings.Compare(b.ResourceVersion, a.ResourceVersion))
}

// important returns the last of the changes, the newest first. That Nodes became ready or not
// leaves room for what somebody has changed, and that of others for that of the Nodes on which the
// Pods are.
func (f *finder) important(all []api.ObjectChange, related []findings.Ref) []api.ObjectChange {
	var changed, on, left []api.ObjectChange
	for _, c := range all {
		switch {
		case !f.seen[c.Path+c.ResourceVersion]:
			changed = append(changed, c)
		case slices.Contains(related, findings.Ref{Resource: c.Resource, Kind: c.Kind, Key: kube.MakeKey("", c.Name)}):
			on = append(on, c)
		default:
			left = append(left, c)
		}
	}
	seen := slices.Concat(on, left)
	seen = seen[:min(len(seen), max(maxBefore-len(changed), maxSeen))]
	out := slices.Concat(changed[:min(len(changed), maxBefore-len(seen))], seen)
	slices.SortStableFunc(out, newest)
	return out
}

// lacks notes a resource whose changes would be among those before, if it is not recorded.
func (f *finder) lacks(resource string) {
	if resource != "" && f.live[resource] == nil && !slices.Contains(f.out.NotRecorded, resource) && !slices.ContainsFunc(f.store.Resources(), func(r kube.Resource) bool { return r.GroupResource() == resource }) {
		f.out.NotRecorded = append(f.out.NotRecorded, resource)
		slices.Sort(f.out.NotRecorded)
	}
}

// after reports whether an event happened after a time. One that was observed at the end of a gap
// may have happened since its begin.
func (f *finder) after(e located, until time.Time) bool {
	if begin := f.page.notBefore(e.state.Stream, e.Event); !begin.IsZero() {
		return begin.After(until)
	}
	return e.At.After(until)
}

// merged joins the spans of several resources.
func merged(all []api.UnobservedSpan) (times []api.TimeSpan) {
	for _, s := range spans.Join(all, api.UnobservedSpan.Bounds) {
		times = append(times, api.TimeSpan{From: s.From, To: s.To})
	}
	return times
}

// leftNodes returns the Nodes from which Pods of the same controllers as those of a finding were
// deleted, as when they are drained or lost. They do not matter to Pods that terminate, which have
// replaced none.
func (f *finder) leftNodes(one *findings.Finding, begin, until time.Time) (nodes []findings.Ref, err error) {
	namespace := one.Subject.Key.Namespace()
	state, ok := f.stateOf("pods", one.Subject.Key)
	if !ok || namespace == "" || one.Rule == "deletion" {
		return nil, nil
	}
	var owners []string
	for _, o := range one.Objects {
		if o.Kind != "Pod" || len(owners) == maxOwners {
			continue
		}
		if pod := f.get("pods", o.Key); pod != nil {
			if owner := findings.ControllerOf(pod); owner != "" {
				owners = append(owners, owner)
			}
		}
	}
	if owners == nil {
		return nil, nil
	}
	for e, err := range f.search(state, history.Search{
		Match: func(key kube.Key, typ kube.EventType) bool {
			return typ == kube.Deleted && key.Namespace() == namespace
		},
		Since: begin, Events: maxSharing, Scan: maxScanned,
	}) {
		if err != nil {
			return nodes, err
		}
		if f.after(e, until) || !slices.Contains(owners, findings.ControllerOf(e.Object)) {
			continue
		}
		var pod ownedBy
		_ = json.Unmarshal([]byte(e.Object.JSON), &pod) // as far as it is valid
		node := findings.Ref{Resource: "nodes", Kind: "Node", Key: kube.MakeKey("", pod.Spec.NodeName)}
		if pod.Spec.NodeName != "" && !slices.Contains(nodes, node) && len(nodes) < maxLeft {
			nodes = append(nodes, node)
		}
	}
	return nodes, err
}

// sharing adds the changes of the workloads of the namespace of a subject.
func (f *finder) sharing(all []api.ObjectChange, subject findings.Ref, begin, until time.Time) ([]api.ObjectChange, error) {
	namespace := subject.Key.Namespace()
	for _, resource := range sharing {
		state, ok := f.stateOf(resource, kube.MakeKey(namespace, "any"))
		if !ok {
			continue
		}
		for e, err := range f.search(state, history.Search{
			Match: func(key kube.Key, _ kube.EventType) bool { return key.Namespace() == namespace },
			Since: begin, Events: maxSharing, Scan: maxScanned,
		}) {
			if err != nil {
				return nil, err
			}
			if f.after(e, until) || f.page.full() {
				continue
			}
			if all, err = f.describe(all, subject, e, false); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// byWill reports whether a part of a change is not what a controller writes about what it
// sees: the status, the revision of a Deployment, and the taints of a Node's conditions.
func byWill(op jsondiff.Operation) bool {
	switch value, _ := op.Value.(map[string]any); {
	case strings.HasPrefix(op.Path, "/status"), strings.HasPrefix(op.Path, "/metadata/annotations/deployment.kubernetes.io~1"):
		return false
	case op.Path == "/metadata/annotations":
		return slices.ContainsFunc(slices.Collect(maps.Keys(value)), func(name string) bool { return !strings.HasPrefix(name, "deployment.kubernetes.io/") })
	case strings.HasPrefix(op.Path, "/spec/taints"):
		key, _ := value["key"].(string)
		return key != "" && !strings.HasPrefix(key, "node.kubernetes.io/")
	}
	return true
}

// describe adds a change, unless it is only noise, of the status, or what a controller notes. That
// a Node becomes ready or not is the finding itself if it is the subject. The status of a quota does
// not matter later.
func (f *finder) describe(all []api.ObjectChange, subject findings.Ref, e located, later bool) ([]api.ObjectChange, error) {
	st := e.state.Stream
	item, _, err := f.page.change(st, e.Event)
	if err != nil || item == nil {
		return all, err
	}
	key, resource := e.Object.Key, st.Resource().GroupResource()
	matters := byWill
	if resource == "nodes" && subject.Kind != "Node" {
		matters = func(op jsondiff.Operation) bool { return byWill(op) || ofCondition(op) }
	}
	if item.Type == api.Modified && (later || resource != "resourcequotas") && !slices.ContainsFunc(item.Changes, matters) {
		return all, nil
	}
	if item.Type == api.Modified && resource == "nodes" && !slices.ContainsFunc(item.Changes, byWill) {
		f.seen[st.Resource().ObjectPath(key)+item.ResourceVersion] = true
	}
	item.Changes = nil
	return append(all, api.ObjectChange{
		Resource: resource, Path: st.Resource().ObjectPath(key), Kind: e.Object.Kind, Namespace: key.Namespace(), Name: key.Name(), Change: *item,
	}), nil
}

// ofCondition reports whether a part of a change is the status of a condition.
func ofCondition(op jsondiff.Operation) bool {
	return strings.HasPrefix(op.Path, "/status/conditions/") && strings.HasSuffix(op.Path, "/status")
}
