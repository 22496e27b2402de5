// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wI2L/jsondiff"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/findings"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/past"
	"github.com/watchkeeper/watchkeeper/internal/request"
)

const (
	// slack is how much later than since a change may be observed that was before it: the
	// times of a status have whole seconds.
	slack = time.Second
	// maxVersionsOf bounds the versions that are read of an object.
	maxVersionsOf = 100
	// maxSharing bounds the changes that are read of workloads that share a quota.
	maxSharing = 100
)

// sharing are the workloads that share a quota.
var sharing = []string{"cronjobs.batch", "daemonsets.apps", "deployments.apps", "jobs.batch", "statefulsets.apps"}

// before returns the last changes, before something failed, of the objects that a finding is
// related to. Changes of a status are left out, except those of a quota.
func (f *finder) before(one *findings.Finding, since time.Time) (all []api.ObjectChange, err error) {
	if since.IsZero() {
		since = f.out.At
	}
	until, begin := since.Add(slack), since.Add(-justBefore)
	for _, ref := range one.Related {
		state, ok := f.stateOf(ref.Resource, ref.Key)
		if !ok {
			continue
		}
		read := 0
		for e, err := range versionsBackward(f.page.ctx, state.Stream, ref.Key, state.Stream.Span().From.RV, state.RV) {
			if err != nil {
				return nil, err
			}
			if read++; e.At.Before(begin) || read > maxVersionsOf || f.page.full() {
				break
			}
			if e.At.After(until) {
				continue
			}
			if all, err = f.describe(all, state, ref.Resource, e); err != nil {
				return nil, err
			}
		}
	}
	if one.Quota {
		if all, err = f.sharing(all, one.Subject.Key.Namespace(), begin, until); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b api.ObjectChange) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Path, b.Path), strings.Compare(b.ResourceVersion, a.ResourceVersion))
	})
	all = slices.CompactFunc(all, func(a, b api.ObjectChange) bool { return a.Path == b.Path && a.ResourceVersion == b.ResourceVersion })
	return all[:min(len(all), maxBefore)], f.ended()
}

// sharing adds the changes of the workloads of a namespace.
func (f *finder) sharing(all []api.ObjectChange, namespace string, begin, until time.Time) ([]api.ObjectChange, error) {
	for _, resource := range sharing {
		state, ok := f.stateOf(resource, kube.MakeKey(namespace, "any"))
		if !ok {
			continue
		}
		found, err := state.Stream.Search(f.page.ctx, history.Search{
			Match: func(key kube.Key, _ kube.EventType) bool { return key.Namespace() == namespace },
			From:  state.Stream.Span().From.RV, To: state.RV, Since: begin, Events: maxSharing, Scan: maxScanned,
		})
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(found.Events) {
			if e.At.After(until) || f.page.full() {
				continue
			}
			if all, err = f.describe(all, state, resource, e); err != nil {
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

// describe adds a change, unless it is only noise, of the status, or what a controller notes.
func (f *finder) describe(all []api.ObjectChange, state past.State, resource string, e history.Event) ([]api.ObjectChange, error) {
	item, _, err := f.page.change(state.Stream, e)
	if err != nil || item == nil {
		return all, err
	}
	if item.Type == api.Modified && resource != "resourcequotas" && !slices.ContainsFunc(item.Changes, byWill) {
		return all, nil
	}
	key := e.Object.Key
	item.Changes = nil
	return append(all, api.ObjectChange{
		Resource: resource, Path: request.ObjectPath(state.Stream.Resource(), key), Kind: e.Object.Kind, Namespace: key.Namespace(), Name: key.Name(), Change: *item,
	}), nil
}
