// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package history

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestTornTail: a log that ends inside a record is read up to that record.
func TestTornTail(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := newSession(t, mem, 3)
	s.opts.memTableSize = 0 // everything stays in the log
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.step(0); err != nil {
			t.Fatal(err)
		}
	}
	heads := map[uint64]bool{}
	for cut := 0; !heads[0]; cut++ {
		torn := mem.CrashClone(vfs.CrashCloneCfg{})
		cutLog(t, torn, cut)
		opts := s.opts
		opts.FS = torn
		again, err := Open("history", opts)
		if err != nil {
			t.Fatalf("%d%% less: %v", cut, err)
		}
		st := must(again.Stream(pods))
		head := st.Head().RV
		if heads[head] = true; head > 0 {
			checkAll(t, s.m, st)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(heads) < 4 {
		t.Errorf("only the heads %v", heads)
	}
	if err := s.s.Close(); err != nil {
		t.Fatal(err)
	}
}

// cutLog cuts the last percents off the write-ahead log.
func cutLog(t *testing.T, fs vfs.FS, percent int) {
	t.Helper()
	names := must(fs.List("history"))
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		name = fs.PathJoin("history", name)
		file := must(fs.Open(name))
		text := must(io.ReadAll(file))
		file.Close()
		file = must(fs.Create(name, vfs.WriteCategoryUnspecified))
		must(file.Write(text[:len(text)*(100-percent)/100]))
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
