// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package table is the state of a live table: its columns, its rows in order, what has
// changed in them and when. It knows neither terminals nor API servers, and nothing in it
// waits: callers pass the current time.
//
// A [Table] holds a row per object. A row that was deleted stays in its place for
// [Ghost], so that people see what went away. Rows that the filter leaves out are kept,
// but are not in the order that a view walks. Inserting, changing and deleting a row costs a binary
// search and a move of pointers, so that a thousand changes per second in ten thousand rows
// need no sort.
//
// A Table is for one goroutine.
package table
