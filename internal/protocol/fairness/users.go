// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// Limits are the bounds of each user. Zero means the default.
type Limits struct {
	Lists     int   // in flight
	Streams   int   // watches, and other requests that last
	Selectors int   // distinct, of open watches
	Bytes     int64 // of answers that clients have not read yet
	AllBytes  int64 // of those of all users together, of which one has half at most; 0 for no limit
	Past      int   // of each kind of reads of the past at a time
}

// The default limits. A controller opens about 50 watches, and the hub of a continuous
// delivery system thousands.
const (
	DefaultLists     = 16
	DefaultStreams   = 5000
	DefaultSelectors = 1000
	DefaultBytes     = 512 << 20
	DefaultPast      = 2
)

const (
	// waitingPerList is how many lists of a user may wait for each one that may be in
	// flight. They wait for maxWait.
	waitingPerList = 8
	maxWait        = 10 * time.Second
	// turnsPerProcessor lets the processors work while a turn passes on. A user has one less than
	// there are processors.
	turnsPerProcessor = 2
	// listsPerPassed is of how many lists of a user one may be at the API server, which takes up
	// to ten of its seats for each (priority and fairness); readsPerList is how many other
	// reads there, which take one.
	listsPerPassed, readsPerList = 4, 4
	// After a list that the cache could have answered, too, the next one in its place at the
	// API server begins this much later. A small one waits for that, a large one is the cache's.
	largeRest, smallRest, smallWait = 2 * time.Second, 100 * time.Millisecond, 300 * time.Millisecond
	// The seconds after which a client may ask again. client-go does so ten times.
	listRetry, streamRetry, pastRetry = 1, 5, 5
)

func orDefault[T int | int64](n *T, value T) {
	if *n == 0 {
		*n = value
	}
}

// Users has what each user takes, and bounds it. A nil *Users bounds nothing. It is safe
// for concurrent use.
type Users struct {
	limits Limits
	lists  *Queue
	passed *Queue // lists at the API server, but for small ones that the cache can answer
	small  *Queue // those
	reads  *Queue // other reads there
	turns  *Queue
	calls  *Queue // of the history API
	pauses *Queue // of refusals
	*metrics
	log  *slog.Logger
	work work

	mu   sync.Mutex // guards the field below
	open map[string]*usage

	refusals sync.Mutex     // guards the field below
	refused  map[string]int // since the last line of the log, by user; see count
}

// A usage is what a user has open.
type usage struct {
	streams   int
	bytes     int64
	selectors map[selector]int // the watches with each; nil for none
}

// A selector identifies a selector of any length.
type selector [sha256.Size]byte

// NewUsers returns the users of a gateway, who have nothing open. The log names those who are
// refused something, at most once a minute each.
func NewUsers(l Limits, log *slog.Logger) *Users {
	orDefault(&l.Lists, DefaultLists)
	orDefault(&l.Streams, DefaultStreams)
	orDefault(&l.Selectors, DefaultSelectors)
	orDefault(&l.Bytes, DefaultBytes)
	orDefault(&l.Past, DefaultPast)
	return &Users{
		limits:  l,
		lists:   NewQueue(QueueOptions{PerKey: l.Lists, MaxWaiting: waitingPerList * l.Lists, Wait: maxWait}),
		passed:  NewQueue(QueueOptions{PerKey: max(1, l.Lists/listsPerPassed), MaxWaiting: waitingPerList * l.Lists, Wait: maxWait}),
		small:   NewQueue(QueueOptions{PerKey: l.Lists, MaxWaiting: waitingPerList * l.Lists, Wait: smallWait}),
		reads:   NewQueue(QueueOptions{PerKey: readsPerList * l.Lists, MaxWaiting: waitingPerList * l.Lists, Wait: maxWait}),
		turns:   NewQueue(QueueOptions{Slots: turnsPerProcessor * runtime.GOMAXPROCS(0), PerKey: max(1, runtime.GOMAXPROCS(0)-1), Wait: -1}),
		calls:   NewQueue(QueueOptions{PerKey: l.Past, MaxWaiting: waitingPerList * l.Past, Wait: maxWait}),
		pauses:  NewQueue(QueueOptions{PerKey: 1, MaxWaiting: maxRefused, Wait: maxPause}),
		metrics: newMetrics(),
		log:     log,
		work:    work{used: map[string]usedTime{}},
		open:    map[string]*usage{},
		refused: map[string]int{},
	}
}

// List begins a list, which the caller ends when the client has read it. It waits while
// the user has as many as it may have.
func (u *Users) List(ctx context.Context) (end func(), err error) {
	if u == nil {
		return func() {}, nil
	}
	return u.acquire(ctx, u.lists, "lists in flight", boundLists)
}

// Call begins a call of the history API, which the caller ends: with answered when the answer is
// encoded, which counts as use of a processor until then, and with end when the client has it.
func (u *Users) Call(ctx context.Context) (answered, end func(), err error) {
	user, ok := UserOf(ctx)
	if u == nil || !ok {
		return func() {}, func() {}, nil
	}
	slot, err := u.slotOf(ctx, user, u.calls, "requests to the history in flight", boundPast)
	if err != nil {
		return nil, nil, err
	}
	start := time.Now()
	took := sync.OnceValue(func() time.Duration { return time.Since(start) })
	return func() { took() }, func() { u.rest(slot, user, took()) }, nil
}

// Pass begins a list, or another read that ends by itself, at the API server. The caller ends
// it when the client has read it: until then it takes seats of the API server's priority and
// fairness. It waits while the user has as many as it may have.
func (u *Users) Pass(ctx context.Context, list bool) (end func(), err error) {
	switch {
	case u == nil:
		return func() {}, nil
	case list:
		return u.acquire(ctx, u.passed, "lists in flight at the API server", boundLists)
	}
	return u.acquire(ctx, u.reads, "reads in flight at the API server", boundLists)
}

// TryPass is Pass for a list that the cache can answer, though later than the API server. end is
// nil if it should: the user has, or had just now, as many at the API server as it may have. A
// small list waits for a moment.
func (u *Users) TryPass(ctx context.Context, large bool) (end func()) {
	user, ok := UserOf(ctx)
	if u == nil || !ok {
		return func() {}
	}
	u.work.begin(user.Name)
	var slot *Slot
	rest := smallRest
	if large {
		slot, rest = u.passed.TryAcquire(user.Name), largeRest
	} else {
		slot, _ = u.small.Acquire(ctx, user.Name)
	}
	if slot == nil {
		return nil
	}
	return func() { time.AfterFunc(rest, slot.Release) }
}

func (u *Users) acquire(ctx context.Context, q *Queue, what string, b bound) (end func(), err error) {
	user, ok := UserOf(ctx)
	if !ok {
		return func() {}, nil
	}
	slot, err := u.slotOf(ctx, user, q, what, b)
	if err != nil {
		return nil, err
	}
	return slot.Release, nil
}

func (u *Users) slotOf(ctx context.Context, user User, q *Queue, what string, b bound) (*Slot, error) {
	u.work.begin(user.Name)
	slot, err := q.Acquire(ctx, user.Name)
	switch {
	case err == nil:
		return slot, nil
	case errors.Is(err, ErrShare) && b == boundPast:
		return nil, u.refusePast(user, q.PerKey, what)
	case errors.Is(err, ErrShare):
		return nil, u.refuse(user, b, listRetry, fmt.Sprintf(
			"user %q has %d %s, as many as a user may have (--max-lists-per-user), and others that wait: try again", user.Name, q.PerKey, what))
	}
	return nil, err // the client is gone
}

// PerUserPast makes a queue give each user only some of its slots, and the next free one to
// the users in turn: they wait for it. One slot is always left for others, whatever the limit,
// since a slot may be held for minutes. what are the things that the slots are for. The result
// returns the refusal for a user with [ErrShare].
func (u *Users) PerUserPast(q *Queue, what string) func(context.Context) error {
	q.PerKey = min(u.limits.Past, max(1, q.Slots-1))
	q.MaxWaiting, q.Wait = waitingPerList*q.PerKey, max(q.Wait, maxWait)
	return func(ctx context.Context) error {
		user, _ := UserOf(ctx)
		return u.refusePast(user, q.PerKey, what)
	}
}

func (u *Users) refusePast(user User, n int, what string) error {
	return u.refuse(user, boundPast, pastRetry, fmt.Sprintf(
		"user %q has %d %s, as many as a user may have (--max-past-reads-per-user), and others that wait: try again", user.Name, n, what))
}

// Stream opens a stream, which the caller closes. of is the selector of a watch with the
// resource that it is for, "" for none.
func (u *Users) Stream(ctx context.Context, of string) (closeIt func(), err error) {
	user, ok := UserOf(ctx)
	if u == nil || !ok {
		return func() {}, nil
	}
	var s selector
	if of != "" {
		s = sha256.Sum256([]byte(of))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	mine := u.usageLocked(user)
	if mine.streams >= u.limits.Streams {
		return nil, u.refuse(user, boundStreams, streamRetry, fmt.Sprintf(
			"user %q has %d open watches and other streams, as many as a user may have (--max-streams-per-user)", user.Name, mine.streams))
	}
	if of != "" {
		if mine.selectors[s] == 0 && len(mine.selectors) >= u.limits.Selectors {
			return nil, u.refuse(user, boundSelectors, streamRetry, fmt.Sprintf(
				"user %q has open watches with %d different selectors, as many as a user may have (--max-selectors-per-user)", user.Name, len(mine.selectors)))
		}
		if mine.selectors == nil {
			mine.selectors = map[selector]int{}
		}
		mine.selectors[s]++
	}
	mine.streams++
	u.metrics.streams[user.Class].Add(1)
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.metrics.streams[user.Class].Add(-1)
		mine.streams--
		if of != "" {
			if mine.selectors[s]--; mine.selectors[s] == 0 {
				delete(mine.selectors, s)
			}
		}
		u.forgetLocked(user, mine)
	}), nil
}

// Hold notes that an answer of so many bytes is in memory until the client has read it,
// when the caller releases it. A user may always have one answer, whatever its size.
func (u *Users) Hold(ctx context.Context, bytes int64) (release func(), err error) {
	user, ok := UserOf(ctx)
	if u == nil || !ok {
		return func() {}, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	mine, bound, by := u.usageLocked(user), u.limits.Bytes, "--max-buffered-per-user"
	if all := u.limits.AllBytes; all > 0 {
		if rest := min(all/2, all-(u.metrics.bytes.Load()-mine.bytes)); rest < bound {
			bound, by = max(rest, 0), "half of GOMEMLIMIT is for the answers of all users"
		}
	}
	if mine.bytes > 0 && mine.bytes+bytes > bound {
		return nil, u.refuse(user, boundBytes, listRetry, fmt.Sprintf(
			"user %q has answers of %d bytes that its clients have not read yet, and this one has %d; a user may have %d now (%s)",
			user.Name, mine.bytes, bytes, bound, by))
	}
	mine.bytes += bytes
	u.metrics.bytes.Add(bytes)
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		mine.bytes -= bytes
		u.metrics.bytes.Add(-bytes)
		u.forgetLocked(user, mine)
	}), nil
}

// usageLocked returns what a user has open. The caller adds something: a user who has
// nothing is refused nothing.
func (u *Users) usageLocked(user User) *usage {
	mine := u.open[user.Name]
	if mine == nil {
		mine = &usage{}
		u.open[user.Name] = mine
	}
	return mine
}

func (u *Users) forgetLocked(user User, mine *usage) {
	if mine.streams == 0 && mine.bytes == 0 && u.open[user.Name] == mine {
		delete(u.open, user.Name)
	}
}

// Slot takes a slot of a queue for the user of a request, as [Queue.Acquire] does. Without one, the
// error is a Status 429 with a message, and the seconds after which to try again.
func (u *Users) Slot(ctx context.Context, q *Queue, busy string, retryAfter int32) (*Slot, error) {
	user, ok := UserOf(ctx)
	slot, err := q.Acquire(ctx, user.Name)
	if err == nil {
		return slot, nil
	}
	if u != nil && ok && (errors.Is(err, ErrBusy) || errors.Is(err, ErrShare)) { // else ctx has ended
		u.count(user, boundQueue, busy)
	}
	return nil, &status.Error{Status: status.TooMany(busy, retryAfter)}
}
