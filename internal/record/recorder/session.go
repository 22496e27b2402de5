// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A session is a period of recording. It ends when the recorder stops, or a write
// fails.
type session struct {
	r     *Recorder
	owner Owner
	store *history.Store
	uid   string // of the cluster
	ctx   context.Context
	end   context.CancelCauseFunc
	wg    sync.WaitGroup

	pulse pulse

	defined chan struct{} // has a value if a definition of resources has changed

	mu        sync.Mutex // guards what follows
	recorders map[kube.Resource]*resourceRecorder
	kinds     map[kube.Resource]string // according to discovery
	// undiscovered is why the last discovery failed, and unknown why it did for some groups.
	undiscovered error
	unknown      map[string]error
}

// record runs a session. It returns nil when ctx ends, else the failure that ended it.
func (r *Recorder) record(ctx context.Context, owner Owner, store *history.Store) error {
	r.mu.Lock()
	uid, selection := r.uid, r.selection
	r.mu.Unlock()
	s := &session{r: r, owner: owner, store: store, uid: uid, recorders: map[kube.Resource]*resourceRecorder{}, kinds: map[kube.Resource]string{}, defined: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancelCause(ctx)
	defer s.end(nil)
	// Resources recorded before are recorded again at once: discovery can take long.
	s.start(selection.Choose(store.Resources()))
	r.setSession(s)
	defer r.setSession(nil)
	s.wg.Go(s.discover)
	s.wg.Go(func() { s.trim() })
	s.wg.Go(s.listen)
	s.wg.Go(s.live)
	<-s.ctx.Done()
	s.wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(s.ctx)
}

// fail ends the session with an error; it ignores nil.
func (s *session) fail(err error) {
	if err != nil && s.ctx.Err() == nil {
		s.end(err)
	}
}

// start starts to record the resources that are not recorded yet.
func (s *session) start(resources []kube.Resource) {
	for _, id := range resources {
		s.mu.Lock()
		known := s.recorders[id] != nil
		s.mu.Unlock()
		if known || s.ctx.Err() != nil {
			continue
		}
		stream, err := s.store.Stream(id)
		if err != nil {
			s.fail(err)
			return
		}
		t := &resourceRecorder{s: s, id: id, began: s.r.opts.Now(), c: s.r.continuity(id), w: newWriter(s, id, stream), log: s.r.log.With("resource", id.String(), "recording", true)}
		t.ctx, t.stop = context.WithCancel(s.ctx)
		t.ended = make(chan struct{})
		s.mu.Lock()
		s.recorders[id] = t
		s.mu.Unlock()
		run := t.start(s.owner)
		s.wg.Go(func() {
			defer close(t.ended)
			run()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.recorders, id)
		})
	}
}

// all returns the recorders of the resources.
func (s *session) all() []*resourceRecorder {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*resourceRecorder, 0, len(s.recorders))
	for _, t := range s.recorders {
		out = append(out, t)
	}
	return out
}

// kind returns a resource's kind, "" if it is not known from discovery.
func (s *session) kind(id kube.Resource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[id]
}

// defining are the resources whose objects define other resources.
var defining = []string{"customresourcedefinitions", "apiservices"}

// discover runs discovery periodically, and soon after a change of a recorded definition.
func (s *session) discover() {
	first := true
	for {
		found, err := s.r.opts.Upstream.Preferred(s.ctx)
		s.mu.Lock()
		s.undiscovered, s.unknown = err, found.Unknown
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			s.r.opts.Upstream.Quiet(s.r.log).Warn("discovery failed: new resources are not recorded for now", "cause", err)
		default:
			s.adjust(found, first)
			first = false
		}
		wait := s.r.rediscover
		if err != nil {
			wait = min(wait, s.r.retry)
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(wait):
		case <-s.defined:
			if !sleep(s.ctx, s.r.defined) {
				return
			}
		}
	}
}

// adjust starts to record the resources that discovery found, and stops removed ones.
func (s *session) adjust(found upstream.Preferred, first bool) {
	var names []kube.Resource
	s.mu.Lock()
	for id, kind := range found.Kinds {
		names = append(names, id)
		s.kinds[id] = kind
	}
	s.mu.Unlock()
	selection := s.r.resolve(found)
	wanted := selection.Choose(names)
	var stopped []*resourceRecorder
	for _, t := range s.all() {
		if !slices.Contains(wanted, t.id) && found.Unknown[t.id.Group] == nil {
			t.log.Info("no longer recorded: the resource is gone, or another version of it is preferred")
			t.stop()
			stopped = append(stopped, t)
		}
	}
	// While a group is unknown, as when discovery fails for one of its versions, what is recorded
	// of it stays so.
	wanted = slices.DeleteFunc(wanted, func(id kube.Resource) bool {
		return found.Unknown[id.Group] != nil && slices.ContainsFunc(s.all(), func(t *resourceRecorder) bool {
			return t.id != id && t.id.GroupResource() == id.GroupResource()
		})
	})
	for _, t := range stopped { // a resource has one writer, whatever its version
		<-t.ended
	}
	s.start(wanted)
	missing, others := selection.unmatched(names)
	s.r.setNotServed(missing, found)
	if first {
		s.r.log.Info("recording", "dir", s.r.directory(), "resources", len(wanted))
		for _, p := range others {
			s.r.log.Info("a pattern of --record matches no resource yet", "pattern", p.text)
		}
	}
}

// trim keeps the history within its limits.
func (s *session) trim() {
	for {
		for _, t := range s.all() { // Trim may record a step of the clock after it
			if t.w.held() <= 0 {
				t.fail(t.w.flush())
			}
		}
		if err := s.store.Trim(s.ctx); err != nil && s.ctx.Err() == nil && !errors.Is(err, history.ErrClosed) {
			s.fail(err)
			return
		}
		for _, t := range s.all() {
			stream := t.w.current()
			t.fail(t.w.damaged(stream, stream.Damage()))
		}
		if !sleep(s.ctx, s.r.trimEvery) {
			return
		}
	}
}

// listen notes the outages of the API server, and records until when resources were
// observed without a change. A watch may outlive an outage: then the events of that time come
// at its end.
func (s *session) listen() {
	recorded, clock := time.Now(), s.r.opts.Now()
	var since time.Time // of the outage
	for was := false; sleep(s.ctx, s.r.listenEvery); {
		contact := s.r.opts.Upstream.Contact()
		now := s.r.opts.Now()
		if history.ClockSet(clock, now) {
			recorded = time.Now().Add(s.r.delay.head) // until something is heard by the new clock
		}
		if clock = now; contact.Err == nil && time.Since(recorded) >= s.r.delay.head {
			recorded = time.Now()
			s.observed(contact.Last)
		}
		outage := contact.Err != nil && !contact.Answers()
		if outage == was {
			continue
		}
		if was = outage; !outage {
			if err := s.store.AddOutages(history.Outage{Since: since, Until: now}); err != nil {
				s.r.log.Warn("cannot record that the API server did not answer", "since", since, "err", err)
			}
		} else if since = now; !contact.Since.IsZero() {
			since = now.Add(-time.Since(contact.Since))
		}
		for _, t := range s.all() {
			if outage {
				t.silent(true)
			} else {
				t.heard(true)
			}
		}
	}
}

// maxFollowLag is how long after the API server has sent an event the writer surely has it,
// unless it is writing.
const maxFollowLag = time.Second

// observed records until when the resources were observed: last is when the API server sent
// something last.
func (s *session) observed(last time.Time) {
	if last.IsZero() {
		return
	}
	until := s.r.opts.Now().Add(-time.Since(last) - maxFollowLag)
	streams := map[*history.Stream]time.Time{}
	for _, t := range s.all() {
		if stream := t.w.quiet(); stream != nil {
			streams[stream] = until
		}
	}
	if err := s.store.Observed(streams); err != nil && s.ctx.Err() == nil {
		s.fail(err)
	}
}

// same fails if the API server no longer belongs to the recorded cluster. It retries a
// few times if the API server does not answer.
func (s *session) same(ctx context.Context) error {
	for n := 1; ; n++ {
		uid, err := s.r.opts.Upstream.Cluster(ctx)
		switch {
		case err == nil && uid == s.uid:
			return nil
		case err == nil:
			return fmt.Errorf("%w: it was %s, and is %s", errOtherCluster, s.uid, uid)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case n == 5 || !errors.Is(err, upstream.ErrUnavailable):
			return err
		}
		sleep(ctx, s.r.redial)
	}
}
