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
	"strings"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// changesOptions are the flags of changes.
type changesOptions struct {
	client
	output
	since, until  string
	author        string
	filter        string
	limit         int
	allNamespaces bool
	spec          bool
	watch         bool
	cluster       bool // none of the RESOURCEs has namespaces
}

func newChanges(s streams) *cobra.Command {
	o := &changesOptions{client: client{streams: s}}
	o.times = &o.zone
	cmd := &cobra.Command{
		Use:   "changes [RESOURCE[,RESOURCE] ...]",
		Short: "List what changed, in all resources or some",
		Long: `List the changes that a running gateway has recorded, newest first, with time and
author, in everything recorded except Events, or in the RESOURCEs (such as pods
or deployments.apps). That includes objects that were created and deleted
meanwhile. Objects have no field that says who deleted them, or who removed a
field, so these changes have no author.

With --watch, list the changes as they are recorded, oldest first.

A range of which nothing is known, because nothing was observed in it, is an error.`,
		Example: `  watchkeeper changes --since 10m
  watchkeeper changes deployments configmaps -A --since 13:00 --until 13:30
  watchkeeper changes -n shop --spec --watch`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	o.client.addScopeFlags(f)
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list all namespaces, and objects without one")
	f.Var((*values.Moment)(&o.since), "since", "list changes after this moment: an age such as 10m, a time, or the resourceVersion of the one RESOURCE; the default is an hour before --until, and now with --watch")
	o.until = "now"
	f.Var((*values.Moment)(&o.until), "until", "list changes up to this moment; a second includes what is printed with it")
	f.IntVar(&o.limit, "limit", 0, "maximum number of changes, the newest; 0 means all")
	f.StringVar(&o.author, "by", "", "list changes by this field manager, such as kubectl-client-side-apply")
	f.StringVar(&o.filter, "filter", "", "list changes of objects with these parts in their names, such as 'web -ns:kube'")
	f.BoolVar(&o.spec, "spec", false, "leave out changes of status only")
	f.BoolVarP(&o.watch, "watch", "w", false, "continue with new changes, oldest first; with -o json, one object per line")
	o.output.addFlags(f)
	o.client.complete(cmd, completion.Options{Objects: true, Moments: []string{"since", "until"}, Formats: formats})
	return cmd
}

func (o *changesOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if err := o.prepareScope(ctx, o.allNamespaces); err != nil {
		return err
	}
	if err := o.output.prepare(o.streams); err != nil {
		return err
	}
	if o.watch && cmd.Flags().Changed("until") {
		return errors.New("--watch does not end: leave out --until")
	}
	if o.watch && o.format == "yaml" {
		return errors.New("--watch prints text or json: use another --output")
	}
	if o.limit < 0 || o.limit > 0 && o.watch {
		return fmt.Errorf("--limit %d: use a number above 0, or 0 for all; --watch has no limit", o.limit)
	}
	if err := o.defaultSince(ctx); err != nil {
		return err
	}
	args = splitCommas(args)
	query, err := o.query(ctx, args)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, args, query)
	}
	return o.list(ctx, args, query)
}

// defaultSince sets --since if it is not given.
func (o *changesOptions) defaultSince(ctx context.Context) error {
	switch {
	case o.since != "":
		return nil
	case o.watch:
		o.since = "now"
		return nil
	}
	since, ok, err := o.anHourBefore(ctx, "--until", o.until)
	if err == nil && !ok {
		err = fmt.Errorf("--until %s is a resourceVersion: give --since, too", o.until)
	}
	o.since = since
	return err
}

// query returns the parameters of all requests.
func (o *changesOptions) query(ctx context.Context, args []string) (url.Values, error) {
	q := url.Values{"limit": {fmt.Sprint(o.pageSize(0))}}
	until := o.until
	if o.watch {
		until = ""
	}
	from, to, err := o.spanOf(ctx, o.since, until, "changes", args)
	if err != nil {
		return nil, err
	}
	q.Set("since", from)
	q.Set("until", cmp.Or(to, "now"))
	for parameter, text := range map[string]string{"namespace": o.namespace, "by": o.author, "filter": o.filter} {
		if text != "" {
			q.Set(parameter, text)
		}
	}
	if o.spec {
		q.Set("spec", "true")
	}
	if o.noise {
		q.Set("noise", "show")
	}
	if o.patch {
		q.Set("objects", "true")
	}
	q["resource"], err = o.resources(ctx, args)
	return q, err
}

// pageSize returns how many changes to ask for after so many were shown.
func (o *changesOptions) pageSize(shown int) int {
	if o.limit > 0 {
		return min(o.limit-shown, 1000)
	}
	return 1000
}

// resources returns the gateway's names of the resources in the arguments; without
// arguments, of all recorded ones except Events and, in one namespace, those without
// namespaces.
func (o *changesOptions) resources(ctx context.Context, args []string) (names []string, err error) {
	r, err := o.resolver(ctx)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		h, err := o.history(ctx)
		if err != nil {
			return nil, err
		}
		for _, res := range h.Resources {
			if n, err := r.find(res.Resource); err == nil && !n.namespaced && o.namespace != "" {
				continue
			}
			if !isEvents(res.Resource) {
				names = append(names, res.Resource)
			}
		}
		o.denied = deniedOf(h)
		if len(names) == 0 {
			return nil, o.errNothing(h)
		}
		return names, nil
	}
	o.cluster = true
	for _, text := range args {
		if err := notRecording("changes", text); err != nil {
			return nil, err
		}
		if strings.Contains(text, "/") {
			return nil, fmt.Errorf("changes lists resources: see 'watchkeeper history %s%s' for one object", text, o.again())
		}
		n, err := r.find(text)
		if err != nil {
			return nil, err
		}
		if err := o.recordedOf(ctx, n); err != nil {
			return nil, err
		}
		names = append(names, n.resource.GroupResource())
		o.cluster = o.cluster && !n.namespaced
	}
	return names, nil
}

// list prints all pages.
func (o *changesOptions) list(ctx context.Context, args []string, query url.Values) error {
	// The first page is requested before the pager starts, which would hide an error.
	var first api.Changes
	if err := o.get(ctx, historyAPI+"/changes", query, &first); err != nil {
		return err
	}
	rec, err := o.record(ctx)
	if err != nil {
		return err
	}
	until := kube.Moment{At: first.To, RV: parsed(query.Get("until")).RV}
	if err := cmp.Or(rec.before(query["resource"], until, "--until", o.stamp), rec.after(query["resource"][0], until, "--until")); err != nil {
		return err
	}
	all := first
	all.Denied = o.denied
	shown, oldest := 0, first.From
	err = o.page(o.streams, func(w io.Writer) error {
		for page := first; ; {
			if shown += len(page.Items); len(page.Items) > 0 {
				oldest = page.Items[len(page.Items)-1].Time
			}
			if o.format == "text" {
				for _, c := range page.Items {
					if err := o.print(w, c); err != nil {
						return err
					}
				}
			}
			query.Set("continue", page.Continue)
			query.Set("limit", fmt.Sprint(o.pageSize(shown)))
			if page.Continue == "" || o.limit > 0 && shown >= o.limit {
				break
			}
			page = api.Changes{}
			if err := o.get(ctx, historyAPI+"/changes", query, &page); err != nil {
				return err
			}
			if o.format != "text" {
				all.Items = append(all.Items, page.Items...)
			}
			all.Folded += page.Folded
			all.LeftOut += page.LeftOut
		}
		if o.format == "text" {
			return nil
		}
		all.Continue = query.Get("continue")
		return o.marshal(w, all)
	})
	if err != nil {
		return err
	}
	var unknown error
	// After the list, which may be long: it would scroll out of sight.
	if shown == 0 {
		if o.namespace != "" && !o.cluster {
			if err := o.knownNamespace(ctx); err != nil {
				return err
			}
		}
		text, known := o.none(args, query, all)
		if known {
			fmt.Fprintln(o.err, text)
		} else {
			unknown = errors.New(text)
		}
	}
	if len(args) == 0 {
		o.reportLeftOut(rec)
	}
	o.reportScope(ctx)
	o.reportSilence(ctx, first.To, o.stamp)
	if query.Get("continue") != "" { // --limit: what is listed begins later
		o.printUnobserved(ctx, first.Unobserved, oldest, o.stamp)
		return unknown
	}
	o.printUnobserved(ctx, first.Unobserved, first.From, o.stamp)
	if line := rec.begins(query["resource"], first.From, "changes", o.stamp); line != "" {
		fmt.Fprintln(o.err, line)
	}
	return unknown
}

// none says that there are no changes, and of what; or that nothing is known of the range.
func (o *changesOptions) none(args []string, query url.Values, all api.Changes) (text string, known bool) {
	text, known = "no changes", true
	if api.NothingKnown(all.Unobserved, query["resource"], all.From, all.To) {
		text, known = "nothing is known of changes", false
	} else if len(all.Unobserved) > 0 {
		text = "no observed changes"
	}
	if o.spec {
		text += " beyond the status"
	}
	if len(args) > 0 {
		text += " of " + strings.Join(query["resource"], ", ")
	}
	if o.namespace != "" && !o.cluster {
		text += " in namespace " + o.namespace
	}
	if o.filter != "" {
		text += fmt.Sprintf(" with --filter %q", o.filter)
	}
	if o.author != "" {
		text += fmt.Sprintf(" by %q", o.author)
	}
	text += fmt.Sprintf(" between %s and %s", o.moment(query.Get("since")), o.moment(query.Get("until")))
	if len(args) == 0 {
		text += inRecorded(query["resource"])
	}
	if all.LeftOut > 0 {
		flag := "--by"
		if o.author == "" {
			flag = "--spec"
		}
		text += fmt.Sprintf("; %s leaves out %d", flag, all.LeftOut)
	}
	if all.Folded > 0 {
		text += fmt.Sprintf("; %d are noise (--show-noise)", all.Folded)
	}
	return text, known
}

// print prints a change: one line, followed by the YAML diff if requested.
func (o *changesOptions) print(w io.Writer, c api.ObjectChange) error {
	sign, color := signOf(c.Type)
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + c.Name
	}
	what := cmp.Or(strings.Join(c.Summary, "; "), strings.ToLower(c.Type))
	what += o.doubt(c.Change)
	_, err := fmt.Fprintf(w, "%s  %s  %s %s  %s%s\n", o.stamp(c.Time), o.paint(yellow, fmt.Sprintf("%-8s", c.ResourceVersion)),
		o.paint(color, sign), o.paint(bold, termtext.Plain(c.Resource+" "+name)), termtext.Plain(what), o.paint(dim, termtext.Plain(by(c.By))))
	if err != nil || !o.patch {
		return err
	}
	after := c.Object
	if c.Type == api.Deleted {
		after = nil
	}
	var b strings.Builder
	if err := o.diff(&b, c.Resource+"/"+name, c.Before, after); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, indent(b.String()))
	return err
}
