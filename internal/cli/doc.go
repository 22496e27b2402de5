// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the watchkeeper command: flags, configuration, logging,
// signals and exit codes, one file per command.
//
// Main runs a command line on the given streams and returns the exit code, so
// that scripts can run it inside a test binary. Standard output has the result;
// everything else, including the log, goes to standard error. An error is one
// line that begins with "watchkeeper:" and says what to do next, and exit code 1.
package cli
