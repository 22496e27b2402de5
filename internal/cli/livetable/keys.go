// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// help is what ? shows.
const help = `The table
  up down, j k        move the cursor; also PgUp, PgDn, Home, End
  Enter               details of the object at the cursor: description, YAML, versions, difference
  l                   log of the Pod at the cursor
  /                   filter: rows with a cell that contains a text
  s, S                sort by the next column; turn the order around
  Space               pause, and go on with all that happened meanwhile
  Esc                 end the filter; the cursor; the past
  Ctrl-Z              suspend
  q, Ctrl-C           quit; the table remains

The past, with a gateway that records
  left right          to the previous change; to the next one
  [ ]                 a minute back; a minute on
  Space               play from here; stop
  + -                 play faster; more slowly

Details
  Tab, left right     the next tab; the previous one
  up down, PgUp PgDn  scroll; also Home, End
  r                   read again
  Esc                 back to the table`

// key handles a key. To a terminal, Alt with a key is the same as Esc and then the key.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	key, alt := strings.CutPrefix(msg.String(), "alt+")
	if alt {
		m.one(msg, "esc")
	}
	return m.one(msg, key)
}

func (m *model) one(msg tea.KeyPressMsg, key string) tea.Cmd {
	switch {
	case key == "ctrl+c":
		return m.quit()
	case key == "ctrl+z":
		m.suspended.Store(true)
		return tea.Suspend
	case m.typing:
		m.typed(msg, key)
		return nil
	case key == "q":
		return m.quit()
	case m.pane != nil:
		return m.paneKey(key)
	default:
		return m.tableKey(key)
	}
}

// tableKey handles a key that is for the tables.
func (m *model) tableKey(key string) tea.Cmd {
	page := m.screen.Height - 3
	switch key {
	case "?":
		m.openText("help", help)
	case "/":
		m.typing = true
	case "s":
		m.sort(false)
	case "S":
		m.sort(true)
	case "esc":
		m.escape()
	case "down", "j":
		m.moveCursor(1)
	case "up", "k":
		m.moveCursor(-1)
	case "pgdown", "ctrl+f":
		m.moveCursor(page)
	case "pgup", "ctrl+b":
		m.moveCursor(-page)
	case "home", "g":
		m.moveCursor(-1 << 30)
	case "end", "G":
		m.moveCursor(1 << 30)
	case "space":
		switch {
		case m.past.on:
			m.play()
		default:
			m.paused = !m.paused
		}
	case "+", "=":
		m.faster(2)
	case "-":
		m.faster(0.5)
	case "left":
		return m.step(false, 1)
	case "right":
		return m.step(true, 1)
	case "[":
		return m.jump(-time.Minute)
	case "]":
		return m.jump(time.Minute)
	case "enter":
		return m.openDetails()
	case "l":
		return m.openLogs()
	}
	return nil
}

// typed handles a key for the filter.
func (m *model) typed(msg tea.KeyPressMsg, key string) {
	switch key {
	case "enter":
		m.typing = false
		return
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	case "ctrl+u":
		m.filter = ""
	default:
		m.filter += table.Clean(msg.Text)
	}
	for _, s := range m.streams {
		s.table().Filter(m.filter)
	}
}

// escape ends one thing: the filter, the cursor or the past.
func (m *model) escape() {
	switch {
	case m.filter != "":
		m.filter = ""
		for _, s := range m.streams {
			s.table().Filter("")
		}
	case m.screen.Key != "":
		m.screen.Key = ""
	case m.past.on && !m.past.busy:
		m.goLive()
	}
}

// sort goes to the next column, in all tables that have it, or turns the order around.
func (m *model) sort(turn bool) {
	for _, s := range m.streams {
		column, descending := s.table().Sorted()
		switch {
		case turn && column >= 0:
			s.table().SortBy(column, !descending)
		case turn:
		case column+1 < len(s.table().Columns()):
			s.table().SortBy(column+1, false)
		default:
			s.table().SortBy(-1, false)
		}
	}
}

// moveCursor moves the cursor by rows, over the ends of tables. The first move sets it to the
// first row that is shown, or to an end.
func (m *model) moveCursor(by int) {
	total, at := 0, -1
	for i, s := range m.streams {
		if j := s.table().Index(m.screen.Key); i == m.screen.Section && j >= 0 {
			at = total + j
		}
		total += len(s.table().Rows())
	}
	if total == 0 {
		return
	}
	switch {
	case at >= 0:
		at += by
	case by > -1<<30 && by < 1<<30:
		at = m.firstShown()
	default:
		at = by
	}
	at = max(min(at, total-1), 0)
	for i, s := range m.streams {
		rows := s.table().Rows()
		if at < len(rows) {
			m.screen.Section, m.screen.Key = i, rows[at].Key
			return
		}
		at -= len(rows)
	}
}

// firstShown returns the position of the first row on the screen.
func (m *model) firstShown() (at int) {
	for _, s := range m.streams {
		if top, size := s.section.Window(); size > 0 && len(s.table().Rows()) > 0 {
			return at + top
		}
		at += len(s.table().Rows())
	}
	return 0
}

// selected returns the object at the cursor. If there is no cursor, it sets it to the first
// row.
func (m *model) selected() (Object, bool) {
	s := m.streams[m.screen.Section]
	if s.table().Index(m.screen.Key) < 0 {
		m.moveCursor(1)
		s = m.streams[m.screen.Section]
	}
	key := m.screen.Key
	if s.table().Index(key) < 0 {
		return Object{}, false
	}
	o := Object{Watch: s.watch, Namespace: key.Namespace(), Name: key.Name()}
	if m.past.on {
		o.At = moment(m.past.clock(time.Now()))
	}
	return o, true
}

// isPod reports whether an object has logs.
func isPod(o Object) bool {
	return o.Watch.Resource.GroupResource() == (kube.Resource{Name: "pods"}).GroupResource()
}
