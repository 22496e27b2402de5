// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

const (
	// defaultLimit and maxLimit bound the items of a page.
	defaultLimit = 100
	maxLimit     = 1000
	// maxCompared and maxPageBytes end a page before its limit. They bound how many
	// versions are compared for it, and their bytes.
	maxCompared  = 3000
	maxPageBytes = 16 << 20
	// largePage and largeVersion are the size of the versions of a page, and of the two together
	// that are compared, from which on the page counts as a whole list (T10): decoded, versions take ten
	// times as much.
	largePage    = 4 << 20
	largeVersion = 256 << 10
	// partBytes is about how much memory a part of a difference takes besides its values.
	partBytes = 200
	// eventChunk is how many events are read at a time, at most, and chunkBytes about the size of
	// the versions of an object that are.
	eventChunk = 128
	chunkBytes = 4 << 20
)

// A page is one page of an answer, while it is filled.
type page struct {
	ctx     context.Context // of the request
	limit   int
	noise   bool // noise is shown
	objects bool // whole objects are included

	large    func() error // waits until the page may be large; nil if it may
	comparer change.Comparer
	items    int
	compared int
	bytes    int

	crossing   *crossing // in which the events are that are described; nil for none
	gaps       map[*history.Stream][]history.Gap
	onlyStatus bool // the change that was described last is one of the status only
}

// page reads the parameters of a page.
func (c *call) page() (p page, err error) {
	p.ctx = c.r.Context()
	if p.limit, err = c.limit(); err != nil {
		return p, err
	}
	if p.noise, err = c.noise(); err != nil {
		return p, err
	}
	p.comparer.Noise, p.large = p.noise, c.large
	p.objects, err = c.flag("objects")
	return p, err
}

// full reports whether the page has reached a limit.
func (p *page) full() bool {
	return p.items >= p.limit || p.compared >= maxCompared || p.bytes >= maxPageBytes
}

// ended returns an error if the request has ended.
func (p *page) ended() error { return context.Cause(p.ctx) }

// change describes an event. If the event is only noise, and noise is not shown, it
// returns nil and the kinds of noise.
func (p *page) change(st *history.Stream, e history.Event) (*api.Change, []string, error) {
	before, after := e.Prev, e.Object
	out := &api.Change{
		ResourceVersion: kube.FormatRV(e.Object.RV), Time: e.At.UTC(), UID: e.Object.UID,
		Epoch: st.Epoch(), Inferred: e.Inferred, NotBefore: p.notBefore(st, e),
	}
	switch e.Type {
	case kube.Added:
		out.Type, before = api.Added, nil
	case kube.Deleted:
		out.Type, after = api.Deleted, nil
		if before == nil {
			before = e.Object
		}
	default:
		out.Type = api.Modified
	}
	p.compared++
	d, err := p.compare(before, after)
	if err != nil {
		return nil, nil, err
	}
	// A value that was set and set back in a gap has left no version.
	written := d.OnlyWritten && e.Inferred
	if d.OnlyNoise && !written && !p.noise {
		return nil, d.Noise, nil
	}
	p.onlyStatus = d.OnlyStatus || written && !slices.ContainsFunc(d.By, func(m change.Manager) bool { return m.Subresource != "status" })
	out.Summary, out.Changes, out.By, out.Noise = d.Summary, d.Patch, d.By, d.Noise
	if e.Type == kube.Added {
		if err := p.again(out, st, e); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case written:
		out.Summary = []string{"written, without a difference in the end"}
	case d.OnlyNoise:
		out.Summary = []string{"only noise"}
	}
	if p.objects {
		out.Object = json.RawMessage(e.Object.JSON)
		if before != nil {
			out.Before = json.RawMessage(before.JSON)
		}
	}
	return out, nil, nil
}

// notBefore returns the begin of the gap at whose end an event stands, zero if there is none.
func (p *page) notBefore(st *history.Stream, e history.Event) (begin time.Time) {
	if p.crossing != nil {
		return p.crossing.since().UTC()
	}
	gaps, ok := p.gaps[st]
	if !ok {
		gaps = st.Gaps()
		if p.gaps == nil {
			p.gaps = map[*history.Stream][]history.Gap{}
		}
		p.gaps[st] = gaps
	}
	for _, g := range gaps {
		if g.Holds(e) {
			return g.Since.UTC()
		}
	}
	return time.Time{}
}

// large waits for the slot of a whole list, which the call frees.
func (c *call) large() error {
	release, err := c.Past.Lists.Acquire(c.r.Context())
	if err == nil {
		c.release = release
	}
	return err
}

// compare compares two versions and counts their bytes, and those of the difference: of a large
// object, that may be larger.
func (p *page) compare(before, after *scan.Object) (*change.Change, error) {
	size := 0
	for _, o := range []*scan.Object{before, after} {
		if o != nil {
			size += len(o.JSON)
		}
	}
	if p.bytes += size; p.large != nil && (p.bytes >= largePage || size >= largeVersion) {
		if err := p.large(); err != nil {
			return nil, err
		}
		p.large = nil
	}
	d, err := p.comparer.Between(before, after)
	if err != nil {
		return nil, err
	}
	for _, op := range d.Patch {
		p.bytes += partBytes + len(op.Path)
		for _, value := range []any{op.Value, op.OldValue} {
			if text, ok := value.(string); ok {
				p.bytes += len(text)
			}
		}
	}
	return d, nil
}

// again adds to the summary of an object's creation how long before it an object of the
// same name was deleted, if there was one. Of a change in a gap, only the bounds are known.
func (p *page) again(c *api.Change, st *history.Stream, e history.Event) error {
	last, err := st.LastVersions(p.ctx, e.Object.Key, 0, e.Object.RV-1, 1)
	if err != nil || len(last) == 0 || last[0].Type != kube.Deleted {
		return err
	}
	if e.Inferred || last[0].Inferred { // the times are those of a list
		c.Summary = []string{c.Summary[0] + " again"}
		return nil
	}
	least := e.At.Sub(last[0].At)
	most := least
	if !c.NotBefore.IsZero() {
		least = c.NotBefore.Sub(last[0].At)
	}
	if begin := p.notBefore(st, last[0]); !begin.IsZero() {
		most = e.At.Sub(begin)
	}
	apart := words.Duration(least)
	if longest := words.Duration(most); longest != apart {
		apart += " to " + longest
	}
	c.Summary = []string{fmt.Sprintf("%s again, %s after its deletion", c.Summary[0], apart)}
	return nil
}
