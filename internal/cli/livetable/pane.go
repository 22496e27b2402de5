// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/screen"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A pane is a text in place of the tables: details of an object in tabs, a log, or help.
type pane struct {
	object Object
	title  string
	tabs   []string
	tab    int
	text   []string // clean lines
	top    int      // the first line that is shown
	page   int      // lines that fit
	cancel context.CancelFunc
	log    *logText // nil if it is no log
	follow bool     // of a log: its end is shown
}

// A textMsg is the text of a tab.
type textMsg struct {
	of   *pane
	tab  int
	text string
	err  error
}

func (m *model) openText(title, text string) {
	m.closePane()
	m.pane = &pane{title: title, cancel: func() {}, text: cleanLines(text)}
}

func (m *model) closePane() {
	if m.pane != nil {
		m.pane.cancel()
		if m.pane.log != nil {
			m.pane.log.done.Wait()
		}
	}
	m.pane = nil
}

// openDetails shows the object at the cursor.
func (m *model) openDetails() tea.Cmd {
	o, ok := m.selected()
	if !ok {
		return nil
	}
	if m.Details == nil || len(m.Details.Tabs(o)) == 0 {
		m.say("there are no details")
		return nil
	}
	m.closePane()
	m.pane = &pane{object: o, title: title(o), tabs: m.Details.Tabs(o), cancel: func() {}}
	return m.load()
}

func title(o Object) string {
	t := o.Watch.Resource.Name + "/" + o.Name
	if o.Namespace != "" {
		t += " in " + o.Namespace
	}
	if o.At != "" {
		t += " at " + o.At
	}
	return table.Clean(t)
}

// load reads the text of the tab.
func (m *model) load() tea.Cmd {
	p := m.pane
	p.cancel()
	ctx, cancel := context.WithCancel(m.ctx)
	p.cancel, p.text, p.top = cancel, []string{"reading"}, 0
	tab := p.tab
	return func() tea.Msg {
		text, err := m.Details.Text(ctx, p.object, p.tabs[tab])
		return textMsg{p, tab, text, err}
	}
}

// received shows the text of a tab, if it is still wanted.
func (m *model) received(msg textMsg) {
	if msg.of != m.pane || msg.tab != m.pane.tab || errors.Is(msg.err, context.Canceled) {
		return
	}
	if m.pane.text = cleanLines(msg.text); msg.err != nil {
		m.pane.text = cleanLines(msg.err.Error())
	}
}

func cleanLines(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = table.Clean(expandTabs(strings.TrimSuffix(l, "\r")))
	}
	return lines
}

// expandTabs moves what follows a tab to the next of kubectl's columns of eight.
func expandTabs(s string) string {
	for {
		i := strings.IndexByte(s, '\t')
		if i < 0 {
			return s
		}
		s = s[:i] + "        "[i%8:] + s[i+1:]
	}
}

// openLogs shows the log of the Pod at the cursor.
func (m *model) openLogs() tea.Cmd {
	o, ok := m.selected()
	switch {
	case !ok:
		return nil
	case !isPod(o):
		m.say("only Pods have logs")
		return nil
	case m.Details == nil:
		m.say("there are no logs")
		return nil
	}
	m.closePane()
	ctx, cancel := context.WithCancel(m.ctx)
	l := &logText{wake: m.pacer.wake}
	m.pane = &pane{object: o, title: "log of " + title(o), cancel: cancel, log: l, follow: true}
	l.done.Go(func() { l.read(ctx, func() (io.ReadCloser, error) { return m.Details.Logs(ctx, o) }) })
	return nil
}

// maxLog is how many lines of a log are kept.
const maxLog = 5000

// A logText is the end of a log.
type logText struct {
	wake func()
	done sync.WaitGroup

	mu    sync.Mutex // guards lines
	lines []string
}

func (l *logText) read(ctx context.Context, open func() (io.ReadCloser, error)) {
	body, err := open()
	if err != nil {
		l.add(err.Error())
		return
	}
	defer context.AfterFunc(ctx, func() { body.Close() })()
	defer body.Close()
	r := bufio.NewReaderSize(body, 64<<10)
	for {
		line, isPrefix, err := r.ReadLine()
		if len(line) > 0 || err == nil && !isPrefix {
			l.add(string(line))
		}
		if err != nil {
			if ctx.Err() == nil {
				l.add("(the log ends)")
			}
			return
		}
	}
}

func (l *logText) add(line string) {
	l.mu.Lock()
	l.lines = append(l.lines, cleanLines(line)...)
	if n := len(l.lines) - maxLog; n > 0 {
		l.lines = append([]string(nil), l.lines[n:]...)
	}
	l.mu.Unlock()
	l.wake()
}

// paneKey handles a key for the pane.
func (m *model) paneKey(key string) tea.Cmd {
	p := m.pane
	switch key {
	case "esc", "?":
		m.closePane()
	case "down", "j":
		p.scroll(1)
	case "up", "k":
		p.scroll(-1)
	case "pgdown", "space", "ctrl+f":
		p.scroll(p.page)
	case "pgup", "ctrl+b":
		p.scroll(-p.page)
	case "home", "g":
		p.scroll(-len(p.text))
	case "end", "G":
		p.scroll(len(p.text))
	case "tab", "right":
		return m.turn(1)
	case "shift+tab", "left":
		return m.turn(-1)
	case "r":
		return m.turn(0)
	}
	return nil
}

func (p *pane) scroll(by int) {
	p.top = max(min(p.top+by, len(p.text)-p.page), 0)
	p.follow = p.top >= len(p.text)-p.page
}

// turn goes to another tab.
func (m *model) turn(by int) tea.Cmd {
	p := m.pane
	if len(p.tabs) == 0 {
		return nil
	}
	p.tab = (p.tab + by + len(p.tabs)) % len(p.tabs)
	return m.load()
}

// lines draws the pane.
func (p *pane) lines(s *screen.Screen) []string {
	if p.log != nil {
		p.log.mu.Lock()
		p.text = p.log.lines
		p.log.mu.Unlock()
	}
	p.page = max(s.Height-2, 1)
	if p.follow && p.log != nil {
		p.top = len(p.text) - p.page
	}
	p.top = max(min(p.top, len(p.text)-p.page), 0)
	shown := p.text[p.top:min(p.top+p.page, len(p.text))]
	position := fmt.Sprintf("lines %d to %d of %d", p.top+1, p.top+len(shown), len(p.text))
	return s.Pane(p.title, p.tabs, p.tab, shown, []string{"Esc back", position})
}
