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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// ErrNothing: nothing that was selected is recorded.
var ErrNothing = errors.New("nothing of it was recorded in that time")

// A Selection selects the part of a history to export.
type Selection struct {
	// Within is what the history is limited to, as that of a recording; nil for nothing.
	Within *Scope
	// Resources are exported in this order.
	Resources []kube.Resource
	// Named is set if they were chosen by name.
	Named bool
	// Denied are the names of recorded resources that are left out, since the caller may not
	// list them.
	Denied []string
	// From and To limit the time. They are clipped to the recorded span.
	From, To time.Time
	// Known returns until when the state of a resource is known, if it has not changed since the
	// end of its record; nil if no state is known after that.
	Known func(kube.Resource) time.Time
	// Namespace selects objects; "" selects all, including cluster-scoped ones.
	Namespace string
	// ClusterScoped are those of Resources whose objects are in no namespace. A Namespace
	// selects none of their objects, but all if the resource is Named, as in kubectl.
	ClusterScoped []kube.Resource
	// Labels selects objects. One that matches at any time is exported for the
	// whole time, with the Events about it. nil selects everything.
	Labels labels.Selector
	// Pseudonyms replaces the names of objects.
	Pseudonyms bool
}

// An Exporter writes recordings.
type Exporter struct {
	Store   *history.Store
	Program string // name and version
	Cluster string // its UID
	// Documents returns the API server's discovery documents. An error ends the
	// export.
	Documents func(context.Context) ([]Document, error)
	// Turn is that of the user in shared mode, nil in local mode. It is given up while Documents
	// and the output are waited for.
	Turn *fairness.Turn
}

// A part is the exported part of one resource.
type part struct {
	stream   *history.Stream
	turn     *fairness.Turn
	from, to history.Moment
	keys     map[kube.Key]bool // of the selected objects; nil selects all
}

// empty reports whether none of the objects is selected.
func (p *part) empty() bool { return p.keys != nil && len(p.keys) == 0 }

// Export writes a recording of the selection. If that is empty it fails with
// [ErrNothing] and writes nothing. After any other error the output is not a
// valid recording.
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
		if s := header.Scope; s != nil {
			names.add(s.Namespace) // of no object, if all are cluster-scoped
			s.Namespace, s.LabelSelector = names.words(s.Namespace), ""
		}
	}
	x.Turn.End()
	documents, err := x.Documents(ctx)
	if err != nil {
		return err
	}
	e, err := newEncoder(w, x.Turn)
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
		e.err = err // prevents the last line
	}
	return e.close()
}

// plan finds the parts of the selection.
func (x *Exporter) plan(ctx context.Context, sel Selection) ([]*part, *Header, error) {
	h := &Header{Format: 1, Program: x.Program, Cluster: x.Cluster, Made: time.Now().UTC().Truncate(time.Millisecond), Pseudonyms: sel.Pseudonyms, Scope: sel.scope(), Exact: sel.Known != nil}
	var all, parts []*part
	for _, res := range sel.Resources {
		streams, had := x.Store.Streams(res), len(all)
		for i, st := range streams {
			newest := i == len(streams)-1
			if !newest && st.Damage() != nil {
				continue // it is kept unchanged, and cannot be read as a whole
			}
			p, err := x.part(ctx, st, newest, sel)
			if err != nil {
				return nil, nil, fmt.Errorf("export of %s: %w", res, err)
			}
			if p != nil {
				all = append(all, p)
			}
		}
		if len(all)-had > 1 {
			h.Format = formatOfEpochs
		}
	}
	chosen := map[string]bool{}
	for _, events := range []bool{false, true} { // Events come last: they refer to the others
		for _, p := range all {
			if (p.stream.Resource().Name == "events") == events && !sel.whole() {
				if err := p.choose(ctx, sel, chosen); err != nil {
					return nil, nil, fmt.Errorf("export of %s: %w", p.stream.Resource(), err)
				}
			}
		}
	}
	if !slices.ContainsFunc(all, func(p *part) bool { return !p.empty() }) {
		return nil, nil, ErrNothing
	}
	for _, p := range all {
		// That there was no such object is a part of the record. But cluster-scoped objects
		// were only left out.
		if p.empty() && sel.Namespace != "" && !sel.Named && sel.clusterScoped(p.stream) {
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
	// The first state of a resource may be older: it did not change until then.
	if h.From.Before(sel.From) && sel.From.Before(h.To) {
		h.From = sel.From.UTC()
	}
	outages, err := x.Store.Outages()
	for _, o := range outages {
		if o.Since.Before(h.To) && o.Until.After(h.From) {
			h.Outages = append(h.Outages, o)
		}
	}
	return parts, h, err
}

// part returns the selected part of a stream, nil if it is empty. newest says that it is the
// newest one of its resource.
func (x *Exporter) part(ctx context.Context, st *history.Stream, newest bool, sel Selection) (*part, error) {
	span := st.Span()
	p := &part{stream: st, turn: x.Turn, from: span.From, to: span.To}
	first := span.From.At
	for _, s := range st.TimeSpans() { // the clock may have been set back
		if s.From.At.Before(first) {
			first = s.From.At
		}
	}
	if sel.Known != nil && newest && len(st.ClockSteps()) == 0 {
		if known := sel.Known(st.Resource()).Truncate(time.Millisecond); known.After(p.to.At) {
			p.to.At = known
		}
	}
	if span.From.RV == 0 || sel.To.Before(first) || sel.From.After(p.to.At) || p.unobserved(sel.From, sel.To) {
		return nil, nil
	}
	var err error
	if sel.From.After(span.From.At) {
		if p.from, err = p.moment(ctx, sel.From); err == nil && p.observedAt(sel.From) && sel.From.After(p.from.At) {
			p.from.At = sel.From.Truncate(time.Millisecond) // the state was older, and is known then
		}
	}
	switch {
	case err != nil || !sel.To.Before(p.to.At):
	case !sel.To.Before(span.To.At):
		p.to.At = sel.To.Truncate(time.Millisecond)
	default:
		if p.to, err = p.moment(ctx, sel.To); err == nil && p.observedAt(sel.To) {
			p.to.At = sel.To.Truncate(time.Millisecond) // the state is known until then
		}
	}
	return p, err
}

// moment returns the last known state at a time; within a gap, the state before
// it.
func (p *part) moment(ctx context.Context, at time.Time) (history.Moment, error) {
	for _, g := range p.stream.Gaps() {
		if g.Since.Before(at) && at.Before(g.Until) {
			return history.Moment{RV: g.From, At: g.Since}, nil
		}
	}
	return p.stream.At(ctx, at)
}

// unobserved reports whether a gap hides the whole time.
func (p *part) unobserved(from, to time.Time) bool {
	return len(p.stream.ClockSteps()) == 0 && slices.ContainsFunc(p.stream.Gaps(), func(g history.Gap) bool {
		return g.Since.Before(from) && to.Before(g.Until)
	})
}

// observedAt reports whether a time is certainly one of the selected span, and in no gap.
func (p *part) observedAt(at time.Time) bool {
	return len(p.stream.ClockSteps()) == 0 && !slices.ContainsFunc(p.stream.Gaps(), func(g history.Gap) bool {
		return g.Since.Before(at) && at.Before(g.Until)
	})
}

// each calls object for the first state, object by object, then event for each
// event.
func (p *part) each(ctx context.Context, object func(*scan.Object) error, event func(history.Event) error) error {
	for o, err := range p.stream.List(ctx, p.from.RV, "", "") {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		p.turn.Yield()
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
		p.turn.Yield()
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

// clusterScoped reports whether the objects of a stream are in no namespace, in whatever API version
// it is.
func (sel Selection) clusterScoped(st *history.Stream) bool {
	return slices.ContainsFunc(sel.ClusterScoped, func(r kube.Resource) bool { return r.GroupResource() == st.Resource().GroupResource() })
}

// choose finds the objects that match, and adds their UIDs to chosen. An Event
// about a chosen object matches, too.
func (p *part) choose(ctx context.Context, sel Selection, chosen map[string]bool) error {
	keys := map[kube.Key]bool{}
	anywhere := sel.Named && sel.clusterScoped(p.stream)
	match := func(o *scan.Object) error {
		if ns := o.Key.Namespace(); sel.Namespace != "" && ns != sel.Namespace && (ns != "" || !anywhere) {
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

// aboutUID returns the UID of the object that an Event is about, "" if it has
// none.
func aboutUID(o *scan.Object) string {
	var event struct{ InvolvedObject, Regarding struct{ UID string } }
	if json.Unmarshal([]byte(o.JSON), &event) != nil {
		return ""
	}
	return cmp.Or(event.InvolvedObject.UID, event.Regarding.UID)
}

// learn collects the names in all that will be exported.
func (x *Exporter) learn(ctx context.Context, parts []*part) (*pseudonyms, error) {
	names := newPseudonyms()
	for _, p := range parts {
		if err := p.each(ctx, names.learn, func(e history.Event) error { return names.learn(e.Object) }); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// write writes one resource.
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
	marks := p.marks()
	err = p.each(ctx, func(o *scan.Object) error {
		l, err := encode(o)
		if err != nil {
			return err
		}
		return e.line(line{Object: &l})
	}, func(ev history.Event) error {
		for len(marks) > 0 && marks[0].rv < ev.Object.RV {
			if err := e.line(marks[0].line); err != nil {
				return err
			}
			marks = marks[1:]
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
	for _, m := range marks { // nothing changed after it
		if err := e.line(m.line); err != nil {
			return err
		}
	}
	head := moment(p.to)
	return e.line(line{Head: &head})
}
