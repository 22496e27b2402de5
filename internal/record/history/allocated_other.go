// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package history

import "github.com/cockroachdb/pebble/v2/vfs"

// allocated returns the space that a file takes on disk, about.
func allocated(info vfs.FileInfo) int64 { return info.Size() }
