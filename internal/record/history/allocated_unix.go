// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package history

import (
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// allocated returns the space that a file takes on disk.
func allocated(info vfs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512 // by POSIX, whatever the size of the file system's blocks
	}
	return info.Size() // a file system in memory
}
