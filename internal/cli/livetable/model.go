// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/screen"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A model is the state of the program. Bubbletea calls its methods in one goroutine.
type model struct {
	Options
	ctx     context.Context
	pacer   *pacer
	streams []*stream
	screen  screen.Screen

	suspended atomic.Bool   // by Ctrl-Z
	ahead     time.Duration // how far the server's clock is ahead
	end       time.Time     // of the recording that the server has; zero if it is live

	paused    bool
	typing    bool   // the filter
	filter    string // of all tables
	pane      *pane  // in place of the tables; nil if there is none
	past      past
	notice    string    // in the status line
	noticedAt time.Time // when it appeared
	content   string    // the frame
	tall      int       // lines of the frame, which shrinks after a while
	shorter   time.Time // since when it could be shorter
	quitting  bool
}

func newModel(ctx context.Context, o Options, p *pacer) (*model, error) {
	m := &model{Options: o, ctx: ctx, pacer: p}
	var err error
	if m.streams, err = newStreams(&m.Options, p.wake); err != nil {
		return nil, err
	}
	m.screen = screen.Screen{Style: screen.Style{NoColor: o.NoColor, ASCII: isASCII()}, NoHeaders: o.NoHeaders}
	for _, s := range m.streams {
		m.screen.Sections = append(m.screen.Sections, s.section)
	}
	return m, nil
}

func (m *model) stop() {
	m.closePane()
	for _, s := range m.streams {
		s.stop()
	}
}

// refusal returns why there is nothing, if the API server has refused all resources.
func (m *model) refusal() error {
	var all []error
	for _, s := range m.streams {
		if state := s.current(); state.Phase != feed.Refused || s.table().Listed() {
			return nil
		}
		all = append(all, errors.New(s.current().Reason))
	}
	return errors.Join(all...)
}

// Init implements tea.Model, as the methods below do. It begins with the present, or with the
// moment of the options.
func (m *model) Init() tea.Cmd {
	if m.At != "" {
		m.playFrom(m.At)
		return nil
	}
	return m.goLive()
}

// Update handles a message, and draws.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
		m.tall = 0
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.ResumeMsg:
		m.suspended.Store(false)
		m.tall = 0
	case quitMsg:
		return m, m.quit()
	case stepMsg:
		cmd = m.stepped(msg)
	case textMsg:
		m.received(msg)
	case frameMsg:
	case countMsg:
		msg <- m.rows()
		return m, nil
	default:
		return m, nil
	}
	if m.quitting {
		return m, cmd
	}
	m.take(time.Now())
	if !m.past.on && m.refusal() != nil {
		return m, m.quit()
	}
	m.draw(time.Now())
	return m, cmd
}

// A countMsg asks for the number of objects.
type countMsg chan<- int

func (m *model) rows() (n int) {
	for _, s := range m.streams {
		n += s.table().Len()
	}
	return n
}

// quit leaves the last state of the tables on the terminal.
func (m *model) quit() tea.Cmd {
	if m.quitting {
		return tea.Quit
	}
	m.quitting, m.paused = true, false
	now := time.Now()
	m.take(now)
	for _, s := range m.streams {
		s.table().Settle(now)
	}
	m.content = ""
	lines := m.screen.Final(max(m.screen.Height-2, 1), m.clock(now))
	if m.past.on {
		lines = append(lines, "at "+moment(m.clock(now)))
	}
	if len(lines) > 0 {
		// Bubbletea clears the last line.
		m.content = strings.Join(lines, "\n") + "\n"
	}
	return tea.Quit
}

// take brings the tables up to date.
func (m *model) take(now time.Time) {
	m.follow(now)
	if m.past.still {
		return
	}
	for _, s := range m.streams {
		if !m.paused {
			s.feed.Drain().Apply(s.table(), now)
		}
		s.table().Expire(now)
	}
}

// View returns the frame.
func (m *model) View() tea.View {
	return tea.View{Content: m.content, DisableBracketedPasteMode: true}
}

// shrinkAfter is how long a frame keeps lines that it does not need: a frame of another height
// is written as a whole.
const shrinkAfter = 5 * time.Second

// draw makes a frame and asks for the next.
func (m *model) draw(now time.Time) {
	if m.screen.Width == 0 {
		return // not known yet
	}
	var lines []string
	if m.pane != nil {
		lines = m.pane.lines(&m.screen)
	} else {
		m.screen.Status = m.status(now)
		m.screen.Clock = m.clock(now)
		for _, s := range m.streams {
			if s.section.Note = ""; !m.past.on {
				s.section.Note = note(s)
			}
		}
		lines = m.screen.Lines(m.marksAt(now))
	}
	switch {
	case len(lines) >= m.tall:
		m.tall, m.shorter = len(lines), time.Time{}
	case m.shorter.IsZero():
		m.shorter = now
	case now.Sub(m.shorter) > shrinkAfter:
		m.tall, m.shorter = len(lines), time.Time{}
	}
	m.content = strings.Join(lines, "\n") + strings.Repeat("\n", m.tall-len(lines))
	m.pacer.next(m.untilNext(now))
}

// untilNext returns when the frame looks different by itself.
func (m *model) untilNext(now time.Time) time.Duration {
	next := now.Truncate(time.Second).Add(time.Second).Sub(now) // ages
	for _, s := range m.streams {
		r, at := s.table().LastChange()
		if r == nil || m.past.still {
			continue
		}
		for _, step := range append(screen.Steps, table.Ghost) {
			if d := at.Add(step).Sub(now); d > 0 {
				next = min(next, d)
			}
		}
	}
	return max(next, frameInterval)
}

// note says why a table may be wrong.
func note(s *stream) string {
	switch state := s.current(); {
	case state.Phase == feed.Refused:
		return state.Reason
	case state.Phase == feed.Connecting && !s.table().Listed() && state.Reason != "":
		return state.Reason
	case !s.table().Listed():
		return "connecting"
	}
	return ""
}
