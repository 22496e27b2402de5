// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/status"
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

// target returns the resource or object that the request's path names, and its
// epochs, if the caller may read its history.
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
	if len(streams) == 0 {
		return t, nil, &status.Error{Status: c.Past.NotRecorded(t.Resource)}
	}
	if err := c.mayRead(t); err != nil {
		return t, nil, err
	}
	return t, streams, nil
}

// notRecorded returns the error for a name that no recorded resource has.
func notRecorded(name string) error {
	return refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
		"%s are not recorded: name them with --record to watchkeeper serve", name)
}

// sync waits a few seconds until the store has the events that the gateway has seen.
// An event that is not recorded by then is missing in this answer, not in later ones.
func (c *call) sync(resource kube.Resource) { _ = c.Past.Sync(c.r.Context(), resource) }

// resources returns the recorded resources that the caller may list: all of them, or
// those that the parameters name, such as deployments.apps. It fails if a decision is
// missing, since the caller would not notice that a resource was left out.
func (c *call) resources() ([]kube.Resource, error) {
	var chosen []kube.Resource
	names := map[string]bool{}
	for _, name := range c.query["resource"] {
		names[name] = false
	}
	for _, r := range c.store.Resources() {
		if len(names) == 0 {
			chosen = append(chosen, r)
			continue
		}
		for _, name := range []string{r.GroupResource(), r.String()} {
			if _, ok := names[name]; ok {
				names[name] = true
				chosen = append(chosen, r)
			}
		}
	}
	for name, found := range names {
		if !found {
			return nil, notRecorded(name)
		}
	}
	namespace := c.query.Get("namespace")
	refused := make([]error, len(chosen))
	var group errgroup.Group
	group.SetLimit(8)
	for i, r := range chosen {
		group.Go(func() error {
			if refused[i] = c.filtered(request.ListPath(r, namespace)); refused[i] != nil {
				return nil
			}
			refused[i] = c.mayRead(request.Target{Verb: request.List, Resource: r, Namespace: namespace})
			if undecided, ok := errors.AsType[*status.Error](refused[i]); ok && undecided.Code == http.StatusServiceUnavailable {
				return refused[i]
			}
			if refused[i] == nil {
				c.sync(r)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []kube.Resource
	for i, r := range chosen {
		if refused[i] == nil {
			out = append(out, r)
		} else if len(names) > 0 {
			return nil, refused[i]
		}
	}
	return out, nil
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
