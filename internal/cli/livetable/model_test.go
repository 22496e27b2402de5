// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// newTestModel has tables of 3 and 2 rows, on a screen of 20 lines, and no server.
func newTestModel(t *testing.T, h History) *model {
	t.Helper()
	w := Watch{Base: &url.URL{Scheme: "http", Host: "api.test"}, Transport: refusing{}, Resource: kube.Resource{Version: "v1", Name: "pods"}}
	m, err := newModel(t.Context(), Options{Watches: []Watch{w, w}, History: h, Speed: 1}, newPacer())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range m.streams {
		var rows []table.Data
		for j := range 3 - i {
			name := fmt.Sprintf("%c%d", 'a'+i, j)
			rows = append(rows, table.Data{Key: kube.Key(name), Cells: []table.Cell{{Text: name}, {Text: "x"}}})
		}
		s.table().Replace([]table.Column{{Name: "NAME", IsName: true}, {Name: "STATUS"}}, rows, time.Now())
	}
	t.Cleanup(m.stop)
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 20})
	return m
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no server") }

// press sends keys, runs what they ask for, and returns whether the program ended.
func press(m *model, keys ...tea.KeyPressMsg) (ended bool) {
	for _, k := range keys {
		_, cmd := m.Update(k)
		for cmd != nil {
			msg := cmd()
			if _, ok := msg.(tea.QuitMsg); ok {
				return true
			}
			_, cmd = m.Update(msg)
		}
	}
	return false
}

func key(code rune) tea.KeyPressMsg {
	k := tea.KeyPressMsg{Code: code}
	if code >= 0x20 && code < 0x7f {
		k.Text = string(code)
	}
	return k
}

func TestCursor(t *testing.T) {
	m := newTestModel(t, nil)
	for _, step := range []struct {
		key  rune
		want string
	}{
		{tea.KeyDown, "0 a0"}, {tea.KeyDown, "0 a1"}, {'j', "0 a2"}, {'j', "1 b0"}, {tea.KeyPgDown, "1 b1"}, {'j', "1 b1"},
		{'k', "1 b0"}, {'k', "0 a2"}, {tea.KeyHome, "0 a0"}, {'k', "0 a0"}, {tea.KeyEnd, "1 b1"}, {tea.KeyEscape, "1 "}, {tea.KeyEnd, "1 b1"},
	} {
		press(m, key(step.key))
		if got := fmt.Sprintf("%d %s", m.screen.Section, m.screen.Key); got != step.want {
			t.Fatalf("after %v: %s, not %s", key(step.key), got, step.want)
		}
	}
	m.streams[1].table().Delete("b1", time.Now().Add(-time.Hour))
	m.streams[1].table().Expire(time.Now())
	press(m, key(tea.KeyDown)) // the row has gone
	if m.screen.Key != "a0" {
		t.Errorf("cursor at %s", m.screen.Key)
	}
}

// A brokenHistory has nothing.
type brokenHistory struct{ err error }

func (h brokenHistory) Now(context.Context) (time.Time, bool, error) { return time.Now(), false, h.err }

func (h brokenHistory) Step(context.Context, []string, string, time.Time, bool) (time.Time, bool, error) {
	return time.Time{}, false, h.err
}

// TestNoPast: a step that leads nowhere leaves the tables in the present.
func TestNoPast(t *testing.T) {
	for name, test := range map[string]struct {
		history History
		want    string
	}{
		"no history":   {nil, "no history: the past needs a watchkeeper gateway"},
		"no change":    {brokenHistory{}, "nothing changed before this"},
		"no answer":    {brokenHistory{errors.New("boom\x1b[2J")}, "boom^[[2J"},
		"not recorded": {brokenHistory{errors.New("404: secrets are not recorded")}, "404: secrets are not recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTestModel(t, test.history)
			press(m, key(tea.KeyLeft))
			if m.past.on || m.past.busy || !strings.Contains(m.content, test.want) {
				t.Errorf("past %+v, and the screen\n%s", m.past, m.content)
			}
			press(m, key('['))
			if m.past.on || m.past.busy {
				t.Errorf("past %+v", m.past)
			}
		})
	}
}

// TestQuit: what remains has no status line, and Alt with q is Esc and q.
func TestQuit(t *testing.T) {
	m := newTestModel(t, nil)
	press(m, key(tea.KeyDown), key('s'))
	if !press(m, tea.KeyPressMsg{Code: 'q', Mod: tea.ModAlt}) {
		t.Fatal("it did not end")
	}
	want := "NAME   STATUS\na0     x\na1     x\na2     x\n\nNAME   STATUS\nb0     x\nb1     x\n"
	if m.content != want {
		t.Errorf("%q, not %q", m.content, want)
	}
}

// TestHeight: a frame keeps its height for a while when rows go, and fits after a resize.
func TestHeight(t *testing.T) {
	m := newTestModel(t, nil)
	lines := func() int { return strings.Count(m.content, "\n") + 1 }
	full := lines()
	press(m, key('/'), key('b'))
	if lines() != full {
		t.Errorf("%d lines, not %d", lines(), full)
	}
	m.shorter = time.Now().Add(-time.Minute)
	m.Update(frameMsg{})
	if lines() >= full {
		t.Errorf("still %d lines", lines())
	}
	for height := range 10 {
		m.Update(tea.WindowSizeMsg{Width: 5, Height: height})
		if lines() > max(height, 1) {
			t.Errorf("%d lines of %d", lines(), height)
		}
	}
}

// TestStepBack: rows that did not exist yet at an earlier moment are gone at once; those that a
// step on finds deleted are struck out.
func TestStepBack(t *testing.T) {
	m := newTestModel(t, nil)
	rows := func() (names []string) {
		for _, r := range m.streams[0].table().Rows() {
			names = append(names, string(r.Key))
		}
		return names
	}
	at := func(ago time.Duration, names ...string) {
		t.Helper()
		m.past.on = true
		msg := stepMsg{at: time.Now().Add(-ago)}
		for i, s := range m.streams {
			f := s.newFeed(time.Now)
			if i == 0 {
				list, err := scan.ParseList(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"columnDefinitions":[{"name":"Name","type":"string","format":"name"},{"name":"Status","type":"string"}],"rows":[`+
					strings.Join(names, ",")+`]}`, "Pod")
				if err != nil {
					t.Fatal(err)
				}
				f.Begin(true)
				for _, o := range list.Items {
					if err := f.Item(o); err != nil {
						t.Fatal(err)
					}
				}
				f.End(list)
			}
			msg.feeds = append(msg.feeds, f)
		}
		m.stepped(msg)
	}
	row := func(name string) string {
		return fmt.Sprintf(`{"cells":[%[1]q,"x"],"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%[1]q,"resourceVersion":"5","uid":"u"}}}`, name)
	}
	m.past.at = time.Now()
	at(3*time.Second, row("a0"), row("a1"))
	at(time.Minute, row("a0"))
	if got := rows(); fmt.Sprint(got) != "[a0]" {
		t.Errorf("back: %q", got)
	}
	at(time.Second, row("a1"))
	if got := rows(); fmt.Sprint(got) != "[a0 a1]" {
		t.Errorf("on: %q", got)
	}
}
