// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/screen"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A stream brings one watch to its table: now from a reflector, now from the past. Only the
// goroutine of the model calls its methods.
type stream struct {
	watch   *Watch
	section *screen.Section
	columns feed.Columns
	sortKey func(*scan.Object) any
	wake    func()

	feed   *feed.Feed
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	run      int        // which goroutine may report
	state    feed.State
	upstream feed.State // that of a gateway's API server: Stale, or zero
	played   time.Time  // the moment that a replay has reached
	when     time.Time  // when it did
	caught   bool       // the replay has caught up
	failed   error      // the end of a replay
}

// newStreams returns a stream for each watch.
func newStreams(o *Options, wake func()) ([]*stream, error) {
	var key func(*scan.Object) any
	var less func(a, b any) bool
	if o.SortBy != "" {
		var err error
		if key, less, err = feed.SortBy(o.SortBy); err != nil {
			return nil, err
		}
	}
	var all []*stream
	for i := range o.Watches {
		w := &o.Watches[i]
		s := &stream{
			watch: w, wake: wake, sortKey: key, cancel: func() {},
			section: &screen.Section{Table: &table.Table{Less: less}, Title: w.Title},
			columns: feed.Columns{Namespace: o.AllNamespaces && w.Namespaced, Wide: o.Wide, ShowLabels: o.ShowLabels, LabelColumns: o.LabelColumns, NamePrefix: w.NamePrefix},
		}
		s.feed = s.newFeed(time.Now)
		all = append(all, s)
	}
	return all, nil
}

func (s *stream) table() *table.Table { return s.section.Table }

// newFeed returns a feed whose API server prints ages by a clock.
func (s *stream) newFeed(clock func() time.Time) *feed.Feed {
	p := feed.NewPrinter(s.watch.Resource, s.columns, s.sortKey)
	p.At(clock)
	return feed.New(p, s.watch.keep(), s.wake)
}

// stop ends what feeds the table, and waits for it.
func (s *stream) stop() {
	s.mu.Lock()
	s.run++
	s.mu.Unlock()
	s.cancel()
	s.done.Wait()
}

// begin stops what feeds the table, and starts something else.
func (s *stream) begin(ctx context.Context, of *feed.Feed, do func(ctx context.Context, update func(func()))) {
	s.stop()
	ctx, s.cancel = context.WithCancel(ctx)
	s.feed = of
	s.mu.Lock()
	run := s.run
	s.played, s.caught, s.failed = time.Time{}, false, nil
	s.mu.Unlock()
	update := func(f func()) {
		s.mu.Lock()
		if s.run == run {
			f()
		}
		s.mu.Unlock()
		s.wake()
	}
	s.done.Go(func() { do(ctx, update) })
}

// live follows the present.
func (s *stream) live(ctx context.Context) {
	f := s.newFeed(time.Now)
	s.mu.Lock()
	s.state, s.upstream = feed.State{}, feed.State{}
	s.mu.Unlock()
	s.begin(ctx, f, func(ctx context.Context, update func(func())) {
		ctx, cancel := context.WithCancel(ctx)
		var asking sync.WaitGroup
		asking.Go(func() {
			s.watch.collection().Upstream(ctx, func(state feed.State) { update(func() { s.upstream = state }) })
		})
		// A refusal is in the state.
		_ = f.Run(ctx, s.watch.collection(), func(state feed.State) { update(func() { s.state = state }) })
		cancel()
		asking.Wait()
	})
}

// replay plays what followed a list of the past, which f has taken at when. Without a list,
// it takes one.
func (s *stream) replay(ctx context.Context, f *feed.Feed, when string, speed float64) {
	s.begin(ctx, f, func(ctx context.Context, update func(func())) {
		var err error
		if f.Head() == 0 {
			err = f.ListAt(ctx, s.watch.collection(), when)
		}
		if err == nil {
			err = f.Replay(ctx, s.watch.collection(), when, speed, func(at time.Time) {
				update(func() { s.played, s.when = at, time.Now() })
			})
		}
		update(func() {
			if s.caught = err == nil; !errors.Is(err, context.Canceled) {
				s.failed = err
			}
		})
	})
}

// progress returns the moment that a replay has reached and when it did, whether it has caught
// up, and why it failed.
func (s *stream) progress() (played, when time.Time, caught bool, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.played, s.when, s.caught, s.failed
}

// current returns how well the table agrees with the cluster.
func (s *stream) current() feed.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Phase == feed.Live && s.upstream.Phase == feed.Stale {
		return s.upstream
	}
	return s.state
}
