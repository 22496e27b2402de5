// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Sink takes what a [Reflector] sees. See the package doc for the promises.
type Sink = sink[*scan.Object]

// A sink is a Sink for objects of any kind: O is what the reflector's form
// makes of them.
type sink[O any] interface {
	// Head returns the RV to resume from, 0 if there has been no list.
	Head() uint64
	// Begin begins a list. A list that was begun before and did not end is
	// void. anew tells that RVs prove nothing: the upstream's history is not
	// the one known here, as after a restore, or the same versions may look
	// otherwise, as after a change of a custom resource's definition.
	Begin(anew bool)
	// Item takes an object of the list, in no particular order.
	Item(O)
	// End ends the list: its items are the whole collection. The list itself
	// has no Items.
	End(*scan.List) (continued bool)
	// Apply takes an event. On an error the watch is opened again at Head.
	Apply(kube.EventType, O) error
	// Bookmark takes a bookmark: all events up to rv have been applied.
	Bookmark(rv uint64, object O)
	// Flush is called when no further frame is waiting to be read.
	Flush()
}

// ReflectorOptions configure a reflector.
type ReflectorOptions struct {
	// Transport reaches the API server; it authenticates. Required.
	Transport http.RoundTripper
	// URL is that of the collection; its query goes with every request.
	// Required.
	URL *url.URL
	// Kind is that of the objects, as discovery tells it. The default is the
	// kind of the lists without "List".
	Kind string
	// Columns asks the upstream to tell with each object how it prints it
	// (as=Table with the object inside). One that does not know Tables sends
	// the objects alone.
	Columns bool
	// Sink is required.
	Sink Sink
	// Logger gets a line per notable thing. The default discards.
	Logger *slog.Logger
	// EndBookmarkTimeout is how long a streaming list may stay silent before
	// its end bookmark. After that, LIST and WATCH are used. The default is
	// 15 s.
	EndBookmarkTimeout time.Duration
	// RefusalGrace is for how long a collection that was watched may answer
	// 401, 403 or 405 before Run gives up: an API server that has just
	// started answers so for a while. The default is 30 s. 404 is final: the
	// collection is gone, and what comes back under its name may be another.
	RefusalGrace time.Duration
	// Watchdog replaces a watch that is silent though it should have had
	// bookmarks. The default leaves it to its deadline.
	Watchdog bool
	// Resume has Run begin with a watch from the sink's head, and not with a
	// list, if there is a head and Resume has a list. It may be filled in until
	// Run is called. The default is to list.
	Resume *Resume

	failed  func(error) // is told of failures; nil if nobody is
	metrics Metrics     // the default is that nobody is told
}

// A Reflector keeps a sink up to date with one collection. Make it with
// [NewReflector]; Run it once.
type Reflector = reflector[*scan.Object]

type reflector[O any] struct {
	opts ReflectorOptions // but the sink
	form form[O]
	sink sink[O]
	log  *slog.Logger
	// identify tells an object's key and UID; nil where nothing is resumed.
	identify func(O) (kube.Key, string)

	mu     sync.Mutex // guards status
	status Status

	// Run's own.
	kind         *scan.List // kind and form of the collection's lists
	columns      string     // of the last list
	items        int        // of the list that is being taken
	listing      time.Time  // when it was begun
	anew         bool       // RVs prove nothing in the list that is being taken
	noWatchList  bool       // streaming lists are not to be had
	badStreams   int        // streaming lists in a row that failed
	malformed    int        // streams in a row that a malformed frame ended
	afterDelete  bool       // the last frame was a deletion
	suspect      bool       // the last stream did not end well
	doubt        *doubt     // whether the history is the one known; nil if there is none
	endedEarly   bool       // the last stream ended well before its time
	refusedSince time.Time  // of refusals in a row
	transport    http.RoundTripper
	bookmarkGap  time.Duration // as seen so far; 0 if it has not been
}

const (
	// hastyEnd: a stream that ends cleanly within this time is not hurried
	// back to, as in client-go.
	hastyEnd = time.Second
	// redial is how long nobody is there at the most before it is tried again:
	// the sooner an API server that has restarted is watched, the less of its
	// history is lost.
	redial = time.Second
	// goodStream: a stream that stood for this long ends a row of failures.
	goodStream = 30 * time.Second
)

// NewReflector returns a reflector.
func NewReflector(opts ReflectorOptions) *Reflector {
	r := newReflector(opts, &objectForm{kind: opts.Kind, tables: opts.Columns}, opts.Sink)
	r.identify = func(o *scan.Object) (kube.Key, string) { return o.Key, o.UID }
	return r
}

func newReflector[O any](opts ReflectorOptions, f form[O], s sink[O]) *reflector[O] {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.EndBookmarkTimeout <= 0 {
		opts.EndBookmarkTimeout = 15 * time.Second
	}
	if opts.RefusalGrace <= 0 {
		opts.RefusalGrace = 30 * time.Second
	}
	if opts.metrics == nil {
		opts.metrics = noMetrics{}
	}
	return &reflector[O]{opts: opts, form: f, sink: s, transport: opts.Transport, log: opts.Logger, status: Status{Phase: Starting, Relists: map[string]int{}}}
}

// Run lists and watches until ctx ends, and then returns nil; or until the
// upstream refuses: a [*RefusedError], at once where there has been no list
// yet, after the grace where there has. Whatever else goes wrong is logged and
// tried again, with backoff and as the upstream's Retry-After says.
func (r *reflector[O]) Run(ctx context.Context) error {
	defer r.setPhase(Stopped)
	defer func() { r.discard(r.transport) }()
	var wait backoff
	expired := 0        // rounds in a row that ended with lost history
	reason := "initial" // why the next round lists; "" watches from the head
	if from := r.opts.Resume; from != nil && from.List != nil && r.sink.Head() != 0 {
		reason = ""
		r.resume(from)
	}
	for {
		began, head := time.Now(), r.sink.Head()
		var err error
		if reason != "" {
			err = r.list(ctx, reason)
		} else {
			err = r.watch(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if reason != "" && r.Status().Phase == Watching {
			reason = "" // the list was taken before the stream ended
		}
		if errors.Is(err, errExpired) {
			expired++
		} else {
			expired = 0
			// A stream that brought news, or that stood for a while
			// though there was none, was a good one.
			if r.sink.Head() != head || time.Since(began) > goodStream {
				wait.reset()
			}
		}
		r.suspect = err != nil
		switch {
		case err == nil && time.Since(began) > hastyEnd:
			if reason == "" && r.endedEarly && !r.kind.Typed {
				// The API server ends the watches of a custom resource
				// when its definition changes, and then the same versions
				// of its objects may look otherwise.
				reason = "schema"
			}
			continue // an ordinary end: resume at once
		case err == nil:
			err = errHasty
		case errors.Is(err, errNoWatchList):
			r.log.Info("no streaming list, listing and watching instead", "cause", err)
			continue
		case errors.Is(err, errExpired):
			r.log.Info("history lost upstream, listing again", "cause", err)
			if reason = "expired"; expired == 1 {
				continue
			}
		case errors.Is(err, errReprinted):
			r.log.Info("the upstream prints the resource in other columns, listing again")
			reason = "schema"
		case errors.Is(err, scan.ErrBareTable) && r.form.plainer():
			r.log.Info("the upstream does not tell how it prints objects, going on without", "cause", err)
			continue
		case errors.Is(err, errDiverged):
			r.log.Warn("the upstream's history is not the one known here, listing again", "cause", err)
			reason = "diverged"
			if r.doubt != nil {
				r.doubt = nil
				if told := r.opts.Resume.Diverged; told != nil {
					told()
				}
				continue // what was known is not to pass for what there is, as in an outage
			}
		case isMalformed(err):
			r.log.Warn("malformed frame from upstream, opening the watch again", "rv", r.sink.Head(), "err", err)
			if r.malformed++; r.malformed%3 == 0 && reason == "" {
				reason = "malformed"
			}
		default:
			if refused, ok := errors.AsType[*RefusedError](err); ok && r.givesUp(refused) {
				r.fail(err)
				return err
			}
		}
		r.fail(err)
		pause := wait.next()
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			pause = min(pause, redial)
		}
		if after, ok := errors.AsType[retryAfter](err); ok {
			pause = max(after.wait, pause)
		}
		level := slog.LevelInfo
		if wait.n > 2 {
			level = slog.LevelDebug // said often enough for one outage
		}
		r.log.Log(ctx, level, "watch interrupted", "rv", r.sink.Head(), "retry_in", pause.Round(time.Millisecond), "cause", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// givesUp reports, after a refusal, whether it is to be believed.
func (r *reflector[O]) givesUp(refused *RefusedError) bool {
	if r.refusedSince.IsZero() {
		r.refusedSince = time.Now()
	}
	return refused.Code == http.StatusNotFound || r.sink.Head() == 0 ||
		time.Since(r.refusedSince) > r.opts.RefusalGrace
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
