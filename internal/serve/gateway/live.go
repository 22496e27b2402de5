// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// reachTimeout is how long a projection at a future RV waits for it, as in the API
// server.
const reachTimeout = 3 * time.Second

// noProofOfEvents is the error for a projection of Events without an RV.
const noProofOfEvents = "of Events, it cannot be known here what is most recent: give a resourceVersion, such as 0"

// live is the store of a watched resource: its timeline, and its history before the
// timeline's window. It belongs to one request. It never approximates: it declines a
// request that it cannot answer exactly as the API server would.
type live struct {
	h    *reads
	res  *watchcache.Resource
	f    *forms
	view *timeline.View
	over context.Context // ends when the definition of the resource changes
	// diverged is set if the upstream has another history than the view.
	diverged bool
	// projection is set if the API server cannot answer the request.
	projection bool
	// alone is set if the caller cannot be passed through to the API server, so that work for
	// an answer pays.
	alone bool
	// patient is set if a list waits for a proof that takes a second: the API server does not know
	// such requests, cannot be asked for this caller, or has as many lists of the user as it may.
	patient bool
}

// openLive opens the store of a resource for a read. The error is a *decline if the
// read cannot be answered from it.
func (h *reads) openLive(r *http.Request, read *request.Read, res *watchcache.Resource) (*live, *query, error) {
	ctx := r.Context()
	if read.Namespace != "" && !res.Info.Namespaced || read.Name != "" && read.Namespace == "" && res.Info.Namespaced {
		return nil, nil, errDeclined // the API server answers with an error
	}
	verb, alone := read.Verb, h.alone(ctx)
	if alone {
		verb = request.List // wait for the first list
	}
	st := res.StateFor(ctx, verb)
	if st.Trust == watchcache.Suspect && resumes(read) {
		st = res.WaitTrust(ctx)
	}
	// A watch from an RV of another history ends with 410, as one from an RV that is too old.
	diverged := st.Trust == watchcache.Diverged && resumes(read) && st.View != nil
	if !st.Readable && !diverged {
		return nil, nil, unreadable(read, st)
	}
	own := read.Verb
	if h.shared != nil && own == request.Get { // the caller may get it; the gateway lists and watches
		own = request.List
	}
	if !res.Access.Allows(ctx, own) {
		return nil, nil, &decline{status: status.Forbidden(fmt.Sprintf(
			"the gateway may not %s %s in all namespaces, and so does not serve them from its cache", own, res.ID.GroupResource()))}
	}
	if !res.Served(ctx, st.Lists()) {
		return nil, nil, errDeclined
	}
	over, ok := res.Defined(ctx, st.Lists())
	if !ok {
		return nil, nil, errDeclined
	}
	if over != nil && !diverged {
		// A list with other columns is in a view before over ends: the view has to be
		// read after over.
		if st = res.State(); !st.Readable {
			return nil, nil, unreadable(read, st)
		}
	}
	lists := st.Lists()
	s := &live{h: h, res: res, f: h.liveForms.of(h, res.ID, res), view: st.View, over: over, diverged: diverged, projection: read.Fields != nil, alone: alone, patient: read.Fields != nil || alone}
	q := &query{Read: read, Selection: request.Selection{Namespace: read.Namespace}, warnings: st.Status.Warnings}
	if read.Verb != request.Get {
		fields := res.Fields(ctx, lists)
		if q.Selection, ok = read.Select(res.Info.Namespaced, fields); !ok {
			return nil, nil, s.decline(status.BadRequest(notSelectable(read.Options.FieldSelector, fields)))
		}
	}
	q.Form, ok = read.Negotiate(r, st.View.BookmarkTemplate.Typed(), func() bool { return s.f.cbor.Offered(ctx) })
	if !ok || s.f.isUnwritable(q.Form.Form, read.Verb == request.Watch) {
		return nil, nil, errDeclined
	}
	if read.Verb == request.List && q.View == wire.Table && wire.SortsRows(read.Resource) {
		return nil, nil, errDeclined
	}
	consistent := read.Verb == request.List && read.Options.ResourceVersion == "" && read.Options.Continue == ""
	if consistent && !s.patient && !res.Pays(&st.View.Snapshot, q.Selection, read.Options.Limit) {
		if read.Resource.Uncached() {
			return nil, nil, errDeclined
		}
		if passes := h.users.TryPass(ctx, false); passes != nil {
			return nil, nil, &decline{passes: passes}
		}
		s.patient = true
	}
	return s, q, s.reach(ctx, q)
}

// reach waits until the timeline has the RV of a projection, which cannot be passed
// through.
func (s *live) reach(ctx context.Context, q *query) error {
	exact := q.Verb == request.List || q.SendsInitialEvents()
	if !s.projection || !exact || s.view.RV >= q.RV {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	reached, err := s.res.Timeline.WaitRV(ctx, q.RV)
	if err != nil {
		return &decline{status: status.TooLarge(q.RV, s.view.RV)}
	}
	s.view = reached
	return nil
}

func (s *live) forms() *forms { return s.f }

// decline implements store.
func (s *live) decline(why *metav1.Status) error {
	if s.projection {
		why.Message = "fields: " + why.Message
	}
	return &decline{status: why}
}

// failed implements store: the API server may be able to answer.
func (s *live) failed(err error) error {
	s.h.log.Debug("a read that failed is passed through", "resource", s.res.ID.String(), "err", err)
	return errDeclined
}

// otherForm implements store: the request is passed through.
func (s *live) otherForm(_ *http.Request, q *query, err error) (request.Form, error) {
	// YAML and indented JSON fail by size, columns by version, and strings that are not
	// UTF-8 by object: other requests in the form can succeed.
	if q.Media != wire.YAML && !q.Pretty && !errors.Is(err, wire.ErrColumns) && !errors.Is(err, wire.ErrReplaced) {
		s.f.Unwritable(q.Form.Form, err)
	}
	return q.Form, errDeclined
}

// state returns a snapshot as a state in the form of a view.
func (s *live) state(v *timeline.View, snapshot *timeline.Snapshot) state {
	return state{objects: timelineSnapshot{snapshot}, rv: snapshot.RV, item: v.BookmarkTemplate, listKind: v.ListKind}
}

// latest implements store: after a proof of freshness. A proof takes about a second if the
// resource does not change. Then the API server answers sooner, but each user may have only
// few lists there.
func (s *live) latest(ctx context.Context, q *query, _ int64) (state, error) {
	prove := s.res.FreshSoon
	if s.projection && q.Resource.Uncached() {
		return state{}, s.decline(status.BadRequest(noProofOfEvents))
	}
	if s.patient {
		prove = s.res.Fresh
	}
	fresh, err := prove(ctx)
	if err != nil && !s.patient {
		if passes := s.h.users.TryPass(ctx, true); passes != nil {
			return state{}, &decline{soon: true, passes: passes}
		}
		fresh, err = s.res.Fresh(ctx)
	}
	if err != nil {
		s.h.log.Debug("no proof of freshness", "resource", q.Resource.String(), "err", err)
		return state{}, &decline{soon: true}
	}
	return s.state(fresh, &fresh.Snapshot), nil
}

// cached implements store.
func (s *live) cached(_ context.Context, q *query, _ int64) (state, error) {
	if q.Options.Limit > 0 && q.Resource.Uncached() && !s.projection {
		return state{}, errDeclined
	}
	return s.state(s.view, &s.view.Snapshot), nil
}

// notOlderThan implements store.
func (s *live) notOlderThan(_ context.Context, q *query, _ int64) (state, error) {
	if s.view.RV < q.RV {
		return state{}, errDeclined
	}
	return s.state(s.view, &s.view.Snapshot), nil
}

// exactly implements store: from the timeline, or from what is recorded.
func (s *live) exactly(ctx context.Context, q *query, rv uint64, limit int64) (state, error) {
	snapshot, err := s.res.Timeline.At(rv)
	switch {
	case err == nil:
		return s.state(s.view, snapshot), nil
	case !errors.Is(err, timeline.ErrCompacted):
		return state{}, errDeclined // the API server has the RV, or explains the error
	}
	expired := &decline{status: status.Expired(status.TooOld(rv, s.view.Start))}
	if s.h.requirePast(ctx, pastPath) != nil {
		return state{}, expired // as by the API server
	}
	stream, _ := s.h.past.Holding(ctx, q.Resource, s.res.Timeline, s.view, rv)
	if stream == nil {
		return state{}, expired
	}
	release, held, err := s.h.past.AcquireList(ctx, limit)
	if _, refused := errors.AsType[*status.Error](err); refused || errors.Is(err, past.ErrBusy) {
		// Not passed through: the API server does not hold this RV either.
		return state{}, &status.Error{Status: s.h.past.Refusal(err)}
	}
	if err != nil {
		return state{}, errDeclined
	}
	return state{
		objects: &past.Snapshot{Stream: stream, RV: rv, Ctx: ctx}, rv: rv,
		item: s.view.BookmarkTemplate, listKind: s.view.ListKind, recorded: true, release: release, held: held,
	}, nil
}

// watch implements store.
func (s *live) watch(ctx context.Context, q *query) (watchStart, error) {
	initial := q.SendsInitialEvents()
	v, now := s.view, s.view.RV
	if q.Options.ResourceVersion == "" {
		switch { // no bookmark of Events comes in time for a proof
		case q.Resource.Uncached() && s.alone && !s.projection:
			return watchStart{}, errDeclined
		case q.Resource.Uncached():
			return watchStart{}, s.decline(status.BadRequest(noProofOfEvents))
		}
		// The watch begins now, or with the state of now: it includes every write that
		// was acknowledged before the request.
		var err error
		if v, now, err = s.res.FreshState(ctx); err != nil {
			s.h.log.Debug("no proof of freshness", "resource", q.Resource.String(), "err", err)
			return watchStart{}, &decline{unproven: true}
		}
	}
	if initial && v.RV < q.RV {
		return watchStart{}, errDeclined // the API server waits for the RV, or refuses it as too large
	}
	diverged := s.diverged
	if !diverged && !initial && q.RV > v.RV && q.RV <= v.Lost() && !q.Resource.Uncached() {
		// It is an RV of the history before, unless the upstream has already come past it.
		fresh, err := s.res.Fresh(ctx)
		if err != nil {
			return watchStart{}, &status.Error{Status: status.Unavailable(unconfirmed, true)}
		}
		v, diverged = fresh, fresh.RV < q.RV
	}
	start := watchStart{state: s.state(v, &v.Snapshot), rv: q.RV, owner: s.f, over: s.over, encoder: &s.f.encoder}
	gap, inGap := v.GapAround(q.RV)
	switch {
	case diverged:
		start.rv, start.expired = v.RV, otherHistory
	case initial || q.RV == 0:
		start.state.rv, start.rv = now, now
	case !s.projection && inGap:
		// The API server cannot resume it either: the client may have received a part of
		// the gap's events (ADR 2).
		start.rv, start.expired = v.RV, status.TooOld(q.RV, gap.To)
	}
	if q.Speed > 0 || !v.CanStart(start.rv) {
		if err := s.resume(ctx, q, v, &start); err != nil {
			return watchStart{}, err
		}
	}
	if start.source == nil {
		cursor, err := s.res.Timeline.WatchFrom(v, start.rv, q.Interest())
		if err != nil {
			return watchStart{}, errDeclined
		}
		start.source = cursor
		if source := s.h.past.Follow(q.Resource, s.res.Timeline, v, cursor, q.Interest()); source != nil {
			start.source = source
		}
		if start.rv > v.RV && !s.h.recording {
			s.res.Reach(start.rv)
		}
	}
	return start, nil
}

// resumes reports whether a read is a watch of the events after an RV.
func resumes(read *request.Read) bool {
	return read.Verb == request.Watch && read.RV > 0 && !read.SendsInitialEvents()
}

// unreadable returns the error for a read that is not served from the timeline. If the
// upstream may have another history, a watch from an RV is not passed through either: the
// RV may be of the timeline's history, and the API server would be silent until it reaches
// it, or send events of its own history.
func unreadable(read *request.Read, st watchcache.State) error {
	switch {
	case st.Trust != watchcache.Suspect && st.Trust != watchcache.Diverged || read.Verb != request.Watch:
		return &decline{soon: st.Status.Phase != reflector.Refused}
	case !resumes(read):
		return &decline{unproven: true}
	}
	return &status.Error{Status: status.Unavailable(unconfirmed, true)}
}

// unconfirmed is why a watch from an RV is not served for a while.
const unconfirmed = "the API server does not confirm in time that its history is still the same: try again"

// otherHistory is why a watch from an RV ends after a restore of etcd.
const otherHistory = "the API server has another history since this resourceVersion, as after a restore of etcd"

// resume makes a watch begin in the history: for an RV that the timeline has
// compacted, or a replay.
func (s *live) resume(ctx context.Context, q *query, v *timeline.View, start *watchStart) error {
	if refusal := s.h.requirePast(ctx, pastPath); refusal != nil {
		if q.Speed > 0 {
			return &status.Error{Status: refusal}
		}
		if s.projection {
			return &decline{status: status.Expired(status.TooOld(start.rv, v.Start))}
		}
		return &decline{short: true} // the API server says that it is too old
	}
	source, err := s.h.past.Resume(ctx, q.Resource, s.res.Timeline, v, q.RV, q.Interest())
	switch gone, inGap := errors.AsType[status.ExpiredError](err); {
	case inGap && !s.projection:
		start.rv, start.expired = v.RV, gone.Error()
	case source != nil:
		if err := source.Start(ctx, q.Speed); err != nil {
			source.Close()
			return s.failed(err)
		}
		start.source, start.past = source, true
		if q.Speed > 0 || q.Times {
			start.live = source.Live // other watches are those of the API server
		}
		if q.Speed > 0 {
			start.replayed = source.Replayed
		}
	case q.Speed > 0 && err != nil:
		return &decline{status: s.h.past.Refusal(err)}
	case q.Speed > 0:
		return &decline{status: s.h.past.NotRecorded(q.Resource)}
	case s.projection:
		return &decline{status: status.Expired(status.TooOld(start.rv, v.Start))}
	default:
		return &decline{short: true}
	}
	return nil
}

// noProjection returns why a valid projection is not served.
func (h *reads) noProjection(ctx context.Context, read *request.Read) *metav1.Status {
	if _, err := h.discovery.Lookup(ctx, read.Resource, time.Time{}); errors.Is(err, upstream.ErrNoResource) {
		return status.NotFound("fields: there is no such resource that can be listed and watched")
	}
	if refusal := h.cache.Refused(read.Resource); refusal != nil && refusal.Code == http.StatusForbidden {
		return status.Forbidden(refusal.Message) // a retry does not help
	}
	return status.Unavailable(fmt.Sprintf("fields: projections are served from the cache only, and %s cannot be served from it now: try again, or leave fields out",
		read.Resource.GroupResource()), true)
}
