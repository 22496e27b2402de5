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

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// initialPiece is how many objects of an initial state of the past are read at a
// time (T10).
const initialPiece = 500

// watch answers a WATCH as of a moment: from there, or from an RV that is
// recorded, all that followed, and then live. It does not write before the
// recorder does.
func (p *past) watch(w *recorder, r *http.Request, rd *read, res *resource, m moment) *metav1.Status {
	c := p.cache
	if c.isDraining() {
		return unavailable(errDraining.Error(), true)
	}
	initial := rd.opts.SendInitialEvents != nil && *rd.opts.SendInitialEvents
	legacy := rd.watchPath && rd.rv == 0 && rd.opts.SendInitialEvents == nil
	if initial && rd.rv > m.rv {
		return tooLarge(rd.rv, m.rv)
	}
	cur := &pastCursor{
		past: p, id: res.id, in: rd.interest(), stream: m.stream, rv: m.rv,
		printed: rd.form.View == wire.Table, at: m.at,
	}
	switch {
	case initial || rd.rv == 0 || rd.rv == m.rv:
	case m.newest && rd.rv > m.stream.Head().RV: // it opens, and is silent until then
		cur.rv, cur.early, cur.printed = rd.rv, true, false
	default:
		if err := m.stream.Check(rd.rv); err != nil {
			return p.refusalFor(err)
		}
		cur.rv, cur.at = rd.rv, time.Time{}
	}
	reader := res
	if !m.newest {
		cur.ends = goneError(fmt.Sprintf("too old resource version: behind %d the history began anew", m.stream.Head().RV))
	} else {
		if live := c.acquire(r.Context(), res.id); live != nil {
			defer c.release(live)
			live.waitSynced(r.Context())
			over, ok := live.definition(r.Context(), generation(live.reflector.Status()))
			if ok {
				reader, rd.over, cur.live = live, over, live.timeline
				if _, err := cur.adopt(); err != nil {
					return expiredFor(err.Error())
				}
			}
		}
	}
	if rd.speed > 0 {
		cur.begin(rd.speed)
	} else if cur.printed && cur.at.IsZero() {
		cur.at = timeOf(m.stream, cur.rv)
	}
	s := &watchStream{
		cache: c, res: reader, source: cur, bookmarkForm: m.stream.Form().Item, start: cur.rv,
		wire: res.encoderAt(cur.now).Stream(rd.form, rd.websocket),
	}
	if initial || legacy {
		s.more = p.initialOf(m, rd, cur)
	}
	if initial {
		s.end = m.rv
	}
	c.stream(w, r, rd, s)
	return nil
}

// initialOf returns a function that returns the state at a moment in pieces, nil
// at the end.
func (p *past) initialOf(m moment, rd *read, cur *pastCursor) func() ([]*scan.Object, error) {
	next, over := kube.Key(""), false
	return func() ([]*scan.Object, error) {
		if over {
			return nil, nil
		}
		state := &pastState{stream: m.stream, rv: m.rv, ctx: context.Background()}
		page := newPage(m.rv, state, rd, next, initialPiece, nil)
		if over = page.next == ""; !over {
			next = page.items[len(page.items)-1].Key + "\x00"
		}
		if cur.printed {
			cur.alignAll(page.items)
		}
		return page.items, state.err
	}
}

// begin makes a cursor that of a replay: one that begins at a moment, or, if that
// is not known, with the first event.
func (c *pastCursor) begin(speed float64) {
	from := c.at
	if from.IsZero() {
		from = time.Now()
		if e, err := c.peek(); err == nil && e != nil {
			from = e.At
		}
		c.at = from
	}
	c.pace = &pace{speed: speed, from: from, began: time.Now()}
}

// follow returns a source that goes on from a cursor of a timeline, and, where the
// resource is recorded, goes back to the history if it falls behind.
func (p *past) follow(res *resource, v *timeline.View, cursor *timeline.Cursor, in timeline.Interest) source {
	if p.newest(res.id) == nil {
		return cursor
	}
	return &pastCursor{past: p, id: res.id, in: in, live: res.timeline, epoch: v.Epoch(), cursor: cursor}
}

// resume returns a source for a watch of a resource from an RV that its timeline no
// longer holds, or for a replay. It returns nil if that is not recorded, and a
// goneError if the RV is inside a gap.
func (p *past) resume(ctx context.Context, rd *read, res *resource, v *timeline.View) (*pastCursor, error) {
	st, err := p.holding(ctx, res.id, rd.rv)
	if errors.Is(err, history.ErrGap) {
		return nil, goneError(err.Error())
	}
	if st == nil || res.timeline.View().Epoch() != v.Epoch() {
		return nil, err
	}
	cur := &pastCursor{
		past: p, id: res.id, in: rd.interest(), live: res.timeline, epoch: v.Epoch(), stream: st, rv: rd.rv,
	}
	if rd.speed > 0 {
		cur.begin(rd.speed)
	}
	return cur, nil
}

// serveReplay answers a request with the parameter speed, which the API server
// does not have.
func (c *cache) serveReplay(w *recorder, r *http.Request, rd *read) {
	refusal := rd.readSpeed(r)
	if refusal == nil && rd.rv == 0 {
		refusal = badRequest("speed: a replay begins with a resourceVersion, or at a moment, as in /at/10m" + r.URL.Path)
	}
	if refusal == nil {
		if c.answer(w, r, rd) {
			return
		}
		if refusal = rd.refusal; refusal == nil {
			refusal = unavailable(fmt.Sprintf("speed: %s cannot be replayed now: try again", rd.resource.GroupResource()), true)
		}
	}
	writeStatus(w, r, refusal)
}

// notReplayed is why there is no replay of a resource.
func (p *past) notReplayed(id kube.Resource, err error) *metav1.Status {
	if err != nil {
		return p.refusalFor(err)
	}
	return p.notRecorded(id)
}
