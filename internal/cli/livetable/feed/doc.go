// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package feed brings the objects of one resource, as the API server prints them, to a live
// table.
//
// A [Feed] is a reflector's sink: package reflector lists and watches, retries with back-off,
// relists when the history has expired, and asks for Tables with whole objects, from
// which sort keys, and the times that ages are counted from, are taken. The objects are not
// kept. A [Printer] turns each row of a Table into the cells that kubectl would print.
//
// Nothing waits for the terminal. Events are merged by object until the table takes them
// with [Feed.Drain]: of a thousand changes of one object between two frames, it sees the
// last and their number. While a table is paused, a feed holds at most one entry per object.
package feed
