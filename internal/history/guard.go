// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A guard is a file system for Pebble, which ends the process when a write to
// its log or its manifest fails, and tries others again at once, for ever. At
// the first failure the guard takes the disk away: what is on disk stays as it
// is from then on, as if the program had been killed there, and everything that
// Pebble goes on to write is in memory, and well. So what is held can be read
// as before, and the database be closed.
//
// Who commits asks for the failure afterwards: where there is none, the commit
// was on disk before the first one.
//
// Errors of reading are Pebble's.
type guard struct {
	vfs.FS
	err atomic.Pointer[error]
	mem *vfs.MemFS
	log *slog.Logger
}

func newGuard(fs vfs.FS, dir string, log *slog.Logger) (*guard, error) {
	g := &guard{FS: fs, mem: vfs.NewMem(), log: log}
	return g, g.mem.MkdirAll(dir, 0o755)
}

// failure returns the first failure, nil while there is none.
func (g *guard) failure() error {
	if err := g.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (g *guard) down() bool { return g.err.Load() != nil }

// fail notes a failure.
func (g *guard) fail(err error) {
	if g.err.CompareAndSwap(nil, &err) {
		g.log.Error("the history cannot be written any more", "err", err)
	}
}

// try does what changes the disk, as long as there is one.
func (g *guard) try(do func() error) error {
	if g.down() {
		return nil
	}
	if err := do(); err != nil {
		g.fail(err)
	}
	return nil
}

// create makes a file by create, or in memory.
func (g *guard) create(name string, category vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	if !g.down() {
		f, err := create()
		if err == nil {
			return &guardFile{File: f, g: g, name: name, category: category}, nil
		}
		g.fail(err)
	}
	return g.mem.Create(name, category)
}

func (g *guard) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(name, category, func() (vfs.File, error) { return g.FS.Create(name, category) })
}

func (g *guard) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(newname, category, func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
}

func (g *guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, g: g, name: name}, nil
}

func (g *guard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.down() {
		if f, err := g.mem.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	return g.FS.Open(name, opts...)
}

func (g *guard) Stat(name string) (vfs.FileInfo, error) {
	if g.down() {
		if info, err := g.mem.Stat(name); err == nil {
			return info, nil
		}
	}
	return g.FS.Stat(name)
}

func (g *guard) List(dir string) ([]string, error) {
	names, err := g.FS.List(dir)
	if err == nil && g.down() {
		var more []string
		if more, err = g.mem.List(dir); err == nil {
			names = append(names, more...)
			slices.Sort(names)
			names = slices.Compact(names)
		}
	}
	return names, err
}

func (g *guard) Remove(name string) error {
	if !g.down() {
		return g.FS.Remove(name)
	}
	if err := g.mem.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (g *guard) RemoveAll(name string) error {
	return g.try(func() error { return g.FS.RemoveAll(name) })
}

func (g *guard) Rename(oldname, newname string) error {
	return g.try(func() error { return g.FS.Rename(oldname, newname) })
}

func (g *guard) Link(oldname, newname string) error {
	return g.try(func() error { return g.FS.Link(oldname, newname) })
}

func (g *guard) MkdirAll(dir string, perm os.FileMode) error {
	return g.try(func() error { return g.FS.MkdirAll(dir, perm) })
}

func (g *guard) Unwrap() vfs.FS { return g.FS }

// A guardFile is a file that is written, or a directory.
type guardFile struct {
	vfs.File
	g        *guard
	name     string
	category vfs.DiskWriteCategory
	size     int64    // of what was written
	copy     []byte   // of what is being written, since a Write may change it
	mem      vfs.File // takes its place when the disk is gone
}

func (f *guardFile) Write(p []byte) (int, error) {
	if !f.g.down() {
		f.copy = append(f.copy[:0], p...)
		n, err := f.File.Write(p)
		if err == nil {
			f.size += int64(n)
			return n, nil
		}
		f.g.fail(err)
		p, f.copy = f.copy, nil
	}
	if f.mem == nil {
		if err := f.move(); err != nil {
			return 0, err
		}
	}
	return f.mem.Write(p)
}

// move copies what was written into memory. What cannot be read is zeros, which
// Pebble takes for damage, as it is.
func (f *guardFile) move() error {
	content := make([]byte, f.size)
	if old, err := f.g.FS.Open(f.name); err == nil {
		_, _ = old.ReadAt(content, 0)
		_ = old.Close()
	}
	mem, err := f.g.mem.Create(f.name, f.category)
	if err != nil {
		return err
	}
	f.mem = mem
	_, err = mem.Write(content)
	return err
}

func (f *guardFile) Close() error {
	if f.mem != nil {
		if err := f.mem.Close(); err != nil {
			return err
		}
	}
	if err := f.File.Close(); err != nil {
		f.g.fail(err)
	}
	return nil
}

func (f *guardFile) Stat() (vfs.FileInfo, error) {
	if f.mem != nil {
		return f.mem.Stat()
	}
	return f.File.Stat()
}

func (f *guardFile) Sync() error     { return f.g.try(f.File.Sync) }
func (f *guardFile) SyncData() error { return f.g.try(f.File.SyncData) }

func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	err = f.g.try(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Preallocate may fail: not every file system can.
func (f *guardFile) Preallocate(offset, length int64) error {
	if f.g.down() {
		return nil
	}
	return f.File.Preallocate(offset, length)
}
