// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/screen"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A plainWriter prints in lines what happens.
type plainWriter struct {
	Options
	out     *bufio.Writer
	streams []*stream
	states  []feed.State
	listed  []bool
	past    bool // a replay has not caught up
}

// runPlain prints the tables once, and then a line for each change, until ctx ends.
func runPlain(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newPacer()
	streams, err := newStreams(&o, p.wake)
	if err != nil {
		return err
	}
	w := &plainWriter{
		Options: o, out: bufio.NewWriter(o.Out), streams: streams, past: o.At != "",
		states: make([]feed.State, len(streams)), listed: make([]bool, len(streams)),
	}
	for _, s := range streams {
		if w.past {
			s.replay(ctx, s.newFeed(time.Now), o.At, o.Speed)
		} else {
			s.live(ctx)
		}
		defer s.stop()
	}
	var failed error
	p.run(ctx, func() {
		if failed = w.tell(ctx, time.Now()); failed != nil {
			cancel()
		}
	})
	return failed
}

// tell prints what is new.
func (w *plainWriter) tell(ctx context.Context, now time.Time) error {
	refused, caught, inOrder := 0, 0, true
	for i, s := range w.streams {
		if inOrder { // first lists are printed in the order of the watches
			for _, e := range w.first(i, s.feed.Drain(), now) {
				w.event(s, e, now)
			}
			s.table().Expire(now)
			inOrder = w.listed[i] || s.current().Phase == feed.Refused
		}
		if state := s.current(); state != w.states[i] {
			w.state(s, w.states[i], state, now)
			w.states[i] = state
		}
		if w.states[i].Phase == feed.Refused {
			refused++
		}
		_, _, done, failed := s.progress()
		if failed != nil {
			return failed
		}
		if done {
			caught++
		}
	}
	if w.past && caught == len(w.streams) {
		w.past = false
		w.line(now, "the present")
		for _, s := range w.streams {
			s.live(ctx)
		}
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	if refused == len(w.streams) {
		return fmt.Errorf("%s", w.states[0].Reason)
	}
	return nil
}

// first prints a first list as a table, and turns a later one into events.
func (w *plainWriter) first(i int, c feed.Changes, now time.Time) []feed.Event {
	if !c.Listed {
		return c.Events
	}
	s := w.streams[i]
	if w.listed[i] {
		var events []feed.Event
		in := map[kube.Key]bool{}
		for _, d := range c.List {
			in[d.Key] = true
			events = append(events, feed.Event{Data: d})
		}
		for _, r := range s.table().Rows() {
			if !in[r.Key] {
				events = append(events, feed.Event{Data: table.Data{Key: r.Key}, Deleted: true})
			}
		}
		return append(events, c.Events...)
	}
	w.listed[i] = true
	s.table().Replace(c.Columns, c.List, now)
	only := &screen.Screen{Style: screen.Style{ASCII: true}, NoHeaders: w.NoHeaders, Sections: []*screen.Section{s.section}}
	if i > 0 {
		fmt.Fprintln(w.out)
	}
	for _, l := range only.Final(0, now) {
		fmt.Fprintln(w.out, l)
	}
	if s.table().Len() == 0 {
		fmt.Fprintf(w.out, "no %s\n", s.watch.Title)
	}
	return c.Events
}

// event prints what has changed in a row.
func (w *plainWriter) event(s *stream, e feed.Event, now time.Time) {
	t := s.table()
	old := t.Get(e.Key)
	name := w.name(s, e.Key)
	switch {
	case e.Deleted && (old == nil || !old.Deleted.IsZero()):
	case e.Deleted:
		w.line(now, name+" deleted")
		t.Delete(e.Key, now)
	case old == nil || !old.Deleted.IsZero() || old.UID != e.UID:
		w.line(now, name+" added: "+w.cells(s, e.Cells, nil, now))
		t.Put(e.Data, now)
	default:
		before := append([]table.Cell(nil), old.Cells...)
		t.Put(e.Data, now)
		if changes := w.cells(s, e.Cells, before, now); changes != "" {
			w.line(now, name+" changed: "+changes)
		}
	}
}

// cells says what the cells are, or how they differ from those before.
func (w *plainWriter) cells(s *stream, cells, before []table.Cell, now time.Time) string {
	var parts []string
	for i, c := range s.table().Columns() {
		switch {
		case i >= len(cells) || c.IsName || c.Name == "NAMESPACE":
		case before == nil:
			parts = append(parts, c.Name+" "+word(cells[i], now))
		case i < len(before) && cells[i] != before[i]:
			parts = append(parts, c.Name+" from "+word(before[i], now)+" to "+word(cells[i], now))
		}
	}
	return strings.Join(parts, ", ")
}

func word(c table.Cell, now time.Time) string {
	if text := c.At(now); text != "" {
		return text
	}
	return "nothing"
}

func (w *plainWriter) name(s *stream, key kube.Key) string {
	name := s.watch.Resource.Name + " " + table.Clean(key.Name())
	if w.AllNamespaces && key.Namespace() != "" {
		name += " in " + table.Clean(key.Namespace())
	}
	return name
}

func (w *plainWriter) line(now time.Time, text string) {
	fmt.Fprintf(w.out, "%s %s\n", now.Format(time.TimeOnly), text)
}

// state says that a table has become stale, or is up to date again.
func (w *plainWriter) state(s *stream, old, state feed.State, now time.Time) {
	switch {
	case state.Phase == feed.Stale && old.Phase != feed.Stale:
		w.line(now, s.watch.Title+": stale: "+state.Reason)
	case state.Phase == feed.Live && old.Phase == feed.Stale:
		w.line(now, s.watch.Title+": up to date again")
	case state.Phase == feed.Connecting && state.Reason != "" && old.Reason == "":
		w.line(now, s.watch.Title+": "+state.Reason)
	}
}
