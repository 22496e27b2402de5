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

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/history"
)

// historySync bounds the wait for what is on its way to the store.
const historySync = 2 * time.Second

// mayRead returns why the history of something may not be read, now (T8): the
// gateway has to be allowed to list the resource, also where one object is asked
// for.
func (c *historyCall) mayRead(t target) error {
	if refusal := c.disclosure.refusal(c.r, c.source, t, verbList); refusal != nil {
		return &refusedCall{refusal}
	}
	return nil
}

// target reads the path of the API, of which the history may be read.
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
	if err := c.mayRead(t); err != nil {
		return t, nil, err
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

// resources returns those that are recorded and may be listed: of the names in
// the parameters, such as deployments.apps, or all. It fails if it is not known
// what may be: what is left out would not be missed.
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
	namespace := c.query.Get("namespace")
	refused := make([]error, len(chosen))
	var group errgroup.Group
	group.SetLimit(8)
	for i, r := range chosen {
		group.Go(func() error {
			inner := c.r.Clone(c.r.Context())
			inner.URL.Path = listPath(r, namespace)
			if refusal := c.filter.checkAPI(inner); refusal != nil {
				refused[i] = &refusedCall{refusal}
				return nil
			}
			refused[i] = c.mayRead(target{verb: verbList, resource: r, namespace: namespace})
			if undecided, ok := errors.AsType[*refusedCall](refused[i]); ok && undecided.status.Code == http.StatusServiceUnavailable {
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

// stateAt returns the stream that knows the state at a moment, and its RV there.
func stateAt(streams []*history.Stream, when kube.Moment) (*history.Stream, api.Moment, error) {
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
func rangeOf(st *history.Stream, newest bool, from, to kube.Moment) (r historyRange, ok bool, err error) {
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
