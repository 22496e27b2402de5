// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes parts of a release, and checks all of it. scripts/release runs it.
//
//	release licenses -root DIR -out FILE OS/ARCH      writes the licences of the code of others
//	release sbom -root DIR -out FILE -version V -created TIME BINARY
//	release provenance -out FILE …                    writes what the artifacts are built from
//	release check -root DIR -version V DIST           checks every artifact
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/deploy/thirdparty"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the flags of all commands.
type options struct {
	root, out, version string
	created            time.Time
	args               []string
}

func run(args []string) error {
	commands := map[string]func(options) error{"licenses": licenses, "sbom": sbom, "provenance": provenance, "check": check}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("a command is needed: licenses, sbom, provenance or check")
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "..", "folder of the repository")
	flags.StringVar(&o.out, "out", "", "file or folder to write")
	flags.StringVar(&o.version, "version", "", "version of the release")
	created := flags.String("created", "1970-01-01T00:00:00Z", "time of the commit")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	var err error
	if o.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return fmt.Errorf("-created: %w", err)
	}
	o.args = flags.Args()
	if args[0] != "check" && o.out == "" {
		return fmt.Errorf("-out is needed")
	}
	return commands[args[0]](o)
}

// licenses writes the file of licences for a platform. It fails if a module has none that is
// known, so that a new dependency cannot be released without a look.
func licenses(o options) error {
	if len(o.args) != 1 || strings.Count(o.args[0], "/") != 1 {
		return fmt.Errorf("licenses: a platform is needed, such as linux/amd64")
	}
	system, architecture, _ := strings.Cut(o.args[0], "/")
	all, err := thirdparty.GoLicenses(o.root, system, architecture, "./cmd/watchkeeper")
	if err != nil {
		return err
	}
	page, err := thirdparty.PageLicenses(filepath.Join(o.root, "ui"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(o.out, []byte(thirdparty.Format(append(all, page...))), 0o644)
}

// sbom writes the SPDX document of a binary.
func sbom(o options) error {
	if len(o.args) != 1 || o.version == "" {
		return fmt.Errorf("sbom: -version and a binary are needed")
	}
	info, err := buildinfo.ReadFile(o.args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", o.args[0], err)
	}
	page, err := thirdparty.PagePackages(filepath.Join(o.root, "ui"))
	if err != nil {
		return err
	}
	return thirdparty.WriteSBOM(o.out, thirdparty.Program{
		Name: "watchkeeper", Version: o.version, Platform: setting(info, "GOOS") + "/" + setting(info, "GOARCH"),
		Path: o.args[0], Created: o.created, Packages: page,
	})
}

// setting returns how a binary was built.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
