// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/internal/record/history/budget"
	"github.com/watchkeeper/watchkeeper/internal/record/history/failstop"
)

// Options configure a store. Cluster is required.
type Options struct {
	// Cluster identifies the cluster by the UID of its namespace kube-system.
	// If it is "", Open accepts the history of any cluster but does not create
	// a store.
	Cluster string
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// Logger receives reports of background work; nil discards them.
	Logger *slog.Logger
	// MaxAge and MaxBytes limit how far back the history reaches and how much
	// disk it uses; Trim enforces both. 0 means no limit, except that some of
	// the disk stays free (see minFreeDisk).
	MaxAge   time.Duration
	MaxBytes int64
	// Now is the clock; nil means time.Now. Trim and reads by time compare with it
	// what writers have passed, so they must use the same clock.
	Now func() time.Time
	// Temporary is set for a store that is of no use after a crash, and whose
	// content may be hostile: writes are not synced, so T9 does not hold, and take
	// little memory, so that more is read from disk.
	Temporary bool
	// ReadOnly opens an existing store and changes nothing in its directory.
	ReadOnly bool

	// For tests; 0 means the constant of the same name.
	memTableSize, minFreeDisk uint64
}

// A Store is the history of one cluster, in one directory. Any goroutine may
// use it.
//
// Locks are acquired in the order trimMu, dbMu, catalogMu, Stream.writeMu; mu
// and Stream.mu come last and are never held together. They are not held during
// I/O either, so calls that only ask what is recorded return even while the disk
// hangs.
type Store struct {
	opts Options
	dir  string
	now  func() time.Time
	// opened is when the process opened the store, and newest the newest head then; zero
	// without one. See ageClock.
	opened, newest time.Time

	dbMu    sync.RWMutex // guards the next three; a read lock is held while the database is used
	db      *pebble.DB   // nil when closed
	fs      *failstop.FS
	openErr error // why a store that should be writable was opened read-only

	readBudget *budget.Budget // shared by all readers of events

	trimMu       sync.Mutex  // held by Trim; guards minTrimBytes
	minTrimBytes int64       // trimming by size pauses below it: the present state alone takes that much
	unreclaimed  atomic.Bool // records were removed, but their space was not reclaimed yet

	catalogMu sync.Mutex // held while a stream is created or removed

	measuring      atomic.Bool
	diskUsed, live atomic.Int64 // the last result of Usage

	mu      sync.Mutex           // guards the fields below
	streams map[string][]*Stream // by group and resource; oldest epoch first
	last    streamID
}

// Open opens the store in a directory, and creates it if it does not exist. It
// fails with [ErrOtherCluster], [ErrNewerFormat], or an error of the file
// system, for example when another process has the store open.
//
// An existing store that cannot be written, as on a full disk, is opened
// read-only: [Store.Err] then returns the reason, and [Store.Recover] tries
// again.
func Open(dir string, opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{opts: opts, dir: dir, now: opts.Now, readBudget: budget.New(maxEventBytes), streams: map[string][]*Stream{}}
	s.unreclaimed.Store(true) // the previous process may have left some
	err := s.connect(opts.ReadOnly)
	if err == nil {
		s.opened = time.Now()
		for _, st := range s.allStreams() {
			if at := st.Head().At; at.After(s.newest) {
				s.newest = at
			}
		}
		return s, nil
	}
	// If it cannot be read either, the first error is the useful one.
	if opts.ReadOnly || s.connect(true) != nil {
		return nil, err
	}
	s.openErr = fmt.Errorf("%w: %w", ErrFailed, err)
	opts.Logger.Warn("the history cannot be written and was opened read-only", "err", err)
	return s, nil
}

// connect opens the database and reads the catalog of streams.
func (s *Store) connect(readOnly bool) error {
	var err error
	if !readOnly {
		err = s.checkIdentity()
	}
	if err == nil {
		err = s.openDB(readOnly)
	}
	if err != nil {
		return fmt.Errorf("history in %s: %w", s.dir, damage(err))
	}
	if err = s.identify(readOnly); err == nil {
		err = s.load()
	}
	if err == nil && !readOnly {
		err = s.markOpen()
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("history in %s: %w", s.dir, damage(err)), s.db.Close())
		s.db = nil
	}
	return err
}

// Cluster returns the UID of the cluster, see [Options].
func (s *Store) Cluster() string { return s.opts.Cluster }

// Err returns why the store cannot be written: [ErrFailed] after a write error,
// or [ErrDiskFull]. It is nil while the store can be written.
func (s *Store) Err() error {
	if err := s.acquire(); err != nil {
		return err
	}
	defer s.release()
	if err := s.failure(); err != nil {
		return err
	}
	return s.checkDiskSpace()
}

// Recover makes a store writable again after a failure, by opening what is on
// disk a second time. The Store and its Streams remain valid. A write that was
// not acknowledged may or may not be there: compare the heads of the streams.
// If Recover fails, the store can still be read, or is closed if that is
// impossible too. After [ErrDiskFull], [Store.Trim] may free some space.
func (s *Store) Recover() error {
	s.dbMu.Lock()
	defer s.dbMu.Unlock()
	if s.opts.ReadOnly {
		return errReadOnly
	}
	if s.db != nil {
		if s.failure() == nil {
			return s.checkDiskSpace()
		}
		if err := s.db.Close(); err != nil {
			s.opts.Logger.Warn("cannot close the history after a failure", "err", err)
		}
		s.db = nil
	} else if s.openErr == nil {
		return ErrClosed
	}
	// minFreeDisk leaves room for opening and trimming.
	s.openErr = nil
	if s.openErr = s.connect(false); s.openErr == nil {
		return s.checkDiskSpace()
	}
	s.openErr = fmt.Errorf("%w: %w", ErrFailed, s.openErr)
	if err := s.connect(true); err != nil {
		s.opts.Logger.Error("the history can be neither written nor read", "err", err)
	}
	return s.openErr
}

// Close flushes pending writes and closes the store. It waits for running
// reads, but not for a caller that is handling an element of an iterator.
func (s *Store) Close() error {
	s.dbMu.Lock()
	defer s.dbMu.Unlock()
	writable := s.db != nil && s.failure() == nil
	s.openErr = nil
	if s.db == nil {
		return nil
	}
	var err error
	if writable {
		b := s.db.NewBatch()
		if err = b.Delete([]byte{tableOpen}, nil); err == nil {
			err = s.commit(b)
		}
		err = errors.Join(err, b.Close())
		if err == nil && !s.opts.Temporary {
			err = s.db.Flush() // so that a copy without the log has everything
		}
	}
	err = errors.Join(err, s.db.Close())
	s.db = nil
	return err
}

// acquire keeps the database open until release. In between, the caller must
// not wait for another goroutine that needs the database: a pending Close
// blocks it.
func (s *Store) acquire() error {
	s.dbMu.RLock()
	if s.db == nil {
		defer s.dbMu.RUnlock()
		return cmp.Or(s.openErr, ErrClosed)
	}
	return nil
}

func (s *Store) release() { s.dbMu.RUnlock() }
