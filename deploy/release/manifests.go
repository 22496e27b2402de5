// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"sigs.k8s.io/yaml"
)

// releases is where the files of a release are, once it is published.
const releases = "https://github.com/watchkeeper/watchkeeper/releases/download/"

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// sum returns the digest of an artifact.
func (c *checker) sum(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(c.dist, name))
	return digest(content), err
}

// checksums checks that checksums.txt has all that a release publishes, and nothing else.
func (c *checker) checksums() error {
	text, err := os.ReadFile(filepath.Join(c.dist, "checksums.txt"))
	if err != nil {
		return err
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		want, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if got, err := c.sum(name); !ok || err != nil || got != want {
			return fmt.Errorf("%q, but %s (%v)", line, got, err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Sort(c.listed)
	if !slices.Equal(names, c.listed) {
		return fmt.Errorf("it has %q, not %q", names, c.listed)
	}
	return nil
}

// sbom checks that an SPDX document is valid, and names all that is in the binary.
func (c *checker) sbom(system, architecture string) error {
	name := c.name(system, architecture) + ".sbom.json"
	c.listed = append(c.listed, name)
	text, err := os.ReadFile(filepath.Join(c.dist, name))
	if err != nil {
		return err
	}
	document, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		return err
	}
	has := map[string]bool{}
	for _, p := range document.Packages {
		has[p.PackageName+" "+p.PackageVersion] = true
		for _, sum := range p.PackageChecksums {
			has[sum.Value] = true
		}
	}
	binary := c.program(system, architecture)
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	needed := []string{digest(binary), "std " + info.GoVersion, info.Main.Path + " " + c.version}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		needed = append(needed, m.Path+" "+m.Version)
	}
	for _, p := range c.pages {
		needed = append(needed, p.Name+" "+p.Version)
	}
	for _, n := range needed {
		if !has[n] {
			return fmt.Errorf("it lacks %s", n)
		}
	}
	return nil
}

// krew checks the manifest of kubectl's plugin manager. scripts/release has krew's own
// program validate its form.
func (c *checker) krew() error {
	text, err := os.ReadFile(filepath.Join(c.dist, "krew", "watchkeeper.yaml"))
	if err != nil {
		return err
	}
	var manifest struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		return err
	}
	if manifest.Kind != "Plugin" || manifest.Metadata.Name != "watchkeeper" || manifest.Spec.Version != "v"+c.version {
		return fmt.Errorf("it is of %s %s %s", manifest.Kind, manifest.Metadata.Name, manifest.Spec.Version)
	}
	var platforms []string
	for _, p := range manifest.Spec.Platforms {
		system, architecture := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		platforms = append(platforms, system+"/"+architecture)
		name := c.archiveName(system, architecture)
		sum, err := c.sum(name)
		if err != nil || sum != p.SHA256 || p.URI != releases+"v"+c.version+"/"+name {
			return fmt.Errorf("%s with %s, but %s has %s (%v)", p.URI, p.SHA256, name, sum, err)
		}
		if content, err := c.read(name); err != nil || content[p.Bin].mode != 0o755 {
			return fmt.Errorf("%s has no program %s (%v)", name, p.Bin, err)
		}
	}
	slices.Sort(platforms)
	if want := []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}; !slices.Equal(platforms, want) {
		return fmt.Errorf("platforms %q", platforms)
	}
	return nil
}

var (
	caskArchive = regexp.MustCompile(`sha256 "([0-9a-f]{64})"\s+url "([^"]+)"`)
	caskFile    = regexp.MustCompile(`(?m)^\s*(?:binary|manpage|bash_completion|zsh_completion|fish_completion) "([^"]+)"`)
	caskVersion = regexp.MustCompile(`(?m)^\s*version "([^"]+)"$`)
	caskBegin   = regexp.MustCompile(`(?m)\bdo$`)
	caskEnd     = regexp.MustCompile(`(?m)^\s*end$`)
)

// cask checks Homebrew's cask: its digests, and that the archives have the files that it
// links. There may be no Ruby to parse it: blocks begin as often as they end.
func (c *checker) cask() error {
	content, err := os.ReadFile(filepath.Join(c.dist, "homebrew", "Casks", "watchkeeper.rb"))
	if err != nil {
		return err
	}
	text := string(content)
	if m := caskVersion.FindStringSubmatch(text); m == nil || m[1] != c.version {
		return fmt.Errorf("version %q", m)
	}
	if begins, ends := len(caskBegin.FindAllString(text, -1)), len(caskEnd.FindAllString(text, -1))-strings.Count(text, "\n    if "); begins != ends {
		return fmt.Errorf("%d blocks begin, %d end", begins, ends)
	}
	var files []string
	for _, m := range caskFile.FindAllStringSubmatch(text, -1) {
		files = append(files, m[1])
	}
	if len(files) < 15 {
		return fmt.Errorf("it links only %q", files)
	}
	want := map[string]bool{}
	for _, system := range []string{"darwin", "linux"} {
		for _, architecture := range architectures {
			want[c.archiveName(system, architecture)] = true
		}
	}
	for _, m := range caskArchive.FindAllStringSubmatch(text, -1) {
		url := strings.ReplaceAll(m[2], "#{version}", c.version)
		name := strings.TrimPrefix(url, releases+"v"+c.version+"/")
		sum, err := c.sum(name)
		if err != nil || !want[name] || sum != m[1] {
			return fmt.Errorf("%s with %s, but %s (%v)", url, m[1], sum, err)
		}
		delete(want, name)
		archive, err := c.read(name)
		if err != nil {
			return err
		}
		for _, f := range files {
			if _, ok := archive[f]; !ok {
				return fmt.Errorf("%s is not in %s", f, name)
			}
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("it lacks %v", want)
	}
	return nil
}

// image checks the OCI layout: it is valid, and its binaries are those of the archives.
func (c *checker) image() error {
	index, err := layout.ImageIndexFromPath(filepath.Join(c.dist, "image"))
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			return err
		}
		content := mutate.Extract(image)
		defer content.Close()
		found := false
		for r := tar.NewReader(content); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if h.Typeflag != tar.TypeReg {
				continue
			}
			binary, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(binary, c.program(m.Platform.OS, m.Platform.Architecture)) {
				return fmt.Errorf("%s in it is not the binary of the archive for %s (%v)", h.Name, m.Platform, err)
			}
			found = true
		}
		if !found {
			return fmt.Errorf("the image for %s is empty", m.Platform)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		return fmt.Errorf("platforms %q", platforms)
	}
	return nil
}
