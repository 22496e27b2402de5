// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package ui embeds the built page. The sources next to it are TypeScript;
// "make build" (scripts/ui) builds them into dist. Without that, as after
// "go install", dist is empty, and internal/serve/webpage serves instructions instead.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the files of the page. Files that compress well also have
// compressed variants, name.br and name.gz.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}
