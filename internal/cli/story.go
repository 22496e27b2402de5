// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/storytext"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

const storyAPI = "/watchkeeper/v1/story"

// storyOptions are the flags of story.
type storyOptions struct {
	client
	output
	since, until string
	verbose      bool
}

func newStory(s streams) *cobra.Command {
	o := &storyOptions{client: client{streams: s}}
	o.times = &o.zone
	cmd := &cobra.Command{
		Use:   "story RESOURCE/NAME | RESOURCE NAME",
		Short: "Tell what happened to an object and to what belongs to it",
		Long: `Tell what happened to an object, and to what it owns, is owned by, runs on and
mounts, from what a running gateway has recorded: rollouts, scaling, failed Pods,
lost Nodes, evictions, quotas, autoscalers, changed configuration. The changes
are grouped into episodes. The first line is the most important one; below it is
what the objects themselves say about the cause.`,
		Example: `  watchkeeper story deployment/checkout -n shop
  watchkeeper story node/worker-3 --since 2h -v
  watchkeeper story statefulset/db --since 14:00 --until 14:30 -o markdown`,
		Args: resourceArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	o.addScopeFlags(f)
	f.Var((*values.Moment)(&o.since), "since", "begin at this moment: an age such as 1h, a time, or a resourceVersion; the default is an hour before the end")
	f.Var((*values.Moment)(&o.until), "until", "end at this moment; a second includes what is printed with it")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "list the changes of each episode")
	o.addFormatFlags(f, "text, json or markdown")
	o.complete(cmd, completion.Options{Objects: true, Moments: []string{"since", "until"}, Formats: []string{"text", "json", "markdown"}})
	return cmd
}

func (o *storyOptions) run(ctx context.Context, args []string) error {
	resource, name, err := parseNamed(args)
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("story is about one object: name it as %s/NAME, or as deployment/%s if that is its name", resource, resource)
	}
	format := o.format
	switch format {
	case "text", "json":
	case "markdown":
		o.format = "json" // no pager, no colours
	default:
		return fmt.Errorf("--output %q is unknown: use text, json or markdown", format)
	}
	if err := o.prepareScope(ctx, false); err != nil {
		return err
	}
	if err := o.output.prepare(o.streams); err != nil {
		return err
	}
	from, to, err := o.span(ctx, o.since, o.until)
	if err != nil {
		return err
	}
	query := url.Values{}
	for parameter, moment := range map[string]string{"since": from, "until": to} {
		if moment != "" {
			query.Set(parameter, moment)
		}
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
	var s api.Story
	if err := o.get(ctx, storyAPI+n.path(o.namespace), query, &s); err != nil {
		if isNotFound(err) {
			err = cmp.Or(o.unknownNamespace(ctx, n), err)
		}
		return err
	}
	options := storytext.Options{Verbose: o.verbose, Zone: time.Local}
	if o.utc {
		options.Zone = time.UTC
	}
	if o.colored {
		options.Paint = o.paint
	}
	err = o.page(o.streams, func(w io.Writer) error {
		switch format {
		case "json":
			return o.marshal(w, s)
		case "markdown":
			return storytext.Markdown(w, s, options)
		}
		return storytext.Text(w, s, options)
	})
	if until := parsed(to); err == nil && until.RV == 0 {
		if until.At.IsZero() {
			until.At = time.Now()
		}
		o.reportSilence(ctx, until.At, o.stamp)
	}
	if err == nil && len(s.Episodes) == 0 && storytext.Unknown(s) {
		err = fmt.Errorf("nothing is known of %s %s in that time", n.resource.GroupResource(), n.name)
	}
	return err
}
