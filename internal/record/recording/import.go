// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// maxBatch limits the events of one write to the store.
const maxBatch = 1000

// maxBatchBytes limits their bytes.
const maxBatchBytes = 2 << 20

// limits bound the memory that an import uses, whatever the file contains. The
// number and the size of the objects and events in it are not limited: they go to
// the store.
type limits struct {
	// kept limits what must stay in memory: everything else, such as documents,
	// forms and columns.
	kept int
	// live limits the bytes of objects that are held to spare the store from
	// reading the version before a change.
	live int
}

var defaultLimits = limits{kept: 32 << 20, live: 8 << 20}

// Import reads a recording into an empty store and returns its documents. If
// maxBytes is not 0, it limits the bytes of lines. Import fails with
// [ErrNotRecording], [ErrNewerFormat], [ErrTooLarge], [ErrDamaged], an error of
// the store, or when ctx is canceled. After an error the content of the store
// is useless.
func Import(ctx context.Context, r io.Reader, store *history.Store, maxBytes int64) (*Header, []Document, error) {
	return importWithin(ctx, r, store, maxBytes, defaultLimits)
}

func importWithin(ctx context.Context, r io.Reader, store *history.Store, maxBytes int64, lim limits) (*Header, []Document, error) {
	d, h, err := newDecoder(ctx, r, maxBytes, lim.kept)
	if err != nil {
		return nil, nil, err
	}
	defer d.close()
	if len(h.Outages) > 0 {
		if err := store.AddOutages(h.Outages...); err != nil {
			return nil, nil, err
		}
	}
	im := importer{d: d, store: store, max: lim, epochs: h.Format >= formatOfEpochs}
	for {
		l, err := im.next()
		if errors.Is(err, io.EOF) {
			if im.head != nil || im.stream != nil {
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

// An importer writes lines to a store.
type importer struct {
	d         *decoder
	store     *history.Store
	max       limits
	ahead     *line // a line read after a first state
	documents []Document
	epochs    bool // a resource may have several

	head *streamLine // of a resource whose first state follows
	form history.Form
	live live // as of the last line

	stream  *history.Stream // the current one
	events  []history.Event // not yet written
	pending int             // their bytes in memory
	last    history.Moment  // of the last event
	gap     *gapLine        // the events within it are inferred
	late    time.Time       // end of the last gap of the other kind, whose events came at its end
}

// next returns the next line.
func (im *importer) next() (*line, error) {
	if l := im.ahead; l != nil {
		im.ahead = nil
		return l, nil
	}
	return im.d.next()
}

func (im *importer) line(l *line) error {
	switch {
	case l.Document != nil:
		im.documents = append(im.documents, *l.Document)
		return nil
	case l.Stream != nil:
		return im.begin(l.Stream)
	case l.Columns != nil:
		return nil // owned by the decoder
	case l.Form != nil:
		item, err := im.d.form(l.Form)
		im.form.Item = item
		return err
	case l.Object != nil:
		if im.head == nil {
			return im.d.damaged("an object that is not in a first state")
		}
		im.ahead = l // the first of them
		return im.begun()
	case l.Event != nil:
		return im.event(l.Event)
	case l.Gap != nil:
		return im.beginGap(l.Gap)
	case l.Step != nil:
		return im.step(l.Step)
	case l.Head != nil:
		return im.end(l.Head)
	}
	return nil // from a later version
}

func (im *importer) begin(s *streamLine) error {
	if im.head != nil || im.stream != nil {
		return im.d.damaged("a resource within another")
	}
	im.head, im.form = s, history.Form{ListKind: s.ListKind}
	im.live = live{objects: map[kube.Key]*scan.Object{}, max: im.max.live}
	return nil
}

// begun reads the first state of a resource, unless it was read before.
func (im *importer) begun() error {
	if im.stream != nil {
		return nil
	}
	switch {
	case im.head == nil:
		return im.d.damaged("a line of a resource is outside of any resource")
	case im.form.Item == nil:
		return im.d.damaged("%s has no form", im.head.resource())
	}
	st, err := im.store.Stream(im.head.resource())
	if err != nil {
		return err
	}
	if st.Head().RV != 0 {
		if !im.epochs && st.Resource() == im.head.resource() {
			return im.d.damaged("%s occurs twice", im.head.resource())
		}
		if st, err = im.store.NewEpoch(im.head.resource()); err != nil {
			return err
		}
	}
	var failed error
	objects := func(yield func(*scan.Object) bool) {
		for more := im.ahead != nil; more; {
			o, err := im.firstObject()
			if err != nil || o == nil || !yield(o) {
				failed = err
				return
			}
		}
	}
	err = st.Begin(im.form, objects, im.head.RV, im.head.At)
	if err = cmp.Or(failed, im.stored(err)); err != nil {
		return err
	}
	im.stream, im.last = st, history.Moment{RV: im.head.RV, At: im.head.At}
	im.head = nil
	return nil
}

// firstObject returns the next object of a first state, nil after the last.
func (im *importer) firstObject() (*scan.Object, error) {
	for {
		l, err := im.next()
		if errors.Is(err, io.EOF) {
			return nil, im.d.damaged("a resource has no end")
		}
		if err != nil {
			return nil, err
		}
		switch {
		case l.Columns != nil: // handled by the decoder
		case l.Object == nil:
			im.ahead = l
			return nil, nil
		default:
			o, err := im.d.object(l.Object)
			if err != nil {
				return nil, err
			}
			im.live.set(o)
			return o, nil
		}
	}
}

// stored returns an error of the store. The file caused it, unless the store
// cannot be written.
func (im *importer) stored(err error) error {
	if err == nil || errors.Is(err, history.ErrDiskFull) || errors.Is(err, history.ErrFailed) || errors.Is(err, history.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// beginGap begins a gap, after it has flushed the events before the gap.
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
	if im.last.RV = g.From.RV; g.From.At.After(im.last.At) { // otherwise, an event at that RV came late
		im.last.At = g.From.At
	}
	return im.append(nil)
}

// step moves the head to the end of the old clock's times, and to the beginning of
// the new one's. Within a gap, the times of the events show the step.
func (im *importer) step(s *stepLine) error {
	if err := im.begun(); err != nil || im.gap != nil && s.RV < im.gap.To.RV {
		return err
	}
	if err := im.flush(); err != nil {
		return err
	}
	im.late = time.Time{}
	if s.RV < im.last.RV {
		return im.d.damaged("a step of the clock at %d after %d", s.RV, im.last.RV)
	}
	for _, at := range []time.Time{s.From, s.To} {
		im.last = history.Moment{RV: s.RV, At: at}
		if err := im.append(nil); err != nil {
			return err
		}
	}
	return nil
}

// append appends events and moves the head.
func (im *importer) append(events []history.Event) error {
	return im.stored(im.stream.Append(events, im.last.RV, im.last.At))
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
	// A part of the events at an RV, or in a gap, is written by itself: nobody reads
	// the store yet.
	if len(im.events) >= maxBatch || im.pending >= maxBatchBytes {
		if err := im.write(); err != nil {
			return err
		}
	}
	im.pending += sizeOf(o)
	at := l.At
	if at.Before(im.late) {
		at = im.late // it came in a part of the gap
	}
	im.events = append(im.events, history.Event{Type: l.Type, Object: o, Prev: im.live.objects[o.Key], Inferred: l.Inferred, At: at})
	im.last = history.Moment{RV: o.RV, At: at}
	if l.Type == kube.Deleted {
		im.live.remove(o.Key)
	} else {
		im.live.set(o)
	}
	return nil
}

// flush writes the pending events and ends the gap.
func (im *importer) flush() error {
	if err := im.write(); err != nil || im.gap == nil {
		return err
	}
	gap := im.gap
	if gap.From.RV == gap.To.RV {
		im.late = gap.To.At
	}
	im.gap, im.last = nil, history.Moment{RV: gap.To.RV, At: gap.To.At}
	return im.stored(im.stream.EndGap(history.Moment{RV: gap.From.RV, At: gap.From.At}, im.last.RV, im.last.At))
}

// write writes the pending events.
func (im *importer) write() error {
	events := im.events
	im.events, im.pending = nil, 0
	if len(events) == 0 {
		return nil
	}
	return im.append(events)
}

func (im *importer) end(head *momentLine) error {
	if err := im.begun(); err != nil {
		return err
	}
	if err := im.flush(); err != nil {
		return err
	}
	if head.RV < im.last.RV || head.RV > maxRV {
		return im.d.damaged("the end at %d after %d", head.RV, im.last.RV)
	}
	im.last = history.Moment{RV: head.RV, At: head.At}
	err := im.append(nil)
	im.stream.Written()
	im.stream, im.live, im.late = nil, live{}, time.Time{}
	return err
}
