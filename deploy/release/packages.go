// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// names of architectures in packages.
var rpmArchitecture = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// packages checks the packages for Debian and Red Hat.
func (c *checker) packages() {
	for _, architecture := range architectures {
		c.note("deb for "+architecture, c.deb(architecture))
		c.note("rpm for "+architecture, c.rpm(architecture))
	}
}

// find returns the one artifact that matches a pattern.
func (c *checker) find(pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(c.dist, pattern))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d files are called %s (%v)", len(found), pattern, err)
	}
	c.listed = append(c.listed, filepath.Base(found[0]))
	return found[0], nil
}

func (c *checker) deb(architecture string) error {
	name, err := c.find("watchkeeper_*_" + architecture + ".deb")
	if err != nil {
		return err
	}
	content, control, err := readDeb(name)
	if err != nil {
		return err
	}
	// A ~ sorts a version before the release, where SemVer has a dash.
	version := strings.Replace(c.version, "-", "~", 1)
	for _, line := range []string{"Package: watchkeeper", "Version: " + version, "Architecture: " + architecture} {
		if !strings.Contains("\n"+control, "\n"+line+"\n") {
			return fmt.Errorf("the control file has no %q:\n%s", line, control)
		}
	}
	return c.installed(content, architecture, "usr/share/zsh/vendor-completions/_watchkeeper", "usr/share/doc/watchkeeper/copyright", "usr/share/doc/watchkeeper/THIRD_PARTY_LICENSES")
}

func (c *checker) rpm(architecture string) error {
	name, err := c.find("watchkeeper-*." + rpmArchitecture[architecture] + ".rpm")
	if err != nil {
		return err
	}
	content, about, err := readRPM(name)
	if err != nil {
		return err
	}
	version := strings.ReplaceAll(strings.Replace(c.version, "-", "~", 1), "-", "_")
	if about.Name != "watchkeeper" || about.Version != version || about.Arch != rpmArchitecture[architecture] {
		return fmt.Errorf("it is called %+v; want version %s", *about, version)
	}
	return c.installed(content, architecture, "usr/share/zsh/site-functions/_watchkeeper", "usr/share/licenses/watchkeeper/LICENSE", "usr/share/licenses/watchkeeper/THIRD_PARTY_LICENSES")
}

// installed checks the files of a package. The last of them has the licences.
func (c *checker) installed(content tree, architecture string, more ...string) error {
	const program = "usr/bin/watchkeeper"
	const link = "usr/bin/kubectl-watchkeeper"
	if f := content[link]; f.mode&fs.ModeSymlink == 0 || f.link != "watchkeeper" {
		return fmt.Errorf("%s is no link to watchkeeper: %s %q", link, f.mode, f.link)
	}
	wanted := append([]string{program, "usr/bin/" + completer, "usr/share/man/man1/watchkeeper.1.gz", "usr/share/bash-completion/completions/watchkeeper",
		"usr/share/fish/vendor_completions.d/watchkeeper.fish"}, more...)
	for _, path := range wanted {
		if len(content[path].content) == 0 {
			return fmt.Errorf("%s is missing; it has %q", path, content.sorted())
		}
	}
	for path, f := range content {
		mode := fs.FileMode(0o644)
		switch {
		case strings.HasPrefix(path, "usr/bin/") && f.link == "":
			mode = 0o755
		case f.mode&fs.ModeSymlink != 0:
			mode = f.mode
		}
		if f.mode != mode || f.owner != "root" || !f.time.Equal(c.time) {
			return fmt.Errorf("%s: mode %s of %s, %s; want %s of root, %s", path, f.mode, f.owner, f.time, mode, c.time)
		}
	}
	if !bytes.Equal(content[program].content, c.program("linux", architecture)) {
		return fmt.Errorf("its binary is not that of the archive")
	}
	return c.binary(content[program].content, "linux", architecture, string(content[more[len(more)-1]].content))
}
