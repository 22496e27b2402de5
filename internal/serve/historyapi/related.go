// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A candidate is an object that may be related to others.
type candidate struct {
	resource kube.Resource
	key      kube.Key
	uid      string
	kind     string
	owned    ownedBy
	object   *scan.Object // of a Pod
	related  bool
}

// find finds the objects that a story is about.
func (w *storyWriter) find(target kube.Resource, key kube.Key) error {
	w.sync(w.store.Resources()...) // of all at the same time, whatever is read then
	w.add(target, key)
	var namespaced, cluster, events []kube.Resource
	for _, r := range w.store.Resources() {
		clusterScoped := w.clusterScoped(r)
		switch {
		case isEvents(r):
			if len(events) == 0 { // the same objects in two groups
				events = append(events, r)
			}
		case clusterScoped:
			cluster = append(cluster, r)
		default:
			namespaced = append(namespaced, r)
		}
	}
	namespace := key.Namespace()
	var all []*candidate
	switch {
	case namespace != "":
	case target.GroupResource() == "namespaces": // what is in it may keep it from being deleted
		namespace = key.Name()
	case target.GroupResource() == "nodes": // its Pods are of all namespaces
		namespaced = slices.DeleteFunc(namespaced, func(r kube.Resource) bool {
			return r.GroupResource() != "pods" && r.GroupResource() != "poddisruptionbudgets.policy"
		})
	default:
		namespaced = nil
	}
	namespaced, err := w.allowed(namespaced, namespace)
	if err != nil {
		return err
	}
	cluster, err = w.allowed(slices.DeleteFunc(cluster, func(r kube.Resource) bool {
		return r.GroupResource() != "nodes" && r.GroupResource() != "namespaces" && r != target
	}), "")
	if err != nil {
		return err
	}
	for i, r := range slices.Concat(namespaced, cluster) {
		within := namespace
		if i >= len(namespaced) {
			within = ""
		}
		found, err := w.candidates(r, within)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	w.relate(all, target, key)
	if err := w.findEvents(all, events); err != nil {
		return err
	}
	if err := w.findPreemptors(namespace); err != nil {
		return err
	}
	return w.findQuotaUsers()
}

// candidates returns all objects of a resource that existed in the span of the story.
func (w *storyWriter) candidates(r kube.Resource, namespace string) (all []*candidate, err error) {
	ctx, others := w.r.Context(), w.left["listed"]
	seen := map[string]bool{}
	add := func(o *scan.Object) {
		id := string(o.Key) + "\x00" + o.UID
		c := &candidate{resource: r, key: o.Key, uid: o.UID, kind: o.Kind}
		if c.kind == "Pod" {
			c.object = o
		}
		if seen[id] {
			return
		}
		if len(all) >= maxListed {
			w.left["listed"]++
			return
		}
		seen[id] = true
		_ = json.Unmarshal([]byte(o.JSON), &c.owned) // as far as it is valid
		all = append(all, c)
	}
	ranges, err := w.ranges(r)
	if err != nil {
		return nil, err
	}
	for _, one := range ranges {
		list := func(rv uint64) error {
			for o, err := range one.List(ctx, rv, namespace, "") {
				if err != nil {
					return err
				}
				add(o)
				if w.left["listed"] > others {
					break
				}
			}
			return nil
		}
		// The newest versions first: they have the node. A deletion has the last version.
		if err := list(one.to); err != nil {
			return nil, err
		}
		found, err := one.Search(ctx, history.Search{From: one.from, To: one.to, Since: w.from, Events: maxListed, Scan: maxScanned, Match: func(key kube.Key, typ kube.EventType) bool {
			return typ == kube.Deleted && (namespace == "" || key.Namespace() == namespace)
		}})
		if err != nil {
			return nil, err
		}
		for _, e := range found.Events {
			add(e.Object)
		}
		if err := list(one.from); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// relate adds the objects that the story is about.
func (w *storyWriter) relate(all []*candidate, target kube.Resource, key kube.Key) {
	byUID := map[string]*candidate{}
	children := map[string][]*candidate{}
	for _, c := range all {
		byUID[c.uid] = c
		for _, owner := range c.owned.Metadata.OwnerReferences {
			children[string(owner.UID)] = append(children[string(owner.UID)], c)
		}
	}
	mark := func(c *candidate) bool {
		if c.related {
			return false
		}
		c.related = true
		w.add(c.resource, c.key)
		return true
	}
	var down, up func(c *candidate)
	down = func(c *candidate) {
		for _, child := range children[c.uid] {
			if mark(child) {
				down(child)
			}
		}
	}
	up = func(c *candidate) {
		for _, owner := range c.owned.Metadata.OwnerReferences {
			if o := byUID[string(owner.UID)]; o != nil && mark(o) {
				up(o)
				if slices.Contains(story.Workloads, o.kind) {
					down(o)
				}
			}
		}
	}
	for _, c := range all {
		if c.resource == target && c.key == key {
			c.related = true
			down(c)
			up(c)
			for _, former := range w.owners(target, key) { // of an orphan
				up(&candidate{owned: former})
			}
		}
	}
	for _, c := range all {
		ref := c.owned.Spec.ScaleTargetRef
		switch {
		case target.GroupResource() == "nodes" && c.kind == "Pod" && c.owned.Spec.NodeName == key.Name(),
			target.GroupResource() == "namespaces" && c.key.Namespace() == key.Name():
			mark(c)
		case c.resource == target && c.key == key && ref.Name != "": // an autoscaler
			for _, scaled := range all {
				if scaled.kind == ref.Kind && scaled.key == kube.MakeKey(key.Namespace(), ref.Name) && mark(scaled) {
					down(scaled)
				}
			}
		}
	}
	w.relateOthers(all, target, key)
}

// owners returns the owners that the versions of an object have.
func (w *storyWriter) owners(r kube.Resource, key kube.Key) (all []ownedBy) {
	ranges, _ := w.ranges(r)
	for _, one := range ranges {
		for e, err := range one.Versions(w.r.Context(), key, one.from) {
			if err != nil || e.Object.RV > one.to {
				break // reading them reports it
			}
			var owned ownedBy
			if json.Unmarshal([]byte(e.Object.JSON), &owned) == nil && len(owned.Metadata.OwnerReferences) > 0 {
				all = append(all, owned)
			}
		}
	}
	return all
}

// relateOthers adds what is not related by owner: where Pods run, what they use, and what
// limits and scales them.
func (w *storyWriter) relateOthers(all []*candidate, target kube.Resource, key kube.Key) {
	type named struct{ kind, name string }
	uses, workloads := map[named]bool{}, map[named]bool{}
	var pods []*candidate
	for _, c := range all {
		if !c.related {
			continue
		}
		workloads[named{c.kind, c.key.Name()}] = true
		if c.kind != "Pod" {
			continue
		}
		pods = append(pods, c)
		if node := c.owned.Spec.NodeName; node != "" && target.GroupResource() != "nodes" {
			uses[named{"Node", node}] = true
		}
		pod := &corev1.Pod{}
		_ = json.Unmarshal([]byte(c.object.JSON), pod)
		for _, u := range change.Uses(&pod.Spec) {
			uses[named{u.Kind, u.Name}] = true
		}
	}
	for _, c := range all {
		ref := c.owned.Spec.ScaleTargetRef
		switch {
		case c.related:
		case c.kind == "PodDisruptionBudget" && selects(c, pods),
			c.kind == "Namespace" && c.key.Name() == key.Namespace() && c.owned.Metadata.DeletionTimestamp != nil: // with all that is in it
			c.related = true
			w.add(c.resource, c.key)
		case c.key.Namespace() != key.Namespace() && c.kind != "Node":
		case uses[named{c.kind, c.key.Name()}],
			c.kind == "HorizontalPodAutoscaler" && workloads[named{ref.Kind, ref.Name}],
			(c.kind == "ResourceQuota" || c.kind == "LimitRange") && len(pods) > 0 && key.Namespace() != "":
			c.related = true
			w.add(c.resource, c.key)
		}
	}
}

// selects reports whether the selector of an object matches the labels of one of some Pods of
// its namespace.
func selects(by *candidate, pods []*candidate) bool {
	s, err := metav1.LabelSelectorAsSelector(by.owned.Spec.Selector)
	return err == nil && slices.ContainsFunc(pods, func(c *candidate) bool {
		return c.key.Namespace() == by.key.Namespace() && s.Matches(labels.Set(c.owned.Metadata.Labels))
	})
}

// findEvents adds the Events about the related objects, and the Pods for which others were
// preempted.
func (w *storyWriter) findEvents(all []*candidate, events []kube.Resource) error {
	uids, names := map[string]bool{}, map[[3]string]bool{}
	namespaces := []string{}
	for _, r := range w.order {
		ns := r.key.Namespace()
		if ns == "" {
			ns = "default" // where Events about objects without a namespace are
		}
		if !slices.Contains(namespaces, ns) {
			namespaces = append(namespaces, ns)
		}
	}
	for _, c := range all {
		if w.found[c.resource.String()+"\x00"+string(c.key)] != nil {
			uids[c.uid] = c.uid != ""
			names[[3]string{c.kind, c.key.Namespace(), c.key.Name()}] = true
		}
	}
	slices.Sort(namespaces)
	for _, ns := range namespaces {
		if w.Past.Outside(ns) != nil {
			continue
		}
		readable, err := w.allowed(events, ns)
		if err != nil {
			return err
		}
		for _, r := range readable {
			if err := w.readEvents(r, ns, func(e *change.Event) bool {
				about := e.About()
				return uids[string(about.UID)] || names[[3]string{about.Kind, about.Namespace, about.Name}] && (about.UID == "" || about.Kind == "Node")
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readEvents reads the versions of the Events of a namespace that are about related objects.
func (w *storyWriter) readEvents(r kube.Resource, namespace string, about func(*change.Event) bool) error {
	ranges, err := w.ranges(r)
	if err != nil {
		return err
	}
	for _, one := range ranges {
		found, err := one.Search(w.r.Context(), history.Search{From: one.from, To: one.to, Since: w.from, Events: maxEvents, Scan: maxScanned, Match: func(key kube.Key, typ kube.EventType) bool {
			return typ != kube.Deleted && key.Namespace() == namespace
		}})
		if err != nil {
			return err
		}
		if found.Rest > one.from && len(found.Events) >= maxEvents {
			w.left["Events"]++
		}
		gaps := one.Gaps()
		for _, e := range found.Events {
			target := &change.Event{}
			if json.Unmarshal([]byte(e.Object.JSON), target) != nil || !about(target) {
				continue
			}
			id := r.String() + "\x00" + string(e.Object.Key)
			event := w.found[id]
			if event == nil {
				event = &related{resource: r, key: e.Object.Key, events: true, object: story.Object{Resource: r, Key: e.Object.Key, Initial: e.Prev}}
				w.found[id] = event
				w.order = append(w.order, event)
			}
			if w.take(e.Object) {
				event.object.Versions = append(event.object.Versions, versionOf(e, gaps))
			}
		}
	}
	return nil
}

// isEvents reports whether a resource is Events, of either group.
func isEvents(r kube.Resource) bool {
	return r.Name == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}
