// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/serve/server"
)

// openOptions are the flags of open.
type openOptions struct {
	streams
	zone
	server    server.Options
	maxBytes  values.Bytes
	logFormat string
	verbosity int
}

// defaultUnpacked is enough for a few hours of a large cluster, and fits on most
// disks.
const defaultUnpacked = "8Gi"

func newOpen(s streams) *cobra.Command {
	o := &openOptions{streams: s}
	o.maxBytes.Quantity = resource.MustParse(defaultUnpacked)
	cmd := &cobra.Command{
		Use:   "open FILE",
		Short: "Serve a recording, as API and page, without the cluster",
		Long: `Serve a recording of "watchkeeper record export", read-only. The live state is
the end of the recording; earlier states are below /at/. The file is unpacked
into a temporary directory (below $TMPDIR), which is removed at the end.`,
		Example: `  watchkeeper open incident.wkr
  kubectl -s http://127.0.0.1:8001 get pods -A
  kubectl -s http://127.0.0.1:8001/at/2026-11-21T14:02:00Z get pods -A`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(cmd, fmt.Errorf("open takes one FILE, such as incident.wkr, but got %d", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			// Removed here, so that a second signal removes it as well.
			dir := &temporary{}
			ignoreBrokenPipe()
			err := runUntilSignal(cmd.Context(), func(ctx context.Context) error { return o.run(ctx, args[0], dir) })
			return errors.Join(err, dir.remove())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.server.Address, "address", "127.0.0.1", "IP address to serve on")
	f.IntVarP(&o.server.Port, "port", "p", defaultPort, "port to serve on; 0 uses a free one and prints it")
	f.StringVar(&o.server.Gateway.Filter.AcceptHosts, "accept-hosts", gateway.DefaultAcceptHosts, "regular expressions of the hosts to accept, separated by commas")
	f.Var(&o.maxBytes, "max-bytes", "maximum size of the unpacked recording, such as 20Gi; 0 means no limit")
	o.zone.addFlags(f)
	f.StringVar(&o.logFormat, "log-format", "text", "log format: text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "log verbosity: 0 is information, 4 and above is debugging")
	return cmd
}

// unpackMemory is how much more memory the program takes, while a file is unpacked, before
// garbage is collected more often. What is kept takes less, whatever the file contains.
const unpackMemory = 64 << 20

// unpack reads the file into the store. It needs less than 256 MiB of memory,
// whatever the file contains.
func (o *openOptions) unpack(ctx context.Context, file io.Reader, store *history.Store) (*recording.Header, []recording.Document, error) {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	if limit, most := debug.SetMemoryLimit(-1), int64(now.Sys-now.HeapReleased)+unpackMemory; limit > most {
		debug.SetMemoryLimit(most)
		defer debug.SetMemoryLimit(limit)
	}
	return recording.Import(ctx, file, store, o.maxBytes.Value())
}

// progressEvery is how often a line says how much of a file is unpacked.
const progressEvery = 5 * time.Second

// A progress reads a file, and reports how much of it is read.
type progress struct {
	io.Reader
	read, size int64 // size is 0 if it is not known
	last       time.Time
	report     func(string)
}

func (o *openOptions) progress(f *os.File) io.Reader {
	p := &progress{Reader: f, last: time.Now(), report: func(text string) {
		if terminal(o.err) { // elsewhere, what is printed does not depend on how fast the machine is
			fmt.Fprintln(o.err, text)
		}
	}}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		p.size = info.Size()
	}
	return p
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	if time.Since(p.last) >= progressEvery {
		p.last = time.Now()
		text := "unpacking: " + size(p.read)
		if p.size > 0 {
			text += fmt.Sprintf(" of %s, %d%%", size(p.size), 100*p.read/p.size)
		}
		p.report(text)
	}
	n, err := p.Reader.Read(b)
	p.read += int64(n)
	return n, err
}

// spansOf returns the span of each resource in the store of a recording.
func spansOf(store *history.Store) (spans []recording.Span) {
	for _, id := range store.Resources() {
		all := store.Streams(id)
		spans = append(spans, recording.Span{Resource: id, From: all[0].Span().From.At, To: all[len(all)-1].Span().To.At})
	}
	return spans
}

// diskError adds to an error what helps if the disk is full.
func diskError(err error) error {
	if errors.Is(err, history.ErrDiskFull) || errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: it is unpacked in %s; free space there, or set TMPDIR to another directory", err, os.TempDir())
	}
	return err
}

// printScope prints what a recording is limited to.
func printScope(w io.Writer, s *recording.Scope) {
	if s == nil {
		return
	}
	if only := (*api.RecordingScope)(s).String(); only != "" {
		fmt.Fprintf(w, "  only %s\n", only)
	}
	if len(s.Denied) > 0 {
		fmt.Fprintf(w, "  without %s, which the caller of the export may not list\n", strings.Join(s.Denied, ", "))
	}
}

func (o *openOptions) run(ctx context.Context, file string, dir *temporary) (err error) {
	if p := o.server.Port; p < 0 || p > 65535 {
		return fmt.Errorf("--port %d is not a port: use 0 to 65535", p)
	}
	if o.maxBytes.Value() < 0 {
		return fmt.Errorf("--max-bytes %s is not a size: use one such as %s, or 0 for no limit", o.maxBytes.String(), defaultUnpacked)
	}
	log, err := newLogger(o.err, o.logFormat, o.verbosity)
	if err != nil {
		return err
	}
	store, header, documents, err := o.load(ctx, file, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	fmt.Fprintf(o.err, "%s: %s to %s\n", file, o.stamp(header.From), o.stamp(header.To))
	printScope(o.err, header.Scope)
	printSpans(o.err, &o.zone, header, spansOf(store))
	o.server.RESTConfig = &rest.Config{Host: "http://recording", Transport: recording.NewUpstream(store, documents)}
	o.server.Gateway.Recording, o.server.Gateway.RecordingScope, o.server.Gateway.RecordingSlack = store, header.Scope, header.Slack()
	o.server.Logger = log
	o.server.OnListening = func(mainURL, _ string) {
		fmt.Fprintf(o.out, "Starting to serve on %s\nThe page is %s/ui/\n", mainURL, mainURL)
	}
	return server.Run(ctx, o.server)
}

// load unpacks the file into a store in a directory that it makes. The caller closes the
// store.
func (o *openOptions) load(ctx context.Context, file string, dir *temporary, log *slog.Logger) (store *history.Store, header *recording.Header, documents []recording.Document, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, nil, err
	}
	defer f.Close()
	// A read from a pipe may block.
	defer context.AfterFunc(ctx, func() { f.Close() })()
	// On disk, not in memory: a recording may cover days.
	if err := dir.make(func() (string, error) { return os.MkdirTemp("", "watchkeeper-open-*") }); err != nil {
		return nil, nil, nil, diskError(err)
	}
	store, err = history.Open(dir.path, history.Options{Cluster: "a recording", Logger: log, Temporary: true})
	if err != nil {
		return nil, nil, nil, diskError(err)
	}
	opened := store
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	header, documents, err = o.unpack(ctx, o.progress(f), store)
	switch {
	case ctx.Err() != nil:
		return nil, nil, nil, ctx.Err()
	case errors.Is(err, recording.ErrTooLarge):
		return nil, nil, nil, fmt.Errorf("%s: %w: it unpacks to more than %s; if you trust its author and %s has enough space, raise --max-bytes", file, err, o.maxBytes.String(), os.TempDir())
	case errors.Is(err, recording.ErrNotRecording):
		return nil, nil, nil, fmt.Errorf("%s is %w", file, err)
	case errors.Is(err, recording.ErrDamaged):
		return nil, nil, nil, fmt.Errorf("%s: %w: copy it again from where it was made, or export it again", file, err)
	case err != nil:
		return nil, nil, nil, fmt.Errorf("%s: %w", file, diskError(err))
	}
	return store, header, documents, nil
}

// A temporary is a file or directory that is removed with the command, even while
// a goroutine writes to it. The zero value has no file yet. Any goroutine may use
// it.
type temporary struct {
	mu   sync.Mutex // guards the fields below
	path string
	gone bool
}

// ignoreBrokenPipe makes a write to an output that nobody reads any more fail. Otherwise
// the signal would end the process at once, without removing what is temporary.
func ignoreBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }

// make creates it, unless it was removed before.
func (t *temporary) make(create func() (path string, err error)) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return context.Canceled
	}
	t.path, err = create()
	return err
}

// remove removes it, if it was created.
func (t *temporary) remove() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone = true; t.path == "" {
		return nil
	}
	// A running goroutine may create files while the directory is removed.
	err := os.RemoveAll(t.path)
	for tries := 0; err != nil && tries < 100; tries++ {
		err = os.RemoveAll(t.path)
	}
	return err
}
