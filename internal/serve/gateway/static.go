// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
)

// newStatic serves the files of dir below prefix. Symbolic links are followed
// as long as they stay inside dir.
func newStatic(dir, prefix string) (http.Handler, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("--www: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("--www: %s is not a directory", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("--www: %w", err)
	}
	return http.StripPrefix(prefix, http.FileServerFS(insideFS{root.FS()})), nil
}

// insideFS reports any file that cannot be opened as one that does not exist.
// Otherwise a link out of the directory would be an internal error.
type insideFS struct{ fs.FS }

func (f insideFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return file, err
}
