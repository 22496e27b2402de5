// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the watchkeeper command: flags, configuration, logging,
// signals and exit codes, one file per command.
//
// Main does everything that main.main would, on streams it is given, and
// returns the exit code, so that scripts can run it inside a test binary.
// Standard output carries what was asked for; everything else, the log
// included, goes to standard error. A mistake is one line that begins with
// "watchkeeper:" and says what to do next, and exit code 1.
package cli
