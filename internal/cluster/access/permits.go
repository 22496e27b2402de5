// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const (
	// checkInterval is the mean time between two checks of an open watch without a hint.
	checkInterval = time.Minute
	// hintedInterval is the time between two checks after a hint.
	hintedInterval = 2 * time.Second
	// maxUnchecked is how long a watch stays open while the API server gives no decision.
	maxUnchecked = 5 * time.Minute
	// maxChecks bounds the concurrent checks.
	maxChecks = 64
	// expiryWindow is how long a credential is checked again and again after its end: the
	// API server accepts some tokens for a minute more.
	expiryWindow = 75 * time.Second
)

// Permits are the rights of the open watches. Each right is checked again while a watch
// needs it, once for all watches of a user that need the same: after a hint that it may
// have changed, and otherwise about every minute. So is each credential, also at its
// end. Permits is safe for concurrent use.
type Permits struct {
	authorizer *Authorizer
	// credentials are the hints at credentials.
	credentials *hints
	log         *slog.Logger
	wake        chan struct{} // has a value if a check may be due earlier
	slots       chan struct{} // has a value for each running check

	mu    sync.Mutex // guards the fields below, and those of rights and permits
	known map[any]*right
}

// A right is a question to the API server, or a credential, on which open permits depend.
type right struct {
	ask        func(context.Context) Verdict
	user       user.Info
	attributes *authorizer.AttributesRecord // of a question; nil for a credential
	refusal    func(Verdict) *metav1.Status
	permits    map[*Permit]struct{}
	next       time.Time // of the next check
	allowed    time.Time // when the last check allowed it
	hinted     time.Time // when the last window of frequent checks ends
	expires    time.Time // of a credential; zero for never
	checking   bool
}

// A Permit lets a watch go on until it ends.
type Permit struct {
	of     *Permits
	keys   []any
	ended  chan struct{}
	why    *metav1.Status // why it ended; set before ended is closed
	wake   func()         // called when it ends; nil for nothing
	onEnd  func()         // called some time later
	closed bool
}

// NewPermits returns permits, whose checks have to be run.
func NewPermits(z *Authorizer, credentials *hints, log *slog.Logger) *Permits {
	return &Permits{authorizer: z, credentials: credentials, log: log, wake: make(chan struct{}, 1), slots: make(chan struct{}, maxChecks), known: map[any]*right{}}
}

// Open returns a permit for a watch of a caller that was allowed just now. Close it at the
// end of the watch.
func (p *Permits) Open(c *Caller, all ...*authorizer.AttributesRecord) *Permit {
	permit := &Permit{of: p, ended: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.joinLocked(permit, c.credential, func() *right {
		return &right{
			ask: func(ctx context.Context) Verdict {
				d, reason := c.again(ctx)
				return Verdict{d, reason}
			},
			user: c.User, expires: c.Expires,
			refusal: func(v Verdict) *metav1.Status { return status.Unauthorized(v.Reason) },
		}
	}, now)
	permit.joinLocked(c, all, now)
	p.wakeUp()
	return permit
}

// Join makes the permit of a caller depend on further attributes that were allowed just now.
func (t *Permit) Join(c *Caller, all ...*authorizer.AttributesRecord) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if !t.closed {
		t.joinLocked(c, all, time.Now())
		t.of.wakeUp()
	}
}

func (t *Permit) joinLocked(c *Caller, all []*authorizer.AttributesRecord, now time.Time) {
	z := t.of.authorizer
	for _, a := range all {
		q := question{c.userKey, questionKey(a)}
		t.of.joinLocked(t, q, func() *right {
			return &right{
				ask: func(ctx context.Context) Verdict {
					v := z.ask(ctx, a)
					if v.Decision == upstream.Denied {
						z.refused(q)
					}
					return v
				},
				user: c.User, attributes: a,
				refusal: func(v Verdict) *metav1.Status { return v.Refusal(a) },
			}
		}, now)
	}
}

// joinLocked makes a permit depend on a right.
func (p *Permits) joinLocked(permit *Permit, key any, create func() *right, now time.Time) {
	r := p.known[key]
	if r == nil {
		r = create()
		r.permits, r.allowed = map[*Permit]struct{}{}, now
		// What was decided soon after a hint may have been decided without the change.
		if r.attributes != nil {
			r.hinted = p.authorizer.hints.until(r.attributes)
		} else {
			r.hinted = p.credentials.untilCredential(r.user)
		}
		r.next = r.after(now)
		p.known[key] = r
	}
	r.permits[permit] = struct{}{}
	permit.keys = append(permit.keys, key)
}

// after returns the time of the next check, after one at now.
func (r *right) after(now time.Time) time.Time {
	next := now.Add(checkInterval*3/4 + rand.N(checkInterval/2))
	if now.Before(r.hinted) {
		next = now.Add(hintedInterval/2 + rand.N(hintedInterval))
	}
	switch {
	case r.expires.IsZero(), now.After(r.expires.Add(expiryWindow)):
	case !now.Before(r.expires):
		next = now.Add(hintedInterval)
	case next.After(r.expires):
		next = r.expires
	}
	return next
}

// Ended returns a channel that is closed when the watch has to end.
func (t *Permit) Ended() <-chan struct{} { return t.ended }

// Refusal returns why the permit ended, nil if it has not.
func (t *Permit) Refusal() *metav1.Status {
	select {
	case <-t.ended:
		return t.why
	default:
		return nil
	}
}

// OnEnd sets functions that are called when the permit has ended: wake at once, which must
// not block, and cut, on its own goroutine, some time later: it makes a client go
// that reads nothing, and so does not see the end.
func (t *Permit) OnEnd(wake, cut func()) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.why == nil {
		t.wake, t.onEnd = wake, cut
		return
	}
	wake()
	time.AfterFunc(endGrace, cut)
}

// endGrace is how long the end of a permit may take to reach the client.
const endGrace = 5 * time.Second

// Close gives the permit back.
func (t *Permit) Close() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.leaveLocked()
}

func (t *Permit) leaveLocked() {
	if t.closed {
		return
	}
	t.closed = true
	for _, key := range t.keys {
		r := t.of.known[key]
		if delete(r.permits, t); len(r.permits) == 0 {
			delete(t.of.known, key)
		}
	}
}

// Hint notes that rights may have changed: what they concern is checked at once, and
// again for ten seconds.
func (p *Permits) Hint(h Hint) {
	if h.Credentials {
		p.credentials.add(h)
	} else {
		p.authorizer.hints.add(h)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, r := range p.known {
		if r.attributes != nil && h.concerns(r.attributes) || r.attributes == nil && h.concernsCredential(r.user) {
			r.hinted, r.next = now.Add(hintWindow), now
		}
	}
	p.wakeUp()
}

func (p *Permits) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// HasPodTokens reports whether a permit depends on a token that is bound to a Pod.
func (p *Permits) HasPodTokens() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.known {
		if r.attributes == nil && len(r.user.GetExtra()[serviceaccount.PodUIDKey]) > 0 {
			return true
		}
	}
	return false
}

// Counts returns the number of rights and credentials that are checked.
func (p *Permits) Counts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}

// Run checks what is due until ctx ends.
func (p *Permits) Run(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	for {
		due, next := p.due(time.Now(), maxRound)
		for _, key := range due {
			select {
			case p.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			checks.Go(func() {
				defer func() { <-p.slots }()
				p.check(ctx, key)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		case <-p.wake:
			// Opening thousands of watches must not scan all of them as often.
			select {
			case <-ctx.Done():
				return
			case <-time.After(minScan):
			}
		}
	}
}

// maxRound bounds the checks of one round, which are spread over the users: a user with
// thousands of rights does not delay the others.
const maxRound = 4 * maxChecks

// minScan and maxScan bound the time between two searches for rights that are due.
const (
	minScan = 50 * time.Millisecond
	maxScan = time.Second
)

// due returns up to most keys of rights to check now, and how long to wait for others.
func (p *Permits) due(now time.Time, most int) (keys []any, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	type dueKey struct {
		key  any
		next time.Time
	}
	byUser := map[string][]dueKey{}
	n := 0
	wait = maxScan
	for key, r := range p.known {
		switch left := r.next.Sub(now); {
		case r.checking:
		case left <= 0:
			name := r.user.GetName()
			byUser[name] = append(byUser[name], dueKey{key, r.next})
			n++
		default:
			wait = min(wait, left)
		}
	}
	if n > most {
		wait = 0
		for _, all := range byUser {
			slices.SortFunc(all, func(a, b dueKey) int { return a.next.Compare(b.next) })
		}
	}
	for i := 0; len(keys) < min(n, most); i++ {
		for _, all := range byUser {
			if i < len(all) && len(keys) < most {
				keys = append(keys, all[i].key)
			}
		}
	}
	for _, key := range keys {
		p.known[key].checking = true
	}
	return keys, max(wait, minScan)
}

// check asks about one right, and ends its permits if it is gone.
func (p *Permits) check(ctx context.Context, key any) {
	p.mu.Lock()
	r := p.known[key]
	p.mu.Unlock()
	if r == nil {
		return
	}
	asked, cancel := context.WithTimeout(ctx, ReviewTimeout)
	began := time.Now()
	v := r.ask(asked)
	cancel()
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	r.checking = false
	if !r.next.After(began) { // otherwise a hint came since
		r.next = r.after(now)
	}
	switch {
	case v.Decision == upstream.Allowed:
		r.allowed = now
		return
	case v.Decision == upstream.Unknown && now.Sub(r.allowed) < maxUnchecked:
		if soon := now.Add(hintWindow); soon.Before(r.next) {
			r.next = soon
		}
		return
	case v.Decision == upstream.Unknown:
		v.Reason = "not checked for " + maxUnchecked.String() + ": " + v.Reason
	}
	why := r.refusal(v)
	p.log.Info("watches end, because their right was not confirmed", "user", r.user.GetName(),
		"watches", len(r.permits), "cause", why.Message)
	for permit := range r.permits {
		permit.why = why
		close(permit.ended)
		if permit.wake != nil {
			permit.wake()
			time.AfterFunc(endGrace, permit.onEnd)
		}
		permit.leaveLocked()
	}
}
