// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
	"github.com/watchkeeper/watchkeeper/internal/watchcache"
)

var (
	// ErrNotRecorded: the resource is not being recorded.
	ErrNotRecorded = errors.New("the resource is not being recorded")
	// ErrInUse: another process records to the directory.
	ErrInUse = errors.New("another process records to this directory")

	errStarting     = errors.New("recording has not yet started")
	errOtherCluster = errors.New("the API server is one of another cluster than before")
)

// Options configure a [Recorder]. Dir and Upstream are required.
type Options struct {
	// Dir has a subdirectory for each cluster.
	Dir string
	// Select selects the recorded resources; the zero value selects none.
	Select Selection
	// MaxAge and MaxBytes limit the history of a cluster; 0 is no limit.
	MaxAge   time.Duration
	MaxBytes int64
	// Upstream is the API server of the cluster.
	Upstream *upstream.Server
	// Logger receives the log; nil discards it.
	Logger *slog.Logger
	// Registerer registers the metrics; nil leaves them unregistered.
	Registerer prometheus.Registerer
	// FS is the file system of Dir; nil means the operating system's.
	FS vfs.FS
}

// A Recorder records one cluster. Any goroutine may call its methods. With a nil
// Recorder, nothing is recorded.
type Recorder struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	started chan struct{} // closed when the first session has begun or could not begin

	delay        delays
	retry        time.Duration // the first pause between attempts to record
	redial       time.Duration // the pause while the cluster is not known
	patience     time.Duration // how long serving waits for recording
	retryRefused time.Duration // the pause after a resource was refused
	rediscover   time.Duration
	trimEvery    time.Duration

	mu        sync.Mutex // guards what follows
	store     *history.Store
	dir       string   // of the store
	uid       string   // of the store's cluster
	session   *session // nil while nothing is recorded
	problem   error    // why nothing is recorded; nil during a session
	resources map[kube.Resource]*continuity
}

// New returns a recorder. It does nothing before [Recorder.Open] or
// [Recorder.Run].
func New(opts Options) (*Recorder, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{
		opts: opts, log: opts.Logger, started: make(chan struct{}),
		delay: delays{events: time.Second, head: 10 * time.Second},
		retry: 15 * time.Second, redial: time.Second, patience: 2 * time.Second,
		retryRefused: 5 * time.Minute, rediscover: 2 * time.Minute, trimEvery: time.Minute,
		problem:   errStarting,
		resources: map[kube.Resource]*continuity{},
	}
	r.metrics = newMetrics(r)
	if opts.Registerer != nil {
		if err := opts.Registerer.Register(r.metrics); err != nil {
			return nil, fmt.Errorf("history metrics: %w", err)
		}
	}
	return r, nil
}

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
		ask, cancel = context.WithTimeout(ctx, r.patience)
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
		Cluster: uid, FS: r.opts.FS, Logger: r.log, MaxAge: r.opts.MaxAge, MaxBytes: r.opts.MaxBytes,
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
		c.distrust()
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

// An Owner owns the upstream watches of the resources that are recorded.
type Owner interface {
	// Record delivers all changes of a resource to its record, from the call on
	// until ctx ends. The caller calls wait once, which returns when ctx has ended
	// and the record is no longer used.
	Record(ctx context.Context, id kube.Resource, record watchcache.Record) (wait func())
}

// Run records what the owner of the upstream watches delivers until ctx ends, and
// returns when everything observed is on disk. A failure is logged, and recording is
// tried again: at once, and then at growing intervals.
func (r *Recorder) Run(ctx context.Context, owner Owner) {
	wait := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		err := r.open(ctx)
		store := r.Store()
		if err == nil {
			err = store.Recover()
		}
		if err == nil {
			if err = r.record(ctx, owner, store); time.Since(began) > r.retry {
				wait = 0 // recording had worked
			}
		}
		if ctx.Err() != nil {
			break
		}
		r.off(err)
		if errors.Is(err, history.ErrDiskFull) {
			// Removing what exceeds the limits may make room.
			if err := store.Trim(ctx); err != nil {
				r.log.Debug("no room made on the full disk", "cause", err)
			}
		}
		pause := r.redial
		if !errors.Is(err, errOtherCluster) && !errors.Is(err, upstream.ErrUnavailable) {
			pause, wait = wait, min(max(2*wait, r.retry), 16*r.retry)
		}
		sleep(ctx, pause)
	}
	r.Close()
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

// off sets and logs the reason why nothing is recorded.
func (r *Recorder) off(err error) {
	r.mu.Lock()
	before := r.problem
	r.problem = err
	r.begun()
	r.mu.Unlock()
	level := slog.LevelWarn
	if before != nil && before.Error() == err.Error() {
		level = slog.LevelDebug // logged before
	} else {
		r.metrics.failures.Inc()
	}
	r.log.Log(context.Background(), level, "nothing is recorded for now; serving continues, and recording is tried again",
		"dir", r.opts.Dir, "cause", err)
}

// setSession sets the current session; nil means that it has ended.
func (r *Recorder) setSession(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session = s; s == nil {
		return
	}
	r.problem = nil
	r.begun()
}

// begun closes started. The caller holds mu.
func (r *Recorder) begun() {
	select {
	case <-r.started:
	default:
		close(r.started)
	}
}

// Store returns the history, nil while it is not open. It can be read while nothing can
// be written.
func (r *Recorder) Store() *history.Store {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store
}

// Sync waits until every change of the resource that was known at the call is in the
// history, including those in its timeline. It fails when ctx ends, and with
// [ErrNotRecorded] if the resource is not recorded, cannot be written, or its first
// list is not written yet.
func (r *Recorder) Sync(ctx context.Context, id kube.Resource) error {
	if r == nil {
		return ErrNotRecorded
	}
	t, tl := r.continuity(id).current()
	if t == nil {
		return ErrNotRecorded
	}
	rv := t.w.position().RV
	if tl != nil {
		if v := tl.View(); v != nil {
			rv = v.RV
		}
	}
	if rv == 0 {
		return ErrNotRecorded
	}
	return t.w.reached(ctx, t.ctx, rv)
}

// Recorded returns the resources that are being recorded.
func (r *Recorder) Recorded() []kube.Resource {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	s := r.session
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	var out []kube.Resource
	for _, t := range s.all() {
		out = append(out, t.id)
	}
	return out
}

// Status is the state of a recorder.
type Status struct {
	// Recording reports whether the cluster is recorded; if not, Problem says why.
	Recording bool
	Problem   string
	// Dir is the cluster's directory; Options.Dir while the cluster is not known.
	Dir string
	// Resources is the number of resources that are recorded.
	Resources int
	history.Usage
}

// Status returns the state of the recorder. ok is false for a nil Recorder.
func (r *Recorder) Status() (s Status, ok bool) {
	if r == nil {
		return Status{}, false
	}
	r.mu.Lock()
	store, session, problem, dir := r.store, r.session, r.problem, r.dir
	r.mu.Unlock()
	if s.Dir = r.opts.Dir; store != nil {
		s.Dir, s.Usage = dir, store.Usage()
	}
	if problem != nil {
		s.Problem = problem.Error()
	}
	if s.Recording = session != nil; s.Recording {
		s.Resources = len(session.all())
	}
	return s, true
}

func (r *Recorder) directory() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dir
}

// continuity returns the continuity of a resource.
func (r *Recorder) continuity(id kube.Resource) *continuity {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.resources[id]
	if c == nil {
		c = &continuity{}
		r.resources[id] = c
	}
	return c
}

// Ready waits until the resources recorded before are recorded again, but not for long.
// A nil Recorder is ready.
func (r *Recorder) Ready(ctx context.Context) {
	if r.Store() == nil {
		return
	}
	select {
	case <-r.started:
	case <-time.After(r.patience):
		r.log.Warn("the history takes long to open: serving does not wait for it")
	case <-ctx.Done():
	}
}
