// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package synthetic makes the objects of a large cluster for benchmarks: Pods and
// Nodes with the fields that controllers, scheduler and kubelet set, their rows in a
// Table, and the changes that a kubelet makes to a Pod. The same index gives the same
// object.
package synthetic
