// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// small is a program with one dependency, in the place of the real one: it compiles at once.
const small = `package main

import "golang.org/x/sync/errgroup"

func main() { _ = new(errgroup.Group).Wait() }
`

// compile compiles the small program for both platforms, and returns their arguments.
func compile(t *testing.T) (args []string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		out := filepath.Join(dir, architecture)
		cmd := exec.Command("go", "build", "-trimpath", "-o", out, source)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		args = append(args, "linux/"+architecture+"="+out)
	}
	return args
}

// read returns the index that is in a layout.
func read(t *testing.T, dir string) v1.ImageIndex {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// TestImage: the layout is valid, and its images have the binary, a user and labels. The
// same binaries give the same digests.
func TestImage(t *testing.T) {
	binaries := compile(t)
	out := filepath.Join(t.TempDir(), "dist", "image")
	args := append([]string{"-out", out, "-version", "1.2.3", "-revision", "abcdef", "-created", "2026-01-31T15:04:05Z"}, binaries...)
	var digests []string
	for range 2 { // the second replaces the first
		if err := run(args); err != nil {
			t.Fatal(err)
		}
		index := read(t, out)
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("digests %q", digests)
	}
	manifest, err := read(t, out).IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for i, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := read(t, out).Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; config.Architecture != m.Platform.Architecture || c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/watchkeeper"}) ||
			c.Labels["org.opencontainers.image.version"] != "1.2.3" || c.Labels["org.opencontainers.image.revision"] != "abcdef" || config.Created.Year() != 2026 {
			t.Errorf("%s: %+v", m.Platform, config)
		}
		_, binary, _ := strings.Cut(binaries[i], "=")
		want, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		if files := extract(t, image); len(files) != 1 || files["usr/local/bin/watchkeeper"] != string(want) {
			t.Errorf("%s: %d files", m.Platform, len(files))
		}
		checkSBOM(t, out+"-linux-"+m.Platform.Architecture+".spdx.json")
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %q", platforms)
	}

	// A registry takes it, by the documented command.
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	name := strings.TrimPrefix(server.URL, "http://") + "/watchkeeper:1.2.3"
	if text, err := exec.Command("go", "tool", "crane", "push", "--index", out, name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	text, err := exec.Command("go", "tool", "crane", "digest", name).Output()
	if got := strings.TrimSpace(string(text)); err != nil || got != digests[0] {
		t.Errorf("the registry has %q, %v; want %s", got, err, digests[0])
	}
}

// extract returns the files of an image. They have to be root's, and executable.
func extract(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	files := map[string]string{}
	content := mutate.Extract(image)
	defer content.Close()
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o755 || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: mode %o of %d:%d", h.Name, h.Mode, h.Uid, h.Gid)
		}
		if h.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = string(text)
		}
	}
}

// checkSBOM fails if an SPDX document is not valid, or lacks the module of the small program.
func checkSBOM(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	document, err := spdxjson.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	var names []string
	for _, p := range document.Packages {
		names = append(names, p.PackageName)
	}
	if !slices.Contains(names, "golang.org/x/sync") || !slices.Contains(names, "std") {
		t.Errorf("%s has %q", file, names)
	}
}

func TestBadArguments(t *testing.T) {
	amd64, _, _ := strings.Cut(compile(t)[0], "=")
	binary := strings.TrimPrefix(compile(t)[0], amd64+"=")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"are needed":                              {"-version", "1"},
		"is not PLATFORM=BINARY":                  {"-out", filepath.Join(dir, "x"), "-version", "1", binary},
		"is for linux/amd64, not for linux/arm64": {"-out", filepath.Join(dir, "x"), "-version", "1", "linux/arm64=" + binary},
		"no such file":                            {"-out", filepath.Join(dir, "x"), "-version", "1", "linux/arm64=" + filepath.Join(dir, "none")},
		"unrecognized file format":                {"-out", filepath.Join(dir, "x"), "-version", "1", "linux/arm64=" + filepath.Join(dir, "text")},
		"is no OCI layout":                        {"-out", dir, "-version", "1", "linux/amd64=" + binary},
		"-created":                                {"-out", filepath.Join(dir, "x"), "-version", "1", "-created", "today", "linux/amd64=" + binary},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", args, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "text")); err != nil {
		t.Errorf("a folder that is no layout was replaced: %v", err)
	}
}
