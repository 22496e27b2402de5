// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// historyOptions are the flags of history.
type historyOptions struct {
	client
	output
	since, until string
	limit        int
}

func newHistory(s streams) *cobra.Command {
	o := &historyOptions{client: client{streams: s}}
	o.times = &o.zone
	cmd := &cobra.Command{
		Use:   "history RESOURCE/NAME | RESOURCE NAME",
		Short: "Show the changes of an object, with time and author",
		Long: `Show the versions of an object that a running gateway has recorded, newest
first: the time, the change, and its author according to the object's
managedFields. Consecutive versions that differ only in noise are folded into
one line. The first lines of a Pod that has failed, cannot be scheduled, or whose
containers have crashed or cannot start, say since when, and why, now or at the
moment --until; those of a deleted Pod, how it had ended.`,
		Example: `  watchkeeper history deployment/web
  watchkeeper history pod web-0 -n shop --since 1h -p
  watchkeeper history node/worker-3 --show-noise -o json`,
		Args: resourceArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	o.client.addScopeFlags(f)
	f.Var((*values.Moment)(&o.since), "since", "show versions after this moment: an age such as 1h, a time, or a resourceVersion")
	f.Var((*values.Moment)(&o.until), "until", "show versions up to this moment; a second includes what is printed with it")
	f.IntVar(&o.limit, "limit", 0, "maximum number of versions; 0 means all")
	o.output.addFlags(f)
	o.client.complete(cmd, completion.Options{Objects: true, Moments: []string{"since", "until"}, Formats: formats})
	return cmd
}

// resourceArgs validates the number of arguments, with a helpful error.
func resourceArgs(minArgs, maxArgs int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < minArgs {
			return usageError(cmd, fmt.Errorf("%s needs an object: name it as RESOURCE/NAME, such as deployment/web", cmd.Name()))
		}
		if len(args) > maxArgs {
			return usageError(cmd, fmt.Errorf("%s takes one resource or object, but got %q", cmd.Name(), args))
		}
		for _, arg := range args {
			if err := notRecording(cmd.Name(), arg); err != nil {
				return err
			}
		}
		return nil
	}
}

func (o *historyOptions) run(ctx context.Context, args []string) error {
	resource, name, err := parseNamed(args)
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("history shows one object: name it as %[1]s/NAME, or as deployment/%[1]s if that is its name; 'watchkeeper diff %[1]s%[2]s' compares all of a resource", resource, o.again())
	}
	if err := o.client.prepareScope(ctx, false); err != nil {
		return err
	}
	if err := o.output.prepare(o.streams); err != nil {
		return err
	}
	if o.limit < 0 {
		return fmt.Errorf("--limit %d is negative: use a number above 0, or 0 for all", o.limit)
	}
	query := url.Values{}
	from, to, err := o.span(ctx, o.since, o.until)
	if err != nil {
		return err
	}
	for parameter, moment := range map[string]string{"since": from, "until": to} {
		if moment != "" {
			query.Set(parameter, moment)
		}
	}
	if o.noise {
		query.Set("noise", "show")
	}
	if o.patch {
		query.Set("objects", "true")
	}
	r, err := o.resolver(ctx)
	if err != nil {
		return err
	}
	n, err := r.find(resource)
	if err != nil {
		return err
	}
	n.name = name
	rec, err := o.record(ctx)
	if err != nil {
		return err
	}
	since, until := parsed(query.Get("since")), parsed(query.Get("until"))
	resources := groupResources([]named{n})
	if err := cmp.Or(rec.before(resources, until, "--until", o.stamp), rec.after(resources[0], since, "--since"), rec.after(resources[0], until, "--until")); err != nil {
		return err
	}
	first, oldest, err := o.show(ctx, n, query, rec)
	if err != nil {
		if isNotFound(err) {
			err = cmp.Or(o.unknownNamespace(ctx, n), err)
		}
		return err
	}
	var unknown error
	if len(first.Items) == 0 {
		text, known, err := o.none(ctx, n, query, first)
		if err != nil {
			return err
		}
		if !known {
			unknown = errors.New(text)
		} else if o.format == "text" {
			fmt.Fprintln(o.err, text+".")
		}
	}
	if until.At.IsZero() {
		until.At = time.Now()
	}
	if until.RV == 0 {
		o.reportSilence(ctx, until.At, o.stamp)
	}
	if o.since != "" { // otherwise the object's first version is the begin
		oldest = time.Time{}
	}
	o.printUnobserved(ctx, first.Unobserved, oldest, o.stamp)
	return unknown
}

// show prints all pages, and returns the first, and the time of the oldest version.
func (o *historyOptions) show(ctx context.Context, n named, query url.Values, rec record) (first api.Versions, oldest time.Time, err error) {
	// The first page is requested before the pager starts, which would hide an error.
	if first, err = o.pageOf(ctx, n, query, 0); err != nil {
		return first, oldest, err
	}
	at := query.Get("until")
	var deletion *api.Change
	if len(first.Items) > 0 && first.Items[0].Type == api.Deleted {
		deletion = &first.Items[0]
		rv, err := strconv.ParseUint(deletion.ResourceVersion, 10, 64)
		if err != nil {
			return first, oldest, err
		}
		at = fmt.Sprintf("rv:%d", rv-1)
	}
	failing, known, err := o.failing(ctx, n, at, deletion != nil, rec)
	if err != nil {
		return first, oldest, err
	}
	err = o.page(o.streams, func(w io.Writer) error {
		if err := o.printFailing(w, failing, known, deletion); err != nil {
			return err
		}
		all := first
		shown := 0
		for page := first; ; {
			if o.format == "text" {
				for _, c := range page.Items {
					if err := o.print(w, n, c); err != nil {
						return err
					}
				}
			}
			if shown += len(page.Items); len(page.Items) > 0 {
				oldest = page.Items[len(page.Items)-1].Time
			}
			if query.Set("continue", page.Continue); page.Continue == "" || o.limit > 0 && shown >= o.limit {
				break
			}
			var err error
			if page, err = o.pageOf(ctx, n, query, shown); err != nil {
				return err
			}
			if o.format != "text" {
				all.Items = append(all.Items, page.Items...)
			}
		}
		if o.format == "text" {
			return nil
		}
		all.Continue = query.Get("continue")
		return o.marshal(w, all)
	})
	return first, oldest, err
}

// none says that an object has no versions in a range of time, or did not exist in it, or that
// nothing is known of it.
func (o *historyOptions) none(ctx context.Context, n named, query url.Values, v api.Versions) (text string, known bool, err error) {
	what := n.resource.GroupResource() + " " + n.name
	from, to := parsed(query.Get("since")), parsed(query.Get("until"))
	if h, err := o.history(ctx); err == nil && (to.At.IsZero() || to.At.After(h.Now)) {
		to.At = h.Now // which was before v
	}
	if from.RV == 0 && to.RV == 0 && api.NothingKnown(v.Unobserved, []string{v.Resource}, from.At, to.At) {
		return fmt.Sprintf("nothing is known of %s in that time", what), false, nil
	}
	before := url.Values{"limit": {"1"}}
	if query.Has("until") {
		before["until"] = query["until"]
	}
	var last api.Versions
	if err := o.get(ctx, historyAPI+"/versions"+n.path(o.namespace), before, &last); err != nil {
		return "", false, err
	}
	switch {
	case len(last.Items) > 0 && last.Items[0].Type == api.Deleted:
		return fmt.Sprintf("%s did not exist in that time: deleted %s%s", what, o.stamp(last.Items[0].Time), o.doubt(last.Items[0])), true, nil
	case len(v.Unobserved) > 0:
		return what + " has no observed changes in that time", true, nil
	case len(last.Items) == 0:
		return what + " did not exist yet in that time", true, nil
	}
	return what + " has not changed in that time", true, nil
}

// pageOf requests a page, with at most the rest of the limit.
func (o *historyOptions) pageOf(ctx context.Context, n named, query url.Values, shown int) (v api.Versions, err error) {
	if o.limit > 0 {
		query.Set("limit", fmt.Sprint(min(o.limit-shown, 1000)))
	}
	err = o.get(ctx, historyAPI+"/versions"+n.path(o.namespace), query, &v)
	if o.limit > 0 && len(v.Items) > o.limit-shown {
		v.Items = v.Items[:o.limit-shown]
	}
	return v, err
}

// print prints a version: one line, followed by the YAML diff if requested.
func (o *historyOptions) print(w io.Writer, n named, c api.Change) error {
	what, color := strings.Join(c.Summary, "; "), ""
	switch c.Type {
	case api.Added:
		color = green
	case api.Deleted:
		color = red
	case api.Folded:
		what, color = o.folded(c.Folded), dim
	case api.Initial:
		color = dim
	}
	what += o.doubt(c)
	_, err := fmt.Fprintf(w, "%s  %s  %s%s\n", o.stamp(c.Time), o.paint(yellow, fmt.Sprintf("%-8s", c.ResourceVersion)), o.paint(color, termtext.Plain(what)), o.paint(dim, termtext.Plain(by(c.By))))
	if err != nil || !o.patch || c.Type == api.Folded || c.Type == api.Initial {
		return err
	}
	var b strings.Builder
	after := c.Object
	if c.Type == api.Deleted {
		after = nil
	}
	if err := o.diff(&b, n.resource.GroupResource()+"/"+n.name, c.Before, after); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, indent(b.String()))
	return err
}

// doubt says what is not known of a change that happened in a gap.
func (o *output) doubt(c api.Change) string {
	switch {
	case c.NotBefore.IsZero() && !c.Inferred:
		return ""
	case c.NotBefore.IsZero():
		return " (inferred from a list)"
	case c.Inferred:
		return " (inferred from a list; not before " + o.stamp(c.NotBefore) + ")"
	}
	return " (not before " + o.stamp(c.NotBefore) + ")"
}

// folded describes folded versions.
func (o *historyOptions) folded(f *api.Fold) string {
	return fmt.Sprintf("%s with noise only (%s) since %s", words.Count(f.Count, "version"), strings.Join(sortedKeys(f.Noise), ", "), o.stamp(f.Oldest.Time))
}

// by names the authors of a change, each once.
func by(managers []change.Manager) string {
	var names []string
	for _, m := range managers {
		if !slices.Contains(names, m.Manager) {
			names = append(names, m.Manager)
		}
	}
	if names == nil {
		return ""
	}
	return "  by " + strings.Join(names, ", ")
}
