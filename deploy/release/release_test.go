// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/deploy/thirdparty"
)

// packed returns a tar archive of files by name; a link's content begins with "->".
func packed(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg, Uname: "root"}
		if link, ok := strings.CutPrefix(files[i+1], "->"); ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, link, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(files[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArchives(t *testing.T) {
	dir := t.TempDir()
	content, err := readArchive(write(t, dir, "a.tar.gz", packed(t, "a/b", "text", "link", "->a/b")))
	if err != nil || string(content["a/b"].content) != "text" || content["a/b"].mode != 0o644 || content["link"].link != "a/b" || content["link"].mode&fs.ModeSymlink == 0 {
		t.Errorf("%v, %v", content, err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: "a.exe"}
	h.SetMode(0o755)
	f, err := w.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "text")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := readArchive(write(t, dir, "a.zip", out.Bytes())); err != nil || string(content["a.exe"].content) != "text" || content["a.exe"].mode != 0o755 {
		t.Errorf("%v, %v", content, err)
	}
	for name, files := range map[string][]string{"twice": {"a", "1", "./a", "2"}, "elsewhere": {"../a", "1"}} {
		if _, err := readArchive(write(t, dir, name+".tar.gz", packed(t, files...))); err == nil {
			t.Errorf("no error: %s", name)
		}
	}
}

// ar returns an ar archive.
func ar(members ...string) []byte {
	out := "!<arch>\n"
	for i := 0; i < len(members); i += 2 {
		out += fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", members[i], 0, 0, 0, "100644", len(members[i+1]), members[i+1])
		if len(members[i+1])%2 == 1 {
			out += "\n"
		}
	}
	return []byte(out)
}

func TestDeb(t *testing.T) {
	control, data := string(packed(t, "./control", "Package: watchkeeper\n")), string(packed(t, "./usr/bin/watchkeeper", "program"))
	whole := ar("debian-binary", "2.0\n", "control.tar.gz", control, "data.tar.gz", data)
	content, about, err := readDeb(write(t, t.TempDir(), "a.deb", whole))
	if err != nil || about != "Package: watchkeeper\n" || string(content["usr/bin/watchkeeper"].content) != "program" {
		t.Errorf("%v, %q, %v", content, about, err)
	}
	for _, bad := range [][]byte{nil, []byte("text"), whole[:100], whole[:len(whole)-10], ar("debian-binary", "3.0\n")} {
		if _, _, err := readDeb(write(t, t.TempDir(), "a.deb", bad)); err == nil {
			t.Errorf("no error for %d bytes", len(bad))
		}
	}
}

// release writes archives and manifests of a release of version 1.2.3.
func release(t *testing.T) *checker {
	t.Helper()
	c := &checker{dist: t.TempDir(), version: "1.2.3", archives: map[string]tree{}}
	krew := "kind: Plugin\nmetadata: {name: watchkeeper}\nspec:\n  version: v1.2.3\n  platforms:\n"
	cask := "cask \"watchkeeper\" do\n  version \"1.2.3\"\n"
	for i := range 20 {
		cask += fmt.Sprintf("  manpage \"man/%d.1\"\n", i)
	}
	for _, system := range systems {
		for _, architecture := range architectures {
			name := c.archiveName(system, architecture)
			content := packed(t, manyPages(system+architecture)...)
			if system == "windows" {
				content = zipped(t)
			}
			write(t, c.dist, name, content)
			c.listed = append(c.listed, name)
			krew += fmt.Sprintf("  - {bin: watchkeeper, sha256: %s, uri: %q, selector: {matchLabels: {os: %s, arch: %s}}}\n",
				digest(content), releases+"v1.2.3/"+name, system, architecture)
			if system != "windows" {
				cask += fmt.Sprintf("  on_x do\n    sha256 %q\n    url %q\n  end\n", digest(content), releases+"v#{version}/"+strings.Replace(name, "1.2.3", "#{version}", 1))
			}
		}
	}
	write(t, c.dist, "krew/watchkeeper.yaml", []byte(krew))
	write(t, c.dist, "homebrew/Casks/watchkeeper.rb", []byte(cask+"end\n"))
	var sums string
	for _, name := range c.listed {
		sum, err := c.sum(name)
		if err != nil {
			t.Fatal(err)
		}
		sums += sum + "  " + name + "\n"
	}
	write(t, c.dist, "checksums.txt", []byte(sums))
	return c
}

func manyPages(program string) (files []string) {
	for i := range 20 {
		files = append(files, fmt.Sprintf("man/%d.1", i), "page")
	}
	return append(files, "other", program)
}

func zipped(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTampered: each change of a release is found.
func TestTampered(t *testing.T) {
	c := release(t)
	if err := c.checksums(); err != nil {
		t.Error(err)
	}
	if err := c.cask(); err != nil {
		t.Error(err)
	}
	// The archives have no program, which is the last thing that is checked.
	if err := c.krew(); err == nil || !strings.Contains(err.Error(), "no program watchkeeper") {
		t.Error(err)
	}
	change := func(name, old, new string) func(c *checker) {
		return func(c *checker) {
			path := filepath.Join(c.dist, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text, []byte(old)) {
				t.Fatalf("%s has no %q", name, old)
			}
			write(t, c.dist, name, bytes.Replace(text, []byte(old), []byte(new), 1))
		}
	}
	const archive, cask, krew = "watchkeeper_1.2.3_linux_amd64.tar.gz", "homebrew/Casks/watchkeeper.rb", "krew/watchkeeper.yaml"
	for _, test := range []struct {
		name   string
		change func(*checker)
		check  func(*checker) error
		want   string
	}{
		{"archive", func(c *checker) { write(t, c.dist, archive, []byte("other")) }, (*checker).checksums, archive},
		{"archive in the cask", func(c *checker) { write(t, c.dist, archive, []byte("other")) }, (*checker).cask, archive},
		{"archive in krew", func(c *checker) { write(t, c.dist, archive, []byte("other")) }, (*checker).krew, archive},
		{"unlisted", func(c *checker) { c.listed = append(c.listed, "x.deb") }, (*checker).checksums, "x.deb"},
		{"cask's version", change(cask, `version "1.2.3"`, `version "1.2.4"`), (*checker).cask, "1.2.4"},
		{"cask's page", change(cask, "man/3.1", "man/33.1"), (*checker).cask, "man/33.1 is not in"},
		{"cask's url", change(cask, "releases/download", "releases/latest"), (*checker).cask, "latest"},
		{"cask's block", change(cask, "  end\n", ""), (*checker).cask, "blocks begin"},
		{"krew's version", change(krew, "version: v1.2.3", "version: v1.2.4"), (*checker).krew, "v1.2.4"},
		{"krew's name", change(krew, "name: watchkeeper", "name: other"), (*checker).krew, "other"},
	} {
		c := release(t)
		test.change(c)
		if err := test.check(c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %s", test.name, err, test.want)
		}
	}
}

// TestLicensed: a module, Go and a package of the page without a licence are found.
func TestLicensed(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge\n"
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
		{Path: "github.com/watchkeeper/watchkeeper/informer", Version: "v0.1.0"},
		{Path: "example.com/a", Version: "v1.0.0"},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
	}}
	c := &checker{pages: []thirdparty.Package{{Name: "preact", Version: "11.0.0"}}}
	all := []thirdparty.License{
		{Of: "std go1.26.0", File: "LICENSE", Text: mit}, {Of: "example.com/a v1.0.0", File: "LICENSE", Text: mit},
		{Of: "example.com/c v2.0.0", File: "COPYING", Text: mit}, {Of: "npm:preact 11.0.0", File: "LICENSE", Text: mit},
	}
	if err := c.licensed(info, thirdparty.Format(all)); err != nil {
		t.Error(err)
	}
	for i, l := range all {
		for _, text := range []string{"", "All rights reserved.\n"} {
			some := append([]thirdparty.License(nil), all...)
			some[i].Text = text
			if text == "" {
				some = append(some[:i], some[i+1:]...)
			}
			if err := c.licensed(info, thirdparty.Format(some)); err == nil || !strings.Contains(err.Error(), l.Of) {
				t.Errorf("%s: %v", l.Of, err)
			}
		}
	}
}

func TestProvenance(t *testing.T) {
	t.Setenv("WATCHKEEPER_BUILDER", "https://ci.example/builder")
	out := filepath.Join(t.TempDir(), "provenance.json")
	if err := run([]string{"provenance", "-out", out, "-version", "1.2.3", "abcdef"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		BuildDefinition struct {
			ResolvedDependencies []struct {
				URI    string
				Digest map[string]string
			}
		}
		RunDetails struct{ Builder struct{ ID string } }
	}
	if err := json.Unmarshal(text, &p); err != nil || len(p.BuildDefinition.ResolvedDependencies) != 1 ||
		p.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != "abcdef" || p.RunDetails.Builder.ID != "https://ci.example/builder" {
		t.Errorf("%v: %s", err, text)
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"publish"}, {"licenses"}, {"licenses", "-out", "x"}, {"sbom", "-out", "x"}, {"check"}, {"check", t.TempDir()}, {"sbom", "-created", "today"}} {
		if run(args) == nil {
			t.Errorf("no error for %q", args)
		}
	}
}
