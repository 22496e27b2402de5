// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/deploy/thirdparty"
)

// systems and architectures are the platforms of a release.
var (
	systems       = []string{"linux", "darwin", "windows"}
	architectures = []string{"amd64", "arm64"}
)

// A checker checks the artifacts of a release, and collects what is wrong.
type checker struct {
	root, dist string
	version    string // without v
	revision   string
	time       time.Time // of the commit
	pages      []thirdparty.Package
	archives   map[string]tree // by name, those that were read
	listed     []string        // names that checksums.txt must have
	problems   []error
	checked    int
}

// check checks every artifact in a folder that scripts/release has filled.
func check(o options) error {
	if len(o.args) != 1 {
		return errors.New("check: the folder of the artifacts is needed")
	}
	c := &checker{root: o.root, dist: o.args[0], archives: map[string]tree{}}
	if err := c.prepare(); err != nil {
		return err
	}
	if o.version != "" && o.version != c.version {
		return fmt.Errorf("%s has version %s, not %s", c.dist, c.version, o.version)
	}
	c.each("archive", c.archive)
	c.each("SBOM", c.sbom)
	c.packages()
	for name, f := range map[string]func() error{"checksums.txt": c.checksums, "krew": c.krew, "homebrew": c.cask, "image": c.image} {
		c.note(name, f())
	}
	if len(c.problems) > 0 {
		return errors.Join(c.problems...)
	}
	fmt.Printf("%d artifacts of %s are correct; the one for %s/%s ran\n", c.checked, c.version, runtime.GOOS, runtime.GOARCH)
	return nil
}

// prepare reads what all artifacts have in common.
func (c *checker) prepare() error {
	text, err := os.ReadFile(filepath.Join(c.dist, "metadata.json"))
	if err != nil {
		return fmt.Errorf("%s has no release: %w", c.dist, err)
	}
	var about struct{ Version, Commit string }
	if err := json.Unmarshal(text, &about); err != nil {
		return fmt.Errorf("metadata.json: %w", err)
	}
	c.version, c.revision = about.Version, about.Commit
	cmd := exec.Command("git", "log", "-1", "--format=%cI", c.revision)
	cmd.Dir = c.root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	if c.time, err = time.Parse(time.RFC3339, strings.TrimSpace(string(out))); err != nil {
		return err
	}
	c.pages, err = thirdparty.PagePackages(filepath.Join(c.root, "ui"))
	return err
}

// each calls a check for all platforms.
func (c *checker) each(what string, f func(system, architecture string) error) {
	for _, system := range systems {
		for _, architecture := range architectures {
			c.note(what+" for "+system+"/"+architecture, f(system, architecture))
		}
	}
}

func (c *checker) note(what string, err error) {
	c.checked++
	if err != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: %w", what, err))
	}
}

// name is how the artifacts for a platform are called.
func (c *checker) name(system, architecture string) string {
	return fmt.Sprintf("watchkeeper_%s_%s_%s", c.version, system, architecture)
}

func (c *checker) archiveName(system, architecture string) string {
	if system == "windows" {
		return c.name(system, architecture) + ".zip"
	}
	return c.name(system, architecture) + ".tar.gz"
}

// read returns the content of an archive, which is read once.
func (c *checker) read(name string) (tree, error) {
	if content, ok := c.archives[name]; ok {
		return content, nil
	}
	content, err := readArchive(filepath.Join(c.dist, name))
	if err == nil {
		c.archives[name] = content
	}
	return content, err
}

// programName is what the program is called in an archive.
func programName(system string) string {
	if system == "windows" {
		return "watchkeeper.exe"
	}
	return "watchkeeper"
}

// program returns the binary in the archive for a platform; none if that cannot be read,
// which the check of the archive reports.
func (c *checker) program(system, architecture string) []byte {
	content, _ := c.read(c.archiveName(system, architecture))
	return content[programName(system)].content
}

// documents are the files that every archive has, and every package in its own folders.
var documents = []string{"LICENSE", "THIRD_PARTY_LICENSES", "README.md", "CHANGELOG.md", "demo/incident.wkr",
	"completions/watchkeeper.bash", "completions/_watchkeeper", "completions/watchkeeper.fish", "completions/watchkeeper.ps1"}

// completer is the program that completes "kubectl watchkeeper".
const completer = "kubectl_complete-watchkeeper"

// archive checks an archive and the binary in it.
func (c *checker) archive(system, architecture string) error {
	name := c.archiveName(system, architecture)
	c.listed = append(c.listed, name)
	content, err := c.read(name)
	if err != nil {
		return err
	}
	program := programName(system)
	pages := 0
	for path, f := range content {
		mode := fs.FileMode(0o644)
		switch {
		case path == program || path == "completions/"+completer:
			mode = 0o755
		case strings.HasPrefix(path, "man/watchkeeper") && strings.HasSuffix(path, ".1"):
			pages++
		case !slices.Contains(documents, path):
			return fmt.Errorf("%s does not belong here", path)
		}
		if f.mode != mode || !f.time.Equal(c.time) || len(f.content) == 0 {
			return fmt.Errorf("%s: mode %s, %d bytes, of %s; want %s, of %s", path, f.mode, len(f.content), f.time, mode, c.time)
		}
	}
	for _, path := range append(documents, program, "completions/"+completer, "man/watchkeeper.1", "man/watchkeeper-serve.1") {
		if _, ok := content[path]; !ok {
			return fmt.Errorf("%s is missing", path)
		}
	}
	if pages < 12 {
		return fmt.Errorf("%d man pages", pages)
	}
	if err := c.binary(content[program].content, system, architecture, string(content["THIRD_PARTY_LICENSES"].content)); err != nil {
		return err
	}
	if system == runtime.GOOS && architecture == runtime.GOARCH {
		return c.run(content, program)
	}
	return nil
}

// binary checks how a binary was built, and that all that is in it has a licence.
func (c *checker) binary(content []byte, system, architecture, licenses string) error {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for key, want := range map[string]string{"GOOS": system, "GOARCH": architecture, "CGO_ENABLED": "0", "-trimpath": "true", "-tags": "pebblegozstd", "vcs.revision": c.revision, "vcs.modified": "false"} {
		if got := setting(info, key); got != want {
			return fmt.Errorf("built with %s=%s, not %s", key, got, want)
		}
	}
	if info.Main.Version != "v"+c.version {
		return fmt.Errorf("the binary's version is %s, not v%s", info.Main.Version, c.version)
	}
	return c.licensed(info, licenses)
}

// licensed checks that the standard library, every module and every package of the page has a
// licence that is known.
func (c *checker) licensed(info *buildinfo.BuildInfo, text string) error {
	licenses, err := thirdparty.Parse(text)
	if err != nil {
		return fmt.Errorf("THIRD_PARTY_LICENSES: %w", err)
	}
	known := map[string]bool{}
	for _, l := range licenses {
		known[l.Of] = known[l.Of] || thirdparty.Kind(l.Text) != ""
	}
	needed := []string{"std " + info.GoVersion}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if !thirdparty.Ours(m.Path) && !strings.HasPrefix(m.Path, ".") {
			needed = append(needed, m.Path+" "+m.Version)
		}
	}
	for _, p := range c.pages {
		needed = append(needed, p.String())
	}
	for _, of := range needed {
		if !known[of] {
			return fmt.Errorf("THIRD_PARTY_LICENSES has no licence that is known for %s", of)
		}
	}
	return nil
}

// sorted returns the keys of a tree, for messages.
func (t tree) sorted() []string { return slices.Sorted(maps.Keys(t)) }
