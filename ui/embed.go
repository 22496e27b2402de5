// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package ui is the page as it was built: its sources are beside it, in
// TypeScript, and "make build" makes dist of them (scripts/ui). Where that has
// not been done, as after "go install", there is nothing in it, and whoever
// serves it says how it is built.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the files of the page, below its root. Beside each that is worth
// it are its compressed forms, as name.br and name.gz.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}
