// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A track is the recording of one resource.
type track struct {
	s    *session
	id   kube.Resource
	p    *place
	w    *writer
	log  *slog.Logger
	ctx  context.Context
	stop context.CancelFunc
}

// run records until ctx ends: what the gateway watches, or else what the
// recorder itself does.
func (t *track) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { t.fail(t.w.run(ctx)) })
	defer wg.Wait()
	var done *timeline.Timeline // has been followed to its end
	for ctx.Err() == nil {
		leased, tl, err := t.turn(ctx, done)
		switch {
		case err != nil:
		case leased:
			err := t.follow(ctx, tl)
			t.fail(err)
			t.p.update(func() { t.p.busy = false })
			if errors.Is(err, errAnew) {
				sleep(ctx, t.s.r.retry)
			} else {
				done = tl
			}
		default:
			retry := t.watch(ctx)
			t.fail(t.w.flush())
			t.p.update(func() { t.p.busy = false })
			t.pause(ctx, retry)
		}
	}
	t.fail(t.w.flush())
}

// fail ends the session for an error, unless that only has recording begin anew.
func (t *track) fail(err error) {
	if !errors.Is(err, errAnew) {
		t.s.fail(err)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// turn waits until there is something to record: a lease's timeline, other than the
// one that is done, or what nobody else watches.
func (t *track) turn(ctx context.Context, done *timeline.Timeline) (leased bool, tl *timeline.Timeline, err error) {
	err = t.p.wait(ctx, func() bool {
		leased, tl = t.p.leased, t.p.timeline
		busy := !leased || tl != nil && tl != done
		if t.p.busy != busy {
			t.p.busy = busy
			t.p.notify() // who has taken the lease meanwhile waits for this
		}
		return busy
	})
	return leased, tl, err
}

// pause waits for a while, or until the gateway watches.
func (t *track) pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_ = t.p.wait(ctx, func() bool { return t.p.leased }) // that ctx has ended is as good
}

// watch records what an own watch brings, until ctx ends, or the gateway wants to
// watch. It returns how long to wait before it is called again.
func (t *track) watch(ctx context.Context) (retry time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		if t.p.wait(ctx, func() bool { return t.p.leased }) == nil {
			cancel()
		}
	})
	lost := t.w.loss()
	wg.Go(func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	})
	sink := &direct{
		w: t.w, recent: &recent{}, failed: t.fail, listed: t.known, heard: sync.OnceFunc(t.sure),
		define: func() string { return t.s.r.definition(ctx, t.id) },
		same:   func() error { return t.s.same(ctx) },
		other:  t.diverged,
	}
	resume, kind, err := t.resume(ctx)
	if err != nil {
		t.fail(err)
		return t.s.r.retry
	}
	r := informer.NewReflector(informer.ReflectorOptions{
		Transport: t.s.r.opts.Transport, URL: t.s.r.opts.URL(t.id.Path(), ""),
		Kind: kind, Columns: true, Sink: sink, Logger: t.log, Resume: resume,
	})
	refused, ok := errors.AsType[*informer.RefusedError](r.Run(ctx))
	select {
	case <-lost:
		return t.s.r.retry
	default:
	}
	if !ok {
		return 0
	}
	t.log.Warn("not recorded for now: the upstream refuses it", "code", refused.Code, "cause", refused.Message)
	if refused.Code == http.StatusNotFound {
		// What comes back under the name may be another.
		t.p.update(func() { t.p.anew = true })
	}
	return t.s.r.retryRefused
}

// resume returns what an own watch resumes from, nil if that is a list.
func (t *track) resume(ctx context.Context) (*informer.Resume, string, error) {
	stream := t.w.current()
	if stream.Head().RV == 0 {
		return nil, t.s.kind(t.id), nil
	}
	kind := stream.Form().Item.Kind
	if !t.continues(ctx, stream) {
		return nil, kind, nil
	}
	resume, err := t.resumeOf(stream, func(ctx context.Context) ([]informer.Known, error) { return newestIn(ctx, stream) })
	return resume, kind, t.w.damaged(stream, err)
}

// continues reports whether what is recorded can be gone on from without a list:
// that nothing is known to the contrary, and a custom resource is still under the
// definition that its objects were listed under. Under another one, the same
// versions may look otherwise.
func (t *track) continues(ctx context.Context, stream *history.Stream) bool {
	t.p.mu.Lock()
	anew := t.p.anew
	t.p.mu.Unlock()
	if anew || t.id.BuiltIn() {
		return !anew
	}
	listed := stream.Form().Definition
	return listed != "" && listed == t.s.r.definition(ctx, t.id)
}

// known notes that what is recorded is what there is.
func (t *track) known() {
	t.p.update(func() { t.p.anew, t.p.other, t.p.sure = false, false, true })
}

// diverged reports whether the upstream's history is another than what is recorded.
func (t *track) diverged() bool {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.p.other
}
