// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// How long Open waits for the API server to identify the cluster, and for one that has done so
// to say which resources it has. The second is longer: only an API server that answers can show
// that a name is a mistake, which is an error at the start and a warning later.
const (
	identifyTimeout = 3 * time.Second
	namesTimeout    = 15 * time.Second
)

// Open opens the cluster's history, if the API server identifies the cluster in time. After
// that, Run opens it while serving. Call it before Run, so that serving starts from the record. An error means that
// the directory must not be used, or that a selected resource does not exist, and says
// what to do; after any other failure, Run tries again.
func (r *Recorder) Open(ctx context.Context) error {
	err := checkDir(r.opts.FS, r.opts.Dir)
	if err == nil {
		identify, cancel := context.WithTimeout(ctx, identifyTimeout)
		err = r.open(identify)
		cancel()
	}
	for _, mistake := range []error{ErrDirectory, ErrInUse, history.ErrOtherCluster, history.ErrNewerFormat} {
		if errors.Is(err, mistake) {
			return fmt.Errorf("--data-dir: %w", err)
		}
	}
	if err != nil {
		r.off(err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	if err := r.checkNames(ctx); err != nil {
		r.Close()
		return err
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
		return r.kept(err)
	case opened:
		r.log.Warn("another cluster answers: it is recorded separately", "before", known, "now", uid)
		r.leave()
	}
	dir := filepath.Join(r.opts.Dir, uid)
	store, err := r.openDir(dir, uid)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store, r.dir, r.uid, r.place = store, dir, uid, r.placeOf(dir)
	return nil
}

// kept adds to the reason why no history is open that there are some.
func (r *Recorder) kept(err error) error {
	names, failed := r.opts.FS.List(r.opts.Dir)
	if !errors.Is(err, upstream.ErrUnavailable) || failed != nil || len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; what is recorded in %s is kept, and is served when the API server answers", err, r.opts.Dir)
}

// leave closes the history of a cluster that another one has replaced, or whose directory
// is gone. The watches do not continue the records of the next one.
func (r *Recorder) leave() {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.resources {
		c.requireList()
	}
}

// openDir opens a cluster's history in a directory, which it creates if necessary.
func (r *Recorder) openDir(dir, uid string) (*history.Store, error) {
	if err := checkDir(r.opts.FS, dir); err != nil {
		return nil, err
	}
	// The history is as confidential as the cluster.
	if err := makeDir(r.opts.FS, dir); err != nil {
		return nil, err
	}
	store, err := history.Open(dir, history.Options{
		Cluster: uid, FS: r.opts.FS, Logger: r.log, MaxAge: r.opts.MaxAge, MaxBytes: r.opts.MaxBytes, Now: r.opts.Now,
	})
	if err == nil && errors.Is(store.Err(), fs.ErrPermission) { // it was opened read-only
		err = errors.Join(store.Err(), store.Close())
	}
	switch {
	case isLocked(err):
		return nil, fmt.Errorf("%w %s: stop it, or use another --data-dir, or --data-dir= to record nothing", ErrInUse, dir)
	case errors.Is(err, fs.ErrPermission):
		return nil, unusable(err)
	case errors.Is(err, history.ErrOtherCluster), errors.Is(err, history.ErrNewerFormat):
		return nil, fmt.Errorf("%w: use another --data-dir, or move this one away", err)
	case errors.Is(err, history.ErrCorrupt):
		return nil, fmt.Errorf("%w: put back a whole copy of the directory, with its empty files, or move it away to begin a new record", err)
	}
	return store, err
}

// unusable marks an error with ErrDirectory.
func unusable(err error) error {
	return fmt.Errorf("%w: %w: use a directory that can be written, or --data-dir= to record nothing", ErrDirectory, err)
}

// checkDir fails with ErrDirectory if dir is no directory, and cannot become one.
func checkDir(fsys vfs.FS, dir string) error {
	for d := dir; ; d = fsys.PathDir(d) {
		switch info, err := fsys.Stat(d); {
		case err == nil && !info.IsDir():
			return unusable(fmt.Errorf("%s is not a directory", d))
		case errors.Is(err, fs.ErrPermission):
			return unusable(err)
		case err == nil || d == fsys.PathDir(d):
			return nil
		}
	}
}

// makeDir creates a directory and its parents, and syncs them. It fails with
// ErrDirectory if that will not be possible later either, unlike on a full disk.
func makeDir(fsys vfs.FS, dir string) error {
	var made []string
	for d := dir; ; d = fsys.PathDir(d) {
		if _, err := fsys.Stat(d); err == nil || d == fsys.PathDir(d) {
			break
		}
		made = append(made, d)
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		for _, lasting := range []error{fs.ErrPermission, fs.ErrExist, fs.ErrNotExist, syscall.ENOTDIR, syscall.EROFS, syscall.ELOOP, syscall.ENAMETOOLONG} {
			if errors.Is(err, lasting) {
				return unusable(err)
			}
		}
		return err
	}
	for _, d := range made {
		parent, err := fsys.OpenDir(fsys.PathDir(d))
		if err != nil {
			return err
		}
		if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
			return err
		}
	}
	return nil
}

// isLocked reports whether an error means that another process has the lock. POSIX
// allows both error numbers; a file that cannot be opened has its path.
func isLocked(err error) bool {
	_, hasPath := errors.AsType[*fs.PathError](err)
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) && !hasPath ||
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
