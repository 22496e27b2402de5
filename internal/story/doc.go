// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package story describes what happened to a set of related objects: it groups their changes
// into episodes, such as a rollout that failed and was rolled back.
//
// [Tell] reads the versions of the objects once into things (an object from its creation to
// its deletion), each with its states. Every change that is more than noise becomes an entry.
// Then each rule, in a file of its own, looks for its kind of episode: rollouts, scaling,
// failures of Pods, lost and drained Nodes, and so on. Rules see only the things, never each
// other's results, except that failures of a rollout's own Pods are described with the rollout.
// Last, every entry is assigned to exactly one episode: to the one that claims it, to one
// that covers its object and time, or to the changes that no rule is about.
//
// A cause is named only where an object says so: a status, a condition, an Event, an
// ownerReference, an entry of managedFields. That something was changed shortly before is
// said as that, and not called a cause.
//
// Results depend on the input only: the same input gives the same bytes. Invalid objects are
// read as far as they can be.
package story
