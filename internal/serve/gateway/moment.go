// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// moment is the store of a recorded resource at a moment. It belongs to one request.
// The API server cannot answer in its place, so it declines nothing.
type moment struct {
	h     *reads
	f     *forms
	state past.State
}

// openMoment opens the store of a moment for a request, whose path is that below
// /at. The error is a *status.Error, or one of the history.
func (h *reads) openMoment(r *http.Request, when kube.Moment) (*moment, *query, error) {
	read, err := parseAt(r)
	if err != nil {
		return nil, nil, err
	}
	if err := h.past.Outside(read.Namespace); err != nil {
		return nil, nil, err
	}
	if !h.past.Recorded(read.Resource) {
		return nil, nil, &status.Error{Status: h.past.NotRecorded(read.Resource)}
	}
	newest := read.Target
	if st := h.past.Newest(read.Resource); st != nil {
		newest.Resource = st.Resource()
	}
	for _, target := range []request.Target{read.Target, newest} { // mostly the same
		if refusal := h.access.Refusal(r, target, read.Verb); refusal != nil {
			return nil, nil, &status.Error{Status: refusal}
		}
	}
	ctx := r.Context()
	st, err := h.past.Locate(ctx, read.Resource, when)
	if err != nil {
		return nil, nil, err
	}
	asked := read.Resource
	read.Resource = st.Stream.Resource() // perhaps in another API version
	namespaced, err := isNamespaced(ctx, st, read)
	if err != nil {
		return nil, nil, err
	}
	if read.Namespace != "" && !namespaced || read.Name != "" && read.Namespace == "" && namespaced {
		return nil, nil, &status.Error{Status: notServedAt(r.URL.Path)}
	}
	s := &moment{h: h, f: h.pastForms.of(h, read.Resource, nil), state: st}
	q := &query{Read: read, Selection: request.Selection{Namespace: read.Namespace}}
	var ok bool
	if read.Verb != request.Get {
		if q.Selection, ok = read.Select(namespaced, s.fields(ctx)); !ok {
			return nil, nil, &status.Error{Status: status.BadRequest(notSelectable(read.Options.FieldSelector, s.fields(ctx)))}
		}
	}
	if !read.Resource.BuiltIn() {
		_, _ = s.f.definitions.Get(ctx, 0) // its columns may show dates
	}
	if q.Form, ok = s.negotiate(r, read); !ok {
		return nil, nil, &status.Error{Status: notAcceptable(r)}
	}
	if as := read.Resource; as != asked && hasObjects(q.Form) {
		return nil, nil, &status.Error{Status: status.NotFound(fmt.Sprintf("%s are recorded as %s at that moment, not as %s: read %s, or a Table",
			as.GroupResource(), as.APIVersion(), asked.APIVersion(), as.Path()))}
	}
	return s, q, nil
}

// hasObjects reports whether a form has whole objects, which are of one API version.
func hasObjects(f request.Form) bool {
	return f.View == wire.Whole && f.Fields == nil || f.View == wire.Table && f.Include == wire.IncludeObject
}

// parseAt reads a request for the past.
func parseAt(r *http.Request) (*request.Read, error) {
	if _, ok := request.ParsePath(r.URL.Path); !ok {
		return nil, &status.Error{Status: notServedAt(r.URL.Path)}
	}
	r = request.WithoutIdentity(r) // package access checks it
	read, err := request.Parse(r)
	if errors.Is(err, request.ErrPassThrough) {
		return nil, &status.Error{Status: request.Invalid(r)}
	}
	if err == nil && request.AsksSpeed(r) && read.Verb != request.Watch {
		return nil, &status.Error{Status: status.BadRequest("speed: only a watch can be replayed")}
	}
	if err == nil && request.AsksTimes(r) && read.Verb != request.Watch {
		return nil, &status.Error{Status: status.BadRequest("times: only a watch has events")}
	}
	return read, err
}

// notSelectable returns why a field selector cannot be answered.
func notSelectable(selector fields.Selector, of request.FieldFunc) string {
	if selector != nil {
		for _, req := range selector.Requirements() {
			if _, ok := of(req.Field); !ok {
				return "fieldSelector: field label not supported: " + req.Field
			}
		}
	}
	return "the field selector is not one of the resource's"
}

// notServedAt returns the error for a path that has no past.
func notServedAt(path string) *metav1.Status {
	return status.NotFound("nothing of the past is served at " + path + ": lists and single objects are recorded, not their subresources")
}

// isNamespaced finds the scope of a resource by one of its objects. Without an object,
// the scope does not matter.
func isNamespaced(ctx context.Context, st past.State, read *request.Read) (bool, error) {
	for o, err := range st.Stream.List(ctx, st.RV, "", "") {
		if err != nil {
			return false, err
		}
		return o.Key.Namespace() != "", nil
	}
	return read.Verb != request.Get || read.Namespace != "", nil
}

// fields returns the selectable fields of objects. Names need no definition.
func (s *moment) fields(ctx context.Context) request.FieldFunc {
	id := s.f.encoder.Resource
	if id.BuiltIn() {
		return request.BuiltInFields(id)
	}
	defined := s.f.definitions.Fields(ctx, 0, true)
	return func(label string) (request.Value, bool) {
		switch label {
		case "metadata.name":
			return request.NameOf, true
		case "metadata.namespace":
			return request.NamespaceOf, true
		}
		return defined(label)
	}
}

func (s *moment) negotiate(r *http.Request, read *request.Read) (request.Form, bool) {
	typed := s.state.Stream.Form().Item.Typed()
	return read.Negotiate(r, typed, func() bool { return s.f.cbor.Offered(r.Context()) })
}

func (s *moment) forms() *forms { return s.f }

// decline implements store: the reason is the answer.
func (s *moment) decline(why *metav1.Status) error { return &status.Error{Status: why} }

// failed implements store.
func (s *moment) failed(err error) error { return &status.Error{Status: s.h.past.Refusal(err)} }

// otherForm implements store: a Table that cannot be printed is answered in another
// form that the client accepts.
func (s *moment) otherForm(r *http.Request, q *query, _ error) (request.Form, error) {
	if q.View == wire.Table {
		if plain := withoutTable(r); plain != nil {
			if form, ok := s.negotiate(plain, q.Read); ok {
				return form, nil
			}
		}
	}
	return q.Form, &status.Error{Status: notAcceptable(r)}
}

// withoutTable returns the request without the Table clauses of its Accept header, nil
// if there are no others.
func withoutTable(r *http.Request) *http.Request {
	var rest []string
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if !strings.Contains(clause, "as=Table") {
			rest = append(rest, clause)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	out := r.Clone(r.Context())
	out.Header.Set("Accept", strings.Join(rest, ","))
	return out
}

// latest, cached and notOlderThan implement store: the state of the moment is all
// three.
func (s *moment) latest(ctx context.Context, q *query, limit int64) (state, error) {
	return s.exactly(ctx, q, s.state.RV, limit)
}

func (s *moment) cached(ctx context.Context, q *query, limit int64) (state, error) {
	return s.exactly(ctx, q, s.state.RV, limit)
}

func (s *moment) notOlderThan(ctx context.Context, q *query, limit int64) (state, error) {
	return s.exactly(ctx, q, s.state.RV, limit)
}

// exactly implements store: of the moment, or of an RV before it. A whole list takes
// a slot until its state is closed.
func (s *moment) exactly(ctx context.Context, q *query, rv uint64, limit int64) (state, error) {
	if wanted := max(rv, q.RV); wanted > s.state.RV {
		return state{}, &status.Error{Status: status.TooLarge(wanted, s.state.RV)}
	}
	at := s.state.At
	if rv != s.state.RV {
		if err := s.state.Stream.Check(rv); err != nil {
			return state{}, s.failed(err)
		}
		if q.View == wire.Table && q.Options.Continue == "" {
			var err error
			if at, err = s.state.Stream.TimeOf(ctx, rv); err != nil {
				return state{}, s.failed(err)
			}
		}
	}
	st := s.recorded(ctx, rv)
	st.at = at
	var err error
	if st.release, st.held, err = s.h.past.AcquireList(ctx, limit); err != nil {
		return state{}, s.failed(err)
	}
	return st, nil
}

// recorded returns the recorded state at an RV.
func (s *moment) recorded(ctx context.Context, rv uint64) state {
	form := s.state.Stream.Form()
	return state{
		objects: &past.Snapshot{Stream: s.state.Stream, RV: rv, Ctx: ctx}, rv: rv,
		item: form.Item, listKind: form.ListKind, recorded: true, ownColumns: true,
	}
}

// watch implements store: it sends the recorded events after the moment or a recorded
// RV, and then goes live. The events are read while the watch is written.
func (s *moment) watch(ctx context.Context, q *query) (watchStart, error) {
	from := q.RV
	if q.SendsInitialEvents() {
		if from > s.state.RV {
			return watchStart{}, &status.Error{Status: status.TooLarge(from, s.state.RV)}
		}
		from = 0
	}
	source, err := s.h.past.Watch(q.Resource, s.state, past.WatchOptions{Interest: q.Interest(), From: from, Table: q.View == wire.Table})
	if err != nil {
		return watchStart{}, s.failed(err)
	}
	start := watchStart{
		source: source, state: s.recorded(context.Background(), s.state.RV), rv: source.RV(), owner: s.f,
		encoder: s.f.encoderWith(source.Now), live: source.Live,
	}
	if s.state.Newest {
		if err := s.join(ctx, q.Resource, source, &start); err != nil {
			source.Close()
			return watchStart{}, err
		}
	}
	if err := source.Start(ctx, q.Speed); err != nil {
		source.Close()
		return watchStart{}, s.failed(err)
	}
	if q.View == wire.Table {
		start.align = source.Align
	}
	if q.Speed > 0 {
		start.replayed = source.Replayed
	}
	return start, nil
}

// join makes a watch go live at the end of the history, if the resource can be watched.
func (s *moment) join(ctx context.Context, id kube.Resource, source *past.Source, start *watchStart) error {
	res := s.h.cache.Acquire(ctx, id)
	if res == nil {
		return nil
	}
	defer res.Release()
	res.WaitSynced(ctx)
	over, ok := res.Defined(ctx, watchcache.Lists(res.Status()))
	if !ok {
		return nil
	}
	start.owner, start.over = s.h.liveForms.of(s.h, id, res), over
	if err := source.Join(res.Timeline); err != nil {
		return &status.Error{Status: status.Expired(err.Error())}
	}
	return nil
}
