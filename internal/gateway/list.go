// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// serveGet answers a GET of any version (RV 0) or one not older than N. A
// consistent one (RV unset) is the API server's.
func (c *cache) serveGet(w http.ResponseWriter, r *http.Request, rd *read, res *resource, v *timeline.View) bool {
	if rd.opts.ResourceVersion == "" || v.RV < rd.rv {
		return false
	}
	o := v.Get(kube.MakeKey(rd.namespace, rd.name))
	if o == nil {
		s := newStatus(http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("%s %q not found", res.id.GroupResource(), rd.name))
		if !rd.plainStatus {
			return false
		}
		rd.warn(w.Header())
		s.Details = &metav1.StatusDetails{Name: rd.name, Group: res.id.Group, Kind: res.id.Name}
		writeStatus(w, r, s)
		return true
	}
	return res.write(w, r, rd, func() (*wire.Body, error) { return res.encoder.Object(rd.form, o) })
}

// write answers with a body, if it can be made in the form that was asked for.
func (res *resource) write(w http.ResponseWriter, r *http.Request, rd *read, encode func() (*wire.Body, error)) bool {
	body, err := encode()
	if err != nil {
		// YAML and what is indented are a question of size, and columns one of
		// the version.
		if rd.form.Media != wire.YAML && !rd.form.Pretty && !errors.Is(err, wire.ErrColumns) {
			res.unwritable.add(rd.form)
		}
		return false
	}
	writeBody(w, r, rd, body)
	return true
}

// serveList answers a LIST (spec §2): the rows of its table that do not need
// the API server.
func (c *cache) serveList(w http.ResponseWriter, r *http.Request, rd *read, res *resource, v *timeline.View) bool {
	limit := rd.opts.Limit
	start := kube.Key("")
	rv, objects := v.RV, state(&v.Snapshot)
	switch exact := rd.opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact; {
	case rd.narrowed && (limit > 0 || rd.opts.Continue != ""):
		// The API server's tokens are relative to the scope it narrows to, and
		// it reads them as relative to that of the path.
		return rd.refuse(badRequest("fields: pages of one namespace are asked for by its path"))
	case rd.opts.Continue != "" && rd.opts.ResourceVersion != "":
		// An error, or no limit.
		return rd.refuse(badRequest("fields: resourceVersion and continue exclude each other"))
	case rd.form.View == wire.Table && wire.SortsRows(res.id):
		return false
	case rd.opts.Continue == "" && rd.opts.ResourceVersion == "":
		prove := res.prover.freshSoon
		if rd.fields != nil { // which is not passed through
			if uncachedUpstream(res.id) {
				return rd.refuse(badRequest(noProofOfEvents))
			}
			prove = res.prover.fresh
		}
		fresh, err := prove(r.Context())
		if err != nil {
			return false
		}
		v, rv, objects = fresh, fresh.RV, &fresh.Snapshot
	case rd.opts.Continue != "":
		token, err := decodeContinue(rd.opts.Continue, rd.namespace)
		if err != nil {
			return rd.refuse(badRequest("fields: continue: " + err.Error()))
		}
		rv, start = token.rv, token.start
		var release func()
		if objects, release, err = c.at(r.Context(), rd, res, rv, limit); err != nil {
			return rd.turnAway(w, r, err) // the API server may still have it, or says why not
		}
		defer release()
	case rd.rv == 0:
		if limit > 0 && uncachedUpstream(res.id) && rd.fields == nil {
			return false
		}
		limit = 0 // as the API server's watch cache has it
	case exact || limit > 0 && rd.opts.ResourceVersionMatch == "":
		rv = rd.rv
		var release func()
		var err error
		if objects, release, err = c.at(r.Context(), rd, res, rv, limit); err != nil {
			return rd.turnAway(w, r, err)
		}
		defer release()
	case v.RV < rd.rv:
		return false
	}
	p := newPage(rv, objects, rd, start, limit, &res.left)
	if past, ok := objects.(*pastState); ok {
		if past.err != nil {
			return false
		}
		align(p.items, v.BookmarkForm.Columns)
	}
	head := wire.ListHead{
		Kind: v.ListKind, APIVersion: res.id.APIVersion(), Typed: v.BookmarkForm.Typed(),
		RV: rv, Continue: p.next, Remaining: p.remaining, Columns: v.BookmarkForm.Columns,
	}
	linkNext(w.Header(), r, rd, p.next)
	return res.write(w, r, rd, func() (*wire.Body, error) { return res.encoder.List(rd.form, head, p.items) })
}

// turnAway is refuse for an error of [cache.at]. What is recorded is read by few
// at a time, and is not to be asked of the API server instead, which has less.
func (rd *read) turnAway(w http.ResponseWriter, r *http.Request, err error) bool {
	if errors.Is(err, errBusy) {
		writeStatus(w, r, tooBusy())
		return true
	}
	return rd.refuseFor(err)
}

// at returns the state of a resource at exactly an RV, from the timeline or from
// what is recorded, until release.
func (c *cache) at(ctx context.Context, rd *read, res *resource, rv uint64, limit int64) (s state, release func(), err error) {
	snapshot, err := res.timeline.At(rv)
	if err == nil {
		return snapshot, func() {}, nil
	}
	if errors.Is(err, timeline.ErrCompacted) {
		if st, _ := c.past.holding(ctx, res.id, rv); st != nil {
			release, err := c.past.hold(ctx, rd, limit)
			return &pastState{stream: st, rv: rv, ctx: ctx, counts: true}, release, err
		}
	}
	return nil, nil, err
}

// uncachedUpstream reports whether the API server keeps no watch cache for the
// resource; it then honours the limit of a LIST at RV 0.
func uncachedUpstream(id kube.Resource) bool {
	return id.Name == "events" && (id.Group == "" || id.Group == "events.k8s.io")
}

// A listPage is a page of a list in the making.
type listPage struct {
	items     []*scan.Object
	next      string // the continue token
	remaining int64
}

// A state is the objects at one RV: a timeline.Snapshot, or a pastState.
type state interface {
	// Get returns the object with the key, nil if there is none.
	Get(kube.Key) *scan.Object
	// All yields the objects of a namespace, "" for all, in list order, beginning
	// with the first whose key is at least from. Select is All without some that
	// do not have the attribute.
	All(namespace string, from kube.Key) iter.Seq[*scan.Object]
	Select(namespace string, from kube.Key, a *timeline.Attribute) iter.Seq[*scan.Object]
}

// newPage selects from the state at an RV the page that begins at start. limit
// 0 is no limit; otherwise it counts matching objects, and there is a next page
// when any object is left, matching or not, as in the API server. left is that of
// the resource.
func newPage(rv uint64, s state, rd *read, start kube.Key, limit int64, left *leftover) listPage {
	var p listPage
	if rd.key != "" && start == "" {
		if o := s.Get(rd.key); o != nil && rd.match.matches(o) {
			p.items = append(p.items, o)
		}
		return p
	}
	for o := range s.Select(rd.namespace, start, rd.attribute) {
		if !rd.match.matches(o) {
			continue
		}
		if p.items = append(p.items, o); int64(len(p.items)) == limit {
			break
		}
	}
	if limit <= 0 || int64(len(p.items)) < limit {
		return p
	}
	last := p.items[limit-1].Key
	behind := last + "\x00" // the key behind it
	more := false
	for range s.All(rd.namespace, behind) {
		more = true
		break
	}
	if !more {
		return p
	}
	p.next = encodeContinue(rv, last, rd.namespace)
	if past, ok := s.(*pastState); !rd.selective() && (!ok || past.counts) {
		p.remaining = left.after(place{rv, rd.namespace, start}, limit, place{rv, rd.namespace, behind}, s)
	}
	return p
}
