// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package storytext

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// marks begin the line of an episode by its severity, so that it shows without colours, too.
var marks = map[string]struct{ mark, color string }{
	api.EpisodeFailed:  {"✗", red},
	api.EpisodeWarning: {"!", yellow},
	api.EpisodeInfo:    {" ", ""},
}

// Text prints a story. The first line is the most important episode.
func Text(w io.Writer, s api.Story, o Options) error {
	p := newPrinter(s, o)
	var b bytes.Buffer
	if main := p.main(); main != nil {
		fmt.Fprintf(&b, "%s\n", p.paint(bold, p.span(*main)+" "+plain(main.Title)))
		p.causes(&b, main.Causes)
		fmt.Fprintln(&b)
	}
	episodes := fmt.Sprintf("%d episodes", len(p.Episodes))
	switch len(p.Episodes) {
	case 0:
		episodes = "nothing has changed in that time"
	case 1:
		episodes = "1 episode"
	}
	fmt.Fprintf(&b, "%s, %s to %s: %s\n", plain(p.subject()), p.stamp(p.From), p.stamp(p.To), episodes)
	for _, e := range p.Episodes {
		m := marks[e.Severity]
		fmt.Fprintf(&b, "%s %s %s\n", p.paint(m.color, m.mark), p.paint(dim, p.span(e)), p.paint(m.color, plain(e.Title)))
		if !e.Main && e.Severity != api.EpisodeInfo {
			p.causes(&b, e.Causes)
		}
		if p.Verbose {
			for _, entry := range e.Entries {
				p.entry(&b, entry)
			}
		}
	}
	for _, line := range p.notes() {
		fmt.Fprintf(&b, "%s\n", p.paint(dim, plain(line)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (p *printer) causes(w io.Writer, causes []api.Cause) {
	for _, c := range causes {
		object, field, text := p.cause(c)
		fmt.Fprintf(w, "    %s\n", plain(fmt.Sprintf("%s, %s: %s", object, field, text)))
	}
}

// entry prints a line of an episode.
func (p *printer) entry(w io.Writer, e api.StoryEntry) {
	by := ""
	if len(e.By) > 0 {
		by = "  by " + strings.Join(e.By, ", ")
	}
	fmt.Fprintf(w, "    %s  %s  %s  %s%s\n", p.clock(e.Time), p.paint(yellow, fmt.Sprintf("%-8s", e.ResourceVersion)),
		plain(p.object(e.Kind, e.Namespace, e.Name)), plain(p.what(e)), p.paint(dim, plain(by)))
}
