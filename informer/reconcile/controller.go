// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/internal/attempt"
)

// A Func reads the object with the key, and what belongs to it, and writes what is not as
// the object asks for. The object may not exist any more. The context ends when that of
// [Controller.Run] does; the function should return soon then. It must not wait for the end
// of an informer, a controller or a group, which wait for it.
type Func func(ctx context.Context, key informer.Key) (Result, error)

// A Result is what a [Func] returns if nothing has failed.
type Result struct {
	// After, if positive, is when the function is called again if there is no event of
	// the key before. Each call replaces the After of the one before: a call with 0
	// cancels it. It is ignored if the function returns an error that is retried.
	After time.Duration
}

// A TerminalError is an error that is not retried: the next call is for the next event
// of the key, or after [Result].After. So is one that wraps it, as those of errors.Join do.
type TerminalError struct{ Err error }

// Error implements error.
func (e *TerminalError) Error() string { return fmt.Sprintf("terminal: %v", e.Err) }

// Unwrap returns Err.
func (e *TerminalError) Unwrap() error { return e.Err }

// Options configure a controller. The zero value is usable.
type Options struct {
	// Workers is how many calls of the function run at a time. The default is 4.
	Workers int
	// MinBackoff and MaxBackoff are the pauses before the first retry of a key and the
	// longest one. Pauses double in between, and half of each is random. The defaults
	// are 100 ms and 30 s. An event of the key ends the pause, but not before
	// MinBackoff has passed, and the pauses begin again at MinBackoff.
	MinBackoff, MaxBackoff time.Duration
	// MaxRate limits the calls of the function per second, of all keys together. As many
	// may come at once after a quiet second. With less than 1, there is a pause of
	// 1/MaxRate seconds between them. The default, 0, is no limit, as are negative
	// numbers and NaN: Workers limit the calls at a time, and clients have limits of
	// their own.
	MaxRate float64
	// Panics lets a panic of the function end the program. By default it is a failure
	// like others, an [*informer.PanicError].
	Panics bool
	// Logger gets failures, and what the controller waits for. The default discards
	// them.
	Logger *slog.Logger
	// Metrics are called for the controller's work.
	Metrics Metrics
}

// waitLogInterval is between lines that say what the controller waits for.
const waitLogInterval = 30 * time.Second

// A Controller calls a function for the keys of its sources. Make it with [New].
type Controller struct {
	name    string
	f       Func
	opts    Options
	sources []Source

	mu    sync.Mutex // guards queue
	queue *queue     // of the current run; nil if there is none
}

// New returns a controller. It starts nothing before Run. The name is for logs. New panics
// without a function or a source.
func New(name string, f Func, opts Options, sources ...Source) *Controller {
	if f == nil {
		panic("reconcile: the function of New is nil")
	}
	if len(sources) == 0 {
		panic("reconcile: New needs a source")
	}
	for _, s := range sources {
		if s.subscribe == nil {
			panic("reconcile: a Source is made by For, Owns, Watches or Reads")
		}
	}
	opts.Workers, opts.MinBackoff, opts.MaxBackoff = attempt.Limits(opts.Workers, opts.MinBackoff, opts.MaxBackoff)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Logger = opts.Logger.With("controller", name)
	opts.Metrics = opts.Metrics.complete()
	return &Controller{name: name, f: f, opts: opts, sources: sources}
}

// Run calls the function until ctx ends, waits for the calls to return, those of the
// functions of its sources too, and returns nil. It does not run the informers: [Group]
// does, or the program. If the controller is already running, Run fails.
//
// Run may be called again, and begins anew then, like a restarted program: with a call
// for each object that exists.
func (c *Controller) Run(ctx context.Context) error {
	q, err := c.begin()
	if err != nil {
		return err
	}
	defer c.end()
	defer q.close()
	defer context.AfterFunc(ctx, q.close)()
	var synced []chan struct{}
	for _, s := range c.sources {
		isSynced := make(chan struct{})
		synced = append(synced, isSynced)
		stop := s.subscribe(q.add, sync.OnceFunc(func() { close(isSynced) }))
		defer func() { <-stop() }()
	}
	if !c.waitSynced(ctx, synced) {
		return nil
	}
	r := &run{c: c, ctx: ctx, queue: q}
	for range c.opts.Workers {
		r.workers.Go(r.work)
	}
	r.workers.Wait()
	return nil
}

// Enqueue leads to a call for each key, as a live event does: for what no informer sees,
// such as a webhook or another system. If the controller is not running, Enqueue does
// nothing. Any goroutine may call it at any time.
func (c *Controller) Enqueue(keys ...informer.Key) {
	c.mu.Lock()
	q := c.queue
	c.mu.Unlock()
	if q != nil {
		q.add(live, keys)
	}
}

func (c *Controller) begin() (*queue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f == nil {
		panic("reconcile: a Controller is made by New")
	}
	if c.queue != nil {
		return nil, fmt.Errorf("reconcile: controller %q is already running", c.name)
	}
	c.queue = newQueue(&c.opts)
	return c.queue, nil
}

func (c *Controller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = nil
}

// waitSynced waits until every source has passed on the objects that exist. It returns
// false if ctx ends before.
func (c *Controller) waitSynced(ctx context.Context, synced []chan struct{}) bool {
	tick := time.NewTicker(waitLogInterval)
	defer tick.Stop()
	for n, isSynced := range synced {
		for waits := true; waits; {
			select {
			case <-isSynced:
				waits = false
			case <-tick.C:
				i := c.sources[n].informer
				c.opts.Logger.Warn("waiting for "+what(i), "err", notPassedOn(i))
			case <-ctx.Done():
				return false
			}
		}
	}
	c.opts.Logger.Info("all sources are synced, reconciling begins", "keys", c.Status().Initial+c.Status().Live)
	return true
}

var errNotHandled = errors.New("the list is complete, its events are not handled yet")

// notPassedOn returns why an informer has not passed on the objects that exist.
func notPassedOn(i Informer) error {
	if err := notSynced(i); err != nil {
		return err
	}
	if i.Status().Phase == informer.Stopped {
		return informer.ErrStopped
	}
	return errNotHandled
}

// A run is one call of Run, since the sources are synced.
type run struct {
	c       *Controller
	ctx     context.Context
	queue   *queue
	workers sync.WaitGroup
}

func (r *run) work() {
	ended := false
	defer func() {
		if !ended { // by a call of runtime.Goexit in the function
			r.workers.Go(r.work)
		}
	}()
	for {
		it, ok := r.queue.take()
		if !ok {
			ended = true
			return
		}
		r.call(it)
	}
}

// call calls the function for a running key.
func (r *run) call(it *item) {
	began := time.Now()
	result, err := Result{}, attempt.ErrGoexit // unless the function returns
	// Deferred, and so called even if the function ends this goroutine.
	defer func() { r.handled(it, began, result, err) }()
	f := func() (err error) {
		result, err = r.c.f(r.ctx, it.key)
		return err
	}
	if r.c.opts.Panics {
		err = f()
	} else {
		err = attempt.Recover(f, func(value any, stack []byte) error { return &informer.PanicError{Value: value, Stack: stack} })
	}
}

// handled takes the result of a call.
func (r *run) handled(it *item, began time.Time, result Result, err error) {
	o := &r.c.opts
	o.Metrics.Reconciled(began.Sub(it.since), time.Since(began), err)
	_, isTerminal := errors.AsType[*TerminalError](err)
	switch {
	case isTerminal:
		r.failed(slog.LevelError, "reconciling failed, and is not retried", it.key, err)
		r.queue.done(it, result.After)
	case err == nil, r.ctx.Err() != nil: // interrupted calls are no failures
		r.queue.done(it, result.After)
	default:
		attempt, pause := r.queue.retry(it)
		o.Metrics.Retried(attempt, pause)
		r.failed(slog.LevelWarn, "reconciling failed", it.key, err, "attempt", attempt, "retry_in", pause.Round(time.Millisecond))
	}
}

func (r *run) failed(level slog.Level, what string, key informer.Key, err error, more ...any) {
	more = append([]any{"key", key}, more...)
	if p, ok := errors.AsType[*informer.PanicError](err); ok {
		more = append(more, "stack", string(p.Stack))
	}
	r.c.opts.Logger.Log(r.ctx, level, what, append(more, "err", err)...)
}

// what names what an informer watches: "widgets.example.com".
func what(i Informer) string {
	res := i.Resource()
	return strings.TrimSuffix(res.Name+"."+res.Group, ".")
}
