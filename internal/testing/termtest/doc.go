// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package termtest runs commands in a terminal, for tests: a tmux session with a shell, whose
// screen can be read as text, or drawn as an SVG picture, also a moving one.
//
// tmux has to be installed: "scripts/deps test" does that.
package termtest
