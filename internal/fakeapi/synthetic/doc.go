// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package synthetic makes the objects of a large cluster for benchmarks: Pods
// and Nodes as the controllers, the scheduler and the kubelet leave them, how
// the API server prints them in a Table, and what a kubelet changes in a Pod.
// The same index gives the same object.
package synthetic
