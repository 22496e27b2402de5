// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages: every command has a page, of the given time, which says nothing of the machine
// it was made on, and is the same each time.
func TestPages(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("XDG_STATE_HOME", "/home/somebody/state")
	t.Setenv("KUBECONFIG", "/home/somebody/kubeconfig")
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		if err := run([]string{dir, "1.2.3", "2026-01-31T15:04:05Z"}); err != nil {
			t.Fatal(err)
		}
	}
	pages, err := filepath.Glob(filepath.Join(dirs[0], "*.1"))
	if err != nil || len(pages) < 12 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		text := read(t, page)
		if !strings.Contains(text, `"Jan 2026" "watchkeeper 1.2.3"`) || strings.Contains(text, "somebody") {
			t.Errorf("%s: %s", name, text)
		}
		if read(t, filepath.Join(dirs[1], name)) != text {
			t.Errorf("%s differs", name)
		}
		if packed := read(t, filepath.Join(dirs[0], "gz", name+".gz")); packed != text {
			t.Errorf("%s.gz has %d bytes, not %d", name, len(packed), len(text))
		}
	}
	for _, name := range []string{"watchkeeper", "watchkeeper-serve", "watchkeeper-record-export", "watchkeeper-completion"} {
		read(t, filepath.Join(dirs[0], name+".1"))
	}
}

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{nil, {t.TempDir(), "1.2.3", "today"}} {
		if run(args) == nil {
			t.Errorf("no error for %q", args)
		}
	}
}
