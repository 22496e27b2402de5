// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package screen draws live tables as lines of text of a given width and height. It does not
// write them: given the same tables and time, it returns the same lines.
//
// The lines of a table are those of kubectl: the same columns, with the same spaces between
// them. A cell that changed is highlighted, and fades; a row that is new is green, and one that
// was deleted is struck through. Without colours the marks are characters: + - ~ before a
// row, and * after a cell.
//
// If the tables have more rows than the screen, each gets a window. It follows the cursor or,
// without one, the changes: it moves to a change outside only if nothing inside has changed
// for a while, so that it does not jump about in a busy table. Rows that come and go above a
// window do not move it.
package screen
