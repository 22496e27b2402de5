// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

var (
	// ErrNotRecorded: the resource is not being recorded.
	ErrNotRecorded = errors.New("the resource is not being recorded")
	// ErrInUse: another process records to the directory.
	ErrInUse = errors.New("another process records to")
	// ErrDirectory: Options.Dir is no directory, or may not be written.
	ErrDirectory = errors.New("the directory cannot be used")

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
	// Now is the clock of the recorded times; nil means time.Now. What comes from a
	// timeline has the timeline's times: it must use the same clock.
	Now func() time.Time
}

// A Recorder records one cluster. Any goroutine may call its methods. With a nil
// Recorder, nothing is recorded.
type Recorder struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	started chan struct{} // closed when the first session has begun or could not begin

	delay        delays
	minSilence   time.Duration // how long an interruption of a watch must last to be recorded
	maxPause     time.Duration // how long the program may not run without a silence
	retry        time.Duration // the first pause between attempts to record
	redial       time.Duration // the pause while the cluster is not known
	diskTimeout  time.Duration // how long serving waits for recording
	retryRefused time.Duration // the pause after a resource was refused
	rediscover   time.Duration
	defined      time.Duration // from a new definition until discovery has its resource
	trimEvery    time.Duration
	listenEvery  time.Duration

	mu        sync.Mutex // guards what follows
	store     *history.Store
	dir       string      // of the store
	place     os.FileInfo // what dir was when it was opened; nil if that is not known
	uid       string      // of the store's cluster
	session   *session    // nil while nothing is recorded
	problem   error       // why nothing is recorded; nil during a session
	selection Selection
	notServed []string // what is wrong with the names in the selection
	resources map[kube.Resource]*continuity
}

// New returns a recorder. It does nothing before [Recorder.Open] or
// [Recorder.Run].
func New(opts Options) (*Recorder, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{
		opts: opts, log: opts.Logger, started: make(chan struct{}),
		delay:      delays{events: time.Second, head: 10 * time.Second},
		minSilence: 2 * time.Second, maxPause: 3 * time.Second,
		retry: 15 * time.Second, redial: time.Second, diskTimeout: 2 * time.Second,
		retryRefused: 5 * time.Minute, rediscover: 2 * time.Minute, defined: time.Second, trimEvery: time.Minute, listenEvery: time.Second,
		problem:   errStarting,
		selection: opts.Select,
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

// An Owner owns the upstream watches of the resources that are recorded.
type Owner interface {
	// Record delivers all changes of a resource to its record, from the call on
	// until ctx ends. The caller calls wait once, which returns when ctx has ended
	// and the record is no longer used.
	Record(ctx context.Context, id kube.Resource, record watchcache.Record) (wait func())
	// Check makes sure that the watch of a resource is not only open in appearance, and not
	// behind, and reports whether that is so. It may take a second.
	Check(ctx context.Context, id kube.Resource) (current bool)
	// Current returns when what the watch delivers was last known to lack nothing, zero if it
	// was never.
	Current(id kube.Resource) time.Time
	// Doubt ends the watch of a resource, if it is open, because of err: the next one has to
	// prove the API server's history.
	Doubt(id kube.Resource, err error)
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
		if errors.Is(err, errMoved) {
			r.leave()
		}
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

// off sets and logs the reason why nothing is recorded.
func (r *Recorder) off(err error) {
	r.mu.Lock()
	before := r.problem
	r.problem = err
	r.begun()
	r.mu.Unlock()
	level := slog.LevelWarn
	if errors.Is(err, errMoved) {
		level = slog.LevelError // what was recorded is not served any more
	}
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

// Now returns the time by the clock of the recorded times. A nil Recorder has the
// system's.
func (r *Recorder) Now() time.Time {
	if r == nil {
		return time.Now()
	}
	return r.opts.Now()
}

// Ended implements past.Record: recording goes on.
func (r *Recorder) Ended() bool { return false }

// Sync waits until every change of the resource that was known at the call is in the
// history, including those in its timeline, and after an outage for a moment until those of
// that time are. It fails when ctx ends, and with [ErrNotRecorded] if the resource is not
// recorded, cannot be written, its first list is not written yet, or it is not observed
// although the API server answers.
func (r *Recorder) Sync(ctx context.Context, id kube.Resource) error {
	if r == nil {
		return ErrNotRecorded
	}
	t, tl := r.continuity(id).current()
	if t == nil {
		return r.notRecording(id)
	}
	t.check(ctx)
	rv := t.w.position().RV
	if tl != nil {
		if v := tl.View(); v != nil {
			rv = v.RV
		}
	}
	if rv == 0 {
		return ErrNotRecorded
	}
	if err := t.w.reached(ctx, t.ctx, rv); err != nil {
		return err
	}
	return t.observed(ctx)
}

// notRecording returns why a resource is not being recorded, as far as it is known. It may be that
// the version that the API server prefers now cannot be listed.
func (r *Recorder) notRecording(id kube.Resource) error {
	r.mu.Lock()
	problem, s := r.problem, r.session
	r.mu.Unlock()
	if problem != nil {
		return fmt.Errorf("%w: %w", ErrNotRecorded, problem)
	}
	if s != nil {
		for _, t := range s.all() {
			if t.id.GroupResource() != id.GroupResource() {
				continue
			}
			if refused := t.refused.Load(); refused != nil {
				return fmt.Errorf("%w: %w", ErrNotRecorded, refused)
			}
			return fmt.Errorf("%w: %w", ErrNotRecorded, past.ErrUnwatched)
		}
	}
	return ErrNotRecorded
}

// Continued implements past.Record.
func (r *Recorder) Continued(id kube.Resource, t *timeline.Timeline, epoch uint64) (st *history.Stream) {
	store := r.Store()
	if store == nil || t == nil {
		return nil
	}
	r.continuity(id).ifContinues(t, epoch, func() {
		if all := store.Streams(id); len(all) > 0 && all[len(all)-1].Resource() == id {
			st = all[len(all)-1]
		}
	})
	return st
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
	case <-time.After(r.diskTimeout):
		r.log.Warn("the history takes long to open: serving does not wait for it")
	case <-ctx.Done():
	}
}
