// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
)

// ErrNothing is returned where nothing was recorded of what is to be exported.
var ErrNothing = errors.New("nothing of it was recorded in that time")

// A Selection says what of a history to export.
type Selection struct {
	// Resources are which; they are exported in this order.
	Resources []kube.Resource
	// From and To are the ends of the time. What is outside of the recording is
	// cut off.
	From, To time.Time
	// Namespace is of the objects; "" is all, and those in none.
	Namespace string
	// Labels select objects: one that matches at any time is exported for all
	// of it, and so are the Events about it. nil is everything.
	Labels labels.Selector
	// Pseudonyms replaces the names of objects.
	Pseudonyms bool
}

// An Exporter writes recordings.
type Exporter struct {
	Store   *history.Store
	Program string // its name and version
	Cluster string // its identity
	// Documents returns what the API server says of itself; an error ends the
	// export.
	Documents func(context.Context) ([]Document, error)
}

// A part is what is exported of one resource.
type part struct {
	stream   *history.Stream
	from, to history.Moment
	keys     map[kube.Key]bool // of the objects; nil for all
}

// Export writes a recording of what is selected. It fails with [ErrNothing]
// before it has written anything if there is nothing; after any error, what was
// written is no recording.
func (x *Exporter) Export(ctx context.Context, w io.Writer, sel Selection) error {
	parts, header, err := x.plan(ctx, sel)
	if err != nil {
		return err
	}
	var names *pseudonyms
	if sel.Pseudonyms {
		if names, err = x.learn(ctx, parts); err != nil {
			return err
		}
		header.Cluster = names.hash(header.Cluster, 32)
	}
	documents, err := x.Documents(ctx)
	if err != nil {
		return err
	}
	e, err := newEncoder(w)
	if err != nil {
		return err
	}
	err = e.line(line{Recording: header})
	for i := 0; i < len(documents) && err == nil; i++ {
		d := documents[i]
		if names != nil {
			if d, err = names.document(d); err != nil {
				break
			}
		}
		err = e.line(line{Document: &d})
	}
	for i := 0; i < len(parts) && err == nil; i++ {
		err = parts[i].write(ctx, e, names)
	}
	if err != nil {
		e.err = err // so that the recording has no end
	}
	return e.close()
}

// plan finds out what there is of the selection.
func (x *Exporter) plan(ctx context.Context, sel Selection) ([]*part, *Header, error) {
	h := &Header{Format: formatVersion, Program: x.Program, Cluster: x.Cluster, Made: time.Now().UTC().Truncate(time.Millisecond), Pseudonyms: sel.Pseudonyms}
	var all, parts []*part
	for _, res := range sel.Resources {
		p, err := x.part(ctx, res, sel)
		if err != nil {
			return nil, nil, fmt.Errorf("export of %s: %w", res, err)
		}
		if p != nil {
			all = append(all, p)
		}
	}
	chosen := map[string]bool{}
	for _, events := range []bool{false, true} { // which are about the others
		for _, p := range all {
			if (p.stream.Resource().Name == "events") == events && !sel.whole() {
				if err := p.choose(ctx, sel, chosen); err != nil {
					return nil, nil, fmt.Errorf("export of %s: %w", p.stream.Resource(), err)
				}
			}
		}
	}
	for _, p := range all {
		if p.keys != nil && len(p.keys) == 0 {
			continue
		}
		parts = append(parts, p)
		if at := p.from.At.UTC(); h.From.IsZero() || at.Before(h.From) {
			h.From = at
		}
		if at := p.to.At.UTC(); at.After(h.To) {
			h.To = at
		}
	}
	if len(parts) == 0 {
		return nil, nil, ErrNothing
	}
	return parts, h, nil
}

// part returns what the newest stream of a resource has of the selection, nil
// if nothing.
func (x *Exporter) part(ctx context.Context, res kube.Resource, sel Selection) (*part, error) {
	streams := x.Store.Streams(res)
	if len(streams) == 0 {
		return nil, nil
	}
	st := streams[len(streams)-1]
	span := st.Span()
	p := &part{stream: st, from: span.From, to: span.To}
	if span.From.RV == 0 || sel.To.Before(span.From.At) {
		return nil, nil
	}
	var err error
	if sel.From.After(span.From.At) {
		p.from, err = p.moment(ctx, sel.From)
	}
	if err == nil && sel.To.Before(span.To.At) {
		p.to, err = p.moment(ctx, sel.To)
	}
	return p, err
}

// moment returns the last state known at a time: in a gap, the one before it.
func (p *part) moment(ctx context.Context, at time.Time) (history.Moment, error) {
	for _, g := range p.stream.Gaps() {
		if g.Since.Before(at) && at.Before(g.Until) {
			return history.Moment{RV: g.From, At: g.Since}, nil
		}
	}
	return p.stream.At(ctx, at)
}

// each calls f for the state at the beginning, object by object (e is nil
// then), and for the events behind it.
func (p *part) each(ctx context.Context, object func(*scan.Object) error, event func(history.Event) error) error {
	for o, err := range p.stream.List(ctx, p.from.RV, "", "") {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if p.keys == nil || p.keys[o.Key] {
			if err := object(o); err != nil {
				return err
			}
		}
	}
	for e, err := range p.stream.Events(ctx, p.from.RV, p.to.RV) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if p.keys == nil || p.keys[e.Object.Key] {
			if err := event(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole reports whether all objects are selected.
func (sel Selection) whole() bool {
	return sel.Namespace == "" && (sel.Labels == nil || sel.Labels.Empty())
}

// choose finds the objects that match, and adds their UIDs to those chosen. An
// Event that is about one of these matches, too.
func (p *part) choose(ctx context.Context, sel Selection, chosen map[string]bool) error {
	keys := map[kube.Key]bool{}
	match := func(o *scan.Object) error {
		if sel.Namespace != "" && o.Key.Namespace() != sel.Namespace {
			return nil
		}
		if sel.Labels == nil || sel.Labels.Matches(o.Labels) || o.Kind == "Event" && chosen[aboutUID(o)] {
			keys[o.Key], chosen[o.UID] = true, true
		}
		return nil
	}
	err := p.each(ctx, match, func(e history.Event) error { return match(e.Object) })
	p.keys = keys
	return err
}

// aboutUID returns the UID of the object that an Event is about, "" if it does not
// say.
func aboutUID(o *scan.Object) string {
	var event struct{ InvolvedObject, Regarding struct{ UID string } }
	if json.Unmarshal([]byte(o.JSON), &event) != nil {
		return ""
	}
	return cmp.Or(event.InvolvedObject.UID, event.Regarding.UID)
}

// learn collects the names of all that is exported.
func (x *Exporter) learn(ctx context.Context, parts []*part) (*pseudonyms, error) {
	names := newPseudonyms()
	for _, p := range parts {
		if err := p.each(ctx, names.learn, func(e history.Event) error { return names.learn(e.Object) }); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// write writes a resource.
func (p *part) write(ctx context.Context, e *encoder, names *pseudonyms) error {
	res, form := p.stream.Resource(), p.stream.Form()
	encode := func(o *scan.Object) (objectLine, error) {
		if names != nil {
			var err error
			if o, err = names.object(o); err != nil {
				return objectLine{}, err
			}
		}
		return e.object(o)
	}
	err := e.stream(&streamLine{
		Group: res.Group, Version: res.Version, Resource: res.Name, ListKind: form.ListKind, momentLine: moment(p.from),
	}, form.Item)
	if err != nil {
		return err
	}
	gaps := p.stream.Gaps()
	err = p.each(ctx, func(o *scan.Object) error {
		l, err := encode(o)
		if err != nil {
			return err
		}
		return e.line(line{Object: &l})
	}, func(ev history.Event) error {
		for len(gaps) > 0 && gaps[0].From < ev.Object.RV {
			if err := p.writeGap(e, gaps[0]); err != nil {
				return err
			}
			gaps = gaps[1:]
		}
		l, err := encode(ev.Object)
		if err != nil {
			return err
		}
		return e.line(line{Event: &eventLine{ev.Type, ev.At.UTC(), ev.Inferred, l}})
	})
	if err != nil {
		return err
	}
	for _, g := range gaps { // in which nothing changed
		if err := p.writeGap(e, g); err != nil {
			return err
		}
	}
	head := moment(p.to)
	return e.line(line{Head: &head})
}

// writeGap writes a gap that is within the time.
func (p *part) writeGap(e *encoder, g history.Gap) error {
	if g.From < p.from.RV || g.To > p.to.RV {
		return nil
	}
	return e.line(line{Gap: &gapLine{momentLine{g.From, g.Since.UTC()}, momentLine{g.To, g.Until.UTC()}}})
}

func moment(m history.Moment) momentLine { return momentLine{m.RV, m.At.UTC()} }
