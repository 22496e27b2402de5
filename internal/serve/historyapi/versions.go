// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// versions returns the versions of one object, the newest first.
func (c *call) versions() (any, error) {
	t, streams, err := c.target()
	if err != nil {
		return nil, err
	}
	if t.Name == "" {
		return nil, refuseBad("%s is a collection: versions are those of one object, changes those of a collection", c.path)
	}
	c.sync(t.Resource)
	v := versionPage{key: kube.MakeKey(t.Namespace, t.Name)}
	if v.page, err = c.page(); err != nil {
		return nil, err
	}
	if v.since, err = c.when("since", ""); err != nil {
		return nil, err
	}
	if v.until, err = c.when("until", ""); err != nil {
		return nil, err
	}
	epoch, below, err := parseContinue(c.query.Get("continue"))
	if err != nil {
		return nil, err
	}
	v.out = api.Versions{Resource: t.Resource.GroupResource(), Namespace: t.Namespace, Name: t.Name, Items: []api.Change{}}
	if !c.query.Has("continue") {
		v.out.Unobserved = c.unobserved([]kube.Resource{t.Resource}, c.timeOf(t.Resource, v.since), cmp.Or(c.timeOf(t.Resource, v.until), c.now))
	}
	v.streams = streams
	for i, st := range slices.Backward(streams) {
		if below != 0 && st.Epoch() > epoch {
			continue
		}
		if st.Epoch() != epoch {
			below = 0
		}
		more, err := v.stream(i, below)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if len(v.out.Items) > 0 || c.query.Has("continue") {
		return v.out, nil
	}
	if known, err := c.known(streams, v.key); known || err != nil {
		return v.out, err
	}
	return nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "nothing is recorded of %s %q%s%s", t.Resource.GroupResource(), v.key, c.sinceBegin(t.Resource), c.missed(t.Namespace, v.out.Unobserved))
}

// missed says what a recording is limited to, and when resources were not observed, after that
// nothing is recorded of their objects in a namespace.
func (c *call) missed(namespace string, spans []api.UnobservedSpan) (text string) {
	if text = c.outside(namespace); text != "" {
		text = ", or it is " + text
	}
	if len(spans) == 0 {
		return text
	}
	names := map[string]bool{}
	for _, span := range spans {
		names[span.Resource] = true
	}
	what := spans[0].Resource
	if len(names) > 1 {
		what = words.Count(len(names), "resource")
	}
	times := merged(spans)
	last := times[len(times)-1]
	text += fmt.Sprintf("; %s were not observed between %s and %s", what, past.Stamp(last.From), past.Stamp(last.To))
	if more := len(times) - 1; more > 0 {
		text += ", nor in " + words.Count(more, "earlier span")
	}
	return text
}

// timeOf returns the time of a moment; the zero time for the zero moment, or if its
// resourceVersion is not recorded.
func (c *call) timeOf(r kube.Resource, when kube.Moment) time.Time {
	if when.RV == 0 {
		return when.At
	}
	state, err := c.locate(r, when)
	if err != nil {
		return time.Time{}
	}
	return state.Since
}

// known reports whether anything is recorded of an object.
func (c *call) known(streams []*history.Stream, key kube.Key) (bool, error) {
	ctx := c.r.Context()
	for _, st := range streams {
		span := st.Span()
		if span.From.RV == 0 {
			continue
		}
		if o, err := st.Get(ctx, span.From.RV, key); o != nil || err != nil {
			return o != nil, err
		}
		for _, err := range versionsBackward(ctx, st, key, span.From.RV, span.To.RV) {
			return err == nil, err
		}
	}
	return false, nil
}

// knownNamespace returns an error if nothing was ever recorded of a namespace, so that an answer
// about it would say that all is well there. It returns nil if that cannot be known: Namespaces
// are not recorded, or not up to now, or the caller may not read them.
func (c *call) knownNamespace(name string) error {
	t := request.Target{Verb: request.Get, Resource: kube.Resource{Version: "v1", Name: "namespaces"}, Name: name}
	streams := c.store.Streams(t.Resource)
	if name == "" || len(streams) == 0 || streams[len(streams)-1].Head().RV == 0 {
		return nil
	}
	if c.filtered(t.Resource.ObjectPath(kube.MakeKey("", name))) != nil || c.mayRead(t) != nil {
		return nil
	}
	c.sync(t.Resource)
	if _, reason := c.recordEnd(t.Resource); reason != "" && c.Recording().State != api.RecordingEnded {
		return nil
	}
	known, err := c.known(streams, kube.MakeKey("", name))
	if known || err != nil {
		return err
	}
	return refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "nothing is recorded in namespace %s%s", name, c.sinceBegin(t.Resource))
}

// sinceBegin says, after that nothing is recorded, since when the resource is: what was deleted
// before is not in the record.
func (c *call) sinceBegin(r kube.Resource) string {
	return fmt.Sprintf(" since %s, when the record begins", past.Stamp(c.begin(r)))
}

// A versionPage is a page of the versions of one object.
type versionPage struct {
	page
	key          kube.Key
	streams      []*history.Stream
	since, until kube.Moment
	out          api.Versions
}

// stream adds the versions of one epoch; if below is not 0, only those below that RV.
// It returns false if the page is complete, so that no older epoch is read.
func (v *versionPage) stream(i int, below uint64) (more bool, err error) {
	st := v.streams[i]
	r, ok, err := rangeOf(v.ctx, st, i == len(v.streams)-1, v.since, v.until)
	if err != nil {
		return false, err
	}
	if below != 0 {
		r.to = min(r.to, below-1)
	}
	if !ok {
		return v.begin(i)
	}
	for e, err := range versionsBackward(v.ctx, st, v.key, r.from, r.to) {
		if err := cmp.Or(err, v.ended()); err != nil {
			return false, err
		}
		if e.At.Before(v.since.At) {
			return false, nil
		}
		if v.full() {
			v.out.Continue = fmt.Sprintf("%d.%d", st.Epoch(), e.Object.RV+1)
			return false, nil
		}
		if err := v.add(st, e); err != nil {
			return false, err
		}
	}
	return v.begin(i)
}

// versionsBackward yields the events of one object in (from, to], the newest first. An
// error is the last element.
func versionsBackward(ctx context.Context, st *history.Stream, key kube.Key, from, to uint64) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for n := eventChunk / 16; to > from; {
			events, err := st.LastVersions(ctx, key, from, to, n)
			if err != nil {
				yield(history.Event{}, err)
				return
			}
			if len(events) == 0 {
				return
			}
			size := 0
			for _, e := range slices.Backward(events) {
				if !yield(e, nil) {
					return
				}
				size += len(e.Object.JSON)
			}
			n = max(1, min(2*n, eventChunk, chunkBytes*n/max(size, 1)))
			to = events[0].Object.RV - 1
		}
	}
}

// add adds a version.
func (v *versionPage) add(st *history.Stream, e history.Event) error {
	item, noise, err := v.change(st, e)
	if err != nil {
		return err
	}
	if item != nil {
		v.items++
		v.out.Items = append(v.out.Items, *item)
		return nil
	}
	at := api.Moment{ResourceVersion: kube.FormatRV(e.Object.RV), Time: e.At.UTC()}
	fold := api.Change{
		Type: api.Folded, ResourceVersion: at.ResourceVersion, Time: at.Time, UID: e.Object.UID, Epoch: st.Epoch(),
		Inferred: e.Inferred, NotBefore: v.notBefore(st, e), Summary: []string{}, Folded: &api.Fold{Noise: map[string]int{}},
	}
	last := len(v.out.Items) - 1
	if last < 0 || !folds(v.out.Items[last], fold) {
		v.items++
		last++
		v.out.Items = append(v.out.Items, fold)
	}
	f := v.out.Items[last].Folded
	f.Oldest = at
	f.Count++
	for _, kind := range noise {
		f.Noise[kind]++
	}
	return nil
}

// folds reports whether an older version of noise belongs to a fold: of all of its versions it is
// known equally well when they were written.
func folds(fold, older api.Change) bool {
	return fold.Type == api.Folded && fold.Epoch == older.Epoch && fold.Inferred == older.Inferred && fold.NotBefore.Equal(older.NotBefore)
}

// begin adds what became of the object before an epoch; of the first one, the version that it
// had at the oldest retained state. It returns false if the page is complete.
func (v *versionPage) begin(i int) (more bool, err error) {
	if x, ok := crossingTo(v.streams, i); ok {
		return v.cross(x, i == len(v.streams)-1)
	}
	st := v.streams[i]
	from := st.Span().From
	after := v.since.RV > from.RV || v.since.At.After(from.At)
	before := v.until.RV != 0 && v.until.RV < from.RV || !v.until.At.IsZero() && v.until.At.Before(from.At)
	if after || before || i > 0 && (crossing{v.streams[i-1], st}).meets() {
		return true, nil
	}
	o, err := st.Get(v.ctx, from.RV, v.key)
	if o == nil || err != nil {
		return true, err
	}
	item := api.Change{
		Type: api.Initial, ResourceVersion: kube.FormatRV(o.RV), Time: from.At.UTC(), UID: o.UID,
		Epoch: st.Epoch(), Summary: []string{"was there when the recorded history begins"},
	}
	if v.objects {
		item.Object = json.RawMessage(o.JSON)
	}
	v.out.Items = append(v.out.Items, item)
	return true, nil
}

// cross adds the versions of a crossing, on one page.
func (v *versionPage) cross(x crossing, newest bool) (more bool, err error) {
	if !x.within(newest, v.since, v.until) {
		return true, nil
	}
	events, err := x.of(v.ctx, v.key)
	if err != nil || len(events) == 0 {
		return err == nil, err
	}
	if v.full() {
		v.out.Continue = fmt.Sprintf("%d.%d", x.second.Epoch(), x.begin().RV+1)
		return false, nil
	}
	v.crossing = &x
	defer func() { v.crossing = nil }()
	for _, e := range slices.Backward(events) {
		if err := v.add(x.second, e); err != nil {
			return false, err
		}
	}
	return true, nil
}

// parseContinue reads a continue token: an epoch, and the RV below which the page
// continues.
func parseContinue(text string) (epoch int, below uint64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	if n, err := fmt.Sscanf(text, "%d.%d", &epoch, &below); n != 2 || err != nil || below == 0 || text != fmt.Sprintf("%d.%d", epoch, below) {
		return 0, 0, refuseBad("continue is %q: use the member continue of the page before", text)
	}
	return epoch, below, nil
}
