// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/refusal"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

const findingsAPI = "/watchkeeper/v1/findings"

// Exit codes of diagnose; 1 is an error.
const (
	foundWarning  = 3
	foundCritical = 4
)

// diagnoseOptions are the flags of diagnose.
type diagnoseOptions struct {
	client
	output
	at            string
	allNamespaces bool
	maxBytes      values.Bytes
	changes       string // the command that lists all changes
}

func newDiagnose(s streams) *cobra.Command {
	o := &diagnoseOptions{client: client{streams: s}}
	o.times = &o.zone
	o.maxBytes.Quantity = resource.MustParse(defaultUnpacked)
	cmd := &cobra.Command{
		Use:   "diagnose [FILE]",
		Short: "List what fails, since when, and what changed just before",
		Long: `List what fails now or at a moment, the most important first, in a cluster
whose history a running gateway records, or in a recording of "watchkeeper record
export". Below each finding is what the objects say about it, in their own words,
and what changed just before: changes of the object, of what its Pods use, and of
Nodes, which need not be the cause. A recording is unpacked into a temporary directory
(below $TMPDIR), and read in all of its namespaces unless -n is given.

The exit code is 0 if nothing is critical or a warning, 3 if the worst finding is
a warning, 4 if it is critical, and 1 after an error.`,
		Example: `  watchkeeper diagnose -A
  watchkeeper diagnose -n shop --at 10m
  watchkeeper diagnose incident.wkr --at 2026-01-31T15:04:05Z -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(cmd, fmt.Errorf("diagnose takes one FILE, such as incident.wkr, but got %d", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.run(cmd.Context())
			}
			if resource, name, ok := strings.Cut(args[0], "/"); ok && name != "" && !strings.HasSuffix(name, ".wkr") {
				if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("there is no file %s: diagnose takes a recording, or nothing: what happened to %s %s says 'watchkeeper story %[1]s%[4]s'", args[0], resource, name, o.again())
				}
			}
			dir := &temporary{} // removed here, so that a second signal removes it as well
			ignoreBrokenPipe()
			err := runUntilSignal(cmd.Context(), func(ctx context.Context) error { return o.runFile(ctx, args[0], dir) })
			if removed := dir.remove(); removed != nil {
				return errors.Join(err, removed)
			}
			return err
		},
	}
	f := cmd.Flags()
	o.addScopeFlags(f)
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "look at all namespaces")
	o.at = "now"
	f.Var((*values.Moment)(&o.at), "at", "the moment: an age such as 10m, or a time")
	f.Var(&o.maxBytes, "max-bytes", "maximum size of an unpacked recording, such as 20Gi; 0 means no limit")
	o.addFormatFlags(f, "text, json or yaml")
	o.complete(cmd, completion.Options{Moments: []string{"at"}, Formats: formats})
	return cmd
}

// run asks a running gateway.
func (o *diagnoseOptions) run(ctx context.Context) error {
	if err := o.prepareScope(ctx, o.allNamespaces); err != nil {
		return err
	}
	if o.changes = "'watchkeeper changes" + o.again() + "' lists them, with -A also those of Nodes"; o.allNamespaces {
		o.changes = "'watchkeeper changes" + o.again() + " -A' lists them"
	}
	return o.ask(ctx)
}

// runFile asks a gateway in this process that serves a recording, without a listener.
func (o *diagnoseOptions) runFile(ctx context.Context, file string, dir *temporary) (err error) {
	opener := &openOptions{streams: o.streams, maxBytes: o.maxBytes}
	log := slog.New(slog.DiscardHandler)
	store, header, documents, err := opener.load(ctx, file, dir, log)
	if err != nil {
		return err
	}
	defer func() {
		if closed := store.Close(); closed != nil {
			err = errors.Join(err, closed)
		}
	}()
	up, err := upstream.New(&rest.Config{Host: "http://recording", Transport: recording.NewUpstream(store, documents)}, upstream.Options{Logger: log})
	if err != nil {
		return err
	}
	defer up.Close()
	g, err := gateway.New(gateway.Options{Upstream: up, Recording: store, RecordingScope: header.Scope, RecordingSlack: header.Slack(), Logger: log})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	defer func() {
		cancel()
		if failed := <-ended; failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	o.changes = "'watchkeeper open " + file + "' lists them"
	o.server, o.http.Transport, o.namespace = "http://localhost", inProcess{g}, *o.client.flags.Namespace
	return o.ask(ctx)
}

// An inProcess is the transport to a handler of this process.
type inProcess struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.Host, in.RequestURI, in.RemoteAddr = cmp.Or(r.Host, r.URL.Host), r.URL.RequestURI(), "127.0.0.1:0"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &answer{header: http.Header{}, code: http.StatusOK}
	p.ServeHTTP(w, in)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// An answer is the whole answer of a handler.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
	begun  bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if !a.begun && code >= http.StatusOK {
		a.begun, a.code = true, code
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.body.Write(p)
}

// ask asks for the findings and prints them.
func (o *diagnoseOptions) ask(ctx context.Context) error {
	if err := o.output.prepare(o.streams); err != nil {
		return err
	}
	moment, err := o.when(ctx, "--at", o.at)
	if err != nil {
		return err
	}
	at := parsed(moment)
	if at.RV != 0 {
		return fmt.Errorf("--at %s: a resourceVersion is that of one resource: use a time or an age", o.at)
	}
	if moment != "now" { // which needs no record
		if err := o.checkRecorded(ctx, moment, &o.zone); err != nil {
			return err
		}
	}
	query := url.Values{"at": {moment}}
	if o.namespace != "" {
		query.Set("namespace", o.namespace)
	}
	var found api.Findings
	if err := o.get(ctx, findingsAPI, query, &found); err != nil {
		return err
	}
	if o.namespace != "" && !slices.ContainsFunc(found.Items, func(f api.Finding) bool { return f.Namespace == o.namespace }) {
		if err := o.knownNamespace(ctx); err != nil {
			return err
		}
		if err := o.existed(ctx, moment, found.At); err != nil {
			return err
		}
	}
	err = o.page(o.streams, func(w io.Writer) error {
		if o.format != "text" {
			return o.marshal(w, found)
		}
		return o.print(w, found)
	})
	if err != nil {
		return err
	}
	return exitOf(found)
}

// exitOf returns the exit code by the worst severity, nil for 0.
func exitOf(found api.Findings) error {
	worst := 0
	for _, f := range found.Items {
		switch f.Severity {
		case api.SeverityCritical:
			worst = foundCritical
		case api.SeverityWarning:
			worst = max(worst, foundWarning)
		}
	}
	if worst == 0 {
		return nil
	}
	return exitError(worst)
}

// severities are shown by a mark and a colour, so that they show without colours, too.
var severities = []struct{ name, mark, color string }{
	{api.SeverityCritical, "✗", red}, {api.SeverityWarning, "!", yellow}, {api.SeverityInfo, "·", dim},
}

// print prints the findings.
func (o *diagnoseOptions) print(w io.Writer, found api.Findings) error {
	var b bytes.Buffer
	var counts []string
	for _, s := range severities {
		n := 0
		for _, f := range found.Items {
			if f.Severity == s.name {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s.name))
		}
	}
	where := ""
	if found.Namespace != "" {
		where = " in namespace " + found.Namespace
	}
	if counts == nil {
		counts = []string{"nothing fails of " + words.Count(found.Objects, "object")}
	}
	fmt.Fprintf(&b, "%s\n", o.paint(bold, o.stamp(found.At)+where+": "+strings.Join(counts, ", ")))
	for _, f := range found.Items {
		o.printFinding(&b, found.At, f)
	}
	notes := notesOf(found)
	var begin time.Time
	for _, f := range found.Items {
		if f.RecordedSince.After(begin) {
			begin = f.RecordedSince
		}
	}
	if !begin.IsZero() {
		notes = append(notes, "nothing is recorded before "+o.stamp(begin)+": a cause may lie there")
	}
	if len(found.Items) == 0 && o.namespace != "" && *o.client.flags.Namespace == "" {
		notes = append(notes, "other namespaces were not looked at: -A looks at all")
	}
	for _, line := range notes {
		fmt.Fprintf(&b, "%s\n", o.paint(dim, termtext.Plain(refusal.InZone(line, o.stamp))))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (o *diagnoseOptions) printFinding(w io.Writer, at time.Time, f api.Finding) {
	mark, color := "?", ""
	for _, s := range severities {
		if s.name == f.Severity {
			mark, color = s.mark, s.color
		}
	}
	fmt.Fprintf(w, "%s %s  %s\n", o.paint(color, mark), o.paint(bold, termtext.Plain(objectName(f.Kind, f.Namespace, f.Name))), o.paint(color, termtext.Plain(f.Title)))
	if line := o.since(at, f); line != "" {
		fmt.Fprintf(w, "    %s\n", line)
	}
	for _, text := range f.Messages {
		if f.Rule == findings.Unobserved { // it is the gateway's text, not an object's
			text = refusal.InZone(text, o.stamp)
		}
		fmt.Fprintf(w, "    says: %s\n", termtext.Plain(text))
	}
	for _, c := range f.Before {
		when := o.stamp(c.Time)
		if !c.NotBefore.IsZero() {
			when += " (not before " + o.stamp(c.NotBefore) + ")"
		}
		label := "just before:"
		if c.Time.After(f.Since.Add(time.Second)) && c.NotBefore.IsZero() && !f.Since.IsZero() {
			label = "since then:"
		}
		fmt.Fprintf(w, "    %s %s  %s  %s%s\n", o.paint(dim, label), when, termtext.Plain(objectName(c.Kind, c.Namespace, c.Name)),
			termtext.Plain(strings.Join(c.Summary, "; ")), o.paint(dim, termtext.Plain(by(c.By))))
	}
	if n := f.BeforeLeftOut; n > 0 {
		fmt.Fprintf(w, "    %s and %s: %s\n", o.paint(dim, "just before:"), words.Count(n, "other change"), o.changes)
	}
	for _, span := range f.Unobserved {
		fmt.Fprintf(w, "    %s not observed from %s to %s: a cause may lie there\n", o.paint(dim, "just before:"), o.stamp(span.From), o.stamp(span.To))
	}
}

// maxNamed is how many of the objects of a finding are named.
const maxNamed = 3

// since says since when something fails, and which objects do.
func (o *diagnoseOptions) since(at time.Time, f api.Finding) string {
	var parts []string
	if !f.Since.IsZero() {
		since, age := o.stamp(f.Since), max(at.Sub(f.Since), 0).Round(time.Second)
		text := fmt.Sprintf("since %s, for %s", since, age)
		switch {
		case !f.SinceKnown:
			text = fmt.Sprintf("since before %s, for more than %s", since, age)
		case !f.NotBefore.IsZero():
			text = fmt.Sprintf("since %s (not before %s), for at least %s", since, o.stamp(f.NotBefore), age)
		}
		if f.Others > 0 {
			first := "the first "
			if n := f.Touches - f.Others; n > 1 {
				first = fmt.Sprintf("%d ", n)
			}
			text = fmt.Sprintf("%s%s, %d since %s", first, text, f.Others, o.stamp(f.OthersSince))
		}
		parts = append(parts, text)
	}
	var names []string
	for _, object := range f.Objects {
		if object.Kind != f.Kind || object.Name != f.Name || object.Namespace != f.Namespace {
			names = append(names, termtext.Plain(object.Name))
		}
	}
	if len(names) > maxNamed {
		more := len(names) - maxNamed + f.Touches - len(f.Objects)
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	if names != nil {
		parts = append(parts, strings.Join(names, ", "))
	}
	return strings.Join(parts, ": ")
}

func objectName(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// notesOf says what the findings do not cover.
func notesOf(found api.Findings) (lines []string) {
	if len(found.Denied) > 0 {
		lines = append(lines, "left out, because you may not list them now: "+strings.Join(found.Denied, ", "))
	}
	if len(found.NotRecorded) > 0 {
		lines = append(lines, "not recorded, so not looked at: "+strings.Join(found.NotRecorded, ", "))
	}
	for _, text := range found.LeftOut {
		lines = append(lines, "left out: "+text)
	}
	return lines
}
