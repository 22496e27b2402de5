// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
)

// exportPath is where a gateway makes recordings.
const exportPath = historyAPI + "/export"

func newRecord(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Export recordings",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExport(s))
	return cmd
}

// exportOptions are the flags of record export.
type exportOptions struct {
	client
	zone
	output        string
	since         string
	until         string
	selector      string
	allNamespaces bool
	pseudonyms    bool
}

func newExport(s streams) *cobra.Command {
	o := &exportOptions{client: client{streams: s}}
	o.times = &o.zone
	cmd := &cobra.Command{
		Use:   "export [RESOURCE ...] --output FILE",
		Short: "Write a part of the history to one file",
		Long: `Write a part of the history of a running gateway to one file, which
"watchkeeper open" serves on any machine, without the cluster.

Without RESOURCEs (such as pods or deployments.apps) the file has every recorded
resource that you may list, of one namespace unless -A is given.`,
		Example: `  # The last two hours of all namespaces
  watchkeeper record export -A --since 2h -o incident.wkr

  # One application, with the names of all objects replaced
  watchkeeper record export pods events --since 30m -n shop -l app=cart --pseudonyms -o cart.wkr

  # The content
  zstd -dc incident.wkr | jq -c .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Removed here, so that a second signal removes it as well.
			temp := &temporary{}
			ignoreBrokenPipe()
			err := runUntilSignal(cmd.Context(), func(ctx context.Context) error { return o.run(ctx, args, temp) })
			return errors.Join(err, temp.remove())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "file to write, - for standard output")
	o.since = "1h"
	f.Var((*values.Moment)(&o.since), "since", "start of the recording: an age such as 2h or 3d, a time, or the resourceVersion of the one RESOURCE")
	o.until = "now"
	f.Var((*values.Moment)(&o.until), "until", "end of the recording; a second includes what is printed with it")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "export all namespaces, and objects without one")
	f.StringVarP(&o.selector, "selector", "l", "", "label selector; an object that matches at any time is exported for the whole time")
	f.BoolVar(&o.pseudonyms, "pseudonyms", false, "replace the names of objects and of the objects that they refer to, wherever they are whole words; nothing else is hidden")
	o.zone.addFlags(f)
	o.client.addScopeFlags(f)
	o.client.complete(cmd, completion.Options{Moments: []string{"since", "until"}})
	return cmd
}

func (o *exportOptions) run(ctx context.Context, resources []string, temp *temporary) error {
	if o.output == "" {
		return errors.New("no output file: use --output, such as -o incident.wkr")
	}
	if err := o.prepareScope(ctx, o.allNamespaces); err != nil {
		return err
	}
	from, until, err := o.spanOf(ctx, o.since, o.until, "record export", resources)
	if err != nil {
		return err
	}
	q := url.Values{"since": {from}, "until": {until}}
	if to := parsed(q.Get("until")); to.RV == 0 {
		o.reportSilence(ctx, to.At, o.stamp)
	}
	if err := o.choose(ctx, resources, q); err != nil {
		return err
	}
	rec, err := o.record(ctx)
	if err != nil {
		return err
	}
	names := q["resource"]
	if len(names) == 0 {
		names = sortedKeys(rec)
	}
	if err := rec.before(names, parsed(until), "--until", o.stamp); err != nil && len(names) > 0 {
		return err
	}
	for name, value := range map[string]string{"namespace": o.namespace, "labelSelector": o.selector} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if o.pseudonyms {
		q.Set("pseudonyms", "true")
	}
	body, err := o.open(ctx, exportPath, q)
	if err != nil {
		if o.namespace != "" && isNotFound(err) {
			err = cmp.Or(o.knownNamespace(ctx), err)
		}
		return err
	}
	defer body.Close()
	if o.output == "-" {
		return o.pass(ctx, body, o.out)
	}
	// A device or a pipe, such as /dev/stdout, is written to, not replaced. A link
	// is followed.
	if info, err := os.Stat(o.output); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(o.output, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		return errors.Join(o.pass(ctx, body, f), f.Close())
	}
	if to, err := filepath.EvalSymlinks(o.output); err == nil {
		o.output = to
	}
	return o.save(ctx, body, temp)
}

// choose adds the resources to the query by the gateway's names, from any of kubectl's names.
// If none has namespaces, the export is of no namespace.
func (o *exportOptions) choose(ctx context.Context, resources []string, q url.Values) error {
	if len(resources) == 0 {
		return nil
	}
	r, err := o.resolver(ctx)
	if err != nil {
		return err
	}
	namespaced := false
	for _, text := range resources {
		if resource, _, object := strings.Cut(text, "/"); object {
			return fmt.Errorf("record export takes resources, and %q is an object: use %s, with -l for those with a label, such as -l app=web", text, resource)
		}
		n, err := r.find(text)
		if err != nil {
			return err
		}
		q.Add("resource", n.resource.GroupResource())
		namespaced = namespaced || n.namespaced
	}
	if !namespaced {
		o.namespace = ""
	}
	return nil
}

// pass writes the recording to a stream, and checks it on the way.
func (o *exportOptions) pass(ctx context.Context, body io.Reader, to io.Writer) error {
	out := &counter{to: to}
	in := io.TeeReader(body, out)
	sum, err := recording.Check(ctx, in)
	if err == nil {
		_, err = io.Copy(io.Discard, in) // what follows the last line, such as a checksum
	}
	switch {
	case out.err != nil:
		return fmt.Errorf("--output: %w", out.err)
	case err != nil && ctx.Err() != nil:
		return err
	case isCut(err):
		return endedEarly(out.n, err)
	case err != nil:
		return fmt.Errorf("the gateway sent an invalid recording, after %d bytes: %w", out.n, err)
	}
	o.summarize(out.n, sum)
	return nil
}

func endedEarly(n int64, err error) error {
	return fmt.Errorf("the recording ended early, after %d bytes: %w", n, err)
}

// A counter counts the bytes that are written, and keeps the error of a write.
type counter struct {
	to  io.Writer
	n   int64
	err error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n, c.err = c.n+int64(n), err
	return n, err
}

// summarize prints what the recording has, and what it does not hide.
func (o *exportOptions) summarize(n int64, sum *recording.Summary) {
	fmt.Fprintf(o.err, "%s: %s, %s to %s, %s, %s, %s, %s\n", o.output, size(n), o.stamp(sum.From), o.stamp(sum.To),
		words.Count(sum.Resources, "resource"), words.Count(sum.Objects, "initial object"), words.Count(sum.Changes, "change"), words.Count(sum.Gaps, "gap"))
	printScope(o.err, sum.Scope)
	printSpans(o.err, &o.zone, &sum.Header, sum.Spans)
	if sum.Pseudonyms {
		fmt.Fprintln(o.err, "  names are replaced; images, addresses, URLs, commands, environment variables and annotations stay: read the recording before you send it to others")
	}
}

// save writes the file. It appears under its name only if it is complete and
// valid.
func (o *exportOptions) save(ctx context.Context, body io.Reader, temp *temporary) (err error) {
	var f *os.File
	err = temp.make(func() (string, error) {
		if f, err = os.CreateTemp(filepath.Dir(o.output), ".watchkeeper-*.wkr"); err != nil {
			return "", err
		}
		return f.Name(), nil
	})
	if err != nil {
		return o.outputError(err)
	}
	defer f.Close() // it is closed already, or the export has failed
	n, err := io.Copy(f, body)
	if err != nil {
		return endedEarly(n, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum, err := recording.Check(ctx, f)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("the gateway sent an invalid recording: %w", err)
	}
	for _, do := range []func() error{f.Sync, f.Close, func() error { return os.Rename(f.Name(), o.output) }} {
		if err := do(); err != nil {
			return o.outputError(err)
		}
	}
	o.summarize(n, sum)
	return nil
}

// outputError names the file that was asked for, not the hidden one that becomes it.
func (o *exportOptions) outputError(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	} else if failed, ok := errors.AsType[*os.LinkError](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("--output: %s: %w", o.output, err)
}

// printSpans prints which resources a recording has for less than its whole time.
func printSpans(w io.Writer, z *zone, h *recording.Header, spans []recording.Span) {
	shorter := map[string][]string{}
	var order []string
	for _, s := range spans {
		late, early := s.From.Truncate(time.Second).After(h.From), s.To.Before(h.To.Add(-h.Slack()))
		text := ""
		switch {
		case late && early:
			text = z.stamp(s.From) + " to " + z.stamp(s.To)
		case late:
			text = "from " + z.stamp(s.From)
		case early:
			text = "to " + z.stamp(s.To)
		default:
			continue
		}
		if shorter[text] == nil {
			order = append(order, text)
		}
		shorter[text] = append(shorter[text], s.Resource.GroupResource())
	}
	for _, text := range order {
		fmt.Fprintf(w, "  only %s: %s\n", text, strings.Join(shorter[text], ", "))
	}
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%dKi", n>>10)
	}
	return resource.NewQuantity(n>>20<<20, resource.BinarySI).String()
}
