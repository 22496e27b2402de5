// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/screen"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

var update = flag.Bool("update", false, "write the goldens")

var start = time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

func pod(key, ready, status, restarts string, age time.Duration) table.Data {
	return table.Data{Key: kube.Key(key), UID: "u", Cells: []table.Cell{
		{Text: kube.Key(key).Name()}, {Text: ready}, {Text: status}, {Text: restarts}, {Since: start.Add(-age).Unix()}}}
}

var columns = []table.Column{{Name: "NAME", IsName: true}, {Name: "READY"}, {Name: "STATUS"}, {Name: "RESTARTS"}, {Name: "AGE"}}

// pods is n Pods.
func pods(n int) *screen.Section {
	var list []table.Data
	for i := range n {
		list = append(list, pod(fmt.Sprintf("ns/web-%02d", i), "1/1", "Running", "0", time.Duration(i)*time.Minute))
	}
	t := &table.Table{}
	t.Replace(columns, list, start)
	return &screen.Section{Table: t, Title: "pods"}
}

func newScreen(width, height int, sections ...*screen.Section) *screen.Screen {
	return &screen.Screen{Width: width, Height: height, Sections: sections, Status: []string{"live", "3 rows", "0 changes/s", "? help"}}
}

var attributes = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// readable shows attributes as ⟨1⟩.
func readable(lines []string) string {
	return attributes.ReplaceAllString(strings.Join(lines, "\n"), "⟨$1⟩") + "\n"
}

// golden compares a frame with a file, and checks the size of the frame.
func golden(t *testing.T, name string, s *screen.Screen, now time.Time) {
	t.Helper()
	lines := s.Lines(now)
	if len(lines) > s.Height {
		t.Errorf("%s: %d lines, of %d", name, len(lines), s.Height)
	}
	for _, l := range lines {
		if w := table.Width(attributes.ReplaceAllString(l, "")); w > s.Width {
			t.Errorf("%s: a line of width %d, of %d: %q", name, w, s.Width, l)
		}
	}
	got, file := readable(lines), filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got\n%s", name, d)
	}
}

// change makes one of each kind of change.
func change(of *table.Table) {
	of.Put(pod("ns/web-01", "0/1", "CrashLoopBackOff", "1", time.Minute), after(time.Second))
	of.Delete("ns/web-02", after(2*time.Second))
	of.Put(pod("ns/web-015", "0/1", "Pending", "0", 0), after(2*time.Second))
}

func TestMarks(t *testing.T) {
	s := newScreen(80, 24, pods(4))
	golden(t, "first", s, start)
	change(s.Sections[0].Table)
	golden(t, "changed", s, after(2500*time.Millisecond))
	s.Sections[0].Table.Expire(after(4 * time.Second))
	golden(t, "faded", s, after(4*time.Second))
	golden(t, "settled", s, after(time.Minute))
}

func TestNoColor(t *testing.T) {
	s := newScreen(80, 24, pods(4))
	s.Style = screen.Style{NoColor: true, ASCII: true}
	change(s.Sections[0].Table)
	s.Key = "ns/web-03"
	s.Sections[0].Table.SortBy(0, false)
	golden(t, "nocolor", s, after(2500*time.Millisecond))
}

func TestCursorAndSort(t *testing.T) {
	s := newScreen(80, 24, pods(3))
	s.Key = "ns/web-01"
	s.Sections[0].Table.SortBy(4, true)
	golden(t, "cursor", s, start)
}

func TestNarrow(t *testing.T) {
	s := newScreen(24, 6, pods(9))
	s.Sections[0].Table.Put(pod("ns/東京東京東京東京東京東京東京", "1/1", "Running", "0", 0), after(-time.Hour))
	golden(t, "narrow", s, start)
	for width := range 30 {
		for height := range 8 {
			s.Width, s.Height = width, height
			lines := s.Lines(start)
			if len(lines) > height {
				t.Errorf("%dx%d: %d lines", width, height, len(lines))
			}
			for _, l := range lines {
				if w := table.Width(attributes.ReplaceAllString(l, "")); w > width {
					t.Errorf("%dx%d: %q", width, height, l)
				}
			}
		}
	}
}

func TestSeveral(t *testing.T) {
	empty := &screen.Section{Table: &table.Table{}, Title: "jobs.batch"}
	empty.Table.Replace(columns, nil, start)
	refused := &screen.Section{Table: &table.Table{}, Title: "secrets", Note: "secrets is forbidden"}
	s := newScreen(80, 24, pods(3), empty, pods(40), refused, pods(12))
	golden(t, "several", s, start)
	s.Sections[0].Table.Filter("none")
	s.Sections[2].Note = "stale"
	golden(t, "several-filtered", s, start)
}

func TestWindow(t *testing.T) {
	section := pods(100)
	s := newScreen(80, 12, section)
	at := func(now time.Time, top int) {
		t.Helper()
		s.Lines(now)
		if got, size := section.Window(); got != top || size != 9 {
			t.Errorf("at %v: %d rows from %d, not 9 from %d", now.Sub(start), size, got, top)
		}
	}
	at(start, 0)
	put := func(key string, at time.Time) { section.Table.Put(pod(key, "0/1", "Error", "1", 0), at) }
	put("ns/web-50", after(time.Second))
	at(after(time.Second), 46) // follows the change
	put("ns/web-05", after(2*time.Second))
	at(after(2*time.Second), 46) // not so soon
	at(after(10*time.Second), 46)
	put("ns/web-05", after(10*time.Second)) // the same again
	at(after(10*time.Second), 46)
	section.Table.Put(pod("ns/web-05", "1/1", "Running", "1", 0), after(10*time.Second))
	at(after(10*time.Second), 1)
	golden(t, "window", s, after(10*time.Second))
	section.Table.Put(pod("ns/aaa", "1/1", "Running", "1", 0), after(30*time.Second))
	at(after(33*time.Second), 2) // a row above does not move what is shown
	s.Key = "ns/web-99"
	at(after(34*time.Second), 92)
	s.Key = "ns/web-90"
	put("ns/web-10", after(50*time.Second))
	at(after(50*time.Second), 91) // the cursor holds it
	section.Table.Filter("web-9")
	s.Lines(after(51 * time.Second))
	if top, size := section.Window(); top != 0 || size != 10 {
		t.Errorf("filtered: %d from %d", size, top)
	}
}

// TestFinal: what stays on the terminal has no marks, and fits.
func TestFinal(t *testing.T) {
	s := newScreen(60, 12, pods(5), pods(3))
	s.Style.NoColor = true
	change(s.Sections[0].Table)
	s.Lines(after(2 * time.Second))
	for _, section := range s.Sections {
		section.Table.Settle(after(3 * time.Second))
	}
	want := `NAME      READY   STATUS             RESTARTS   AGE
web-00    1/1     Running            0          3s
web-01    0/1     CrashLoopBackOff   1          63s
web-015   0/1     Pending            0          3s
web-03    1/1     Running            0          3m3s
web-04    1/1     Running            0          4m3s

NAME     READY   STATUS    RESTARTS   AGE
web-00   1/1     Running   0          3s
web-01   1/1     Running   0          63s
web-02   1/1     Running   0          2m3s`
	if d := cmp.Diff(want, strings.Join(s.Final(0, after(3*time.Second)), "\n")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if short := s.Final(9, after(3*time.Second)); len(short) > 9 || !strings.Contains(strings.Join(short, "\n"), "… 1 more") {
		t.Errorf("%q", short)
	}
}
