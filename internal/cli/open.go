// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/gateway"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/recording"
	"github.com/watchkeeper/watchkeeper/internal/server"
)

// openOptions are the flags of open.
type openOptions struct {
	streams
	server    server.Options
	logFormat string
	verbosity int
}

func newOpen(s streams) *cobra.Command {
	o := &openOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "open FILE",
		Short: "Serve a recording: the API and the page, without its cluster",
		Long: `Serve a recording that "watchkeeper record export" has made. The cluster stands
still at the end of the recording; what was before is below /at/. Nothing can
be changed.`,
		Example: `  watchkeeper open incident.wkr
  kubectl -s http://127.0.0.1:8001 get pods -A
  kubectl -s http://127.0.0.1:8001/at/2026-11-21T14:02:00Z get pods -A`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runUntilSignal(cmd.Context(), func(ctx context.Context) error { return o.run(ctx, args[0]) })
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.server.Address, "address", "127.0.0.1", "IP address to serve on")
	f.IntVarP(&o.server.Port, "port", "p", defaultPort, "port to serve on; 0 takes a free one and prints it")
	f.StringVar(&o.server.Gateway.Filter.AcceptHosts, "accept-hosts", gateway.DefaultAcceptHosts, "regular expressions for the hosts to accept, separated by commas")
	f.StringVar(&o.logFormat, "log-format", "text", "format of the log: text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log: 0 is information, 4 and above is debugging")
	return cmd
}

func (o *openOptions) run(ctx context.Context, file string) (err error) {
	log, err := newLogger(o.err, o.logFormat, o.verbosity)
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	// On disk, not in memory: a recording may be of days.
	dir, err := os.MkdirTemp("", "watchkeeper-open-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := history.Open(dir, history.Options{Cluster: "a recording", Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	header, documents, err := recording.Import(f, store)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Fprintf(o.err, "%s: %s to %s\n", file, header.From.Local().Format(time.DateTime), header.To.Local().Format(time.DateTime))
	o.server.RESTConfig = &rest.Config{Host: "http://recording", Transport: recording.NewUpstream(store, documents)}
	o.server.Gateway.Recording = store
	o.server.Logger = log
	o.server.OnListening = func(mainURL, _ string) {
		fmt.Fprintf(o.out, "Starting to serve on %s\n", mainURL)
	}
	return server.Run(ctx, o.server)
}
