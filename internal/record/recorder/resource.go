// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A resourceRecorder records one resource during a session. It implements
// watchcache.Record.
type resourceRecorder struct {
	s     *session
	id    kube.Resource
	c     *continuity
	w     *writer
	log   *slog.Logger
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{} // closed when everything is written after stop
	// began is when the session began to record the resource.
	began time.Time
	// refused is why the API server does not let the resource be listed and watched; nil
	// while it does.
	refused atomic.Pointer[reflector.RefusedError]
	// waited is when a read last waited in vain for the end of a silence; nil if none has.
	waited atomic.Pointer[vain]
}

// A vain is a silence, by its begin, that had not ended at a time, although a read has waited.
type vain struct{ since, at time.Time }

// start makes the owner of the upstream watch deliver changes until the context of
// the resourceRecorder ends. The function that it returns writes them.
func (r *resourceRecorder) start(owner Owner) (run func()) {
	r.c.begin(r)
	wait := owner.Record(r.ctx, r.id, r)
	return func() {
		defer r.c.end()
		var writing sync.WaitGroup
		writing.Go(func() { r.fail(r.w.run(r.ctx)) })
		wait()
		writing.Wait()
		r.silent(false)
		r.fail(r.w.end(r.s.r.opts.Now()))
	}
}

// fail ends the session for an error. Damage does not end it: a new epoch of the
// resource has begun.
func (r *resourceRecorder) fail(err error) {
	if !errors.Is(err, errDamaged) {
		r.s.fail(err)
	}
}

// Sink implements watchcache.Record.
func (r *resourceRecorder) Sink(ctx context.Context) watchcache.Sink {
	return &historySink{
		w: r.w, now: r.s.r.opts.Now, versions: &versionCache{}, failed: r.fail, listed: func() { r.refused.Store(nil); r.c.listed() },
		advanced: sync.OnceFunc(func() { r.refused.Store(nil) }),
		define:   func() string { return r.s.r.opts.Upstream.DefinitionID(ctx, r.id) },
		same:     func() error { return r.s.same(ctx) },
		diverged: func() bool { return r.c.is(diverged) },
	}
}

// Resume implements watchcache.Record.
func (r *resourceRecorder) Resume(ctx context.Context) (*reflector.Resume, string, error) {
	// A new sink looks up versions only on the disk.
	if err := r.w.flush(); err != nil && !errors.Is(err, errDamaged) {
		return nil, "", err
	}
	stream := r.w.current()
	if r.w.position().RV == 0 {
		return nil, r.s.kind(r.id), nil
	}
	kind := stream.Form().Item.Kind
	if !r.continuable(ctx, stream) {
		return nil, kind, nil
	}
	resume, err := r.resumeOf(ctx, stream, func(ctx context.Context) (*reflector.Known, error) {
		return untrimmed(stream, func() (*reflector.Known, error) { return newestIn(ctx, stream) })
	})
	return resume, kind, r.w.damaged(stream, err)
}

// continuable reports whether the record can be continued without a list: the trust
// allows it, and a custom resource has the same definition as when its objects were
// listed. Under another definition, the same versions may differ.
func (r *resourceRecorder) continuable(ctx context.Context, stream *history.Stream) bool {
	if !r.c.is(resumes) {
		return false
	}
	if r.id.BuiltIn() {
		return true
	}
	listed := stream.Form().Definition
	return listed != "" && listed == r.s.r.opts.Upstream.DefinitionID(ctx, r.id)
}

// Seed implements watchcache.Record.
func (r *resourceRecorder) Seed(ctx context.Context) *watchcache.Seed {
	timeout := r.s.r.diskTimeout
	soon, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := r.w.reached(soon, r.ctx, r.w.position().RV); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			r.log.Warn("the disk is slow: the resource is served without its record")
		}
		return nil
	}
	stream := r.w.current()
	if r.w.position().RV == 0 || !r.continuable(soon, stream) {
		return nil
	}
	var read atomic.Int64
	done := make(chan *watchcache.Seed, 1)
	go func() { done <- r.load(ctx, stream, &read) }()
	for before := int64(0); ; {
		select {
		case s := <-done:
			return s
		case <-ctx.Done():
			return nil
		case <-time.After(timeout):
			n := read.Load()
			if n == before {
				r.log.Warn("the disk is slow: the resource is served without its record", "objects", n)
				return nil
			}
			before = n
		}
	}
}

// load reads a seed, and counts its objects in read.
func (r *resourceRecorder) load(ctx context.Context, stream *history.Stream, read *atomic.Int64) *watchcache.Seed {
	list, err := untrimmed(stream, func() (*scan.List, error) { return stateOf(ctx, stream, read) })
	if err == nil {
		newest := knownOf(list.Newest()) // now, so that the closure does not keep the list
		var resume *reflector.Resume
		resume, err = r.resumeOf(ctx, stream, func(context.Context) (*reflector.Known, error) { return newest, nil })
		if err == nil {
			return &watchcache.Seed{List: list, Resume: *resume, Template: stream.Form().Item}
		}
	}
	if r.ctx.Err() == nil && ctx.Err() == nil { // the recording may have ended meanwhile
		r.fail(r.w.damaged(stream, err))
	}
	return nil
}

// Follow implements watchcache.Record.
func (r *resourceRecorder) Follow(t *timeline.Timeline, epoch uint64) (run func() (complete bool)) {
	r.refused.Store(nil) // what is followed was listed
	r.c.follow(t, epoch)
	f := &follower{r: r, tl: t, seeded: epoch != 0}
	if f.seeded {
		// The timeline can end before run is called.
		_ = f.start(t.View()) // without a cursor, run compares
	}
	return func() bool {
		for ; ; f = (&follower{r: r, tl: t}) {
			complete, err := f.run(r.ctx)
			r.fail(err)
			if !errors.Is(err, errDamaged) {
				return complete && err == nil
			}
			sleep(r.ctx, r.s.r.retry)
		}
	}
}

// Damaged implements watchcache.Record.
func (r *resourceRecorder) Damaged() <-chan struct{} { return r.w.loss() }

// Continuity implements watchcache.Record.
func (r *resourceRecorder) Continuity(c reflector.Continuity) {
	switch c {
	case reflector.Ended:
		now := r.s.r.opts.Now()
		r.w.silence.begin(now, now, false) // the end was heard
	case reflector.Silent:
		since := r.w.position().At // whatever else was heard since
		if current := r.s.owner.Current(r.id); !current.IsZero() {
			if at := r.s.r.opts.Now().Add(-time.Since(current)); at.Before(since) {
				since = at
			}
		}
		r.w.silence.beginApparent(since)
		r.w.hasten()
	case reflector.Doubtful:
		r.silent(false)
	case reflector.Watched:
		r.refused.Store(nil)
		r.heard(false)
	case reflector.Diverged:
		// A sink that cannot record fails, too. If it is the upstream, the next session
		// finds out: the upstream has to prove its history.
		if r.ctx.Err() == nil {
			r.c.diverge()
		}
	}
}

// silent is called when the watch has ended, or there is an outage. Nothing was observed
// since the API server sent something last, on any connection.
func (r *resourceRecorder) silent(outage bool) {
	head, last := r.w.position(), r.s.r.opts.Upstream.LastAnswer()
	if head.RV == 0 {
		return
	}
	now, since := r.s.r.opts.Now(), head.At
	if heard := now.Add(-max(time.Since(last), 0)); !last.IsZero() && heard.After(since) {
		since = heard
	}
	r.w.silence.begin(since, now, outage)
}

// heard is called when a list is complete, a watch is opened, or an outage is over.
func (r *resourceRecorder) heard(outage bool) {
	reach := uint64(0)
	if _, t := r.c.current(); t != nil {
		if v := t.View(); v != nil {
			reach = v.RV
		}
	}
	if r.w.silence.end(r.s.r.opts.Now(), reach, r.w.delay.events, outage) {
		r.w.awake()
	}
}

// catchUpTimeout is how long a read waits for the end of a silence while the API server
// answers.
const catchUpTimeout = 3 * time.Second

// vainPause is how long no read waits for the end of a silence after one has, in vain: a command
// needs several reads.
const vainPause = 10 * time.Second

// check finds out, unless there is an outage anyway, whether the watch is only open in
// appearance. Then a silence has begun.
func (r *resourceRecorder) check(ctx context.Context) {
	if r.s.r.opts.Upstream.Contact().Err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	r.s.owner.Check(ctx, r.id)
}

// observed waits for a moment for the end of a silence; not if the API server has refused the
// resource, or if that was in vain just now. During an outage it does not wait: the API server's
// contact says since when nothing is known, unless the silence began long before.
func (r *resourceRecorder) observed(ctx context.Context) error {
	for deadline := time.Now().Add(catchUpTimeout); ; {
		s := r.w.silence.get()
		refused, waited, contact := r.refused.Load(), r.waited.Load(), r.s.r.opts.Upstream.Contact()
		switch {
		case s.since.IsZero():
			return nil
		case contact.Err != nil && s.since.Add(r.s.r.minSilence).Before(contact.Since):
			return notRecorded(s, past.ErrUnwatched)
		case contact.Err != nil:
			return nil
		case refused != nil:
			return notRecorded(s, refused)
		case time.Now().After(deadline):
			r.waited.Store(&vain{s.since, time.Now()})
			return notRecorded(s, past.ErrUnwatched)
		case ctx.Err() != nil, waited != nil && waited.since.Equal(s.since) && time.Since(waited.at) < vainPause:
			return notRecorded(s, past.ErrUnwatched)
		}
		sleep(ctx, 20*time.Millisecond)
	}
}

func notRecorded(s silent, why error) error {
	return &past.SilentError{Since: s.since, Err: fmt.Errorf("%w: %w", ErrNotRecorded, why)}
}

// RequireList implements watchcache.Record.
func (r *resourceRecorder) RequireList() { r.c.requireList() }

// Pause implements watchcache.Record.
func (r *resourceRecorder) Pause(err error) time.Duration {
	r.silent(false)
	refused, isRefused := errors.AsType[*reflector.RefusedError](err)
	switch {
	case err == nil:
		return 0
	case isRefused:
		r.log.Warn("not recorded for now: the upstream refuses it", "code", refused.Code, "cause", refused.Message)
		if refused.Code == http.StatusNotFound {
			r.c.requireList() // another resource may get the name
		} else {
			r.refused.Store(refused)
		}
		switch code := refused.Code; {
		case code == http.StatusUnauthorized, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
			return r.s.r.retry // not for want of a right
		}
		return r.s.r.retryRefused
	case !errors.Is(err, watchcache.ErrDamaged):
		r.fail(err)
	}
	return r.s.r.retry
}

// sleep waits for a time, or until ctx ends. It reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
