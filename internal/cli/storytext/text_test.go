// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package storytext

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// TestNothing: that nothing was observed is not told as nothing that has changed.
func TestNothing(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	span := func(resource, reason string, from, to int) []api.UnobservedSpan {
		at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
		return []api.UnobservedSpan{{Resource: resource, Reason: reason, TimeSpan: api.TimeSpan{From: at(from), To: at(to)}}}
	}
	const changed, known, nothing = ": nothing has changed in that time\n", ": nothing is known to have changed in that time\n", ": nothing is known of that time\n"
	for want, unobserved := range map[string][][]api.UnobservedSpan{
		changed: {nil, span("pods", api.Late, 0, 60), span("pods", api.BeforeRecord, -20, 20), span("pods", api.InGap, -20, 0), span("pods", api.RecordingStopped, 60, 90)},
		known: {span("pods", api.InGap, 10, 20), span("pods", api.NoAnswer, 40, 70), span("nodes", api.RecordingStopped, 0, 60),
			slices.Concat(span("pods", api.BeforeRecord, 0, 20), span("pods", api.InGap, 30, 60))},
		nothing: {span("pods", api.RecordingStopped, 0, 60), span("pods", api.NoAnswer, -5, 60), span("pods", api.InGap, -5, 70), span("pods", api.BeforeRecord, -5, 70),
			span("pods", api.Late, -5, 61), slices.Concat(span("pods", api.BeforeRecord, 0, 20), span("pods", api.InGap, 20, 60))},
	} {
		for _, spans := range unobserved {
			s := api.Story{Resource: "pods", Kind: "Pod", Name: "web", From: noon, To: noon.Add(time.Hour), Unobserved: spans}
			var text, report bytes.Buffer
			if err := errors.Join(Text(&text, s, Options{Zone: time.UTC}), Markdown(&report, s, Options{Zone: time.UTC})); err != nil {
				t.Fatal(err)
			}
			if bold := "\n**" + strings.Trim(want, ": \n") + "**\n"; !strings.Contains(text.String(), want) || !strings.Contains(report.String(), bold) {
				t.Errorf("%+v: %s\n%s, want%s", spans, text.String(), report.String(), want)
			}
		}
	}
}

// TestHeader: the header has the span that is recorded, and the zone once.
func TestHeader(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	before := func(resource string, minutes int) api.UnobservedSpan {
		return api.UnobservedSpan{Resource: resource, Reason: api.BeforeRecord, TimeSpan: api.TimeSpan{From: noon, To: noon.Add(time.Duration(minutes) * time.Minute)}}
	}
	zone := time.FixedZone("somewhere", 5*3600+1800)
	for _, test := range []struct {
		name       string
		zone       *time.Location
		unobserved []api.UnobservedSpan
		want       string
	}{
		{"all is recorded", time.UTC, nil, "Pod web, 2026-01-02 12:00:00 to 13:00:00 UTC\n"},
		{"from then on", time.UTC, []api.UnobservedSpan{before("pods", 20)}, "Pod web, 2026-01-02 12:20:00 to 13:00:00 UTC (nothing is recorded before)\n"},
		{"some from then on", time.UTC, []api.UnobservedSpan{before("pods", 10), before("nodes", 20)}, "Pod web, 2026-01-02 12:00:00 to 13:00:00 UTC\nnot recorded before 2026-01-02 12:10:00Z: pods\nnot recorded before 2026-01-02 12:20:00Z: nodes\n"},
		{"after an episode", time.UTC, []api.UnobservedSpan{before("nodes", 40)}, "Pod web, 2026-01-02 12:00:00 to 13:00:00 UTC\nnot recorded before 2026-01-02 12:40:00Z: nodes\n"},
		{"an outage", time.UTC, []api.UnobservedSpan{{Resource: "pods", Reason: api.InGap, NoAnswer: true, TimeSpan: api.TimeSpan{From: noon.Add(time.Minute), To: noon.Add(2 * time.Minute)}}},
			"Pod web, 2026-01-02 12:00:00 to 13:00:00 UTC\nnot observed (the API server did not answer) from 2026-01-02 12:01:00Z to 2026-01-02 12:02:00Z: pods\n"},
		{"an outage that only one watch survived", time.UTC, []api.UnobservedSpan{
			{Resource: "pods", Reason: api.InGap, TimeSpan: api.TimeSpan{From: noon.Add(time.Minute), To: noon.Add(2 * time.Minute)}},
			{Resource: "nodes", Reason: api.Late, TimeSpan: api.TimeSpan{From: noon.Add(time.Minute), To: noon.Add(2 * time.Minute)}}},
			"Pod web, 2026-01-02 12:00:00 to 13:00:00 UTC\nnot observed from 2026-01-02 12:01:00Z to 2026-01-02 12:02:00Z: pods, nodes\n"},
		{"another zone", zone, nil, "Pod web, 2026-01-02 17:30:00 to 18:30:00 UTC+05:30\n"},
	} {
		s := api.Story{Kind: "Pod", Name: "web", From: noon, To: noon.Add(time.Hour), Unobserved: test.unobserved, Episodes: []api.Episode{
			{Severity: api.EpisodeFailed, From: noon.Add(30 * time.Minute), To: noon.Add(31 * time.Minute), Main: true, Title: "it failed"},
		}}
		var b bytes.Buffer
		if err := Text(&b, s, Options{Zone: test.zone}); err != nil {
			t.Fatal(err)
		}
		want := s.Episodes[0].From.In(test.zone).Format("15:04:05–") + s.Episodes[0].To.In(test.zone).Format("15:04:05") + " it failed\n\n" + test.want
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// TestBegunBefore: the header says that what began before the story is recorded.
func TestBegunBefore(t *testing.T) {
	for begun, want := range map[string]string{"": " UTC\n", api.RecordBegin: " UTC\n", api.StoryBegin: " UTC (for what began before, use an earlier --since)\n"} {
		s := api.Story{Kind: "Pod", Name: "web", Episodes: []api.Episode{{BegunBefore: begun, Main: true, Title: "it failed"}}}
		var b bytes.Buffer
		if err := Text(&b, s, Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(b.String(), want) {
			t.Errorf("%q: %s", begun, b.String())
		}
	}
}

// TestSpan: how the begin and the end of an episode are known.
func TestSpan(t *testing.T) {
	at := func(minutes int) time.Time { return time.Date(2026, 1, 2, 12, minutes, 0, 0, time.UTC) }
	p := newPrinter(api.Story{From: at(0), To: at(60)}, Options{Zone: time.UTC})
	p.day = true
	for want, e := range map[string]api.Episode{
		"12:01:00–12:02:00":        {From: at(1), To: at(2)},
		"12:01:00":                 {From: at(1), To: at(1)},
		"since 12:01:00":           {From: at(1), To: at(60), Ongoing: true},
		"before 12:00:00–12:02:00": {From: at(0), To: at(2), BegunBefore: api.StoryBegin},
		"since before 12:05:00 (the record begins there)":                      {From: at(5), To: at(60), BegunBefore: api.RecordBegin, Ongoing: true},
		"since 12:05:00 (not before 12:01:00)":                                 {From: at(5), To: at(60), NotBefore: at(1), Ongoing: true},
		"since 12:05:00 (last observed 12:50:00)":                              {From: at(5), To: at(50), Ongoing: true},
		"12:05:00–12:20:00 (not before 12:01:00, its end not before 12:10:00)": {From: at(5), To: at(20), NotBefore: at(1), EndNotBefore: at(10)},
		"12:05:00 (not before 12:01:00)":                                       {From: at(5), To: at(5), NotBefore: at(1), EndNotBefore: at(1)},
	} {
		if got := p.span(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
