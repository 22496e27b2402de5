// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/attempt"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Sink receives what a [Reflector] reads from the API server. O is how the reflector's
// [Encoding] represents an object. The package documentation lists what a reflector
// promises to its sink.
type Sink[O any] interface {
	// Head returns the RV to resume from; 0 before the first list.
	Head() uint64
	// Holds reports whether the sink has an object, as of the head.
	Holds(kube.Key) bool
	// Begin starts a list. The items of an earlier list that did not end are
	// discarded. With overwrite, items replace the sink's objects even if their
	// RVs are not higher: the upstream has another history, as after a restore of
	// etcd, or equal RVs may have other contents, as after a change of a
	// CustomResourceDefinition.
	Begin(overwrite bool)
	// Item delivers one object of the list. Their order is undefined. An error
	// says that the list cannot follow what the sink holds, as an object below
	// the version held: the reflector takes another list, with overwrite.
	Item(O) error
	// End completes the list: its items are the whole collection. The
	// argument has the list's metadata, and no Items. continued reports
	// whether the sink had a head before, to which the list adds the
	// difference.
	End(*scan.List) (continued bool)
	// Apply delivers an event. After an error the reflector opens a new watch
	// at Head.
	Apply(kube.EventType, O) error
	// Bookmark delivers a bookmark: every event up to rv has been applied.
	Bookmark(rv uint64, object O)
	// Flush is called when no further complete frame has been received.
	Flush()
}

// Options configure a [Reflector].
type Options struct {
	// Transport reaches the API server and authenticates. Required.
	Transport http.RoundTripper
	// URL is that of the collection. Its query is added to every request.
	// Required.
	URL *url.URL
	// Kind is the kind of the objects, as discovery reports it. The default is
	// the kind of the lists without the suffix "List".
	Kind string
	// Logger gets state changes and failures. The default discards them.
	Logger *slog.Logger
	// EndBookmarkTimeout is how long a streaming list (KEP-3157) may be silent
	// before its initial-events-end bookmark. After that, the reflector uses
	// LIST and WATCH. The default is 15 s.
	EndBookmarkTimeout time.Duration
	// RefusalGrace is how long Run retries when a collection that it has
	// listed is answered with 401, 403 or 405, as an API server does for a
	// while after its start, or any collection with 200 and something that is
	// no list, as a proxy in front of it may. 404 is final at once: what later
	// appears under the name may be another collection. The default is 30 s.
	RefusalGrace time.Duration
	// Ready returns since when the API server as a whole is known to be ready; zero if it
	// is not. With it, Run also returns a [*RefusedError] when an API server that was
	// ready has answered for RefusalGrace, and nothing else, that it cannot read the
	// collection: with 500, or with 429 and "storage is (re)initializing". Nil, the
	// default, retries.
	Ready func(context.Context) time.Time
	// Watchdog replaces a watch whose bookmarks fail to arrive. The default,
	// false, waits for the end of the watch's timeoutSeconds.
	Watchdog bool
	// Suspect is set while a watch has been silent, and none has been checked since. Reflectors of
	// the same collection, one after the other, share it. The default is one of its own.
	Suspect *atomic.Bool
	// Resume makes Run begin with a watch at the sink's head instead of a
	// list, provided that the sink has a head and Resume has a List. It may be
	// modified until Run is called. The default, nil, begins with a list.
	Resume *Resume
	// Continuity is called when it becomes doubtful whether the upstream continues the sink's
	// history, when that is settled, and when a watch is open or has ended in order: by the
	// goroutine of Run, and with Watched also by that of a check, which ends before its watch
	// does. It may be nil.
	Continuity func(Continuity)
	// Failed is called for each failed list or watch, with its verb. It may be nil, as
	// may Listed and Watched.
	Failed func(verb string, err error)
	// Listed is called after each full list, with its reason as in [Status].Relists, the
	// number of its objects and how long it took.
	Listed func(reason string, objects int, took time.Duration)
	// Watched is called for each watch that ended, unless the program ended it, with the
	// reason and how long the watch lasted: "ended", "cut", "silent", or one of those of
	// Listed.
	Watched func(end string, lasted time.Duration)
}

// A Reflector keeps a sink up to date with one collection. Make it with [New] and call
// Run once.
type Reflector[O any] struct {
	opts     Options
	encoding Encoding[O]
	sink     Sink[O]
	log      *slog.Logger

	mu       sync.Mutex // guards status
	status   Status
	watchdog atomic.Pointer[watchdog[O]] // of the open watch; nil if there is none
	current  atomic.Pointer[time.Time]   // see Current
	suspect  *atomic.Bool                // after ErrSilent, until a check finds nothing missing

	// The fields below belong to the goroutine of Run.

	state     state
	reason    string           // of the list, in stateList
	check     *continuityCheck // of the last watch in stateProve
	recent    recent
	transport http.RoundTripper

	collection *scan.List // metadata of the collection's lists
	columns    string     // of the last list
	items      int        // of the current list, so far
	listBegan  time.Time
	overwrite  bool     // of the current list, see Sink.Begin
	overlap    *overlap // of the current list; nil if no watch was opened before it

	noStreamingList bool          // the upstream does not serve them
	failedLists     int           // streaming lists that failed, in a row
	malformed       int           // streams that ended in a malformed frame, in a row
	expired         int           // rounds that ended with errExpired, in a row
	refusedSince    time.Time     // the first of the current row of refusals
	unreadableSince time.Time     // the first of the current row of such answers
	afterDelete     bool          // the last frame was a deletion
	endedEarly      bool          // the last stream ended in order, before its timeoutSeconds
	endedLongBefore bool          // by more than endGrace
	endedInList     bool          // it may have ended before the list that it follows
	afterList       bool          // it is the first one after a list
	ended           time.Time     // when the upstream had to end the last stream that ended in order
	bookmarkGap     time.Duration // measured interval of bookmarks; 0 until then
	unwatched       unwatched
	watched         bool // there is a watch, though it may be suspect
}

// A state decides what the next round of Run does. A round is a full list with
// the watch that follows it, or a watch alone.
//
//	start                                               resume
//	  │                                                   │
//	  ▼       list complete         same history          ▼
//	stateList ─────────────► stateWatch ◄──────────── stateProve
//	  ▲                         │                         ▲
//	  │                         │ stream failed,          │
//	  │                         │ or ended early          │
//	  │                         ├─────────────────────────┘
//	  │                         ▼ nothing is known of the history
//	  │                      stateVerify ◄──── resume
//	  │
//	  └── every other state, when a watch from the sink's head is impossible
//	      (see the reasons of relist)
//
// An open watch leads from stateVerify to stateWatch. Any other outcome of a round
// leaves the state unchanged. The exported [Phase] says what the current round is
// doing.
type state int

const (
	// stateList: take a full list, for the reason given, and watch from there.
	stateList state = iota
	// stateWatch: watch from the sink's head.
	stateWatch
	// stateVerify: as stateWatch, after a list has shown that the upstream's RV is
	// not below the head.
	stateVerify
	// stateProve: as stateVerify, and the upstream has to prove that its
	// history is the one that the sink knows (see continuityCheck).
	stateProve
)

// Reasons of full lists, as [Status].Relists reports them.
const (
	relistInitial   = "initial"   // the first list
	relistExpired   = "expired"   // the upstream has compacted the events after the head
	relistDiverged  = "diverged"  // the upstream has another history, as after a restore of etcd
	relistMalformed = "malformed" // every third stream in a row that ends in a malformed frame
	relistSchema    = "schema"    // objects or their Table rows may look different at equal RVs
	relistUnwatched = "unwatched" // the upstream answers lists, and no watch (see unwatched)
)

const (
	// minStream is how long a stream must last for its successor to be opened
	// without a pause, as in client-go.
	minStream = time.Second
	// healthyStream is how long a stream without events must last to reset
	// the backoff.
	healthyStream = 30 * time.Second
	// maxDialPause limits the pause after a connection was refused: the sooner
	// a restarted API server is watched, the less of its history is lost.
	maxDialPause = time.Second
	// maxMalformed is how many malformed frames in a row lead to a list.
	maxMalformed = 3

	defaultEndBookmarkTimeout = 15 * time.Second
	defaultRefusalGrace       = 30 * time.Second
)

// New returns a reflector. It sends no request before Run.
func New[O any](e Encoding[O], s Sink[O], opts Options) *Reflector[O] {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.EndBookmarkTimeout <= 0 {
		opts.EndBookmarkTimeout = defaultEndBookmarkTimeout
	}
	if opts.RefusalGrace <= 0 {
		opts.RefusalGrace = defaultRefusalGrace
	}
	if opts.Failed == nil {
		opts.Failed = func(string, error) {}
	}
	if opts.Listed == nil {
		opts.Listed = func(string, int, time.Duration) {}
	}
	if opts.Watched == nil {
		opts.Watched = func(string, time.Duration) {}
	}
	if opts.Suspect == nil {
		opts.Suspect = &atomic.Bool{}
	}
	return &Reflector[O]{
		suspect: opts.Suspect, opts: opts, encoding: e, sink: s, transport: opts.Transport, log: opts.Logger,
		state: stateList, reason: relistInitial,
		status: Status{Phase: Starting, Relists: map[string]int{}},
	}
}

// Run lists and watches until ctx ends, and then returns nil; or until the
// upstream refuses the collection, and then returns a [*RefusedError]: at once
// before the first list, after RefusalGrace later. All other failures are
// logged and retried with backoff, not before the upstream's Retry-After.
func (r *Reflector[O]) Run(ctx context.Context) error {
	defer r.setPhase(Stopped)
	defer func() { discard(r.transport) }()
	if from := r.opts.Resume; from != nil && from.List != nil && r.sink.Head() != 0 {
		r.resume(from)
	}
	failures, answered := 0, 0 // in a row; those of them since a connection was last refused
	r.unwatched.reset()
	for {
		began, head := time.Now(), r.sink.Head()
		r.unwatched.begin()
		var err error
		if r.state == stateList {
			err = r.list(ctx)
		} else {
			err = r.watch(ctx)
		}
		verb := "watch"
		if r.state == stateList {
			verb = "list"
		}
		if ctx.Err() != nil {
			return nil
		}
		lasted := time.Since(began)
		if errors.Is(err, errExpired) {
			r.expired++
		} else {
			r.expired = 0
			// A list moves the head, too, though the watch after it may never be readable.
			if r.sink.Head() != head && !isMalformed(err) || lasted > healthyStream {
				failures, answered = 0, 0
				r.unreadableSince = time.Time{}
			}
		}
		err = r.unreadable(ctx, err)
		if again := r.transition(err, lasted); again {
			continue
		}
		if err == nil {
			err = errShortWatch
		}
		if refused, ok := errors.AsType[*RefusedError](err); ok && r.isFinal(refused) {
			r.fail(verb, err)
			return err
		}
		r.fail(verb, err)
		r.unwatched.failed()
		failures++
		answered++
		pause := attempt.Backoff(answered, MinBackoff, MaxBackoff)
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			// An API server that starts answers 503 for a while. It has not had the
			// attempts before.
			answered = 0
			pause = attempt.Backoff(failures, MinBackoff, maxDialPause)
		}
		if after, ok := errors.AsType[retryAfterError](err); ok {
			pause = max(after.wait, pause)
		}
		level := slog.LevelInfo
		if failures > 2 {
			level = slog.LevelDebug // three lines are enough for an outage
		}
		r.log.Log(ctx, level, "watch interrupted", "rv", r.sink.Head(), "retry_in", pause.Round(time.Millisecond), "cause", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// transition sets the state of the next round after one that lasted for a time
// and ended with err, nil if the upstream ended the stream in order. again
// reports whether the next round begins at once, without backoff.
func (r *Reflector[O]) transition(err error, lasted time.Duration) (again bool) {
	was := r.state
	if err == nil {
		r.setContinuity(Ended)
	}
	doubtful := r.state == stateWatch || r.watched && !errors.Is(err, errDiverged)
	if doubtful && (err != nil || r.endedEarly || r.endedInList) {
		if r.doubt(); r.state == stateProve {
			r.setPhase(Retrying)
		}
	}
	switch {
	case err == nil:
		if lasted <= minStream && !(r.afterList && r.reason == relistSchema) {
			return false
		}
		if r.endedLongBefore && !r.collection.Typed && !(r.endedInList && r.reason == relistSchema) {
			// The API server ends the watches of a custom resource when its
			// definition changes. Objects may then look different at the same
			// RVs. If it ends the next one soon, it had printed the list with the
			// old definition. It also ends a watch that is not read while a long
			// list is taken: a second list would not help.
			r.log.Info("the watch of a custom resource ended early, relisting: its definition may have changed")
			r.relist(relistSchema)
		}
		return lasted > minStream
	case codeOf(err) == http.StatusNotAcceptable && r.encoding.dropProtobuf():
		r.log.Info("no protobuf from upstream, continuing in JSON", "cause", err)
		r.noStreamingList = false // which may be all that failed
		return true
	case errors.Is(err, errNoStreamingList):
		r.log.Info("no streaming list, using LIST and WATCH", "cause", err)
		return true
	case errors.Is(err, errExpired):
		r.log.Info("history expired upstream, relisting", "cause", err)
		if was == stateProve && r.recent.shorten() {
			r.expired = 0
			return true
		}
		if was != stateList {
			r.relist(relistExpired) // otherwise the reason for the list stays
		}
		return r.expired == 1
	case errors.Is(err, errColumnsChanged):
		r.log.Info("table columns changed upstream, relisting")
		r.relist(relistSchema)
	case errors.Is(err, scan.ErrBareTable) && r.encoding.dropTables():
		r.log.Info("no usable tables from upstream, continuing without columns", "cause", err)
		return true
	case errors.Is(err, ErrSilent):
		return true
	case errors.Is(err, errDiverged):
		r.log.Warn("upstream has another history, relisting", "cause", err)
		r.relist(relistDiverged)
		r.setContinuity(Diverged)
		// No failure is reported if the sink's state is known to be wrong: the sink
		// would serve it, as in an outage.
		return was == stateProve || was == stateList
	case isMalformed(err):
		r.log.Warn("malformed frame from upstream, reopening the watch", "rv", r.sink.Head(), "err", err)
		if r.malformed++; r.malformed%maxMalformed == 0 && r.state != stateList {
			r.relist(relistMalformed)
		}
	}
	return false
}

// codeOf returns the code with which the upstream answered; 0 if err is no such answer.
func codeOf(err error) int {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code
	}
	return 0
}

// relist makes the next round take a full list.
func (r *Reflector[O]) relist(reason string) {
	r.state, r.reason = stateList, reason
}

// isFinal reports whether a refusal ends Run.
func (r *Reflector[O]) isFinal(refused *RefusedError) bool {
	if r.refusedSince.IsZero() {
		r.refusedSince = time.Now()
	}
	first := r.sink.Head() == 0 && !refused.notList
	return refused.Code == http.StatusNotFound || first || refused.unreadable || time.Since(r.refusedSince) > r.opts.RefusalGrace
}

// unreadable returns a refusal if err is the last of such answers for RefusalGrace that an
// API server that is ready cannot read the collection; else err.
func (r *Reflector[O]) unreadable(ctx context.Context, err error) error {
	status, ok := errors.AsType[*StatusError](err)
	if !ok || !status.unreadable() {
		r.unreadableSince = time.Time{}
		return err
	}
	if r.unreadableSince.IsZero() {
		r.unreadableSince = time.Now()
	}
	if r.opts.Ready == nil || time.Since(r.unreadableSince) <= r.opts.RefusalGrace {
		return err
	}
	// After a start, an API server is ready before it has read all collections.
	ready := r.opts.Ready(ctx)
	if ready.IsZero() || time.Since(ready) <= r.opts.RefusalGrace {
		return err
	}
	return &RefusedError{Code: status.Code, Message: status.Message, unreadable: true}
}

const (
	// MinBackoff is the first pause after a failure.
	MinBackoff = 200 * time.Millisecond
	// MaxBackoff is the longest one. It is lower than client-go's 30 s: a gateway has one
	// connection per resource, and all its clients depend on it.
	MaxBackoff = 8 * time.Second
)
