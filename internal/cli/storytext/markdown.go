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

// Markdown prints a story as an incident report.
func Markdown(w io.Writer, s api.Story, o Options) error {
	o.Paint = nil
	p := newPrinter(s, o)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What happened to %s\n\n", escape(p.subject()))
	main := p.main()
	if main != nil {
		fmt.Fprintf(&b, "**%s %s**\n\n", p.span(*main), escape(main.Title))
	}
	if len(p.Episodes) == 0 {
		fmt.Fprintf(&b, "**%s**\n\n", nothing(s))
	}
	fmt.Fprintf(&b, "%s, written from %s of %s.\n", p.covered(), words.Count(p.Versions, "version"), words.Count(p.Objects, "object"))
	if main != nil && len(main.Causes) > 0 {
		fmt.Fprint(&b, "\n## What the objects say\n\n| Object | Field | Says |\n|---|---|---|\n")
		for _, c := range main.Causes {
			object, field, text := p.cause(c)
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", escape(object), strings.ReplaceAll(termtext.Plain(field), "`", ""), escape(text))
		}
	}
	if len(p.Episodes) > 1 {
		fmt.Fprint(&b, "\n## Timeline\n\n| Time | | What happened |\n|---|---|---|\n")
		for _, e := range p.Episodes {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", p.span(e), severity(e), escape(p.title(e)))
		}
	}
	if p.Verbose {
		for _, e := range p.Episodes {
			fmt.Fprintf(&b, "\n### %s %s\n\n| Time | resourceVersion | Object | What | By |\n|---|---|---|---|---|\n", p.span(e), escape(p.title(e)))
			for _, entry := range e.Entries {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.clock(entry.Time), entry.ResourceVersion,
					escape(p.object(entry.Kind, entry.Namespace, entry.Name)), escape(p.what(entry)), escape(strings.Join(entry.By, ", ")))
			}
		}
	}
	if notes := p.notes(); len(notes) > 0 {
		fmt.Fprint(&b, "\n## Not known\n\n")
		for _, line := range notes {
			fmt.Fprintf(&b, "- %s\n", escape(line))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

var escapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "]", `\]`, "~", `\~`)

// escape keeps foreign text from being read as Markdown.
func escape(text string) string { return escapes.Replace(termtext.Plain(text)) }
