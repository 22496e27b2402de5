// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// uidPattern finds UIDs in messages.
var uidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// findPreemptors adds the Pods for which related ones were preempted: Events name their UIDs.
// They may be in another namespace.
func (w *storyWriter) findPreemptors(namespace string) error {
	uids := map[string]bool{}
	for _, r := range w.order {
		for _, v := range r.object.Versions {
			e := struct{ Reason, Message, Note string }{}
			if json.Unmarshal([]byte(v.Object.JSON), &e) == nil && e.Reason == "Preempted" {
				for _, uid := range uidPattern.FindAllString(e.Message+" "+e.Note, -1) {
					uids[uid] = true
				}
			}
		}
	}
	i := slices.IndexFunc(w.store.Resources(), func(r kube.Resource) bool { return r.GroupResource() == "pods" })
	if len(uids) == 0 || i < 0 {
		return nil
	}
	pods := w.store.Resources()[i]
	readable, err := w.allowed([]kube.Resource{pods}, "")
	if err != nil {
		return err
	}
	if len(readable) == 0 {
		if readable, err = w.allowed([]kube.Resource{pods}, namespace); err != nil || len(readable) == 0 {
			return err
		}
	} else {
		namespace = ""
	}
	found, err := w.candidates(pods, namespace)
	if err != nil {
		return err
	}
	var preemptors []*candidate
	for _, c := range found {
		if uids[c.uid] {
			w.add(c.resource, c.key)
			preemptors = append(preemptors, c)
		}
	}
	return w.findOwners(preemptors)
}

// owning are the kinds and resources of controllers: those that own Pods, then those that own
// these.
var owning = [][2]string{
	{"ReplicaSet", "replicasets.apps"}, {"StatefulSet", "statefulsets.apps"}, {"DaemonSet", "daemonsets.apps"}, {"Job", "jobs.batch"},
	{"Deployment", "deployments.apps"}, {"CronJob", "cronjobs.batch"},
}

// findOwners adds what owns some objects, and the owners of that.
func (w *storyWriter) findOwners(of []*candidate) error {
	uids := map[[2]string]map[string]bool{} // by kind and namespace
	want := func(c *candidate) {
		for _, owner := range c.owned.Metadata.OwnerReferences {
			at := [2]string{owner.Kind, c.key.Namespace()}
			if uids[at] == nil {
				uids[at] = map[string]bool{}
			}
			uids[at][string(owner.UID)] = true
		}
	}
	for _, c := range of {
		want(c)
	}
	for _, one := range owning {
		var namespaces []string
		for at := range uids {
			if at[0] == one[0] {
				namespaces = append(namespaces, at[1])
			}
		}
		slices.Sort(namespaces)
		for _, ns := range namespaces {
			r, ok, err := w.readable(one[1], ns)
			if err != nil {
				return err
			} else if !ok {
				continue
			}
			found, err := w.candidates(r, ns)
			if err != nil {
				return err
			}
			for _, c := range found {
				if uids[[2]string{one[0], ns}][c.uid] {
					w.add(c.resource, c.key)
					want(c)
				}
			}
		}
	}
	return nil
}

// readable returns a recorded resource, if the caller may read it in a namespace.
func (w *storyWriter) readable(resource, namespace string) (r kube.Resource, ok bool, err error) {
	i := slices.IndexFunc(w.store.Resources(), func(r kube.Resource) bool { return r.GroupResource() == resource })
	if i < 0 {
		return r, false, nil
	}
	all, err := w.allowed([]kube.Resource{w.store.Resources()[i]}, namespace)
	if err != nil || len(all) == 0 {
		return r, false, err
	}
	return all[0], true, nil
}

// findQuotaUsers adds the workloads whose number of replicas grew, if a quota refused Pods: they
// may use what these lack.
func (w *storyWriter) findQuotaUsers() error {
	var namespaces []string
	for _, r := range w.order {
		for _, v := range r.object.Versions {
			if r.events && strings.Contains(v.Object.JSON, "exceeded quota: ") && !slices.Contains(namespaces, r.key.Namespace()) {
				namespaces = append(namespaces, r.key.Namespace())
			}
		}
	}
	for _, ns := range namespaces {
		for _, resource := range []string{"deployments.apps", "statefulsets.apps"} {
			r, ok, err := w.readable(resource, ns)
			if err == nil && ok {
				err = w.findGrown(r, ns)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// findGrown adds the objects of a resource in a namespace whose number of replicas grew.
func (w *storyWriter) findGrown(r kube.Resource, namespace string) error {
	replicas := func(o *scan.Object) int64 {
		var scaled struct {
			Spec struct{ Replicas int64 }
		}
		if o != nil {
			_ = json.Unmarshal([]byte(o.JSON), &scaled)
		}
		return scaled.Spec.Replicas
	}
	ranges, err := w.ranges(r)
	if err != nil {
		return err
	}
	for _, one := range ranges {
		found, err := one.Search(w.r.Context(), history.Search{From: one.from, To: one.to, Since: w.from, Events: maxEvents, Scan: maxScanned, Match: func(key kube.Key, typ kube.EventType) bool {
			return typ == kube.Modified && key.Namespace() == namespace
		}})
		if err != nil {
			return err
		}
		for _, e := range found.Events {
			if replicas(e.Object) > replicas(e.Prev) {
				w.add(r, e.Object.Key)
			}
		}
	}
	return nil
}
