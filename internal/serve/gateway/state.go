// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"iter"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A Snapshot is the objects at one RV: of a timeline, or of the history.
type Snapshot interface {
	// Get returns the object with the key, nil if there is none.
	Get(kube.Key) (*scan.Object, error)
	// List yields the objects of a namespace, "" for all, in list order, beginning
	// with the first whose key is at least from; objects without the attribute may
	// be left out. After an error it ends.
	List(namespace string, from kube.Key, a *timeline.Attribute) iter.Seq2[*scan.Object, error]
	// Count returns how many objects List yields without an attribute.
	Count(namespace string, from kube.Key) (int64, error)
}

// A state is the objects at an RV, and how they are shown.
type state struct {
	objects Snapshot
	rv      uint64
	// at is the time as of which rows of Tables are printed; zero for now.
	at time.Time
	// item is an object without content, in the form of the resource's objects;
	// listKind is the kind of a list of them.
	item     *scan.Object
	listKind string
	// recorded is set for objects that are read from disk: their rows may have other
	// columns than the item. With ownColumns they are shown with the columns of the
	// newest row.
	recorded, ownColumns bool
	// release frees the slot that the state holds; nil for none. held is set if other
	// requests may wait for the slot.
	release func()
	held    bool
}

func (s *state) close() {
	if s.release != nil {
		s.release()
	}
}

// timelineSnapshot is a timeline.Snapshot as a Snapshot.
type timelineSnapshot struct{ *timeline.Snapshot }

func (s timelineSnapshot) Get(key kube.Key) (*scan.Object, error) { return s.Snapshot.Get(key), nil }

func (s timelineSnapshot) List(namespace string, from kube.Key, a *timeline.Attribute) iter.Seq2[*scan.Object, error] {
	return func(yield func(*scan.Object, error) bool) {
		for o := range s.Select(namespace, from, a) {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (s timelineSnapshot) Count(namespace string, from kube.Key) (n int64, err error) {
	for range s.All(namespace, from) {
		n++
	}
	return n, nil
}
