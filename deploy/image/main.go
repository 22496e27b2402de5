// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command image makes a container image of static binaries, without a container engine: an
// OCI layout with one image per platform, and an SPDX document next to it for each. The
// same binaries and flags give the same digest.
//
//	go run ./image -out ../dist/image -version 0.1.0 linux/amd64=../dist/watchkeeper-amd64 linux/arm64=…
//
// "go tool crane push --index ../dist/image REPOSITORY:TAG" pushes it.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/watchkeeper/watchkeeper/deploy/thirdparty"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("out", "", "folder of the OCI layout; an existing one is replaced")
	var about description
	flags.StringVar(&about.version, "version", "", "version of the program")
	flags.StringVar(&about.revision, "revision", "", "commit of the program")
	created := flags.String("created", "1970-01-01T00:00:00Z", "time of the image, such as that of the commit")
	page := flags.String("page", "", "folder of the sources of the page that is in the program, for the SPDX documents")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || about.version == "" || flags.NArg() == 0 {
		return fmt.Errorf("-out, -version and at least one PLATFORM=BINARY are needed")
	}
	var err error
	if about.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return fmt.Errorf("-created: %w", err)
	}
	if *page != "" {
		if about.packages, err = thirdparty.PagePackages(*page); err != nil {
			return fmt.Errorf("-page: %w", err)
		}
	}
	var binaries []binary
	for _, arg := range flags.Args() {
		platform, path, ok := strings.Cut(arg, "=")
		p, err := v1.ParsePlatform(platform)
		if !ok || err != nil || p.OS == "" || p.Architecture == "" {
			return fmt.Errorf("%q is not PLATFORM=BINARY, such as linux/amd64=bin/watchkeeper", arg)
		}
		binaries = append(binaries, binary{*p, path})
	}
	digest, err := write(*out, binaries, about)
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}
