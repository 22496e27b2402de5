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
	"strings"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// changesOptions are the flags of changes.
type changesOptions struct {
	client
	output
	since, until  string
	author        string
	filter        string
	allNamespaces bool
	spec          bool
	watch         bool
}

func newChanges(s streams) *cobra.Command {
	o := &changesOptions{client: client{streams: s}}
	cmd := &cobra.Command{
		Use:   "changes [RESOURCE ...]",
		Short: "List what changed, in all resources or some",
		Long: `List the changes that a running gateway has recorded, newest first, with time and
author, in everything recorded except Events, or in the RESOURCEs (such as pods
or deployments.apps). That includes objects that were created and deleted
meanwhile.

With --watch, list the changes as they are recorded, oldest first.`,
		Example: `  watchkeeper changes --since 10m
  watchkeeper changes deployments configmaps -A --since 13:00 --until 13:30
  watchkeeper changes -n shop --spec --watch`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	o.client.addFlags(f)
	o.addNamespace(f)
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list all namespaces, and objects without one")
	f.StringVar(&o.since, "since", "1h", "list changes since this moment: an age such as 1h, or a time; with --watch, the default is now")
	f.StringVar(&o.until, "until", "now", "list changes up to this moment")
	f.StringVar(&o.author, "by", "", "list changes by this field manager, such as kubectl-client-side-apply")
	f.StringVar(&o.filter, "filter", "", "list changes of objects with these parts in their names, such as 'web -ns:kube'")
	f.BoolVar(&o.spec, "spec", false, "leave out changes of status only")
	f.BoolVarP(&o.watch, "watch", "w", false, "continue with new changes, oldest first; with -o json, one object per line")
	o.output.addFlags(f)
	return cmd
}

func (o *changesOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if err := o.client.prepare(); err != nil {
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
	if o.watch && !cmd.Flags().Changed("since") {
		o.since = "now"
	}
	if err := inOrder("--since", o.since, "--until", o.until); err != nil {
		return err
	}
	query, err := o.query(ctx, args)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, query)
	}
	return o.list(ctx, query)
}

// query returns the parameters of all requests.
func (o *changesOptions) query(ctx context.Context, args []string) (url.Values, error) {
	q := url.Values{"limit": {"1000"}}
	for parameter, flag := range map[string][2]string{"from": {"--since", o.since}, "to": {"--until", o.until}} {
		moment, err := o.when(ctx, flag[0], flag[1])
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(moment, "rv:") {
			return nil, fmt.Errorf("%s %s: a resourceVersion does not select changes of several resources: use a time", flag[0], flag[1])
		}
		q.Set(parameter, moment)
	}
	if o.allNamespaces {
		o.namespace = ""
	}
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
	var err error
	q["resource"], err = o.resources(ctx, args)
	return q, err
}

// resources returns the gateway's names of the resources in the arguments; without
// arguments, of all recorded ones except Events.
func (o *changesOptions) resources(ctx context.Context, args []string) (names []string, err error) {
	if len(args) == 0 {
		h, err := o.history(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range h.Resources {
			if r.Resource != eventsResource.GroupResource() && r.Resource != "events.events.k8s.io" {
				names = append(names, r.Resource)
			}
		}
		if len(names) == 0 {
			return nil, errNothing(h)
		}
		return names, nil
	}
	r, err := o.resolver(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range args {
		if strings.Contains(text, "/") {
			return nil, fmt.Errorf("changes lists resources: see 'watchkeeper history %s' for one object", text)
		}
		n, err := r.find(text)
		if err != nil {
			return nil, err
		}
		names = append(names, n.resource.GroupResource())
	}
	return names, nil
}

// list prints all pages.
func (o *changesOptions) list(ctx context.Context, query url.Values) error {
	// The first page is requested before the pager starts, which would hide an error.
	var first api.Changes
	if err := o.get(ctx, historyAPI+"/changes", query, &first); err != nil {
		return err
	}
	shown := len(first.Items)
	err := o.page(o.streams, func(w io.Writer) error {
		all := first
		for page := first; ; shown += len(page.Items) {
			if o.format == "text" {
				for _, c := range page.Items {
					if err := o.print(w, c); err != nil {
						return err
					}
				}
			}
			query.Set("continue", page.Continue)
			if page.Continue == "" {
				break
			}
			page = api.Changes{}
			if err := o.get(ctx, historyAPI+"/changes", query, &page); err != nil {
				return err
			}
			if o.format != "text" {
				all.Items = append(all.Items, page.Items...)
				all.Folded += page.Folded
				all.LeftOut += page.LeftOut
			}
		}
		if o.format == "text" {
			return nil
		}
		all.Continue = ""
		return o.marshal(w, all)
	})
	if err != nil || shown > 0 {
		return err
	}
	where := ""
	if o.namespace != "" {
		if err := o.knownNamespace(ctx); err != nil {
			return err
		}
		where = " in namespace " + o.namespace
	}
	fmt.Fprintf(o.err, "no changes%s between %s and %s\n", where, o.moment(query.Get("from")), o.moment(query.Get("to")))
	return nil
}

// print prints a change: one line, followed by the YAML diff if requested.
func (o *changesOptions) print(w io.Writer, c api.ObjectChange) error {
	sign, color := signOf(c.Type)
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + c.Name
	}
	what := cmp.Or(strings.Join(c.Summary, "; "), strings.ToLower(c.Type))
	if c.Inferred {
		what += " (inferred from a list)"
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s %s  %s%s\n", o.stamp(c.Time), o.paint(yellow, fmt.Sprintf("%-8s", c.ResourceVersion)),
		o.paint(color, sign), o.paint(bold, c.Resource+" "+plain(name)), plain(what), o.paint(dim, plain(by(c.By))))
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

// knownNamespace returns an error if the record has nothing of the namespace.
func (c *client) knownNamespace(ctx context.Context) error {
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(h.Resources, func(r api.ResourceHistory) bool { return r.Resource == "namespaces" }) {
		return nil // it cannot be known
	}
	var v api.Versions
	err = c.get(ctx, historyAPI+"/versions/api/v1/namespaces/"+c.namespace, url.Values{"limit": {"1"}}, &v)
	status, ok := errors.AsType[*statusError](err)
	if err == nil || ok && status.Code != 404 {
		return err
	}
	return fmt.Errorf("nothing is recorded in namespace %s", c.namespace)
}
