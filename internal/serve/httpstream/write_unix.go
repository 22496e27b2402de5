// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package httpstream

import "syscall"

// writesNow is whether writeNow works.
const writesNow = true

// writeNow writes what a socket takes at once.
func writeNow(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
