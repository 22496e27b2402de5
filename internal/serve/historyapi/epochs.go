// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// A crossing is the time between two epochs of a resource, of which nothing was observed. What
// differs between the last state of the first and the first list of the second has changed in it:
//
//	first   ──── a@80 ── b@90 ──┤ head 95
//	second                          30 ├── c@25, b@28 ── …      a deleted, b modified, c created
//
// Epochs that meet have no crossing: there the record of the first one has the difference.
type crossing struct{ first, second *history.Stream }

// crossingTo returns the crossing before streams[i]; ok is false if nothing is known of one.
func crossingTo(streams []*history.Stream, i int) (x crossing, ok bool) {
	if i == 0 {
		return x, false
	}
	x = crossing{streams[i-1], streams[i]}
	return x, x.known()
}

// known reports whether there is a time between the epochs, and neither is damaged.
func (x crossing) known() bool {
	return x.first.Head().RV != 0 && x.begin().RV != 0 && !x.meets() && x.first.Damage() == nil && x.second.Damage() == nil
}

// meets reports whether the second epoch begins where the first one ends.
func (x crossing) meets() bool { return x.first.Head() == x.begin() }

// continues reports whether both epochs are of one history of the cluster: the second has other
// forms of the objects, or another API version of the resource. It is not so after a restore of
// etcd, unless that has changed the preferred version, too.
func (x crossing) continues() bool {
	return x.meets() || x.first.Resource() != x.second.Resource()
}

// oneHistory reports whether each epoch from one of two to the other continues the one before.
func oneHistory(streams []*history.Stream, a, b *history.Stream) bool {
	i, j := slices.Index(streams, a), slices.Index(streams, b)
	for k := min(i, j); k < max(i, j); k++ {
		if k < 0 || !(crossing{streams[k], streams[k+1]}).continues() {
			return false
		}
	}
	return true
}

// since returns the last contact before the crossing.
func (x crossing) since() time.Time { return x.first.Head().At }

// begin returns the moment of the second epoch's first list.
func (x crossing) begin() history.Moment { return x.second.Span().From }

// within reports whether the changes are in a range, as [rangeOf]; newest says that the second
// epoch is the newest.
func (x crossing) within(newest bool, from, to kube.Moment) bool {
	begin := x.begin()
	return from.RV == 0 && (to.RV == 0 || newest && to.RV >= begin.RV) && !from.At.After(begin.At) && (to.At.IsZero() || !to.At.Before(begin.At))
}

// changes returns how an object that was last and is begin has changed, in order; either may be
// nil. Another form of the same version is no change.
func (x crossing) changes(last, begin *scan.Object) (events []history.Event) {
	to := x.begin()
	add := func(typ kube.EventType, o, prev *scan.Object) {
		events = append(events, history.Event{Type: typ, Object: o, Prev: prev, Inferred: true, At: to.At})
	}
	same := last != nil && begin != nil && last.UID == begin.UID
	if last != nil && !same {
		add(kube.Deleted, last.At(to.RV), last)
	}
	switch {
	case begin == nil:
	case !same:
		add(kube.Added, begin, nil)
	case last.RV != begin.RV:
		add(kube.Modified, begin, last)
	}
	return events
}

// of returns the changes of an object, none if its last state cannot be read.
func (x crossing) of(ctx context.Context, key kube.Key) ([]history.Event, error) {
	last, err := x.first.Get(ctx, x.first.Head().RV, key)
	if err != nil {
		return nil, unlessLost(err)
	}
	begin, err := x.second.Get(ctx, x.begin().RV, key)
	if err != nil {
		return nil, unlessLost(err)
	}
	return x.changes(last, begin), nil
}

// A crossed is an object, and how it has changed in a crossing.
type crossed struct {
	key    kube.Key
	events []history.Event
}

// all yields the objects of either state, from a key on, also those without a change. The states
// are read in step, and not held. It ends early where one cannot be read any more.
func (x crossing) all(ctx context.Context, from kube.Key) iter.Seq2[crossed, error] {
	return func(yield func(crossed, error) bool) {
		nextLast, stop := iter.Pull2(x.first.List(ctx, x.first.Head().RV, "", from))
		defer stop()
		nextBegin, stop := iter.Pull2(x.second.List(ctx, x.begin().RV, "", from))
		defer stop()
		last, err, _ := nextLast()
		begin, failed, _ := nextBegin()
		for last != nil || begin != nil {
			if err := cmp.Or(err, failed); err != nil {
				break
			}
			a, b := last, begin
			switch {
			case a == nil || b != nil && b.Key < a.Key:
				a = nil
			case b == nil || a.Key < b.Key:
				b = nil
			}
			if !yield(crossed{cmp.Or(a, b).Key, x.changes(a, b)}, nil) {
				return
			}
			if a != nil {
				last, err, _ = nextLast()
			}
			if b != nil {
				begin, failed, _ = nextBegin()
			}
		}
		if err := unlessLost(cmp.Or(err, failed)); err != nil {
			yield(crossed{}, err)
		}
	}
}

// unlessLost returns an error of reading a state, nil if the state is damaged or was removed.
func unlessLost(err error) error {
	if errors.Is(err, history.ErrCorrupt) || errors.Is(err, history.ErrBefore) {
		return nil
	}
	return err
}

// maxCrossed bounds the objects that are compared for a page: it takes about half a second.
// Tests change it.
var maxCrossed = 20_000

// fill reads the next changes of a crossing: object by object, the last change of each first.
func (b *backward) fill(ctx context.Context) error {
	defer func() { slices.Reverse(b.events) }()
	for o, err := range b.crossing.all(ctx, b.key) {
		if err != nil {
			return err
		}
		if b.scan <= 0 || len(b.events) >= eventChunk/4 {
			b.key = o.key
			return nil
		}
		b.scan--
		for _, e := range slices.Backward(o.events) {
			if b.match == nil || b.match(o.key, e.Type) {
				b.events = append(b.events, e)
			}
		}
	}
	b.read = true
	return nil
}

// epochs returns a state and the ends of the epochs before it that reach back to begin.
func (f *finder) epochs(state past.State, begin time.Time) []past.State {
	all, streams := []past.State{state}, f.store.Streams(state.Stream.Resource())
	for i := slices.Index(streams, state.Stream) - 1; i >= 0 && !streams[i].Head().At.Before(begin); i-- {
		all = append(all, past.State{Stream: streams[i], RV: streams[i].Head().RV})
	}
	return all
}

// A located is an event, and the last known state of its epoch.
type located struct {
	history.Event
	state past.State
}

// backward yields the events of an object up to a state, the newest first, also those of the epochs
// that reach back to begin, and between them: f.page.crossing is set meanwhile.
func (f *finder) backward(state past.State, key kube.Key, begin time.Time) iter.Seq2[located, error] {
	return func(yield func(located, error) bool) {
		defer func() { f.page.crossing = nil }()
		later := state
		for i, state := range f.epochs(state, begin) {
			if x := (crossing{state.Stream, later.Stream}); i > 0 && x.known() {
				events, err := x.of(f.page.ctx, key)
				if err != nil {
					yield(located{}, err)
					return
				}
				f.page.crossing = &x
				for _, e := range slices.Backward(events) {
					if !yield(located{e, later}, nil) {
						return
					}
				}
				f.page.crossing = nil
			}
			for e, err := range versionsBackward(f.page.ctx, state.Stream, key, state.Stream.Span().From.RV, state.RV) {
				if !yield(located{e, state}, err) || err != nil {
					return
				}
			}
			later = state
		}
	}
}

// search yields the events that [history.Stream.Search] finds up to a state, the newest first, also
// those of the epochs that reach back to q.Since.
func (f *finder) search(state past.State, q history.Search) iter.Seq2[located, error] {
	return func(yield func(located, error) bool) {
		for _, state := range f.epochs(state, q.Since) {
			q.From, q.To = state.Stream.Span().From.RV, state.RV
			found, err := state.Stream.Search(f.page.ctx, q)
			if err != nil {
				yield(located{}, err)
				return
			}
			for _, e := range slices.Backward(found.Events) {
				if !yield(located{e, state}, nil) {
					return
				}
			}
		}
	}
}
