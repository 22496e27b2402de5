// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// importBatch is how many events go into the store at a time.
const importBatch = 1000

// Import reads a recording into an empty store, and returns its documents. It
// fails with [ErrNotRecording], [ErrNewerFormat] or [ErrDamaged]; what is in the
// store then is of no use.
func Import(r io.Reader, store *history.Store) (*Header, []Document, error) {
	d, h, err := newDecoder(r)
	if err != nil {
		return nil, nil, err
	}
	defer d.close()
	im := importer{d: d, store: store}
	for {
		l, err := d.next()
		if errors.Is(err, io.EOF) {
			if im.stream != nil {
				return nil, nil, d.damaged("a resource has no end")
			}
			return h, im.documents, nil
		}
		if err == nil {
			err = im.line(l)
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// An importer takes lines to a store.
type importer struct {
	d         *decoder
	store     *history.Store
	documents []Document

	head    *streamLine // of a resource whose first state is being read
	form    history.Form
	objects []*kube.Object
	live    map[kube.Key]*kube.Object // as of the last line

	stream *history.Stream // the one being written
	events []history.Event // not yet in the store
	last   history.Moment  // of the last event
	gap    *gapLine        // the events within it are its difference
}

func (im *importer) line(l *line) error {
	switch {
	case l.Document != nil:
		im.documents = append(im.documents, *l.Document)
		return nil
	case l.Stream != nil:
		return im.begin(l.Stream)
	case l.Columns != nil:
		return nil // the decoder's
	case l.Form != nil:
		item, err := im.d.form(l.Form)
		im.form.Item = item
		return err
	case l.Object != nil:
		if im.head == nil {
			return im.d.damaged("an object that is not in a first state")
		}
		o, err := im.d.object(l.Object)
		if err != nil {
			return err
		}
		im.objects, im.live[o.Key] = append(im.objects, o), o
		return nil
	case l.Event != nil:
		return im.event(l.Event)
	case l.Gap != nil:
		return im.beginGap(l.Gap)
	case l.Head != nil:
		return im.end(l.Head)
	}
	return nil // of a later version
}

func (im *importer) begin(s *streamLine) error {
	if im.head != nil || im.stream != nil {
		return im.d.damaged("a resource within another")
	}
	im.head, im.form, im.objects = s, history.Form{ListKind: s.ListKind}, nil
	im.live = map[kube.Key]*kube.Object{}
	return nil
}

// begun ends the first state of a resource, if that has not been done.
func (im *importer) begun() error {
	if im.stream != nil {
		return nil
	}
	switch {
	case im.head == nil:
		return im.d.damaged("what belongs to a resource is outside of any")
	case im.form.Item == nil:
		return im.d.damaged("%s has no form", im.head.resource())
	}
	st, err := im.store.Stream(im.head.resource())
	if err != nil {
		return err
	}
	if st.Head().RV != 0 {
		return im.d.damaged("%s is there twice", im.head.resource())
	}
	if err := st.Begin(im.form, slices.Values(im.objects), im.head.RV, im.head.At); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	im.stream, im.last = st, history.Moment{RV: im.head.RV, At: im.head.At}
	im.head, im.objects = nil, nil
	return nil
}

// beginGap begins a gap, behind all that comes before it.
func (im *importer) beginGap(g *gapLine) error {
	if err := im.begun(); err != nil {
		return err
	}
	if err := im.flush(); err != nil {
		return err
	}
	if g.From.RV < im.last.RV || g.To.RV < g.From.RV {
		return im.d.damaged("a gap from %d to %d after %d", g.From.RV, g.To.RV, im.last.RV)
	}
	im.gap = g
	im.last = history.Moment{RV: g.From.RV, At: g.From.At}
	return im.append(nil)
}

// append appends events, and moves the head to the last moment.
func (im *importer) append(events []history.Event) error {
	if err := im.stream.Append(events, im.last.RV, im.last.At); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

func (im *importer) event(l *eventLine) error {
	if err := im.begun(); err != nil {
		return err
	}
	o, err := im.d.object(&l.objectLine)
	if err != nil {
		return err
	}
	if o.RV < im.last.RV || l.Type != kube.Added && l.Type != kube.Modified && l.Type != kube.Deleted {
		return im.d.damaged("event %s at %d after %d", l.Type, o.RV, im.last.RV)
	}
	if im.gap != nil && o.RV > im.gap.To.RV {
		if err := im.flush(); err != nil {
			return err
		}
	}
	// Those of one RV stay together.
	if im.gap == nil && len(im.events) >= importBatch && o.RV > im.last.RV {
		if err := im.flush(); err != nil {
			return err
		}
	}
	im.events = append(im.events, history.Event{Type: l.Type, Object: o, Prev: im.live[o.Key], Inferred: l.Inferred, At: l.At})
	if im.live[o.Key] = o; l.Type == kube.Deleted {
		delete(im.live, o.Key)
	}
	im.last = history.Moment{RV: o.RV, At: l.At}
	return nil
}

// flush brings what is pending into the store.
func (im *importer) flush() error {
	events, gap := im.events, im.gap
	im.events, im.gap = nil, nil
	switch {
	case gap != nil:
		im.last = history.Moment{RV: gap.To.RV, At: gap.To.At}
		if err := im.stream.AppendGap(events, gap.To.RV, gap.To.At); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	case len(events) > 0:
		return im.append(events)
	}
	return nil
}

func (im *importer) end(head *momentLine) error {
	if err := im.begun(); err != nil {
		return err
	}
	if err := im.flush(); err != nil {
		return err
	}
	if head.RV < im.last.RV {
		return im.d.damaged("the end at %d comes before %d", head.RV, im.last.RV)
	}
	im.last = history.Moment{RV: head.RV, At: later(head.At, im.last.At)}
	err := im.append(nil)
	im.stream = nil
	return err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
