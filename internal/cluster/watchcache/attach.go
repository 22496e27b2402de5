// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

// attach makes the reflector feed a reader's timeline, which starts from the recorded
// state; the upstream watch continues. It reports false if the timeline has to start
// from a list in another round.
func (r *round) attach(ctx context.Context, reader *Resource) bool {
	r.state = seeding
	defer func() {
		if r.state == seeding {
			r.state = recording
		}
	}()
	soon, cancel := context.WithDeadline(ctx, reader.seedBy)
	defer cancel()
	for range maxSeeds {
		if !r.feed.lock.LockBefore(soon) {
			return false
		}
		if !r.resumed && r.feed.lists == 0 {
			// The reflector is about to take its first list, or is taking it.
			r.cache(reader, 0)
			r.feed.lock.Unlock()
			return true
		}
		if r.feed.to.Head() < r.feed.listed { // the record could not take the list
			r.feed.lock.Unlock()
			return false
		}
		r.feed.kept = &kept{}
		r.feed.lock.Unlock()
		seed := r.record.Seed(ctx)
		if seed == nil || !r.feed.lock.LockBefore(soon) {
			return false
		}
		kept := r.feed.kept
		if r.feed.kept = nil; !kept.broken {
			ok := seed.List.RV <= r.feed.to.Head() && r.load(reader, seed, kept)
			r.feed.lock.Unlock()
			return ok
		}
		r.feed.lock.Unlock()
	}
	return false
}

// load brings the reader's timeline from the seed to the head, and makes the
// reflector feed it. The caller holds the feed's lock.
func (r *round) load(reader *Resource, seed *Seed, kept *kept) bool {
	reader.begin(seed)
	if err := kept.apply(reader.Timeline); err != nil {
		r.w.log.Error("the events after the recorded state do not reach the head", "err", err)
		reader.end(nil)
		return false
	}
	r.cache(reader, reader.Timeline.View().Epoch())
	return true
}

// cache changes the state to caching. epoch is as for Record.Follow. The caller
// holds the feed's lock.
func (r *round) cache(reader *Resource, epoch uint64) {
	r.state, r.reader = caching, reader
	reader.reflector.Store(r.reflector)
	reader.feed.Store(r.feed)
	r.follow(epoch) // before anything can be read, see Record.Follow
	r.unfeed()
	sink := reader.sink()
	r.feed.attach(sink)
	if r.reflector.Status().Phase == reflector.Watching {
		sink.Flush() // the watch is already open
	}
}

// unfeed ends the reflector's use of the record. It does nothing if there is none.
func (r *round) unfeed() {
	r.w.update(func() {
		if r.fed != nil {
			r.fed.users--
			r.fed = nil
		}
	})
}

// A following is the recording of a timeline.
type following struct {
	done     chan struct{} // closed when it has ended
	complete bool          // whether the record had everything at that point
}

// follow makes the record follow the timeline, once all other users of the record
// have ended.
func (r *round) follow(epoch uint64) {
	record, before := r.record, r.following
	f := &following{done: make(chan struct{})}
	r.following = f
	if record == nil {
		close(f.done)
		return
	}
	run := record.Follow(r.reader.Timeline, epoch)
	go func() {
		defer close(f.done)
		if before != nil {
			<-before.done
		}
		w, free := r.w, false
		// Recording can end while the disk holds another user.
		_ = w.wait(context.Background(), func() bool {
			if free = w.record == record && record.users == 0; free {
				record.users++
			}
			return free || w.record != record
		})
		if free {
			f.complete = run()
			w.release(record)
		}
	}()
}

// detach makes the reflector feed the record again; the upstream watch continues. It
// reports false if the record does not reach the timeline's head in time: then
// another round resumes from the record's head.
func (r *round) detach(ctx context.Context) bool {
	soon, cancel := context.WithTimeout(ctx, r.w.cache.opts.DiskTimeout)
	defer cancel()
	if !r.feed.lock.LockBefore(soon) {
		return false
	}
	defer r.feed.lock.Unlock()
	r.reader.Timeline.Close()
	r.damaged = r.record.Damaged()
	select {
	case <-r.following.done:
	case <-soon.Done():
		return false
	}
	if !r.following.complete || !r.w.use(r.record) {
		return false
	}
	sink := r.record.Sink(ctx)
	if sink.Head() != r.reader.Timeline.Head() {
		r.w.release(r.record)
		return false
	}
	r.w.update(func() { r.fed = r.record })
	r.feed.attach(sink)
	r.reader.end(nil)
	r.state, r.reader = recording, nil
	return true
}
