// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package change says what is different between two versions of an object: as
// a JSON Patch, in words, and by whom.
//
// What changes without anybody having changed anything is noise: heartbeats,
// the renewal of leases, the counters of Events, metadata that follows other
// changes. A [Change] has it apart, so that it can be left out and counted.
//
// Summaries are for people: the best known fields have phrases of their own,
// all others are named by their path. Lists are matched by the name, type or
// key of their elements, so that one more container is one change. They show
// no values of Secrets.
//
// What is compared is not changed, and a result depends on nothing else.
package change
