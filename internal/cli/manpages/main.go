// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command manpages writes the man pages of a release, one for each command, and compressed
// ones into the folder gz next to them. The same arguments give the same bytes.
//
//	manpages DIR VERSION TIME
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/watchkeeper/watchkeeper/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("a folder, a version and a time are needed")
	}
	dir, version := args[0], args[1]
	date, err := time.Parse(time.RFC3339, args[2])
	if err != nil {
		return err
	}
	packed := filepath.Join(dir, "gz")
	if err := os.MkdirAll(packed, 0o755); err != nil {
		return err
	}
	root := cli.Command()
	root.DisableAutoGenTag = true // a date
	date = date.UTC()
	header := &doc.GenManHeader{Title: "WATCHKEEPER", Section: "1", Source: "watchkeeper " + version, Manual: "Watchkeeper", Date: &date}
	if err := doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Path: dir, CommandSeparator: "-", Header: header}); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(packed, filepath.Base(page)+".gz"), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
