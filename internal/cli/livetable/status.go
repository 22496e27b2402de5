// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// noticeFor is how long a notice is shown.
const noticeFor = 5 * time.Second

func (m *model) say(format string, args ...any) {
	m.notice, m.noticedAt = table.Clean(fmt.Sprintf(format, args...)), time.Now()
}

// status returns the parts of the status line.
func (m *model) status(now time.Time) []string {
	parts := []string{m.state(now)}
	if m.typing {
		parts = append(parts, "filter: "+m.filter+"_")
	} else if m.filter != "" {
		parts = append(parts, "filter: "+m.filter)
	}
	if m.notice != "" && now.Sub(m.noticedAt) < noticeFor {
		parts = append(parts, m.notice)
	}
	rate := 0.0
	for _, s := range m.streams {
		rate += s.table().Rate(now)
	}
	parts = append(parts, words.Count(m.rows(), "row"))
	if !m.past.still {
		parts = append(parts, fmt.Sprintf("%.0f changes/s", rate))
	}
	if m.typing {
		return append(parts, "Enter keeps the filter, Esc ends it")
	}
	return append(parts, "? help")
}

// state says how well the tables agree with the cluster.
func (m *model) state(now time.Time) string {
	if m.past.on {
		return m.past.state(m.clock(now), m.present(now))
	}
	if m.paused {
		waiting := 0
		for _, s := range m.streams {
			waiting += s.feed.Waiting()
		}
		return "paused, " + words.Count(waiting, "change") + " since"
	}
	worst := feed.State{Phase: feed.Live}
	for _, s := range m.streams {
		switch state := s.current(); {
		case state.Phase == feed.Stale && (worst.Phase != feed.Stale || state.Since.Before(worst.Since)):
			worst = state
		case (state.Phase == feed.Connecting || state.Phase == feed.Refused) && worst.Phase == feed.Live:
			worst = state
		}
	}
	switch worst.Phase {
	case feed.Stale:
		return "stale since " + worst.Since.Format(time.TimeOnly) + " (" + worst.Reason + ")"
	case feed.Connecting:
		return "connecting"
	case feed.Refused:
		return "refused"
	}
	return "live"
}

// state says which moment is shown.
func (p *past) state(at, present time.Time) string {
	if p.at.IsZero() {
		return "reading the history"
	}
	ago := " (" + duration.HumanDuration(present.Sub(at)) + " ago)"
	text := at.Local().Format("2006-01-02 15:04:05.000") + ago
	switch {
	case p.busy:
		return "at " + text + ", reading"
	case p.still:
		return "at " + text
	}
	return fmt.Sprintf("playing %gx at %s", p.speed, at.Local().Format(time.DateTime)+ago)
}
