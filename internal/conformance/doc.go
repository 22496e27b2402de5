// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance holds the rules of the Kubernetes LIST/GET/WATCH API, one
// exported function each, and runs them against two endpoints: an API server
// (want) and what stands in front of it (got). A rule sends the same requests
// to both, says what the API server must answer, so that it cannot hold
// vacuously, and compares the answers byte for byte.
//
// The rules follow the sections of docs/kubernetes-watch.md, which their
// comments cite as §1 to §9. [Rules] lists them; [Run] runs them
// all and prints a table. A rule that is not the same by design has the number
// of a line in docs/semantics.md, "Differences from the API server", and then
// must indeed differ.
//
// [Setup] makes what the rules look at: a still life that nobody changes while
// they run (fixture.yaml), and custom resources (crds.yaml). Rules that change
// things do so in a namespace of their own, so that they can run at the same
// time. Only tests import this package.
package conformance
