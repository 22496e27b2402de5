// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"cmp"
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A past is which moment of the past the tables show.
//
//	live ──←, [──► still ◄──Space──► playing ──► live
//	               ◄─ ←→ [] ─┘         caught up
type past struct {
	on    bool
	still bool      // a moment, and not a replay
	at    time.Time // the moment, or the one from which a replay began; zero if it is not known
	began time.Time // when the replay began, or when the step was drawn
	speed float64
	busy  bool // a step is being read
	// entering is set during the first step from the present: the tables still show that.
	entering bool
}

// clock returns the moment that is shown, zero if it is not known.
func (p *past) clock(now time.Time) time.Time {
	if !p.on || p.still || p.at.IsZero() {
		return p.at
	}
	return p.at.Add(time.Duration(float64(now.Sub(p.began)) * p.speed))
}

// present returns the server's present at a time of the local clock.
func (m *model) present(now time.Time) time.Time {
	if !m.end.IsZero() {
		return m.end
	}
	return now.Add(m.ahead)
}

// maxCompare limits how long the start waits for the server's clock.
const maxCompare = 5 * time.Second

// compare finds out how far the server's clock is ahead of the local one, or whether the
// server has a recording only. If it fails, the first step will say so.
func (m *model) compare() {
	if m.History == nil {
		return
	}
	ctx, cancel := context.WithTimeout(m.ctx, maxCompare)
	defer cancel()
	at, ended, err := m.History.Now(ctx)
	if err != nil {
		return
	}
	if ended {
		m.end = at
	} else if d := time.Until(at); d.Abs() > time.Second {
		m.ahead = d
	}
}

// clock returns the time for ages.
func (m *model) clock(now time.Time) time.Time {
	present := m.present(now)
	if at := m.past.clock(now); m.past.on && !at.IsZero() && at.Before(present) {
		return at
	}
	return present
}

// marksAt returns the time for marks. What a step has changed remains marked.
func (m *model) marksAt(now time.Time) time.Time {
	if limit := m.past.began.Add(table.Fade / 2); m.past.still && limit.Before(now) {
		return limit
	}
	return now
}

// A stepMsg is the tables at a moment.
type stepMsg struct {
	at    time.Time
	feeds []*feed.Feed // nil if there is no such moment
	err   error
	// forward and tries are those of a step to a change; tries is 0 for a given moment.
	forward bool
	tries   int
}

// maxTries is how many changes a step passes that change nothing in the tables.
const maxTries = 20

// noHistory says why there is no past.
func (m *model) noHistory() bool {
	if m.History == nil {
		m.say("no history: the past needs a watchkeeper gateway (--server)")
	}
	return m.History == nil
}

// step goes to the next change, or to the previous one.
func (m *model) step(forward bool, tries int) tea.Cmd {
	if m.past.busy || forward && !m.past.on || m.noHistory() {
		return nil
	}
	from := m.stand()
	return m.read(func(ctx context.Context) stepMsg {
		msg := stepMsg{forward: forward, tries: tries}
		var resources []string
		namespace := ""
		for _, s := range m.streams {
			resources = append(resources, s.watch.Resource.GroupResource())
			namespace = cmp.Or(namespace, s.watch.Namespace) // that of those that have one
		}
		at, ok, err := m.History.Step(ctx, resources, namespace, from, forward)
		if err != nil || !ok {
			msg.err = err
			return msg
		}
		return m.at(ctx, at, msg)
	})
}

// jump goes to a moment relative to the one that is shown. One of the future is the present.
func (m *model) jump(by time.Duration) tea.Cmd {
	if m.past.busy || by > 0 && !m.past.on || m.noHistory() {
		return nil
	}
	at := m.stand().Add(by)
	if !at.Before(m.present(time.Now())) {
		return m.goLive()
	}
	return m.read(func(ctx context.Context) stepMsg { return m.at(ctx, at, stepMsg{}) })
}

// stand stops a replay, and returns the moment that is shown.
func (m *model) stand() time.Time {
	at := time.Now()
	if at = m.present(at); m.past.on {
		at = m.past.clock(time.Now())
	}
	return at.Truncate(time.Millisecond)
}

// read runs something in the background, of which there is one at a time.
func (m *model) read(f func(context.Context) stepMsg) tea.Cmd {
	m.past.busy, m.paused = true, false
	if !m.past.on {
		m.past.at, m.past.began = m.stand(), time.Now()
		m.past.on, m.past.still, m.past.entering = true, true, true
	}
	return func() tea.Msg { return f(m.ctx) }
}

// at lists all tables at a moment.
func (m *model) at(ctx context.Context, at time.Time, msg stepMsg) stepMsg {
	msg.at, msg.feeds = at, make([]*feed.Feed, len(m.streams))
	errs := make([]error, len(m.streams))
	var reading sync.WaitGroup
	for i, s := range m.streams {
		reading.Go(func() {
			msg.feeds[i] = s.newFeed(func() time.Time { return at })
			errs[i] = msg.feeds[i].ListAt(ctx, s.watch.collection(), moment(at))
		})
	}
	reading.Wait()
	for _, err := range errs {
		if err != nil {
			return stepMsg{err: err}
		}
	}
	return msg
}

// stepped shows the tables at a moment.
func (m *model) stepped(msg stepMsg) tea.Cmd {
	m.past.busy = false
	switch {
	case msg.err != nil:
		m.say("%v", msg.err)
	case msg.feeds == nil && msg.forward:
		return m.goLive()
	case msg.feeds == nil:
		m.say("nothing changed before this")
	}
	if msg.feeds == nil {
		if m.past.entering {
			m.past = past{} // nothing was stopped
		}
		return nil
	}
	m.past.entering = false
	now := time.Now()
	for i, s := range m.streams {
		s.stop()
		s.feed = msg.feeds[i]
		s.table().Settle(now)
		s.feed.Drain().Apply(s.table(), now)
	}
	changed := m.changed()
	if msg.at.Before(m.past.at) {
		for _, s := range m.streams {
			s.table().DropDeleted(now) // they did not exist yet
		}
	}
	m.past.still, m.past.at, m.past.began = true, msg.at, now
	if msg.tries > 0 && msg.tries < maxTries && !changed {
		return m.step(msg.forward, msg.tries+1)
	}
	return nil
}

// changed reports whether any table shows a change.
func (m *model) changed() bool {
	for _, s := range m.streams {
		if r, _ := s.table().LastChange(); r != nil {
			return true
		}
	}
	return false
}

// goLive shows the present: of a recording, its end.
func (m *model) goLive() tea.Cmd {
	m.past = past{}
	if !m.end.IsZero() {
		return m.read(func(ctx context.Context) stepMsg { return m.at(ctx, m.end, stepMsg{}) })
	}
	for _, s := range m.streams {
		s.live(m.ctx)
	}
	return nil
}

// play replays what followed the moment that is shown, or stops a replay there.
func (m *model) play() {
	switch {
	case m.past.busy:
	case m.past.still:
		when := moment(m.past.at)
		m.past.still, m.past.began, m.past.speed = false, time.Now(), m.Speed
		for _, s := range m.streams {
			if s.feed.Head() == 0 { // no step has listed it
				s.feed = s.newFeed(func() time.Time { return m.past.at })
			}
			s.table().Settle(time.Now())
			s.replay(m.ctx, s.feed, when, m.Speed)
		}
	default:
		m.past.at = m.clock(time.Now())
		m.past.still, m.past.began = true, time.Now()
		for _, s := range m.streams {
			s.stop()
		}
	}
}

// maxSpeed is that of the gateway.
const maxSpeed = 10000

// faster multiplies the speed of replays.
func (m *model) faster(by float64) {
	m.Speed = max(min(m.Speed*by, maxSpeed), 1)
	if m.past.on && !m.past.still {
		m.play()
		m.play()
	}
}

// playFrom begins in the past.
func (m *model) playFrom(when string) {
	m.past = past{on: true, speed: m.Speed, began: time.Now()}
	for _, s := range m.streams {
		s.replay(m.ctx, s.newFeed(time.Now), when, m.Speed)
	}
}

// follow brings the moment of a replay up to date, and goes live when all have caught up, or
// stops at the end of a recording.
func (m *model) follow(now time.Time) {
	if !m.past.on || m.past.still {
		return
	}
	all, ended := true, !m.end.IsZero()
	for _, s := range m.streams {
		played, when, caught, failed := s.progress()
		if failed != nil {
			m.say("%v", failed)
			m.play() // stops
			return
		}
		if played.After(m.past.at) {
			m.past.at, m.past.began = played, when
		}
		all, ended = all && caught, ended && !played.Before(m.end)
	}
	switch {
	case all:
		m.goLive()
	case ended:
		for _, s := range m.streams {
			s.feed.Drain().Apply(s.table(), now)
		}
		m.play() // stops
		m.past.at = m.end
	}
}
