// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
	"github.com/watchkeeper/watchkeeper/internal/serve/workbookapi"
)

// reads answers LIST, GET and WATCH: of the present from the timelines
// ([reads.serve], [live]), and of a moment from the history ([reads.serveAt],
// [moment]).
type reads struct {
	up         *upstream.Server
	background *upstream.Background
	discovery  *upstream.Discovery
	documents  *upstream.Documents // read while something is recorded
	cache      *watchcache.Cache
	past       *past.Past // nil if nothing is recorded
	access     *access.Past
	shared     *access.Shared  // nil in local mode
	users      *fairness.Users // nil in local mode
	workbooks  *workbookapi.Queue
	tracker    *httpstream.Tracker
	log        *slog.Logger
	// recording is set if the upstream is a recording, in which nothing changes.
	recording bool

	encodings *wire.Cache // of all resources' objects
	liveForms formsTable
	pastForms formsTable
}

// A query is a parsed read, with its form and selection. It is immutable.
type query struct {
	*request.Read
	request.Selection
	request.Form
	warnings []string // the API server's about the resource's version
}

// A store is one resource, now or at a moment, as the handlers of GET, LIST and WATCH
// read it. The error of a method is a *decline, after which the request is passed
// through, or a *status.Error, which is the answer.
type store interface {
	// latest returns the state for a read with RV unset, which is consistent.
	// limit is that of the list, here and below.
	latest(ctx context.Context, q *query, limit int64) (state, error)
	// cached returns a state of any version, for RV 0.
	cached(ctx context.Context, q *query, limit int64) (state, error)
	// notOlderThan returns a state at q.RV or later.
	notOlderThan(ctx context.Context, q *query, limit int64) (state, error)
	// exactly returns the state at an RV.
	exactly(ctx context.Context, q *query, rv uint64, limit int64) (state, error)
	// watch returns where a WATCH begins.
	watch(context.Context, *query) (watchStart, error)

	forms() *forms
	// failed returns the error for a failed read of a state.
	failed(error) error
	// decline returns the error for a request that the store does not answer.
	decline(*metav1.Status) error
	// otherForm returns a form to answer with in place of one in which the objects
	// cannot be encoded.
	otherForm(*http.Request, *query, error) (request.Form, error)
}

// A decline says that a request is passed through to the API server. An extension, which
// the API server does not know, is answered with the status, if there is one.
type decline struct {
	status *metav1.Status
	// short is set for a watch that is passed through for a short time: the cache can
	// answer the client's next one.
	short bool
	// unproven is set for a watch that the cache could answer if it were proven that
	// the cache is fresh, or that its history is the upstream's. It is passed through for a short time, too.
	unproven bool
	// soon is set for a read that the cache could answer if its first list had come, or if it
	// were proven in time that the cache is fresh.
	soon bool
	// passes ends the list at the API server that the user may have for this one; nil if none
	// has begun.
	passes func()
}

func (d *decline) Error() string {
	if d.status == nil {
		return "not answered from the cache"
	}
	return d.status.Message
}

var errDeclined = &decline{}

// serve answers a request if it can do so exactly. Otherwise it returns a decline,
// and has written nothing.
func (h *reads) serve(w *responseRecorder, r *http.Request) *decline {
	if h.recording && request.IsRead(r) {
		return h.serveRecording(w, r)
	}
	read, err := request.Parse(r)
	return h.serveParsed(w, r, read, err)
}

// serveParsed is serve with what [request.Parse] has returned.
func (h *reads) serveParsed(w *responseRecorder, r *http.Request, read *request.Read, err error) *decline {
	if err == nil {
		err = h.serveNow(w, r, read)
	}
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*status.Error](err); ok {
		status.Write(w, r, refused.Status)
		return nil
	}
	declined, ok := errors.AsType[*decline](err)
	if !ok {
		return errDeclined
	}
	if declined.passes != nil {
		return declined
	}
	plain := read.Fields == nil && read.Speed == 0 && !read.Times
	if plain && !h.alone(r.Context()) {
		return declined
	}
	// The API server cannot answer this caller, or it knows neither projections nor replays
	// nor times.
	why := declined.status
	switch {
	case why != nil:
	case plain && !declined.soon && !declined.unproven:
		return declined
	case plain:
		why = status.Unavailable(fmt.Sprintf("%s cannot be read from the cache now, and the API server cannot be asked without a token: try again", read.Resource.GroupResource()), true)
	case read.Fields != nil:
		why = h.noProjection(r.Context(), read)
	case read.Speed == 0:
		why = status.Unavailable(fmt.Sprintf("times: %s are not watched by the gateway now: try again, or leave times out", read.Resource.GroupResource()), true)
	default:
		why = status.Unavailable(fmt.Sprintf("speed: %s cannot be replayed now: try again", read.Resource.GroupResource()), true)
	}
	status.Write(w, r, why)
	return nil
}

// serveRecording answers a read of a recording as of its end. There is no API server
// that answers what the cache does not: the history does, or says why not.
func (h *reads) serveRecording(w *responseRecorder, r *http.Request) *decline {
	bounded, cancel, err := request.Bounded(request.WithoutIdentity(r)) // everybody may read everything
	if err != nil {
		status.Write(w, r, h.past.Refusal(err))
		return nil
	}
	defer cancel()
	r = bounded
	read, err := parseAt(r)
	if err == nil {
		err = h.past.Outside(read.Namespace)
	}
	if err == nil {
		if st := h.past.Newest(read.Resource); st != nil && h.past.Sync(r.Context(), read.Resource) != nil {
			status.Warn(w.Header(), fmt.Sprintf("%s: the last recorded state, of %s: they were not observed to the end of the recording", read.Resource.GroupResource(), past.Stamp(st.Head().At)))
		}
		err = h.serveNow(w, r, read)
	}
	declined, ok := errors.AsType[*decline](err)
	switch {
	case err == nil:
	case !ok:
		status.Write(w, r, h.past.Refusal(err))
	case read.Verb != request.Watch:
		w.source = sourceHistory
		h.serveAt(w, r, kube.Moment{At: h.past.Present(), Ago: true})
	case declined.status != nil && !declined.short && !declined.unproven:
		status.Write(w, r, declined.status)
	default:
		return declined
	}
	return nil
}

// serveNow answers a read of the present.
func (h *reads) serveNow(w *responseRecorder, r *http.Request, read *request.Read) error {
	if h.recording {
		read = read.AnyVersion()
	} else if isPlainGet(read) && !h.alone(r.Context()) {
		return errDeclined // not worth watching the whole resource
	}
	if read.Speed > 0 && read.RV == 0 {
		return &decline{status: status.BadRequest("speed: a replay begins with a resourceVersion, or at a moment, as in /at/10m" + r.URL.Path)}
	}
	if h.shared != nil && !read.Resource.BuiltIn() {
		if _, err := h.discovery.Lookup(r.Context(), read.Resource, time.Time{}); err != nil {
			return errDeclined
		}
		if refusal := h.checkServer(r.Context(), read.Resource); refusal != nil {
			return &decline{status: refusal}
		}
	}
	res := h.cache.Acquire(r.Context(), read.Resource)
	if res == nil {
		return errDeclined
	}
	defer res.Release()
	s, q, err := h.openLive(r, read, res)
	if err != nil {
		return err
	}
	return h.answer(w, r, q, s)
}

// serveAt answers a read as of a moment.
func (h *reads) serveAt(w *responseRecorder, r *http.Request, when kube.Moment) {
	if when.RV == 0 {
		if c := h.up.ContactUntil(r.Context(), when.At); c.Unknown(when.At) && !c.Since.IsZero() {
			status.Warn(w.Header(), c.Warning())
		}
	}
	err := h.answerMoment(w, r, when)
	if err != nil {
		status.Write(w, r, h.past.Refusal(err))
	}
}

func (h *reads) answerMoment(w *responseRecorder, r *http.Request, when kube.Moment) error {
	r, cancel, err := request.Bounded(r)
	if err != nil {
		return err
	}
	defer cancel()
	s, q, err := h.openMoment(r, when)
	if err != nil {
		return err
	}
	return h.answer(w, r, q, s)
}

// answer answers a query from a store.
func (h *reads) answer(w *responseRecorder, r *http.Request, q *query, s store) error {
	switch q.Verb {
	case request.Get:
		return h.get(w, r, q, s)
	case request.List:
		return h.list(w, r, q, s)
	}
	return h.watch(w, r, q, s)
}

// alone reports whether the caller of a request cannot be passed through to the API
// server.
func (h *reads) alone(ctx context.Context) bool {
	caller := access.CallerOf(ctx)
	return caller != nil && !h.shared.Forwards(caller)
}

// get answers a GET of any version (RV 0) or one not older than N. A newest version is
// only asked for if the API server cannot be.
func (h *reads) get(w *responseRecorder, r *http.Request, q *query, s store) error {
	read := s.notOlderThan
	if _, live := s.(*live); live && isPlainGet(q.Read) {
		read = s.latest
	}
	st, err := read(r.Context(), q, 1)
	if err != nil {
		return err
	}
	defer st.close()
	o, err := st.objects.Get(kube.MakeKey(q.Read.Namespace, q.Name))
	if err != nil {
		return s.failed(err)
	}
	if o == nil {
		missing := status.ObjectNotFound(q.Resource.Group, q.Resource.Name, q.Name)
		if !q.PlainStatus {
			return s.decline(missing)
		}
		warn(w.Header(), q)
		return &status.Error{Status: missing}
	}
	return h.write(w, r, q, s, &st, nil, func(e *wire.Encoder, f wire.Form) (*wire.Body, error) { return e.Object(f, o) })
}

// write encodes an answer, and writes it with its headers. turn is that of a list.
func (h *reads) write(w *responseRecorder, r *http.Request, q *query, s store, st *state, turn *fairness.Turn, encode func(*wire.Encoder, wire.Form) (*wire.Body, error)) error {
	enc, form := s.forms().encoderAt(st.at), q.Form
	body, err := encode(enc, form.Form)
	if errors.Is(err, sheet.ErrInvalid) {
		return &status.Error{Status: status.BadRequest("as=xlsx: " + err.Error() + ": ask for fewer objects or other fields")}
	}
	if err != nil && r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	if err != nil {
		if form, err = s.otherForm(r, q, err); err != nil {
			return err
		}
		if body, err = encode(enc, form.Form); err != nil {
			return s.decline(notAcceptable(r))
		}
	}
	release, err := h.users.Hold(r.Context(), int64(body.Size()))
	if err != nil {
		return err
	}
	defer release()
	w.rv = st.rv
	setHeaders(w.Header(), form, q)
	httpstream.WriteBody(w, r, body, st.held, turn)
	return nil
}

func setHeaders(header http.Header, form request.Form, q *query) {
	header.Set("Content-Type", form.ContentType(q.Verb == request.Watch))
	header.Set("Cache-Control", "no-cache, private")
	if form.File == wire.XLSX {
		header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", q.Resource.Name+".xlsx"))
	}
	warn(header, q)
}

// warn adds the API server's warnings.
func warn(header http.Header, q *query) {
	for _, warning := range q.warnings {
		header.Add("Warning", warning)
	}
}

func notAcceptable(r *http.Request) *metav1.Status {
	return status.New(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("the past of this cannot be written as %q asks: accept application/json", r.Header.Get("Accept")))
}
