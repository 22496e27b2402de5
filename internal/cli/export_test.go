// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

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

// TestExportToStdout: the summary is on standard error, also of an output that is not a
// file; one that cannot be written is named as it was given.
func TestExportToStdout(t *testing.T) {
	demo, err := os.ReadFile("../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	newFakeGateway(t, map[string]string{"/export": string(demo)})
	out, errs, code := run("record", "export", "-o", "-")
	if code != 0 || out != string(demo) || !strings.Contains(errs, "13 resources") || strings.Contains(errs, "names are replaced") {
		t.Errorf("%d, %d bytes: %s", code, len(out), errs)
	}
	missing := filepath.Join(t.TempDir(), "none", "x.wkr")
	if _, errs, code := run("record", "export", "-o", missing); code != 1 || errs != "watchkeeper: --output: "+missing+": no such file or directory\n" {
		t.Errorf("%d %s", code, errs)
	}
	newFakeGateway(t, map[string]string{"/export": string(demo[:len(demo)/2])})
	if _, errs, code := run("record", "export", "-o", "-"); code != 1 || !strings.Contains(errs, "invalid recording") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestExportOfRVs: an export of one resource takes its resourceVersions; the order of the ends
// is checked as in other commands.
func TestExportOfRVs(t *testing.T) {
	demo, err := os.ReadFile("../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeGateway(t, map[string]string{"/export": string(demo)})
	for line, want := range map[string]string{
		"--since 7":                    "--since 7: a resourceVersion is that of one resource: name it, as in 'watchkeeper record export pods --since 7', or use a time",
		"pods nodes --since 7":         "--since 7: a resourceVersion is that of one resource",
		"pods --since 9 --until 7":     "--since 9 is after --until 7: swap them",
		"--since 10s --until 20s":      "--since 10s is after --until 20s: swap them",
		"--since 20s --until sometime": "--until: \"sometime\" is not a moment",
	} {
		args := append([]string{"record", "export", "-o", "-"}, strings.Fields(line)...)
		if out, errs, code := run(args...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	if _, errs, code := run("record", "export", "pods", "--since", "7", "-o", "-"); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	if asked := f.questions(); !strings.HasSuffix(asked[len(asked)-1], "/export?from=rv%3A7&resource=pods&to=now") {
		t.Errorf("asked %q", asked)
	}
}
