// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package storytext

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// colors show the severity of an episode; a word says it, too.
var colors = map[string]string{api.EpisodeFailed: red, api.EpisodeWarning: yellow}

// Text prints a story. The first line is the most important episode; the list of episodes
// below does not repeat it.
func Text(w io.Writer, s api.Story, o Options) error {
	p := newPrinter(s, o)
	var b bytes.Buffer
	if main := p.main(); main != nil {
		fmt.Fprintf(&b, "%s\n", p.paint(bold, p.span(*main)+" "+termtext.Plain(main.Title)))
		p.causes(&b, main.Causes)
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "%s, %s", termtext.Plain(p.subject()), p.covered())
	switch n := len(p.Episodes); {
	case n == 0:
		fmt.Fprintf(&b, ": %s\n", nothing(s))
	case n == 1 && !p.Verbose:
		fmt.Fprint(&b, "\n")
	case n == 1:
		fmt.Fprint(&b, ":\n")
	default:
		fmt.Fprintf(&b, ": %s\n", words.Count(n, "episode"))
	}
	for _, e := range p.Episodes {
		if len(p.Episodes) > 1 {
			p.episode(&b, e)
		}
		if p.Verbose {
			for _, entry := range e.Entries {
				p.entry(&b, entry)
			}
		}
	}
	for _, line := range p.notes() {
		fmt.Fprintf(&b, "%s\n", p.paint(dim, termtext.Plain(line)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Unknown reports whether nothing is known of the object of a story in its time.
func Unknown(s api.Story) bool {
	return api.NothingKnown(s.Unobserved, []string{s.Resource}, s.From, s.To)
}

// nothing says what is known of the time of a story without episodes.
func nothing(s api.Story) string {
	if Unknown(s) {
		return "nothing is known of that time"
	}
	text := "nothing has changed in that time"
	for _, u := range s.Unobserved {
		switch {
		case u.Reason == api.Late || !u.To.After(s.From) || !u.From.Before(s.To):
		case u.Reason != api.BeforeRecord: // the header has that
			text = "nothing is known to have changed in that time"
		}
	}
	return text
}

// episode prints the line of an episode, and its causes.
func (p *printer) episode(w io.Writer, e api.Episode) {
	color := colors[e.Severity]
	fmt.Fprintf(w, "%s %s %s\n", p.paint(color, fmt.Sprintf("%-7s", severity(e))), p.paint(dim, p.span(e)), p.paint(color, termtext.Plain(p.title(e))))
	if !e.Main && e.Severity != api.EpisodeInfo {
		p.causes(w, e.Causes)
	}
}

func (p *printer) causes(w io.Writer, causes []api.Cause) {
	for _, c := range causes {
		object, field, text := p.cause(c)
		fmt.Fprintf(w, "    %s\n", termtext.Plain(fmt.Sprintf("%s, %s: %s", object, field, text)))
	}
}

// entry prints a line of an episode.
func (p *printer) entry(w io.Writer, e api.StoryEntry) {
	by := ""
	if len(e.By) > 0 {
		by = "  by " + strings.Join(e.By, ", ")
	}
	fmt.Fprintf(w, "    %s  %s  %s  %s%s\n", p.clock(e.Time), p.paint(yellow, fmt.Sprintf("%-8s", e.ResourceVersion)),
		termtext.Plain(p.object(e.Kind, e.Namespace, e.Name)), termtext.Plain(p.what(e)), p.paint(dim, termtext.Plain(by)))
}
