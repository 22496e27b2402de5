// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package livetable shows tables of Kubernetes objects that update in place in a terminal, as
// "watchkeeper get deploy,rs,pods -w" does. [Run] shows them until the user quits, and leaves
// their last state on the terminal as kubectl would have printed it.
//
//	feed ──changes──► table ──rows──► screen ──lines──► bubbletea ──what differs──► terminal
//	one per resource, in goroutines   └────────── one goroutine: model ─┘
//
// Package feed lists and watches, package table has the state, and package screen draws it. This
// package has what is interactive: keys, the past, details, and lines in words for those who
// cannot use a screen that changes ([Options].Plain).
//
// The tables are drawn inline, below what the shell has printed, which remains. A frame is
// drawn at most every 40 ms, however many events there are, when a mark has to fade, and once per
// second for the ages. Bubbletea writes the cells that differ from the frame before.
//
// With a [History], tables can show the past: each step lists the resources at a moment, and
// playing replays what followed, until that is the present. Marks then show what the step has
// changed, and ages are those of the moment.
//
// Texts from the API server are cleaned (table.Clean) before they are drawn: they cannot control
// the terminal.
package livetable
