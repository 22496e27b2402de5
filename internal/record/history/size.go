// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Usage is the size of a store and its limits.
type Usage struct {
	// DiskBytes is the space that the store's directory takes on disk, as du shows it:
	// with what is reserved for write-ahead logs, and with replaced files that are
	// deleted soon.
	DiskBytes int64
	// LiveBytes is the part of it that has recorded data: tables, and what is only in
	// the write-ahead log.
	LiveBytes int64
	MaxBytes  int64 // 0 means no limit
	MaxAge    time.Duration
}

// usageWait is how long Usage waits for the database.
const usageWait = 200 * time.Millisecond

// Usage returns the size of the store. If the disk hangs, it returns the last
// known size after a short wait.
func (s *Store) Usage() Usage {
	if s.measuring.CompareAndSwap(false, true) {
		measured := make(chan struct{})
		go func() {
			defer close(measured)
			defer s.measuring.Store(false)
			disk, live := int64(0), int64(0)
			if s.acquire() == nil {
				defer s.release()
				m := s.db.Metrics()
				live = int64(m.Table.Local.LiveSize + m.BlobFiles.Local.LiveSize + m.WAL.Size)
				disk = s.diskBytes()
			}
			s.diskUsed.Store(disk)
			s.live.Store(live)
		}()
		select {
		case <-measured:
		case <-time.After(usageWait):
		}
	}
	return Usage{DiskBytes: s.diskUsed.Load(), LiveBytes: s.live.Load(), MaxBytes: s.opts.MaxBytes, MaxAge: s.opts.MaxAge}
}

// diskBytes returns the space that the store's directory takes on disk. Pebble's own
// count lacks the space that is reserved for its write-ahead logs, and has tables for
// some time after they are deleted.
func (s *Store) diskBytes() (sum int64) {
	fs := s.opts.FS
	names, _ := fs.List(s.dir)
	paths := []string{s.dir}
	for _, name := range names {
		paths = append(paths, fs.PathJoin(s.dir, name))
	}
	for _, path := range paths {
		if info, err := fs.Stat(path); err == nil { // else it was deleted meanwhile
			sum += allocated(info)
		}
	}
	return sum
}

// Tables may take maxTableParts/16 of the limit. The rest is for write-ahead
// logs, recycled ones included (see Store.memTableSize), and for tables that are being rewritten. Beyond
// that, tables are brought down to targetTableParts/16. Tables are sorted by
// object, so the removed versions are spread over all tables and all of them
// are rewritten; a smaller step would not be worth that.
const (
	maxTableParts    = 12
	targetTableParts = 9
)

// byteLimit returns how large the store may become: MaxBytes, or what fits on
// the disk if that is less, so that old events are removed before the disk is
// full. 0 means no limit.
func (s *Store) byteLimit() (int64, error) {
	if err := s.acquire(); err != nil {
		return 0, err
	}
	defer s.release()
	limit := s.opts.MaxBytes
	disk, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return limit, nil // the file system does not report its usage
	}
	available := s.diskBytes() + int64(disk.AvailBytes) - int64(cmp.Or(s.opts.minFreeDisk, minFreeDisk))
	if available <= 0 {
		return limit, nil // others fill the disk; trimming would not free enough
	}
	if limit <= 0 || available < limit {
		limit = available
	}
	return limit, nil
}

// trimBySize removes the oldest events until the tables are small enough.
func (s *Store) trimBySize(ctx context.Context) error {
	limit, err := s.byteLimit()
	if err != nil || limit <= 0 {
		return err
	}
	maxTables, target := limit/16*maxTableParts, limit/16*targetTableParts
	for cut := false; ; cut = true {
		before, err := s.tableBytes()
		if err != nil || before <= max(maxTables, s.minTrimBytes) {
			return err
		}
		// First reclaim the space of what was removed earlier; trim only if
		// that is not enough.
		if s.unreclaimed.Swap(false) {
			if err := s.rewriteTables(ctx); err != nil {
				s.unreclaimed.Store(true)
				return err
			}
			size, err := s.tableBytes()
			if err != nil {
				return err
			}
			if cut && size > maxTables && before-size < before/64 {
				// The space is taken by the present state.
				s.minTrimBytes = size + size/16
				s.opts.Logger.Warn("the history exceeds its limit although little of the past is left; raise --history-max-bytes", "bytes", size, "max", limit)
				return nil
			}
			continue
		}
		t, err := s.cutoff(float64(before-target) / float64(before))
		if err != nil {
			return err
		}
		if err := s.trim(ctx, t, 0); err != nil {
			return err
		}
		s.unreclaimed.Store(true)
	}
}

// tableBytes returns the size of all tables on disk.
func (s *Store) tableBytes() (size int64, err error) {
	if err := s.acquire(); err != nil {
		return 0, err
	}
	defer s.release()
	for _, level := range s.db.Metrics().Levels {
		size += level.TablesSize
	}
	return size, nil
}

// compactStep is about how much is rewritten at a time. For that long, it takes
// its space on disk twice.
const compactStep = 64 << 20

// rewriteTables rewrites the tables without what was removed.
func (s *Store) rewriteTables(ctx context.Context) error {
	bounds, err := s.compactBounds()
	if err != nil {
		return err
	}
	for i := range len(bounds) - 1 {
		if err := s.acquire(); err != nil {
			return err
		}
		err := damage(s.db.Compact(ctx, bounds[i], bounds[i+1], false))
		s.release()
		if errors.Is(err, ErrCorrupt) {
			continue // Pebble has logged it; the other tables can be rewritten
		}
		if err == nil {
			// minFreeDisk is meant for compactions, too.
			if err = s.Err(); errors.Is(err, ErrDiskFull) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compactBounds returns keys that divide the key space into parts of about
// compactStep bytes in the bottom level.
func (s *Store) compactBounds() (bounds [][]byte, err error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.release()
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	bounds = [][]byte{{0}}
	levels = slices.DeleteFunc(levels, func(l []pebble.SSTableInfo) bool { return len(l) == 0 })
	if len(levels) > 0 {
		size := uint64(0)
		for _, table := range levels[len(levels)-1] {
			if size += table.Size; size >= compactStep && !bytes.Equal(table.Largest.UserKey, bounds[len(bounds)-1]) {
				bounds, size = append(bounds, bytes.Clone(table.Largest.UserKey)), 0
			}
		}
	}
	return append(bounds, []byte{255}), nil
}

// Compact flushes and rewrites everything into the bottom level. Pebble does
// the same in the background, later. It is for measurements, and for a store
// that will be copied.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.acquire(); err != nil {
		return err
	}
	defer s.release()
	if err := s.db.Flush(); err != nil {
		return err
	}
	return errors.Join(s.db.Compact(ctx, []byte{0}, []byte{255}, true), ctx.Err())
}

// ReadUsage is what readers of events hold at the moment.
type ReadUsage struct {
	Readers int   // iterations of [Stream.Events] in progress
	Bytes   int64 // approximately
}

// ReadUsage returns what readers of events hold at the moment.
func (s *Store) ReadUsage() ReadUsage {
	readers, bytes := s.readBudget.Used()
	return ReadUsage{readers, bytes}
}
