// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

const (
	blockSize = 64 << 10
	cacheSize = 64 << 20
	// memTableSize is how much is in memory and in the write-ahead log before it
	// becomes a table on disk; several of them can be waiting for that.
	memTableSize = 16 << 20
	// reserve is how much of the disk is left free. It takes what is in memory
	// tables when the disk is full, and a compaction.
	reserve = 128 << 20
)

// openDB opens the database.
func (s *Store) openDB(readOnly bool) error {
	g, err := newGuard(s.opts.FS, s.dir, s.opts.Logger)
	if err != nil {
		return err
	}
	log := &pebbleLog{log: s.opts.Logger, guard: g}
	o := &pebble.Options{
		FS: g, CacheSize: cacheSize, FormatMajorVersion: pebble.FormatNewest,
		MemTableSize: cmp.Or(s.opts.memTable, memTableSize), Logger: log,
		EventListener: &pebble.EventListener{DataCorruption: func(i pebble.DataCorruptionInfo) {
			s.opts.Logger.Error("the history is damaged", "file", i.Path, "err", i.Details)
		}},
		ReadOnly: readOnly, ErrorIfNotExists: readOnly || s.opts.Cluster == "",
	}
	for i := range o.Levels {
		o.Levels[i] = pebble.LevelOptions{
			BlockSize:      blockSize,
			IndexBlockSize: blockSize,
			Compression:    func() *sstable.CompressionProfile { return block.MinLZCompression },
		}
	}
	db, err := pebble.Open(s.dir, o)
	if err != nil {
		return err
	}
	if err := g.failure(); err != nil {
		return errors.Join(err, db.Close())
	}
	log.opened.Store(true)
	s.db, s.guard = db, g
	if open, err := s.get([]byte{tableOpen}); err == nil && open != nil {
		s.opts.Logger.Warn("the history was not closed, it ends with what was last acknowledged", "dir", s.dir, "log", log.replayed)
	}
	return nil
}

// enter says in the database that it is open. One that says so when it is opened
// was left by a crash, or is damaged by a failure: what its log has besides
// whole batches, a torn tail, is cut by Pebble.
func (s *Store) enter() error {
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.Set([]byte{tableOpen}, []byte{1}, nil); err != nil {
		return err
	}
	return s.commit(b)
}

// use lets the caller use the database until done. Whoever waits for others in
// between, must not.
func (s *Store) use() error {
	s.open.RLock()
	if s.db == nil {
		defer s.open.RUnlock()
		return cmp.Or(s.why, ErrClosed)
	}
	return nil
}

func (s *Store) done() { s.open.RUnlock() }

// commit writes a batch. If it fails, it is not known whether the batch is on
// disk, and nothing can be written until Recover.
func (s *Store) commit(b *pebble.Batch) error {
	if err := s.failure(); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return err
	}
	return s.failure()
}

// failure returns why nothing can be written, nil if it can.
func (s *Store) failure() error {
	if s.opts.ReadOnly {
		return errReadOnly
	}
	if s.why != nil {
		return s.why
	}
	if err := s.guard.failure(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

// room fails with [ErrDiskFull] when there is no room to write into.
func (s *Store) room() error {
	free, err := s.opts.FS.GetDiskUsage(s.dir)
	if least := cmp.Or(s.opts.reserve, reserve); err == nil && free.AvailBytes < least {
		return fmt.Errorf("%w: %d MiB are free, and %d MiB stay so", ErrDiskFull, free.AvailBytes>>20, least>>20)
	}
	return nil // a file system that does not say shows it when it is full
}

// Err returns why the store cannot be written any more: [ErrFailed] after an
// error of writing, or [ErrDiskFull]; nil while it can.
func (s *Store) Err() error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.done()
	if err := s.failure(); err != nil {
		return err
	}
	return s.room()
}

// Recover tries to make a store that cannot be written one that can: it reads
// what is on disk anew. The store and its streams stay, but what was not
// acknowledged may be there or not: see their heads. If it fails, the store can
// be read still, or is closed when not even that is possible. With [ErrDiskFull]
// alone, [Store.Trim] can make room.
func (s *Store) Recover() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.opts.ReadOnly {
		return errReadOnly
	}
	if s.db != nil {
		if s.failure() == nil {
			return s.room()
		}
		if err := s.db.Close(); err != nil {
			s.opts.Logger.Warn("closing the history after a failure", "err", err)
		}
		s.db = nil
	} else if s.why == nil {
		return ErrClosed
	}
	// Some of the disk is kept for this, and for making room.
	s.why = nil
	if s.why = s.connect(false); s.why == nil {
		return s.room()
	}
	s.why = fmt.Errorf("%w: %w", ErrFailed, s.why)
	if err := s.connect(true); err != nil {
		s.opts.Logger.Error("the history can be neither written nor read", "err", err)
	}
	return s.why
}

// Close writes what is pending and closes the store. It waits for readers, but
// not for those of whom a caller takes its time with an object.
func (s *Store) Close() error {
	s.open.Lock()
	defer s.open.Unlock()
	writable := s.db != nil && s.failure() == nil
	s.why = nil
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
	}
	err = errors.Join(err, s.db.Close())
	s.db = nil
	return err
}

// damage marks what Pebble calls corruption, by a mark that errors.Is does not see.
func damage(err error) error {
	if pebble.IsCorruptionError(err) && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// A pebbleLog takes what Pebble logs. What it would end the process for is a
// failure like others.
type pebbleLog struct {
	log      *slog.Logger
	guard    *guard
	opened   atomic.Bool
	replayed string // what was said before that of the last log that was read
}

func (l *pebbleLog) Infof(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if _, said, ok := strings.Cut(text, "stopped reading at "); ok && !l.opened.Load() {
		l.replayed = said
	}
	l.log.Debug(text)
}

func (l *pebbleLog) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }

func (l *pebbleLog) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.log.Error(err.Error())
	l.guard.fail(err)
}
