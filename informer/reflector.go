// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// A Sink takes what a reflector sees. See the package doc for the promises.
type Sink interface {
	// Head returns the RV to resume from.
	Head() uint64
	// Replace takes the whole collection.
	Replace(*kube.List) (continued bool)
	// Apply takes an event. On an error the watch is opened again at Head.
	Apply(kube.Frame) error
	// Bookmark takes a bookmark: all events up to its RV have been applied.
	Bookmark(kube.Frame)
	// Flush is called when no further frame is waiting to be read.
	Flush()
}

// Options configure a reflector.
type Options struct {
	// Transport reaches the API server; it authenticates. Required.
	Transport http.RoundTripper
	// URL is that of the collection, over all namespaces. Required.
	URL *url.URL
	// Sink is required.
	Sink Sink
	// Logger gets a line per notable thing. The default discards.
	Logger *slog.Logger
	// EndBookmarkTimeout is how long a streaming list may stay silent before
	// its end bookmark. After that, LIST and WATCH are used. The default is
	// 15 s.
	EndBookmarkTimeout time.Duration
	// RefusalGrace is for how long a collection that was watched may answer
	// 401, 403, 404 or 405 before Run gives up: an API server that has just
	// started answers so for a while. The default is 30 s.
	RefusalGrace time.Duration
}

// A RefusedError is the answer of an API server that will not have the
// collection listed or watched.
type RefusedError struct {
	Code    int // HTTP status: 401, 403, 404 or 405
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused with %d: %s", e.Code, e.Message)
}

var (
	// errExpired: the upstream no longer has the history behind our RV.
	errExpired = errors.New("history is expired")
	// errEmpty: a stream brought nothing, so it is not worth hurrying back.
	errEmpty = errors.New("the stream ended with nothing in it")
	// errNoWatchList: the upstream does not do streaming lists.
	errNoWatchList = errors.New("no streaming list")
)

// A retryAfter is an error of an upstream that said when to come back.
type retryAfter struct {
	error
	wait time.Duration
}

func (e retryAfter) Unwrap() error { return e.error }

// A Reflector keeps a sink up to date with one collection. Make it with
// [NewReflector]; Run it once.
type Reflector struct {
	opts Options
	log  *slog.Logger

	mu     sync.Mutex // guards status
	status Status

	// Run's own.
	kind        *kube.List // kind and form of the collection's lists
	noWatchList bool
	cuts        int       // streaming lists in a row that were cut
	malformed   int       // streams in a row that ended with a malformed frame
	afterDelete bool      // the last frame was a deletion
	delivered   bool      // the stream has brought something
	listed      time.Time // when the last list was asked for
}

// NewReflector returns a reflector.
func NewReflector(opts Options) *Reflector {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.EndBookmarkTimeout <= 0 {
		opts.EndBookmarkTimeout = 15 * time.Second
	}
	if opts.RefusalGrace <= 0 {
		opts.RefusalGrace = 30 * time.Second
	}
	return &Reflector{opts: opts, log: opts.Logger, status: Status{Phase: Starting, Relists: map[string]int{}}}
}

// Run lists and watches until ctx ends, and then returns nil; or until the
// upstream refuses: a [*RefusedError], at once where there has been no list
// yet, after the grace where there has. Whatever else goes wrong is logged and
// tried again, with backoff and as the upstream's Retry-After says.
func (r *Reflector) Run(ctx context.Context) error {
	defer r.setPhase(Stopped)
	var wait backoff
	var refusedSince time.Time
	reason := "initial" // why the next round lists; "" watches from the head
	for {
		r.delivered = false
		var err error
		if reason != "" {
			err = r.list(ctx, reason)
		} else {
			err = r.watch(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		synced := r.opts.Sink.Head() > 0
		if r.delivered {
			wait.reset()
			refusedSince = time.Time{}
		}
		if reason != "" && r.Status().Phase == Watching {
			reason = "" // the list was taken before the stream ended
		}
		var refused *RefusedError
		switch {
		case err == nil:
			if r.delivered {
				continue // a clean end: resume at once
			}
			err = errEmpty
		case errors.Is(err, errNoWatchList):
			r.log.Info("no streaming list here, listing and watching instead", "cause", err)
			r.noWatchList = true
			continue
		case errors.Is(err, errExpired):
			r.log.Info("history lost upstream, listing again", "cause", err)
			reason = "expired"
			if time.Since(r.listed) > time.Second {
				continue // but a list that answers so must not spin
			}
		case errors.Is(err, kube.ErrSyntax), errors.Is(err, kube.ErrNotObject):
			if r.malformed++; r.malformed%3 == 0 && synced {
				reason = "malformed"
			}
			r.log.Warn("malformed frame from upstream, opening the watch again", "rv", r.opts.Sink.Head(), "err", err)
		case errors.As(err, &refused):
			if refusedSince.IsZero() {
				refusedSince = time.Now()
			}
			if !synced || time.Since(refusedSince) > r.opts.RefusalGrace {
				r.fail(err)
				return err
			}
		}
		r.fail(err)
		pause := wait.next()
		var after retryAfter
		if errors.As(err, &after) {
			pause = max(after.wait, pause)
		}
		level := slog.LevelInfo
		if wait.n > 1 {
			level = slog.LevelDebug // said once per outage
		}
		r.log.Log(ctx, level, "watch interrupted", "rv", r.opts.Sink.Head(), "retry_in", pause.Round(time.Millisecond), "cause", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// A backoff grows from 0.2 s to 8 s by doubling; half of each wait is random,
// so that reflectors that failed together do not return together. A gateway
// has one connection per resource at stake, so the cap is lower than
// client-go's 30 s.
type backoff struct{ n int }

func (b *backoff) next() time.Duration {
	d := min(200*time.Millisecond<<min(b.n, 10), 8*time.Second)
	b.n++
	return d/2 + rand.N(d/2+1)
}

func (b *backoff) reset() { b.n = 0 }
