// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestExportTo: the target of a link is replaced; a pipe or a device is written to
// and stays what it is.
func TestExportTo(t *testing.T) {
	demo, err := os.ReadFile("../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeGateway(t, map[string]string{"/export": string(demo)})
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file.wkr"), filepath.Join(dir, "link.wkr"), filepath.Join(dir, "pipe.wkr")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run("record", "export", "deploy", "no", "-o", link); code != 0 || !strings.Contains(errs, "13 resources") {
		t.Errorf("%d %s", code, errs)
	}
	if got, err := os.ReadFile(file); err != nil || !slices.Equal(got, demo) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if asked := f.questions(); !strings.Contains(asked[len(asked)-1], "resource=deployments.apps&resource=nodes") {
		t.Errorf("asked %q", asked)
	}
	read := make(chan []byte)
	go func() {
		got, _ := os.ReadFile(pipe)
		read <- got
	}()
	if _, errs, code := run("record", "export", "-o", pipe); code != 0 || !strings.Contains(errs, pipe+": ") || !strings.Contains(errs, "13 resources") {
		t.Errorf("%d %s", code, errs)
	}
	if got := <-read; !slices.Equal(got, demo) {
		t.Errorf("%d bytes", len(got))
	}
	for path, want := range map[string]os.FileMode{link: os.ModeSymlink, pipe: os.ModeNamedPipe} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
}
