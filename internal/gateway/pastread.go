// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// serveAt implements reader.
func (c *cache) serveAt(w *recorder, r *http.Request, when kube.Moment) {
	if refusal := c.past.answer(w, r, when); refusal != nil {
		writeStatus(w, r, refusal)
	}
}

// answer answers a read as of a moment, or returns why it does not.
func (p *past) answer(w *recorder, r *http.Request, when kube.Moment) *metav1.Status {
	rd, refusal := readAt(r)
	if refusal != nil {
		return refusal
	}
	store := p.store()
	if store == nil {
		return p.notRecorded(rd.resource)
	}
	recorded := store.Streams(rd.resource)
	if len(recorded) == 0 {
		return p.notRecorded(rd.resource)
	}
	if refusal := p.cache.disclosure.refusal(r, p.history, rd.target, rd.verb); refusal != nil {
		return refusal
	}
	res := p.resource(recorded[len(recorded)-1])
	m, err := p.locate(r.Context(), rd.resource, when)
	if errors.Is(err, errUnrecorded) {
		return unavailable(err.Error(), false)
	}
	if err != nil {
		return p.refusalFor(err)
	}
	namespaced, err := isNamespaced(m, rd)
	switch {
	case err != nil:
		return p.refusalFor(err)
	case rd.namespace != "" && !namespaced, rd.name != "" && rd.namespace == "" && namespaced:
		return notThere(r.URL.Path)
	case rd.verb != verbGet && !rd.selectors(namespaced, p.fields(r.Context(), res)):
		return badRequest("the field selector is not one of the resource's")
	}
	if !p.negotiate(r, rd, res, m) {
		return notAcceptable(r)
	}
	switch rd.verb {
	case verbGet:
		return p.get(w, r, rd, res, m)
	case verbList:
		return p.list(w, r, rd, res, m)
	}
	return p.watch(w, r, rd, res, m)
}

// readAt reads a request for the past.
func readAt(r *http.Request) (*read, *metav1.Status) {
	if _, ok := parsePath(r.URL.Path); !ok {
		return nil, notThere(r.URL.Path)
	}
	if caller := identity(r.Header); caller != nil { // whom the API server is asked about
		r = r.Clone(r.Context())
		for name := range caller {
			r.Header.Del(name)
		}
	}
	rd, ok := parseAnyRead(r)
	if !ok {
		return nil, badRequest("the parameters are not those of a LIST, GET or WATCH, or exclude each other")
	}
	if asksFields(r) {
		if refusal := readFields(r, rd); refusal != nil {
			return nil, refusal
		}
	}
	if refusal := rd.readSpeed(r); refusal != nil {
		return nil, refusal
	}
	return rd, nil
}

// isNamespaced tells the scope of a resource by an object that there was. Where
// there was none, any path leads to nothing.
func isNamespaced(m moment, rd *read) (bool, error) {
	for o, err := range m.stream.All(m.rv, "", "") {
		if err != nil {
			return false, err
		}
		return o.Key.Namespace() != "", nil
	}
	return rd.verb != verbGet || rd.namespace != "", nil
}

// negotiate chooses the form of the answer. A Table that cannot be printed is
// left for what else the client accepts.
func (p *past) negotiate(r *http.Request, rd *read, res *resource, m moment) bool {
	offersCBOR := func() bool { return res.offersCBOR(r.Context(), p.cache.up) }
	form := m.stream.Form().Item
	if !res.id.BuiltIn() {
		_, _ = res.definition(r.Context(), 0) // which dates its columns show, if it can be known
	}
	return rd.negotiate(r, form.Typed(), offersCBOR)
}

// plainer returns the request without its wish for a Table, nil if it has no
// other.
func plainer(r *http.Request) *http.Request {
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

func notAcceptable(r *http.Request) *metav1.Status {
	return newStatus(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("the past of this cannot be written as %q asks: accept application/json", r.Header.Get("Accept")))
}

// write answers with what encode makes. Ages are as of the moment.
func (p *past) write(w http.ResponseWriter, r *http.Request, rd *read, res *resource, m moment, encode func(*wire.Encoder) (*wire.Body, error)) *metav1.Status {
	enc := res.encoderAt(func() time.Time { return m.at })
	body, err := encode(enc)
	if err != nil && rd.form.View == wire.Table {
		if plain := plainer(r); plain != nil && p.negotiate(plain, rd, res, m) {
			body, err = encode(enc)
		}
	}
	if err != nil {
		return notAcceptable(r)
	}
	writeBody(w, r, rd, body)
	return nil
}

// get answers a GET. One of an RV that is not older than the moment is of the
// moment.
func (p *past) get(w *recorder, r *http.Request, rd *read, res *resource, m moment) *metav1.Status {
	if rd.rv > m.rv {
		return tooLarge(rd.rv, m.rv)
	}
	o, err := m.stream.Get(kube.MakeKey(rd.namespace, rd.name), m.rv)
	if err != nil {
		return p.refusalFor(err)
	}
	if o == nil {
		s := notFound(fmt.Sprintf("%s %q not found", res.id.GroupResource(), rd.name))
		s.Details = &metav1.StatusDetails{Name: rd.name, Group: res.id.Group, Kind: res.id.Name}
		return s
	}
	return p.write(w, r, rd, res, m, func(e *wire.Encoder) (*wire.Body, error) { return e.Object(rd.form, o) })
}

// list answers a LIST: of the moment, or of an exact RV before it.
func (p *past) list(w *recorder, r *http.Request, rd *read, res *resource, m moment) *metav1.Status {
	start, rv, limit := kube.Key(""), m.rv, rd.opts.Limit
	switch exact := rd.opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact; {
	case rd.narrowed && (limit > 0 || rd.opts.Continue != ""):
		return badRequest("pages of one namespace are asked for by its path")
	case rd.opts.Continue != "":
		token, err := decodeContinue(rd.opts.Continue, rd.namespace)
		if err != nil {
			return badRequest("continue: " + err.Error())
		}
		rv, start = token.rv, token.start
	case rd.opts.ResourceVersion == "0":
		limit = 0
	case exact || limit > 0 && rd.opts.ResourceVersionMatch == "" && rd.rv > 0:
		rv = rd.rv
	}
	if wanted := max(rv, rd.rv); wanted > m.rv {
		return tooLarge(wanted, m.rv)
	}
	at := m.at
	if rv != m.rv {
		if err := m.stream.Check(rv); err != nil {
			return p.refusalFor(err)
		}
		if rd.form.View == wire.Table && rd.opts.Continue == "" {
			at = timeOf(m.stream, rv)
		}
	}
	release, err := p.hold(r.Context(), rd, limit)
	if err != nil {
		return p.refusalFor(err)
	}
	defer release()
	state := &pastState{stream: m.stream, rv: rv, ctx: r.Context(), counts: true}
	page := newPage(rv, state, rd, start, limit, &res.left)
	if state.err != nil {
		return p.refusalFor(state.err)
	}
	form := m.stream.Form()
	head := wire.ListHead{
		Kind: form.ListKind, APIVersion: res.id.APIVersion(), Typed: form.Item.Typed(),
		RV: rv, Continue: page.next, Remaining: page.remaining, Columns: form.Item.Columns,
	}
	if rd.form.View == wire.Table {
		head.Columns = newestColumns(page.items, head.Columns)
		align(page.items, head.Columns)
	}
	m.at = at
	linkNext(w.Header(), r, rd, page.next)
	return p.write(w, r, rd, res, m, func(e *wire.Encoder) (*wire.Body, error) { return e.List(rd.form, head, page.items) })
}
