// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// compared is how many recorded events the upstream has to send again before the record
// is continued.
const compared = 8

// untrimmed calls read, and repeats it if the stream was trimmed meanwhile.
func untrimmed[T any](stream *history.Stream, read func() (T, error)) (T, error) {
	for {
		got, err := read()
		switch {
		case !errors.Is(err, history.ErrBefore):
			return got, err
		case stream.Head().RV == 0: // removed completely, as a damaged stream is
			return got, errDamaged
		}
	}
}

// resumeOf returns what a reflector needs to resume at a stream's head.
func (r *resourceRecorder) resumeOf(ctx context.Context, st *history.Stream, newest func(context.Context) (*reflector.Known, error)) (*reflector.Resume, error) {
	resume := &reflector.Resume{List: listOf(st.Form(), 0)}
	var err error
	if resume.AfterDelete, err = untrimmed(st, func() (bool, error) { return endsInDeletion(ctx, st) }); err != nil {
		return nil, err
	}
	resume.Newest = newest
	events, err := untrimmed(st, func() ([]history.Event, error) {
		span := st.Span()
		from := span.From.RV
		for _, g := range st.Gaps() {
			if !g.Late() {
				from = max(from, g.To) // the upstream does not have the events of a gap
			}
		}
		return st.LastEvents(ctx, from, span.To.RV, compared)
	})
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		resume.Tail = append(resume.Tail, reflector.KnownOf(e.Object, e.Type == kube.Deleted))
	}
	return resume, nil
}

// endsInDeletion reports whether an object was deleted at the head: deletions of other
// objects at the same RV may follow.
func endsInDeletion(ctx context.Context, st *history.Stream) (bool, error) {
	head := st.Head().RV
	for e, err := range st.Events(ctx, max(head-1, st.Span().From.RV), head) {
		if err != nil || e.Type == kube.Deleted {
			return err == nil, err
		}
	}
	return false, nil
}

// newestIn returns the live object of a stream that has the highest RV.
func newestIn(ctx context.Context, st *history.Stream) (*reflector.Known, error) {
	var newest *scan.Object
	for o, err := range st.List(ctx, st.Head().RV, "", "") {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		if newest == nil || o.RV > newest.RV {
			newest = o
		}
	}
	return knownOf(newest), nil
}

// knownOf returns what identifies an object's version, nil if there is no object.
func knownOf(o *scan.Object) *reflector.Known {
	if o == nil {
		return nil
	}
	k := reflector.KnownOf(o, false)
	return &k
}
