// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"

	"github.com/watchkeeper/watchkeeper/internal/record/history/failstop"
)

const (
	blockSize = 64 << 10
	// cacheSize bounds the blocks that stay in memory after they were read. All blocks of
	// 20,000 Pods fit, so that moments of the past follow each other faster: in a
	// difference of two, objects of nearly every block have changed.
	cacheSize = 128 << 20
	// memTableSize is how much Pebble keeps in memory and in the write-ahead
	// log before it writes a table to disk. Up to four memory tables can wait
	// for that. Two are always in memory, the second to be used again. With 4 MiB an event
	// costs a quarter more CPU, with 8 MiB a hundredth less, with 16 MiB a twentieth. A
	// store with a small limit has smaller ones, but not smaller than minMemTableSize.
	memTableSize    = 6 << 20
	minMemTableSize = 1 << 20
	// temporaryCacheSize and temporaryMemTableSize are those of a temporary store.
	temporaryCacheSize    = 8 << 20
	temporaryMemTableSize = 4 << 20
	// minFreeDisk is how much of the disk stays free. It is enough to flush the
	// memory tables on a full disk, and to compact.
	minFreeDisk = 128 << 20
)

// openDB opens the Pebble database.
func (s *Store) openDB(readOnly bool) error {
	if err := s.checkFiles(); err != nil {
		return err
	}
	g, err := failstop.New(s.opts.FS, s.dir, s.opts.Logger)
	if err != nil {
		return err
	}
	log := &pebbleLog{log: s.opts.Logger, fs: g}
	o := &pebble.Options{
		FS: g, CacheSize: cacheSize, FormatMajorVersion: pebble.FormatNewest,
		MemTableSize: s.memTableSize(), Logger: log,
		EventListener: &pebble.EventListener{DataCorruption: func(i pebble.DataCorruptionInfo) {
			s.opts.Logger.Error("the history is damaged", "file", i.Path, "err", i.Details)
		}},
		ReadOnly: readOnly, ErrorIfNotExists: readOnly || s.opts.Cluster == "",
	}
	if s.opts.Temporary {
		o.CacheSize, o.MemTableStopWritesThreshold = temporaryCacheSize, 2
		o.DisableWAL = true
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
		if strings.Contains(err.Error(), "unknown format major version") { // Pebble has no error for it
			err = fmt.Errorf("%w: %w", ErrNewerFormat, err)
		}
		if errors.Is(err, pebble.ErrDBNotPristine) { // Pebble's error does not name it
			err = corrupt("the file %sformat-version.* is missing", markerPrefix)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = corrupt("a file is missing: %v", err)
		}
		return err
	}
	if err := g.Err(); err != nil {
		return errors.Join(err, db.Close())
	}
	log.opened.Store(true)
	s.db, s.fs = db, g
	if open, err := s.get([]byte{tableOpen}); err == nil && open != nil {
		s.opts.Logger.Warn("the history was not closed; it ends with the last write in its log", "dir", s.dir, "log", log.replayed)
	}
	return nil
}

// markerPrefix begins the names of two files of Pebble, which are empty: what they say is in
// their names.
const markerPrefix = "marker."

// checkFiles fails if there are files of a database, but not the one that names the current
// MANIFEST. Pebble would create a database there, and remove these files. It places the
// marker before it writes any log or table.
func (s *Store) checkFiles() error {
	names, _ := s.opts.FS.List(s.dir) // the error is Pebble's to return: it may create the directory
	data := slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".sst")
	})
	marked := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, markerPrefix+"manifest.") })
	if data && !marked {
		return corrupt("the file %smanifest.* is missing", markerPrefix)
	}
	return nil
}

// memTableSize returns the size of a memory table. Five write-ahead logs, each a tenth
// larger, take less than the part of the limit that is not for tables.
func (s *Store) memTableSize() uint64 {
	if s.opts.Temporary {
		return temporaryMemTableSize
	}
	size := uint64(memTableSize)
	if limit := s.opts.MaxBytes; limit > 0 {
		size = min(size, max(minMemTableSize, uint64(limit)/32))
	}
	return cmp.Or(s.opts.memTableSize, size)
}

// markOpen records that the database is open. If the record exists at the next
// start, the process was killed or the store failed, and Pebble has cut a torn
// tail off the write-ahead log.
func (s *Store) markOpen() error {
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.Set([]byte{tableOpen}, []byte{1}, nil); err != nil {
		return err
	}
	return s.commit(b)
}

// commit writes a batch. After an error it is unknown whether the batch is on
// disk, and all further writes fail until Recover.
func (s *Store) commit(b *pebble.Batch) error {
	if err := s.failure(); err != nil {
		return err
	}
	how := pebble.Sync
	if s.opts.Temporary {
		how = pebble.NoSync // there is no write-ahead log
	}
	if err := b.Commit(how); err != nil {
		return err
	}
	return s.failure()
}

// failure returns why nothing can be written, nil if writing is possible.
func (s *Store) failure() error {
	if s.opts.ReadOnly {
		return errReadOnly
	}
	if s.openErr != nil {
		return s.openErr
	}
	if err := s.fs.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

// checkDiskSpace fails with [ErrDiskFull] when less than minFreeDisk is free.
func (s *Store) checkDiskSpace() error {
	free, err := s.opts.FS.GetDiskUsage(s.dir)
	if minFree := cmp.Or(s.opts.minFreeDisk, minFreeDisk); err == nil && free.AvailBytes < minFree {
		if s.opts.Temporary { // nobody records here, or can limit it
			return fmt.Errorf("%w: %d MiB are free, %d MiB have to remain free", ErrDiskFull, free.AvailBytes>>20, minFree>>20)
		}
		return fmt.Errorf("%w: %d MiB are free, recording needs %d MiB: free some space, or lower --history-max-bytes", ErrDiskFull, free.AvailBytes>>20, minFree>>20)
	}
	return nil // if the file system does not report its usage, the write may fail instead
}

// get returns the value of a key, nil if there is none.
func (s *Store) get(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage(err)
	}
	return append([]byte{}, value...), closer.Close()
}

// getJSON reads a JSON record.
func (s *Store) getJSON(key []byte, into any) (found bool, err error) {
	value, err := s.get(key)
	if value == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(value, into); err != nil {
		return false, corrupt("%q: %v", key, err)
	}
	return true, nil
}

func (s *Store) setJSON(key []byte, record any) error {
	value, err := json.Marshal(record)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.Set(key, value, nil); err != nil {
		return err
	}
	return s.commit(b)
}

// iter returns an iterator over the keys in [lower, upper).
func (s *Store) iter(lower, upper []byte) (*pebble.Iterator, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	return it, damage(err)
}

// each calls f for every key with a prefix.
func (s *Store) each(prefix []byte, f func(key, value []byte) error) error {
	it, err := s.iter(prefix, prefixEnd(prefix))
	if err != nil {
		return err
	}
	for it.First(); err == nil && it.Valid(); it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = f(it.Key(), value)
		}
	}
	return damage(errors.Join(err, it.Error(), it.Close()))
}

// A pebbleLog passes Pebble's log on. A fatal error becomes a failure of the
// store instead of ending the process.
type pebbleLog struct {
	log      *slog.Logger
	fs       *failstop.FS
	opened   atomic.Bool
	replayed string // where Pebble stopped reading the last write-ahead log
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
	l.fs.Fail(err)
}
