// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording writes a part of a history into one file, and serves such a
// file as a cluster that stands still: for a postmortem, a bug report or a
// lesson, without the cluster.
package recording
