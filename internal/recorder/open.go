// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/internal/history"
)

// Open opens the cluster's history, if the API server identifies the cluster before ctx
// ends. Call it before Run, so that serving starts from the record. An error means that
// the directory must not be used, and says what to do; after any other failure, Run
// tries again.
func (r *Recorder) Open(ctx context.Context) error {
	err := r.open(ctx)
	if errors.Is(err, ErrInUse) || errors.Is(err, history.ErrOtherCluster) || errors.Is(err, history.ErrNewerFormat) {
		return err
	}
	if err != nil {
		r.off(err)
	}
	return nil
}

// open opens the history of the API server's cluster, unless it is open. While the API
// server does not identify the cluster, an open history stays open: the API server is
// asked again before a list is recorded.
func (r *Recorder) open(ctx context.Context) error {
	r.mu.Lock()
	opened, known := r.store != nil, r.uid
	r.mu.Unlock()
	ask, cancel := ctx, context.CancelFunc(func() {})
	if opened {
		ask, cancel = context.WithTimeout(ctx, r.diskTimeout)
	}
	uid, err := r.opts.Upstream.Cluster(ask)
	cancel()
	switch {
	case opened && (err != nil || uid == known):
		return nil
	case err != nil:
		return err
	case opened:
		r.log.Warn("another cluster answers: it is recorded separately", "before", known, "now", uid)
		r.leave()
	}
	dir := filepath.Join(r.opts.Dir, uid)
	// The history is as confidential as the cluster.
	if err := makeDir(r.opts.FS, dir); err != nil {
		return err
	}
	store, err := history.Open(dir, history.Options{
		Cluster: uid, FS: r.opts.FS, Logger: r.log, MaxAge: r.opts.MaxAge, MaxBytes: r.opts.MaxBytes, Now: r.opts.Now,
	})
	switch {
	case isLocked(err):
		return fmt.Errorf("%w: %s: stop it, or use another --data-dir, or --data-dir= to record nothing", ErrInUse, dir)
	case errors.Is(err, history.ErrOtherCluster), errors.Is(err, history.ErrNewerFormat):
		return fmt.Errorf("%w: use another --data-dir, or move this one away", err)
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store, r.dir, r.uid = store, dir, uid
	return nil
}

// leave closes the history of a cluster that another one has replaced. The watches do
// not continue the records of the new cluster.
func (r *Recorder) leave() {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.resources {
		c.requireList()
	}
}

// makeDir creates a directory and its parents, and syncs them.
func makeDir(fs vfs.FS, dir string) error {
	var made []string
	for d := dir; ; d = fs.PathDir(d) {
		if _, err := fs.Stat(d); err == nil || d == fs.PathDir(d) {
			break
		}
		made = append(made, d)
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range made {
		parent, err := fs.OpenDir(fs.PathDir(d))
		if err != nil {
			return err
		}
		if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
			return err
		}
	}
	return nil
}

// isLocked reports whether an error means that another process has the lock.
func isLocked(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) && strings.Contains(err.Error(), "lock") ||
		err != nil && strings.Contains(err.Error(), "lock held by current process")
}

// Close closes the history of a recorder that does not run. Run closes it when it ends.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	store := r.store
	r.store, r.problem = nil, errStarting
	r.mu.Unlock()
	if store == nil {
		return
	}
	if err := store.Close(); err != nil {
		r.log.Warn("closing the history", "err", err)
	}
}
