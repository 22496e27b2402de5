// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// mayRead returns why the history of a target may not be read now, nil if it may
// (T8). Without credentials of the caller, the gateway has to be allowed to list the
// resource, even if the request is for a single object.
func (c *call) mayRead(t request.Target) error {
	if refusal := c.Access.Refusal(c.r, t, request.List); refusal != nil {
		return &status.Error{Status: refusal}
	}
	return nil
}

// filtered returns why a path of the Kubernetes API may not be read, nil if it may.
func (c *call) filtered(path string) error {
	inner := c.r.Clone(c.r.Context())
	inner.URL.Path = path
	if refusal := c.Filter(inner); refusal != nil {
		return &status.Error{Status: refusal}
	}
	return nil
}

// target returns the resource or object that the request's path names, in the API version that is
// recorded now, and its epochs, if the caller may read its history.
func (c *call) target() (request.Target, []*history.Stream, error) {
	t, ok := request.ParsePath(c.path)
	if !ok || t.WatchPath {
		return t, nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
			"%s is not the path of a resource or an object, such as /apis/apps/v1/namespaces/default/deployments/web", c.path)
	}
	if err := c.filtered(c.path); err != nil {
		return t, nil, err
	}
	streams := c.store.Streams(t.Resource)
	if len(streams) == 0 || !c.Past.Recorded(t.Resource) {
		return t, nil, &status.Error{Status: c.Past.NotRecorded(t.Resource)}
	}
	if err := c.mayRead(t); err != nil {
		return t, nil, err
	}
	if now := streams[len(streams)-1].Resource(); now != t.Resource { // the record is one, whatever the API version
		t.Resource = now
		if err := c.mayRead(t); err != nil {
			return t, nil, err
		}
	}
	return t, streams, nil
}

// notRecorded returns the error for a name that no recorded resource has.
func notRecorded(name string) error {
	return refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
		"there is no recorded resource %q: %s lists all; watchkeeper serve records others with --record, and Secrets with --record-secrets", name, Path)
}

// named returns the recorded resources with a name, in any of kubectl's forms:
// deployments.apps, deployments.v1.apps, deployments, deployment, deploy. A full name has
// precedence: events are not also those of events.k8s.io.
func (c *call) named(text string) (full []kube.Resource) {
	var others []kube.Resource
	name, group, qualified := strings.Cut(strings.ToLower(text), ".")
	for _, r := range c.store.Resources() {
		switch {
		case text == r.GroupResource(), text == r.String():
			full = append(full, r)
		case qualified && group != r.Group && group != r.Version+"."+r.Group:
		case name == r.Name, slices.Contains(c.otherNames(r), name):
			others = append(others, r)
		}
	}
	if len(full) > 0 {
		return full
	}
	return others
}

// otherNames returns the kind, the singular and the short names of a resource, in lower
// case, as far as they are known.
func (c *call) otherNames(r kube.Resource) []string {
	if known := c.discovered(r); known != nil {
		return append([]string{strings.ToLower(known.Kind), known.SingularName}, known.ShortNames...)
	}
	var names []string
	for _, st := range c.store.Streams(r) {
		if item := st.Form().Item; item != nil && item.Kind != "" {
			names = append(names, strings.ToLower(item.Kind))
		}
	}
	return names
}

// discovered returns what discovery says of a resource; nil if that is not known now.
func (c *call) discovered(r kube.Resource) *metav1.APIResource {
	if c.Documents == nil {
		return nil
	}
	all := c.Documents.Resources(r)
	if i := slices.IndexFunc(all, func(known metav1.APIResource) bool { return known.Name == r.Name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// sync waits a few seconds, once in a call for each of some resources, and for all of them at the
// same time, until the store has the events that the gateway has seen. An event that is not
// recorded by then is missing in this answer, and perhaps not in later ones; see unsynced.
func (c *call) sync(resources ...kube.Resource) {
	unsynced := make([]error, len(resources))
	var all sync.WaitGroup
	for i, r := range resources {
		if _, done := c.unsynced[r]; !done {
			all.Go(func() { unsynced[i] = c.Past.Sync(c.r.Context(), r) })
		}
	}
	all.Wait()
	for i, r := range resources {
		if _, done := c.unsynced[r]; !done {
			c.unsynced[r] = unsynced[i]
		}
	}
}

// locate returns the state of a resource at a moment; see [past.Past.Locate].
func (c *call) locate(r kube.Resource, when kube.Moment) (past.State, error) {
	c.sync(r)
	return c.Past.LocateSynced(c.r.Context(), r, when, c.unsynced[r])
}

// readable is resources for an answer about what changed: it fails if there is something, and
// the caller may list nothing of it, or if there is nothing because recording fails. What has no
// namespaces is nothing of one.
func (c *call) readable() ([]kube.Resource, error) {
	all, err := c.resources()
	if err != nil {
		return nil, err
	}
	if len(c.denied) > 0 && !slices.ContainsFunc(all, c.within) {
		return nil, c.mayListNone()
	}
	if len(all) == 0 {
		err = c.notRecording()
	}
	return all, err
}

// notRecording returns why nothing is recorded, if recording fails.
func (c *call) notRecording() error {
	if state := c.recordingState(); state.State == api.RecordingFailed {
		return &status.Error{Status: status.Unavailable("nothing is recorded: "+state.Reason, true)}
	}
	return nil
}

// within reports whether a resource that [call.resources] returned may have objects in the
// namespace of the request.
func (c *call) within(r kube.Resource) bool { return !c.cluster[r] || c.query.Get("namespace") == "" }

// mayListNone refuses a caller who may list no recorded resource.
func (c *call) mayListNone() error {
	where := "all namespaces" // at once: each namespace may have some
	if namespace := c.query.Get("namespace"); namespace != "" {
		where = "namespace " + namespace
	}
	return refuse(http.StatusForbidden, metav1.StatusReasonForbidden, "you may list none of the recorded resources in %s", where)
}

// maxNamed is how many resources a request may name. Each is looked for among all.
const maxNamed = 100

// resources returns the recorded resources that the caller may list: all of them, or
// those that the parameters name, such as deployments.apps. Those that it leaves out are then
// c.denied, without those that are not in the namespace of the request, or that the gateway's
// flags hide. It fails if a decision is missing.
func (c *call) resources() ([]kube.Resource, error) {
	var chosen []kube.Resource
	names := c.query["resource"]
	if len(names) == 0 {
		chosen = c.store.Resources()
	}
	if len(names) > maxNamed {
		return nil, refuseBad("%d resources are named: at most %d are possible", len(names), maxNamed)
	}
	for _, name := range names {
		found := c.named(name)
		if len(found) == 0 {
			return nil, notRecorded(name)
		}
		for _, r := range found {
			if !slices.Contains(chosen, r) {
				chosen = append(chosen, r)
			}
		}
	}
	refused, err := c.decide(chosen, c.query.Get("namespace"))
	if err != nil {
		return nil, err
	}
	var out []kube.Resource
	for i, r := range chosen {
		if refused[i] == nil {
			out = append(out, r)
		} else if len(names) > 0 {
			return nil, refused[i]
		} else if c.within(r) && c.filtered(r.ListPath(c.query.Get("namespace"))) == nil {
			c.denied = append(c.denied, r.GroupResource())
		}
	}
	return out, nil
}

// decide returns why the caller may not list some recorded resources in a namespace ("" for
// all), nil for those that it may. It fails if a decision is missing.
func (c *call) decide(chosen []kube.Resource, namespace string) (refused []error, err error) {
	if c.cluster == nil {
		c.cluster = map[kube.Resource]bool{}
	}
	for _, r := range chosen {
		if _, ok := c.cluster[r]; !ok {
			c.cluster[r] = c.clusterScoped(r)
		}
	}
	refused = make([]error, len(chosen))
	var group errgroup.Group
	group.SetLimit(8)
	for i, r := range chosen {
		group.Go(func() error {
			namespace := namespace
			if c.cluster[r] {
				namespace = "" // rights in a namespace do not apply
			}
			if refused[i] = c.filtered(r.ListPath(namespace)); refused[i] != nil {
				return nil
			}
			refused[i] = c.mayRead(request.Target{Verb: request.List, Resource: r, Namespace: namespace})
			if undecided, ok := errors.AsType[*status.Error](refused[i]); ok && undecided.Code == http.StatusServiceUnavailable {
				return refused[i]
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var allowed []kube.Resource
	for i, r := range chosen {
		if refused[i] == nil {
			allowed = append(allowed, r)
		}
	}
	c.sync(allowed...)
	return refused, nil
}

// clusterScoped reports whether the objects of a resource have no namespace, as far as
// discovery or a recorded object shows it.
func (c *call) clusterScoped(r kube.Resource) bool {
	if known := c.discovered(r); known != nil {
		return !known.Namespaced
	}
	for _, st := range c.store.Streams(r) {
		for o, err := range st.List(c.r.Context(), st.Span().To.RV, "", "") {
			return err == nil && o.Key.Namespace() == ""
		}
	}
	return false
}

func apiMoment(m history.Moment) api.Moment {
	return api.Moment{ResourceVersion: kube.FormatRV(m.RV), Time: m.At.UTC()}
}

// An eventRange selects events of one stream by RV, from < RV <= to, and by the time
// of their observation, not before since.
type eventRange struct {
	*history.Stream
	from, to uint64
	since    time.Time
}

// rangeOf returns the range of a stream between two moments; a zero moment is no
// bound. ok is false if the range is empty.
func rangeOf(ctx context.Context, st *history.Stream, newest bool, from, to kube.Moment) (r eventRange, ok bool, err error) {
	span := st.Span()
	r = eventRange{Stream: st, from: span.From.RV, to: span.To.RV, since: from.At}
	if !newest && (from.RV != 0 || to.RV != 0) || span.From.RV == 0 {
		return r, false, nil // an RV names a moment in the newest epoch only
	}
	r.from = max(r.from, from.RV)
	if !from.At.IsZero() && !from.Ago {
		if _, err := st.At(ctx, from.At); errors.Is(err, history.ErrClock) {
			return r, false, err
		}
	}
	if to.RV != 0 {
		r.to = min(r.to, to.RV)
	}
	if !to.At.IsZero() && (to.At.Before(span.To.At) || len(st.ClockSteps()) > 0) {
		at := st.At
		if to.Ago {
			at = st.AtAge
		}
		switch at, err := at(ctx, to.At); {
		case err == nil:
			r.to = min(r.to, at.RV)
		case errors.Is(err, history.ErrFuture): // no bound
		case errors.Is(err, history.ErrBefore):
			return r, false, nil
		case errors.Is(err, history.ErrGap):
			for _, g := range st.Gaps() {
				if g.Since.Before(to.At) && to.At.Before(g.Until) {
					r.to = min(r.to, g.From)
				}
			}
		default:
			return r, false, err
		}
	}
	return r, r.from < r.to, nil
}
