// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"iter"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A Snapshot is the state of a stream at an RV, for one request. Each call reads from
// disk.
type Snapshot struct {
	Stream *history.Stream
	RV     uint64
	Ctx    context.Context // of the request
}

// Get returns the object with the key, nil if there is none.
func (s *Snapshot) Get(key kube.Key) (*scan.Object, error) { return s.Stream.Get(s.Ctx, s.RV, key) }

// List yields the objects of a namespace, or of all namespaces if it is "", in list
// order, from the first key that is not below from. It ignores the attribute, since
// the history has no index. It ends after an error.
func (s *Snapshot) List(namespace string, from kube.Key, _ *timeline.Attribute) iter.Seq2[*scan.Object, error] {
	return func(yield func(*scan.Object, error) bool) {
		for o, err := range s.Stream.List(s.Ctx, s.RV, namespace, from) {
			if err == nil {
				err = context.Cause(s.Ctx)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// Count returns how many objects List would yield.
func (s *Snapshot) Count(namespace string, from kube.Key) (int64, error) {
	n, err := s.Stream.Count(s.Ctx, s.RV, namespace, from)
	return int64(n), err
}
