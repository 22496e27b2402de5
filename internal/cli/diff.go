// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// diffOptions are the flags of diff.
type diffOptions struct {
	client
	output
	from, to      string
	allNamespaces bool
	labels        string
	fields        string
	usual         bool // from is the default
}

// diffFailed is the exit code after an error; 1 means that there are differences.
const diffFailed = 2

func newDiff(s streams) *cobra.Command {
	o := &diffOptions{client: client{streams: s}}
	o.times = &o.zone
	cmd := &cobra.Command{
		Use:   "diff [RESOURCE[,RESOURCE] | RESOURCE/NAME]",
		Short: "Show the difference between two moments",
		Long: `Show what was added, deleted and modified between two moments that a running
gateway has recorded, in an object, a resource, or everything recorded except
Events. Without a difference, it says so on standard error. A line has what was
asked for before what became of it, and -p all of it; "watchkeeper changes --spec"
leaves out what changed in a status only.

The exit code is 0 without a difference, 1 with one, and 2 after an error, or if
nothing is known of the time after --from.`,
		Example: `  watchkeeper diff --from 1h -A
  watchkeeper diff deployments -n shop --from 2026-01-31T15:00:00Z --to 10m
  watchkeeper diff deployment/web --from 1h -p`,
		Args: func(cmd *cobra.Command, args []string) error { return o.failed(resourceArgs(0, 2)(cmd, args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			o.usual = !cmd.Flags().Changed("from")
			different, err := o.run(cmd.Context(), args)
			if err == nil && different {
				return exitError(1)
			}
			return o.failed(err)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return o.failed(usageError(cmd, err)) })
	f := cmd.Flags()
	o.client.addScopeFlags(f)
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "compare all namespaces")
	f.Var((*values.Moment)(&o.from), "from", "the earlier moment: an age such as 1h, a time, or a resourceVersion; the default is an hour before --to")
	o.to = "now"
	f.Var((*values.Moment)(&o.to), "to", "the later moment")
	f.StringVarP(&o.labels, "selector", "l", "", "label selector, as in kubectl get")
	f.StringVar(&o.fields, "field-selector", "", "field selector, as in kubectl get")
	o.output.addFlags(f)
	o.client.complete(cmd, completion.Options{Objects: true, Moments: []string{"from", "to"}, Formats: formats})
	return cmd
}

// failed prints an error and returns its exit code.
func (o *diffOptions) failed(err error) error {
	if err == nil {
		return nil
	}
	fmt.Fprintln(o.err, "watchkeeper: "+oneLine(explain(err)))
	return exitError(diffFailed)
}

// run reports whether there are differences.
func (o *diffOptions) run(ctx context.Context, args []string) (different bool, err error) {
	if err := o.prepareScope(ctx, o.allNamespaces); err != nil {
		return false, err
	}
	if err := o.output.prepare(o.streams); err != nil {
		return false, err
	}
	if _, err := labels.Parse(o.labels); err != nil {
		return false, fmt.Errorf("--selector %q: %w", o.labels, err)
	}
	if _, err := fields.ParseSelector(o.fields); err != nil {
		return false, fmt.Errorf("--field-selector %q: %w", o.fields, err)
	}
	if o.usual {
		from, ok, err := o.anHourBefore(ctx, "--to", o.to)
		if err != nil {
			return false, err
		}
		if o.from = from; !ok {
			o.from = "1h"
		}
	}
	from, to, err := o.between(ctx, "--from", o.from, "--to", o.to)
	if err != nil {
		return false, err
	}
	query := url.Values{"from": {from}, "to": {to}}
	for parameter, text := range map[string]string{"labelSelector": o.labels, "fieldSelector": o.fields} {
		if text != "" {
			query.Set(parameter, text)
		}
	}
	if o.noise {
		query.Set("noise", "show")
	}
	if o.patch {
		query.Set("objects", "true")
	}
	all, err := o.named(ctx, args)
	if err != nil {
		return false, err
	}
	rec, err := o.record(ctx)
	if err != nil {
		return false, err
	}
	return o.compare(ctx, args, all, query, rec)
}

// named returns the resources or the object to compare: those in the arguments,
// or everything recorded in the scope.
func (o *diffOptions) named(ctx context.Context, args []string) ([]named, error) {
	r, err := o.resolver(ctx)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && strings.Contains(args[0], ",") {
		var all []named
		for _, text := range splitCommas(args) {
			if strings.Contains(text, "/") {
				return nil, fmt.Errorf("diff compares one object or several resources: compare %q alone, or leave out its name", text)
			}
			n, err := r.find(text)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
		return all, nil
	}
	if len(args) > 0 {
		resource, name, err := parseNamed(args)
		if err != nil {
			return nil, err
		}
		n, err := r.find(resource)
		n.name = name
		if name != "" && n.namespaced && o.namespace == "" && err == nil {
			err = errors.New("an object is in one namespace: use -n, and leave out -A")
		}
		return []named{n}, err
	}
	h, err := o.history(ctx)
	if err != nil {
		return nil, err
	}
	var all []named
	for _, res := range h.Resources {
		if n, err := r.find(res.Resource); err == nil && (n.namespaced || o.namespace == "") && !isEvents(res.Resource) {
			all = append(all, n)
		}
	}
	if len(all) == 0 { // perhaps of resources without namespaces only
		return nil, o.errNothing(h)
	}
	o.denied = deniedOf(h)
	return all, nil
}

// compare prints the differences of each resource.
func (o *diffOptions) compare(ctx context.Context, args []string, all []named, query url.Values, rec record) (different bool, err error) {
	var failed failures
	compared := 0
	var unobserved []api.UnobservedSpan
	from, to := parsed(query.Get("from")), parsed(query.Get("to"))
	names := groupResources(all)
	for _, side := range []struct {
		flag string
		at   kube.Moment
	}{{"--to", to}, {"--from", from}} {
		if side.flag == "--from" && o.usual {
			continue // it begins later
		}
		if err := rec.before(names, side.at, side.flag, o.stamp); err != nil {
			return false, err
		}
	}
	err = o.page(o.streams, func(w io.Writer) error {
		out := []api.Differences{}
		for _, n := range all {
			query := maps.Clone(query)
			if at, late := rec.begin(n.resource.GroupResource(), from.At); o.usual && late {
				query.Set("from", kube.Moment{At: at}.String())
			}
			one, err := o.compareOne(ctx, w, n, query)
			if err != nil {
				if err = enough(err); err == nil || len(all) == 1 {
					return err
				}
				failed.add(n.resource.GroupResource(), err)
				continue
			}
			different = different || len(one.Items) > 0
			found := len(one.Items) + one.Unchanged + one.Folded
			if compared += found; n.name != "" && found == 0 {
				return cmp.Or(o.unknownNamespace(ctx, n), fmt.Errorf("%s did not exist at either moment: 'watchkeeper history %s/%s%s' says whether it did between them",
					n.describe(o.namespace), n.resource.GroupResource(), n.name, o.again()))
			}
			out, unobserved = append(out, one), append(unobserved, one.Unobserved...)
		}
		if o.format == "text" {
			return nil
		}
		if len(all) == 1 {
			return o.marshal(w, out[0])
		}
		answer := map[string]any{"items": out}
		if len(o.denied) > 0 {
			answer["denied"] = o.denied
		}
		return o.marshal(w, answer)
	})
	o.reportScope(ctx)
	if to.RV == 0 {
		o.reportSilence(ctx, to.At, o.stamp)
	}
	slices.SortStableFunc(unobserved, func(a, b api.UnobservedSpan) int { return a.From.Compare(b.From) })
	o.printUnobserved(ctx, unobserved, from.At, o.stamp)
	failed = failed.merge(rec, []time.Time{from.At, to.At}, o.stamp)
	if h, err := o.history(ctx); err == nil {
		failed = failed.stopped(rec, h.Recording, o.stamp)
	}
	failed.print(o.err)
	if late := rec.begins(names, from.At, "differences", o.stamp); err == nil && o.usual && late != "" {
		fmt.Fprintln(o.err, late)
	}
	if failed == nil && err == nil && compared == 0 && o.namespace != "" {
		err = o.knownNamespace(ctx)
	}
	if failed == nil && err == nil && !different {
		text, known := o.none(ctx, args, all, compared, query, rec)
		if known {
			fmt.Fprintln(o.err, text)
		} else {
			err = errors.New(text)
		}
	}
	if err == nil && len(args) == 0 {
		o.reportLeftOut(rec)
	}
	if failed != nil && err == nil {
		err = fmt.Errorf("some resources could not be compared: choose a moment that is in the history of each, or name a resource")
	}
	return different, err
}

// none says that there are no differences, and where; or that nothing is known of the time.
func (o *diffOptions) none(ctx context.Context, args []string, all []named, compared int, query url.Values, rec record) (text string, known bool) {
	where := ""
	switch {
	case len(args) > 0:
		where = " of " + all[0].describe(o.namespace)
		if len(all) > 1 {
			where = " of " + strings.Join(groupResources(all), ", ")
		}
	case o.namespace != "":
		where = " in namespace " + o.namespace
	}
	what, known := "no differences", true
	from := parsed(query.Get("from"))
	if from.RV == 0 && o.silence(ctx, from.At) != nil {
		what, known = "nothing is known of differences", false
	}
	if late, _, last := rec.late(groupResources(all), from.At, o.stamp); o.usual && len(late) == len(all) {
		from.At = last // of some, nothing is known before
	}
	to := o.moment(query.Get("to"))
	if until := parsed(query.Get("to")); known && until.RV == 0 {
		if up := o.silence(ctx, until.At); up != nil && !up.LastContact.IsZero() {
			to = o.stamp(up.LastContact) + ", the last moment that is known"
		}
	}
	text = fmt.Sprintf("%s%s between %s and %s", what, where, o.moment(from.String()), to)
	if len(args) == 0 {
		text += inRecorded(groupResources(all))
	}
	if compared == 0 {
		text += ": there are no objects at either moment"
	}
	return text, known
}

// compareOne prints the differences of one resource or object.
func (o *diffOptions) compareOne(ctx context.Context, w io.Writer, n named, query url.Values) (all api.Differences, err error) {
	for first := true; first || all.Continue != ""; first = false {
		var page api.Differences
		if all.Continue != "" {
			query.Set("continue", all.Continue)
		}
		if err := o.get(ctx, historyAPI+"/diff"+n.path(o.namespace), query, &page); err != nil {
			return all, err
		}
		if page.From.Time.After(page.To.Time) {
			return all, fmt.Errorf("--from %s is after --to %s in %s: swap them", o.from, o.to, n.resource.GroupResource())
		}
		items := all.Items
		all.Resource, all.From, all.To, all.Continue = page.Resource, page.From, page.To, page.Continue
		all.Folded += page.Folded
		all.Unchanged += page.Unchanged
		all.Unobserved = append(all.Unobserved, page.Unobserved...)
		all.Items = append(items, page.Items...)
		if o.format != "text" {
			continue
		}
		for _, d := range page.Items {
			if err := o.print(w, n, d); err != nil {
				return all, err
			}
		}
	}
	if all.Items == nil {
		all.Items = []api.Difference{}
	}
	return all, nil
}

// print prints a difference: one line, followed by the YAML diff if requested.
func (o *diffOptions) print(w io.Writer, n named, d api.Difference) error {
	sign, color := signOf(d.Type)
	name := d.Name
	if d.Namespace != "" {
		name = d.Namespace + "/" + d.Name
	}
	what := strings.Join(d.Summary, "; ")
	if d.Selection != "" {
		what = d.Selection + " the selection: " + what
	}
	_, err := fmt.Fprintf(w, "%s %s  %s%s\n", o.paint(color, sign), o.paint(bold, termtext.Plain(n.resource.GroupResource()+" "+name)), termtext.Plain(what), o.paint(dim, termtext.Plain(by(d.By))))
	if err != nil || !o.patch {
		return err
	}
	var b strings.Builder
	if err := o.diff(&b, n.resource.GroupResource()+"/"+name, d.Before, d.Object); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, indent(b.String()))
	return err
}

// signOf returns the sign of a type of change, and its colour.
func signOf(kind string) (sign, color string) {
	switch kind {
	case api.Added:
		return "+", green
	case api.Deleted:
		return "-", red
	}
	return "~", yellow
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
