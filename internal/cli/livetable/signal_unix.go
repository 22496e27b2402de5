// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package livetable

import "syscall"

// resumed is the signal after which the program runs again, having been stopped.
const resumed = syscall.SIGCONT
