// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/watchkeeper/watchkeeper/internal/recording"
)

// exportPath is where a gateway makes recordings.
const exportPath = historyAPI + "/export"

func newRecord(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Make recordings of what happened in a cluster",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExport(s))
	return cmd
}

// exportOptions are the flags of record export.
type exportOptions struct {
	client
	output     string
	since      string
	until      string
	selector   string
	pseudonyms bool
}

func newExport(s streams) *cobra.Command {
	o := &exportOptions{client: client{streams: s}}
	cmd := &cobra.Command{
		Use:   "export [RESOURCE ...] --output FILE",
		Short: "Write what happened in some time into one file",
		Long: `Write what a running gateway has recorded of some time into one file, which
"watchkeeper open" serves again on any machine, without the cluster.

Without RESOURCEs (such as pods or deployments.apps) it is everything recorded
that the gateway may read.`,
		Example: `  # The last two hours
  watchkeeper record export --since 2h -o incident.wkr

  # One application, with the names of all objects replaced
  watchkeeper record export pods events --since 30m -n shop -l app=cart --pseudonyms -o cart.wkr

  # What is in it
  zstd -dc incident.wkr | jq -c .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Removed here, so that it is after a second signal as well.
			temp := &temporary{}
			err := runUntilSignal(cmd.Context(), func(ctx context.Context) error { return o.run(ctx, args, temp) })
			return errors.Join(err, temp.remove())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "file to write, - for standard output")
	f.StringVar(&o.since, "since", "1h", "where it begins: an age (2h, 3d) or an RFC 3339 time")
	f.StringVar(&o.until, "until", "now", "where it ends, likewise")
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the objects; all of them without it")
	f.StringVarP(&o.selector, "selector", "l", "", "label selector; an object that matches at any time is exported for all of it")
	f.BoolVar(&o.pseudonyms, "pseudonyms", false, "replace the names of objects, and of what they refer to, wherever they stand as words; nothing else is hidden")
	o.client.addFlags(f)
	return cmd
}

func (o *exportOptions) run(ctx context.Context, resources []string, temp *temporary) error {
	if o.output == "" {
		return errors.New("no file to write to: name one with --output, such as -o incident.wkr")
	}
	q := url.Values{}
	for parameter, flag := range map[string][2]string{"from": {"--since", o.since}, "to": {"--until", o.until}} {
		text, err := when(flag[0], flag[1])
		if err != nil {
			return err
		}
		q.Set(parameter, text)
	}
	namespace := o.namespace
	if err := o.prepare(); err != nil {
		return err
	}
	for name, value := range map[string]string{"namespace": namespace, "labelSelector": o.selector} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if err := o.choose(ctx, resources, q); err != nil {
		return err
	}
	if o.pseudonyms {
		q.Set("pseudonyms", "true")
	}
	body, err := o.open(ctx, exportPath, q)
	if err != nil {
		return err
	}
	defer body.Close()
	if o.output == "-" {
		_, err := io.Copy(o.out, body)
		return err
	}
	// What is there and no file, as /dev/stdout, takes what comes; a link leads to
	// the file.
	if info, err := os.Stat(o.output); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(o.output, os.O_WRONLY, 0)
		if err == nil {
			_, err = io.Copy(f, body)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		return nil
	}
	if to, err := filepath.EvalSymlinks(o.output); err == nil {
		o.output = to
	}
	return o.save(ctx, body, temp)
}

// choose names resources as the gateway does, whichever of their names they go by.
func (o *exportOptions) choose(ctx context.Context, resources []string, q url.Values) error {
	if len(resources) == 0 {
		return nil
	}
	r, err := o.resolver(ctx)
	if err != nil {
		return err
	}
	for _, text := range resources {
		n, err := r.find(text)
		if err != nil {
			return err
		}
		q.Add("resource", n.resource.GroupResource())
	}
	return nil
}

// save writes the file, which is there when it is whole and right, or not at all.
func (o *exportOptions) save(ctx context.Context, body io.Reader, temp *temporary) (err error) {
	var f *os.File
	err = temp.make(func() (string, error) {
		if f, err = os.CreateTemp(filepath.Dir(o.output), ".watchkeeper-*.wkr"); err != nil {
			return "", err
		}
		return f.Name(), nil
	})
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer f.Close() // it has been closed, or is of no use
	n, err := io.Copy(f, body)
	if err != nil {
		return fmt.Errorf("the recording broke off after %d bytes: %w", n, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum, err := recording.Check(ctx, f)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("what the gateway sent is no recording: %w", err)
	}
	for _, do := range []func() error{f.Sync, f.Close, func() error { return os.Rename(f.Name(), o.output) }} {
		if err := do(); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	fmt.Fprintf(o.err, "%s: %s, %s to %s, %d resources, %d objects at first, %d changes, %d gaps\n", o.output, size(n),
		sum.From.Local().Format(time.DateTime), sum.To.Local().Format(time.DateTime), sum.Resources, sum.Objects, sum.Changes, sum.Gaps)
	return nil
}

// size returns a number of bytes as a person reads it.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%dKi", n>>10)
	}
	return resource.NewQuantity(n>>20<<20, resource.BinarySI).String()
}
