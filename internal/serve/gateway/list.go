// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
	"github.com/watchkeeper/watchkeeper/internal/serve/workbookapi"
)

// list answers a LIST (docs/kubernetes-watch.md, "LIST").
func (h *reads) list(w *responseRecorder, r *http.Request, q *query, s store) error {
	end, err := h.users.List(r.Context())
	if err != nil {
		return err
	}
	defer end()
	st, start, limit, err := h.listState(r, q, s)
	if err != nil {
		return err
	}
	defer st.close()
	var workbook *sheet.Budget
	encoded := func() {}
	if q.Form.File == wire.XLSX {
		if workbook, encoded, err = h.workbooks.Acquire(r.Context()); err != nil {
			return err
		}
		defer encoded()
	}
	turn, err := h.users.Turn(r.Context())
	if err != nil {
		return err
	}
	defer turn.End()
	p, err := newPage(&st, q, start, limit, &s.forms().remaining)
	if err != nil {
		return s.failed(err)
	}
	head := wire.ListHead{
		Kind: st.listKind, APIVersion: q.Resource.APIVersion(), Typed: st.item.Typed(),
		RV: st.rv, Continue: p.next, Remaining: p.remaining, Columns: st.item.Columns,
	}
	if st.recorded && q.View == wire.Table {
		if st.ownColumns {
			head.Columns = wire.NewestColumns(p.items, head.Columns)
		}
		wire.AlignRows(p.items, head.Columns)
	}
	linkNext(w.Header(), r, q, p.next)
	return h.write(w, r, q, s, &st, turn, func(e *wire.Encoder, f wire.Form) (*wire.Body, error) {
		if f.File != wire.XLSX {
			return e.List(f, head, p.items)
		}
		defer encoded()
		return workbookapi.List(workbook, f, head, p.items)
	})
}

// listState returns the state that a LIST shows, where its page begins, and its
// limit.
func (h *reads) listState(r *http.Request, q *query, s store) (st state, start kube.Key, limit int64, err error) {
	limit = q.Options.Limit
	ctx, exact := r.Context(), q.Options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	switch {
	case q.Narrowed && (limit > 0 || q.Options.Continue != ""):
		// The API server writes tokens relative to the narrowed scope, but reads them
		// relative to the scope of the path.
		err = s.decline(status.BadRequest("to read pages of one namespace, use its path"))
	case q.Options.Continue != "" && q.Options.ResourceVersion != "":
		// The API server answers with an error, or ignores the limit.
		err = s.decline(status.BadRequest("specifying resource version is not allowed when using continue"))
	case q.Options.Continue != "":
		token, invalid := request.DecodeContinue(q.Options.Continue, q.Selection.Namespace)
		if invalid != nil {
			err = s.decline(status.BadRequest("continue: " + invalid.Error()))
			break
		}
		start = token.Start
		st, err = s.exactly(ctx, q, token.RV, limit)
	case q.Options.ResourceVersion == "":
		st, err = s.latest(ctx, q, limit)
	case q.RV == 0:
		limit = 0 // as in the API server's watch cache
		st, err = s.cached(ctx, q, limit)
	case exact || limit > 0 && q.Options.ResourceVersionMatch == "":
		st, err = s.exactly(ctx, q, q.RV, limit)
	default:
		st, err = s.notOlderThan(ctx, q, limit)
	}
	return st, start, limit, err
}

// A listPage is one page of a list, not yet encoded.
type listPage struct {
	items     []*scan.Object
	next      string // the continue token
	remaining int64
}

// newPage selects from a state the page that begins at start. limit 0 is no limit;
// otherwise it counts matching objects, and there is a next page when any object is
// left, matching or not, as in the API server. remaining is that of the resource;
// nil to leave out how many objects remain.
func newPage(st *state, q *query, start kube.Key, limit int64, remaining *remainingCount) (p listPage, err error) {
	if q.Key != "" && start == "" {
		o, err := st.objects.Get(q.Key)
		if o != nil && err == nil && q.Match.Matches(o) {
			p.items = append(p.items, o)
		}
		return p, err
	}
	namespace := q.Selection.Namespace
	for o, err := range st.objects.List(namespace, start, q.Attribute) {
		if err != nil {
			return p, err
		}
		if !q.Match.Matches(o) {
			continue
		}
		if p.items = append(p.items, o); int64(len(p.items)) == limit {
			break
		}
	}
	if limit <= 0 || int64(len(p.items)) < limit {
		return p, nil
	}
	last := p.items[limit-1].Key
	after := last + "\x00" // the key that follows it
	more := false
	for _, err := range st.objects.List(namespace, after, nil) {
		if err != nil {
			return p, err
		}
		more = true
		break
	}
	if !more {
		return p, nil
	}
	encode := request.EncodeContinue
	if q.Resource.Uncached() {
		encode = request.EncodeUncachedContinue
	}
	p.next = encode(st.rv, last, namespace)
	if !q.IsSelective() && remaining != nil {
		p.remaining, err = remaining.after(listPosition{st.rv, namespace, start}, limit, listPosition{st.rv, namespace, after}, st.objects)
	}
	return p, err
}

// linkNext sets a Link header to the next page of a projection (RFC 8288), so that a
// client can request it before this page has arrived.
func linkNext(h http.Header, r *http.Request, q *query, next string) {
	if q.Fields == nil || next == "" {
		return
	}
	query := r.URL.Query()
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	query.Set("continue", next)
	h.Set("Link", "<?"+query.Encode()+`>; rel="next"`)
}
