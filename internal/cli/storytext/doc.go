// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package storytext prints stories: as text for a terminal, and in Markdown for an incident
// report. The same story and options give the same bytes.
package storytext

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/spans"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// Options say how a story is printed.
type Options struct {
	Verbose bool // the entries of each episode
	Zone    *time.Location
	// Paint colours a text with an ANSI colour, such as "31"; nil for no colours.
	Paint func(color, text string) string
}

// Colours, as in the other commands.
const (
	red    = "31"
	yellow = "33"
	dim    = "2"
	bold   = "1"
)

func (o Options) paint(color, text string) string {
	if o.Paint == nil || color == "" {
		return text
	}
	return o.Paint(color, text)
}

// A printer prints one story.
type printer struct {
	Options
	api.Story
	day bool // all times are of one day, which the header has
	// begin is where the record begins, if that is in the span; otherwise zero.
	begin time.Time
}

func newPrinter(s api.Story, o Options) *printer {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	p := &printer{Options: o, Story: s, day: true}
	for _, e := range s.Episodes {
		first := s.Episodes[0].From.In(o.Zone)
		p.day = p.day && sameDay(first, e.From.In(o.Zone)) && sameDay(first, e.To.In(o.Zone))
	}
	p.begin = recordedFrom(s)
	return p
}

// recordedFrom returns where the record begins, zero if that is before the story, or another
// time for each resource.
func recordedFrom(s api.Story) time.Time {
	var first, last time.Time
	for _, u := range s.Unobserved {
		if u.Reason != api.BeforeRecord {
			continue
		}
		if first.IsZero() || u.To.Before(first) {
			first = u.To
		}
		if u.To.After(last) {
			last = u.To
		}
	}
	switch {
	case !last.After(s.From), !last.Before(s.To), last.Sub(first) > maxStart, len(s.Episodes) > 0 && s.Episodes[0].From.Before(last):
		return time.Time{}
	}
	return last
}

// maxStart is how long the first lists of all resources take when a record begins.
const maxStart = 30 * time.Second

func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// clock formats a time of an episode.
func (p *printer) clock(t time.Time) string {
	if p.day {
		return t.In(p.Zone).Format("15:04:05")
	}
	return t.In(p.Zone).Format("2006-01-02 15:04:05")
}

// stamp formats a time with its day and zone.
func (p *printer) stamp(t time.Time) string { return t.In(p.Zone).Format("2006-01-02 15:04:05Z07:00") }

// covered formats the span of the story, as far as it is recorded, with its day and zone.
func (p *printer) covered() string {
	from, to := p.From.In(p.Zone), p.To.In(p.Zone)
	if !p.begin.IsZero() {
		from = p.begin.In(p.Zone)
	}
	zone := "UTC" + to.Format("Z07:00")
	if _, offset := to.Zone(); offset == 0 {
		zone = "UTC"
	}
	end := to.Format("15:04:05 ")
	if !sameDay(from, to) {
		end = to.Format("2006-01-02 15:04:05 ")
	}
	text := from.Format("2006-01-02 15:04:05") + " to " + end + zone
	if !p.begin.IsZero() {
		text += " (nothing is recorded before)"
	} else if slices.ContainsFunc(p.Episodes, func(e api.Episode) bool { return e.BegunBefore == api.StoryBegin }) {
		text += " (for what began before, use an earlier --since)"
	}
	return text
}

// span formats the time of an episode.
func (p *printer) span(e api.Episode) string {
	from, to := p.clock(e.From), p.clock(e.To)
	var limits []string
	if !e.NotBefore.IsZero() {
		limits = append(limits, "not before "+p.clock(e.NotBefore))
	}
	if e.BegunBefore != "" {
		from = "before " + from
	}
	if e.BegunBefore == api.RecordBegin {
		limits = append(limits, "the record begins there")
	}
	switch {
	case e.Ongoing:
		from = "since " + from
		if e.To.Before(p.To) {
			limits = append(limits, "last observed "+to)
		}
	case from == to:
	default:
		if !e.EndNotBefore.IsZero() {
			limits = append(limits, "its end not before "+p.clock(e.EndNotBefore))
		}
		if from += "–"; !p.day && sameDay(e.From.In(p.Zone), e.To.In(p.Zone)) {
			to = e.To.In(p.Zone).Format("15:04:05")
		}
		from += to
	}
	if limits == nil {
		return from
	}
	return from + " (" + strings.Join(limits, ", ") + ")"
}

// main returns the most important episode, nil if there is none.
func (p *printer) main() *api.Episode {
	for i := range p.Episodes {
		if p.Episodes[i].Main {
			return &p.Episodes[i]
		}
	}
	return nil
}

// headlines are what the episode of the first line is called below it.
var headlines = map[string]string{
	api.EpisodeRollout: "the rollout above", api.EpisodeScaling: "the scaling above", api.EpisodeFailure: "the failure above",
	api.EpisodeDisruption: "the disruption above", api.EpisodeDeletion: "the deletion above", api.EpisodeJob: "the Job above", api.EpisodeCreation: "the refused Pods above", api.EpisodeAutoscaler: "the autoscaler above", api.EpisodeNode: "the Node above",
}

// title describes an episode below the first line, which has all of the main one.
func (p *printer) title(e api.Episode) string {
	if !e.Main {
		return e.Title
	}
	if name := headlines[e.Kind]; name != "" {
		return name
	}
	return "what is said above"
}

// severity is the word for the severity of an episode; "" for that of most.
func severity(e api.Episode) string {
	if e.Severity == api.EpisodeInfo {
		return ""
	}
	return e.Severity
}

// subject names the object of the story.
func (p *printer) subject() string {
	kind := p.Kind
	if kind == "" {
		kind = p.Resource
	}
	if p.Namespace != "" {
		return kind + " " + p.Namespace + "/" + p.Name
	}
	return kind + " " + p.Name
}

// object names the object of an entry; without the namespace if it is that of the story.
func (p *printer) object(kind, namespace, name string) string {
	if namespace != "" && namespace != p.Namespace {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// cause formats a cause; with -v, with the version that says so: pods/web-1@123.
func (p *printer) cause(c api.Cause) (object, field, text string) {
	object = p.object(c.Kind, c.Namespace, c.Name)
	if c.Objects > 1 {
		object += fmt.Sprintf(" and %d more", c.Objects-1)
	}
	if text = c.Text; p.Verbose && c.ResourceVersion != "" {
		name := c.Path[strings.LastIndexByte(c.Path, '/')+1:]
		resource := path.Base(strings.TrimSuffix(c.Path, "/"+name))
		text += fmt.Sprintf(" (%s/%s@%s)", resource, name, c.ResourceVersion)
	}
	return object, c.Field, text
}

// what describes an entry.
func (p *printer) what(e api.StoryEntry) string {
	text := strings.Join(e.What, "; ")
	if e.LastLog != "" && !strings.Contains(text, e.LastLog) {
		text += "; last output: " + e.LastLog
	}
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times", e.Count)
		if !e.Until.IsZero() {
			text += ", until " + p.clock(e.Until)
		}
		text += ")"
	}
	switch {
	case e.NotBefore.IsZero() && !e.Inferred:
	case e.NotBefore.IsZero():
		text += " (inferred from a list)"
	default:
		text += " (not before " + p.clock(e.NotBefore) + ")"
	}
	return text
}

// notes says what the story does not have.
func (p *printer) notes() (lines []string) {
	if len(p.NotRecorded) > 0 {
		lines = append(lines, fmt.Sprintf("not recorded, so not in the story: %s", strings.Join(p.NotRecorded, ", ")))
	}
	if len(p.Denied) > 0 {
		lines = append(lines, fmt.Sprintf("left out, because you may not list them now: %s", strings.Join(p.Denied, ", ")))
	}
	lines = append(lines, p.LeftOut...)
	var begins []string
	begun := map[string][]string{}
	type span struct{ why, from, to string }
	var order []span
	resources := map[span][]string{}
	for _, u := range p.Unobserved {
		if u.Reason == api.BeforeRecord {
			if begin := p.stamp(u.To); u.To.After(p.begin) {
				if begun[begin] == nil {
					begins = append(begins, begin)
				}
				begun[begin] = append(begun[begin], u.Resource)
			}
			continue
		}
		s := span{why(u), p.stamp(u.From), p.stamp(u.To)}
		if !slices.Contains(order, s) {
			order = append(order, s)
		}
		resources[s] = words.AppendOnce(resources[s], u.Resource)
	}
	for _, begin := range begins {
		lines = append(lines, fmt.Sprintf("not recorded before %s: %s", begin, strings.Join(begun[begin], ", ")))
	}
	few := len(order) <= maxSpans || p.Verbose
	told := map[string]bool{}
	for _, s := range order {
		switch {
		case few:
			lines = append(lines, fmt.Sprintf("%s from %s to %s: %s", s.why, s.from, s.to, strings.Join(resources[s], ", ")))
		case !told[s.why]:
			told[s.why] = true
			lines = append(lines, p.spans(s.why))
		}
	}
	return lines
}

// maxSpans is how many spans without observation a story names, each in a line.
const maxSpans = 3

// why says what is not known of a time, and why.
func why(u api.UnobservedSpan) string {
	text := map[string]string{
		api.InGap: "not observed", api.Late: "not observed", api.RecordingStopped: "not recorded any more", api.NoAnswer: "not known, because the API server did not serve the gateway",
	}[u.Reason]
	if u.NoAnswer {
		text += " (the API server did not answer)"
	}
	return text
}

// spans says in one line when something was not observed for a reason.
func (p *printer) spans(reason string) string {
	var resources []string
	all := slices.DeleteFunc(slices.Clone(p.Unobserved), func(u api.UnobservedSpan) bool { return why(u) != reason })
	times := spans.Join(all, api.UnobservedSpan.Bounds)
	for _, s := range times {
		for _, u := range s.Of {
			resources = words.AppendOnce(resources, u.Resource)
		}
	}
	from, to := times[0].From, times[len(times)-1].To
	return fmt.Sprintf("%s in %s between %s and %s (-v lists them): %s", reason, words.Count(len(times), "span"), p.stamp(from), p.stamp(to), strings.Join(resources, ", "))
}
