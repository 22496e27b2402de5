// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
)

// changeLocked wakes the callers of wait.
func (i *Informer[T]) changeLocked() {
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
}

// wait waits until done returns true or an error. done is called with the lock
// held, at each change of the state.
func (i *Informer[T]) wait(ctx context.Context, done func() (bool, error)) error {
	for {
		i.mu.Lock()
		ok, err := done()
		if i.changed == nil {
			i.changed = make(chan struct{})
		}
		changed := i.changed
		i.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waitShards waits until done returns true for the shards of some namespaces; without
// any, for all shards. It returns an error as soon as done does for one of them, or one
// that is not done cannot become so.
//
// The wait is for the run that there is at first. It fails when that ends, even if another
// one has begun meanwhile.
func (i *Informer[T]) waitShards(ctx context.Context, namespaces []string, done func(*shard[T]) (bool, error)) error {
	var run *activeRun
	return i.wait(ctx, func() (bool, error) {
		run = cmp.Or(run, i.run)
		shards, err := i.shardsLocked(namespaces)
		if err != nil {
			return false, err
		}
		all := true
		for _, s := range shards {
			ok, err := done(s)
			if err = cmp.Or(err, s.refused); !ok && err != nil {
				return false, err
			}
			all = all && ok
		}
		if !all {
			err = run.stopped()
		}
		return all, err
	})
}

// shardsLocked returns the shards that watch the given namespaces; without any, all
// shards.
func (i *Informer[T]) shardsLocked(namespaces []string) (shards []*shard[T], err error) {
	if all := i.shards[""]; all != nil {
		return append(shards, all), nil
	}
	for _, ns := range namespaces {
		s := i.shards[ns]
		if s == nil {
			return nil, fmt.Errorf("namespace %q: %w", ns, ErrNotWatched)
		}
		shards = append(shards, s)
	}
	if len(namespaces) == 0 {
		for _, s := range i.shards {
			shards = append(shards, s)
		}
	}
	return shards, nil
}

// maxFailures is how many failures in a row end WaitSynced.
const maxFailures = 3

// WaitSynced waits for the first complete list of the given namespaces; without any,
// of every namespace that is watched. Its error wraps [ErrNotSynced] and the reason:
// the API server's refusal, at once; the last of three failures in a row;
// [ErrStopped], if the informer has stopped running; [ErrNotWatched]; or the end of
// ctx, with the last failure if there was one. Before the first run it waits for that, too.
//
// Run continues after failures, so WaitSynced may be called again: it then waits for the
// next failure, if not for the list. All other errors are returned at once until the
// informer is started again, or the namespace added: a loop has to end with them.
func (i *Informer[T]) WaitSynced(ctx context.Context, namespaces ...string) error {
	var last error
	before := map[*shard[T]]int{} // failures in the row before the call
	err := i.waitShards(ctx, namespaces, func(s *shard[T]) (bool, error) {
		if s.synced {
			return true, nil
		}
		last = cmp.Or(s.lastErr, last)
		if n, ok := before[s]; !ok || s.failures < n {
			before[s] = s.failures
		}
		if s.failures >= maxFailures && s.failures > before[s] {
			return false, last
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil && !errors.Is(err, last):
		return fmt.Errorf("%w: %w: %w", ErrNotSynced, err, last)
	}
	return fmt.Errorf("%w: %w", ErrNotSynced, err)
}

// syncedLocked reports whether every namespace has had a complete list, or was refused.
func (i *Informer[T]) syncedLocked() bool {
	for _, s := range i.shards {
		if !s.synced && s.refused == nil {
			return false
		}
	}
	return true
}

// syncLocked publishes Synced when all namespaces are synced for the first time.
func (i *Informer[T]) syncLocked() {
	if !i.synced && i.syncedLocked() {
		i.synced = true
		i.events.publish(entry[T]{typ: Synced})
	}
}

// WaitRV waits until the copy has reached rv, the resourceVersion in the
// response to a write: from then on it shows the effect of that write. If the
// informer watches several namespaces, pass the one that was written to.
// Otherwise WaitRV waits for all of them, and a quiet namespace advances only
// with its next bookmark, about once a minute. It fails if rv is not a number or ctx
// ends; with [ErrStopped] if the informer has stopped running; with [ErrNotWatched];
// and if the API server refuses one of the namespaces.
func (i *Informer[T]) WaitRV(ctx context.Context, rv string, namespaces ...string) error {
	want, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return fmt.Errorf("wait: resourceVersion %q is not a number", rv)
	}
	err = i.waitShards(ctx, namespaces, func(s *shard[T]) (bool, error) { return s.head >= want, nil })
	if err != nil {
		return fmt.Errorf("wait for resourceVersion %d: %w", want, err)
	}
	return nil
}
