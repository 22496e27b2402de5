// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// historySync bounds the wait for what is on its way to the store.
const historySync = 2 * time.Second

// target reads the path of the API. Its history may be read by who may list it
// in all namespaces: the gateway itself (T8), and now.
func (c *historyCall) target() (target, []*history.Stream, error) {
	t, ok := parsePath(c.path)
	if !ok || t.watchPath {
		return t, nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
			"%s is not the path of a resource or an object, such as /apis/apps/v1/namespaces/default/deployments/web", c.path)
	}
	inner := c.r.Clone(c.r.Context())
	inner.URL.Path = c.path
	if refusal := c.filter.checkAPI(inner); refusal != nil {
		return t, nil, &refusedCall{refusal}
	}
	streams := c.store.Streams(t.resource)
	if len(streams) == 0 {
		return t, nil, notRecorded(t.resource.GroupResource())
	}
	if !c.accessTo(t.resource).allows(c.r.Context(), verbList) {
		return t, nil, refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
			"the gateway may not list %s in all namespaces, and so does not show their history", t.resource.GroupResource())
	}
	c.sync(t.resource)
	return t, streams, nil
}

func notRecorded(name string) error {
	return refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
		"%s are not recorded: name them with --record to watchkeeper serve", name)
}

// sync waits a while until the store has what the gateway has. What it has not
// by then will be in a later answer.
func (c *historyCall) sync(resource kube.Resource) {
	ctx, cancel := context.WithTimeout(c.r.Context(), historySync)
	defer cancel()
	_ = c.source.Sync(ctx, resource)
}

func (a *historyAPI) accessTo(resource kube.Resource) *access {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.access == nil {
		a.access = map[kube.Resource]*access{}
	}
	one := a.access[resource]
	if one == nil { // there are as many as are recorded
		one = &access{up: a.up, id: resource, begin: a.begin}
		a.access[resource] = one
	}
	return one
}

// resources returns those that are recorded and may be listed: of the names in
// the parameters, such as deployments.apps, or all.
func (c *historyCall) resources() ([]kube.Resource, error) {
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
	allowed := make([]bool, len(chosen))
	var group errgroup.Group
	group.SetLimit(8)
	for i, r := range chosen {
		group.Go(func() error {
			inner := c.r.Clone(c.r.Context())
			inner.URL.Path = r.Path()
			allowed[i] = c.filter.checkAPI(inner) == nil && c.accessTo(r).allows(c.r.Context(), verbList)
			if allowed[i] {
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
		if allowed[i] {
			out = append(out, r)
		} else if len(names) > 0 {
			return nil, refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
				"the gateway may not list %s in all namespaces, and so does not show their history", r.GroupResource())
		}
	}
	return out, nil
}

// stateAt returns the stream that knows the state at a moment, and its RV there.
func stateAt(streams []*history.Stream, when kube.When) (*history.Stream, api.Moment, error) {
	newest := streams[len(streams)-1]
	if when.RV != 0 {
		return newest, api.Moment{ResourceVersion: kube.FormatRV(when.RV)}, newest.Check(when.RV)
	}
	st := newest
	for _, older := range slices.Backward(streams) {
		if st = older; !st.Span().From.At.After(when.At) {
			break
		}
	}
	at, err := st.At(when.At)
	return st, apiMoment(at), err
}

func apiMoment(m history.Moment) api.Moment {
	return api.Moment{ResourceVersion: kube.FormatRV(m.RV), Time: m.At.UTC()}
}

// A historyRange is the part of one stream that a range is about: the events above from
// up to to, observed since.
type historyRange struct {
	*history.Stream
	from, to uint64
	since    time.Time
}

// rangeOf cuts a range out of a stream; zero moments are no bound. ok is false if
// there can be nothing in it.
func rangeOf(st *history.Stream, newest bool, from, to kube.When) (r historyRange, ok bool, err error) {
	span := st.Span()
	r = historyRange{Stream: st, from: span.From.RV, to: span.To.RV, since: from.At}
	if !newest && (from.RV != 0 || to.RV != 0) || span.From.RV == 0 {
		return r, false, nil // RVs are those of the newest epoch
	}
	r.from = max(r.from, from.RV)
	if to.RV != 0 {
		r.to = min(r.to, to.RV)
	}
	if !to.At.IsZero() && to.At.Before(span.To.At) {
		switch at, err := st.At(to.At); {
		case err == nil:
			r.to = min(r.to, at.RV)
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
