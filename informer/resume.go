// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"slices"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Resume is the state of an earlier reflector at the sink's head. With it,
// [Reflector.Run] begins with a watch from the head.
//
// An upstream whose RV is not below the head may still have another history:
// an etcd restored from a backup continues at a lower RV and may have passed
// the head with other events. So the first watch begins before the last known
// events, and the upstream has to send them again:
//
//	known       ──── a@12 ── b@15 ──── head 20
//	same        ──── a@12 ── b@15 ─────────────── c@23    resumed
//	restored    ─ backup 10 ─── a@14 ──────────── c@23    relisted
//
// If the upstream has compacted these events, a list follows.
type Resume struct {
	// List is the metadata of the last list: its kind, form and columns. Items
	// are ignored. Without it, Run begins with a list.
	List *scan.List
	// AfterDelete says that the last event was a deletion at the head. Others
	// with the same RV may follow.
	AfterDelete bool
	// Tail has the last events up to the head, in order and without a gap. It
	// may be empty.
	Tail []Known
	// Newest returns the object that has the highest RV at the head, nil if there is
	// none: its last event has to be sent again if Tail is empty. It is called by the
	// goroutine of Run, and not after the first event. Without it and a Tail, the
	// upstream's RV only has to be at the head or above.
	Newest func(context.Context) (*Known, error)
}

// A Known is a version of an object that the sink has received.
type Known struct {
	Key     kube.Key
	UID     string
	RV      uint64
	Deleted bool   // RV is that of the deletion
	Sum     uint64 // hash of its content, see [scan.Object]; 0 is not compared
}

// KnownOf returns what identifies a version of an object.
func KnownOf(o *scan.Object, deleted bool) Known {
	return Known{o.Key, o.UID, o.RV, deleted, o.Sum()}
}

// resume makes Run begin with a watch.
func (r *reflector[O]) resume(from *Resume) {
	r.collection, r.columns, r.afterDelete = from.List, from.List.Columns, from.AfterDelete
	if head := r.sink.Head(); len(from.Tail) == 0 {
		r.recent = recent{known: from.Newest != nil, since: head, listed: head, newestAt: from.Newest}
	} else {
		first := from.Tail[0].RV
		r.recent = recent{known: true, since: first - 1, dropped: first, tail: slices.Clone(from.Tail)}
	}
	r.state = stateVerify // the upstream may have been restored since
	if r.recent.known {
		r.state = stateProve
	}
}
