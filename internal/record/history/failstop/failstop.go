// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package failstop protects the files of a database after a failed write: from
// the first write error on, they stay as they are.
package failstop

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// An FS stops changing the files below it after the first failed write.
//
// Pebble ends the process when a write to its log or its manifest fails, and
// retries other failed writes without a limit. FS prevents both. After the
// first write error the files on disk stay unchanged, as if the process had
// been killed at that moment. Further writes go to memory and succeed, so that
// Pebble can still read what it holds, and be closed.
//
// A committer checks [FS.Err] after each commit: if it is nil, the commit was
// on disk before any failure. Read errors are passed to Pebble unchanged.
type FS struct {
	vfs.FS
	err atomic.Pointer[error]
	mem *vfs.MemFS
	log *slog.Logger
}

// New returns an FS over fs for the files in dir.
func New(fs vfs.FS, dir string, log *slog.Logger) (*FS, error) {
	s := &FS{FS: fs, mem: vfs.NewMem(), log: log}
	return s, s.mem.MkdirAll(dir, 0o755)
}

// Err returns the first write error, nil if there was none.
func (s *FS) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *FS) failed() bool { return s.err.Load() != nil }

// Fail records a failure, unless there was one before.
func (s *FS) Fail(err error) {
	if s.err.CompareAndSwap(nil, &err) {
		s.log.Error("writing the history failed; its files stay unchanged until it recovers", "err", err)
	}
}

// try runs an operation that changes the disk, unless a write has failed
// before.
func (s *FS) try(do func() error) error {
	if s.failed() {
		return nil
	}
	if err := do(); err != nil {
		s.Fail(err)
	}
	return nil
}

// create makes a file on disk, or in memory after a failure.
func (s *FS) create(name string, category vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	if !s.failed() {
		f, err := create()
		if err == nil {
			return &file{File: f, fs: s, name: name, category: category}, nil
		}
		s.Fail(err)
	}
	return s.mem.Create(name, category)
}

func (s *FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.create(name, category, func() (vfs.File, error) { return s.FS.Create(name, category) })
}

func (s *FS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.create(newname, category, func() (vfs.File, error) { return s.FS.ReuseForWrite(oldname, newname, category) })
}

func (s *FS) OpenDir(name string) (vfs.File, error) {
	f, err := s.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{File: f, fs: s, name: name}, nil
}

func (s *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if s.failed() {
		if f, err := s.mem.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	return s.FS.Open(name, opts...)
}

func (s *FS) Stat(name string) (vfs.FileInfo, error) {
	if s.failed() {
		if info, err := s.mem.Stat(name); err == nil {
			return info, nil
		}
	}
	return s.FS.Stat(name)
}

func (s *FS) List(dir string) ([]string, error) {
	names, err := s.FS.List(dir)
	if err == nil && s.failed() {
		var more []string
		if more, err = s.mem.List(dir); err == nil {
			names = append(names, more...)
			slices.Sort(names)
			names = slices.Compact(names)
		}
	}
	return names, err
}

func (s *FS) Remove(name string) error {
	if !s.failed() {
		return s.FS.Remove(name)
	}
	if err := s.mem.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *FS) RemoveAll(name string) error {
	return s.try(func() error { return s.FS.RemoveAll(name) })
}

func (s *FS) Rename(oldname, newname string) error {
	return s.try(func() error { return s.FS.Rename(oldname, newname) })
}

func (s *FS) Link(oldname, newname string) error {
	return s.try(func() error { return s.FS.Link(oldname, newname) })
}

func (s *FS) MkdirAll(dir string, perm os.FileMode) error {
	return s.try(func() error { return s.FS.MkdirAll(dir, perm) })
}

func (s *FS) Unwrap() vfs.FS { return s.FS }

// A file is a file open for writing, or a directory.
type file struct {
	vfs.File
	fs       *FS
	name     string
	category vfs.DiskWriteCategory
	size     int64    // bytes written to disk
	copy     []byte   // the bytes being written: Write may change its argument
	mem      vfs.File // replaces File after a failure
}

func (f *file) Write(p []byte) (int, error) {
	if !f.fs.failed() {
		f.copy = append(f.copy[:0], p...)
		n, err := f.File.Write(p)
		if err == nil {
			f.size += int64(n)
			return n, nil
		}
		f.fs.Fail(err)
		p, f.copy = f.copy, nil
	}
	if f.mem == nil {
		if err := f.moveToMemory(); err != nil {
			return 0, err
		}
	}
	return f.mem.Write(p)
}

// moveToMemory copies what was written so far into memory. Bytes that cannot be
// read become zeros, which Pebble reports as corruption.
func (f *file) moveToMemory() error {
	content := make([]byte, f.size)
	if old, err := f.fs.FS.Open(f.name); err == nil {
		_, _ = old.ReadAt(content, 0)
		_ = old.Close()
	}
	mem, err := f.fs.mem.Create(f.name, f.category)
	if err != nil {
		return err
	}
	f.mem = mem
	_, err = mem.Write(content)
	return err
}

func (f *file) Close() error {
	if f.mem != nil {
		if err := f.mem.Close(); err != nil {
			return err
		}
	}
	if err := f.File.Close(); err != nil {
		f.fs.Fail(err)
	}
	return nil
}

func (f *file) Stat() (vfs.FileInfo, error) {
	if f.mem != nil {
		return f.mem.Stat()
	}
	return f.File.Stat()
}

func (f *file) Sync() error { return f.fs.try(f.File.Sync) }

func (f *file) SyncData() error { return f.fs.try(f.File.SyncData) }

func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.fs.try(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Preallocate may fail: not every file system supports it.
func (f *file) Preallocate(offset, length int64) error {
	if f.fs.failed() {
		return nil
	}
	return f.File.Preallocate(offset, length)
}
