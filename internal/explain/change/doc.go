// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package change describes the difference between two versions of an object: as
// a JSON Patch, in words, and with the field managers that made it.
//
// Changes without a meaning of their own are noise: heartbeats, lease renewals,
// counters of Events, metadata that follows other changes. A [Change] lists
// them separately, so that they can be hidden and counted.
//
// Summaries are for people. Well-known fields have phrases of their own; other
// fields are shown by path. Elements of lists are matched by name, type or key,
// so that one more container is one change. Values of Secrets are never shown.
//
// The package does not modify its inputs, and results depend on nothing else.
package change
