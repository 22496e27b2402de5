// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A Record is the history of one resource, as a sink of its upstream watch
// (internal/recorder implements it). Resume, Seed, the sinks and
// the function of Follow are used by one goroutine at a time; the other methods may be
// called by any.
type Record interface {
	// Resume returns what a reflector that feeds the record continues from, and
	// the kind of the objects if it is known. A nil Resume begins with a list. It
	// reads from the disk.
	Resume(context.Context) (resume *informer.Resume, kind string, err error)
	// Sink returns a sink that writes to the record. ctx is that of its reflector.
	Sink(ctx context.Context) Sink
	// Seed returns the recorded state, which includes everything that a sink or a
	// timeline gave the record before the call. It is nil if there is none, if it
	// must not be continued without a list, or if the disk does not deliver it.
	Seed(ctx context.Context) *Seed
	// Follow returns a function that records a timeline until that is closed or
	// recording has ended. From the call on, the record knows the timeline; it does
	// not touch the disk before run is called. epoch is the epoch of the timeline
	// that began with a Seed of this record; with 0 the record is compared with the
	// timeline. complete reports whether everything up to the timeline's end is on
	// disk.
	Follow(t *timeline.Timeline, epoch uint64) (run func() (complete bool))
	// Damaged returns a channel that is closed when what is recorded turns out to
	// be damaged: a reflector that feeds the record has to begin with a list.
	Damaged() <-chan struct{}
	// Distrust says that what is recorded must not be continued without a list.
	Distrust()
	// Pause returns how long to wait before the next reflector feeds the record,
	// after the last one ended with err: a refusal, [ErrDamaged] or an error of
	// Resume. Nil means that the reflector was stopped.
	Pause(err error) time.Duration
}

// ErrDamaged is the end of a reflector whose record is damaged, see
// [Record].Damaged.
var ErrDamaged = errors.New("what is recorded is damaged")

// A Seed is the recorded state of a resource, from which a timeline starts.
type Seed struct {
	// List is the state at the recorded head, which is its RV.
	List *scan.List
	// Template is a bookmark of the upstream; its RV is 0 if there was none yet.
	Template *scan.Object
	// Resume is what a reflector of the timeline continues from.
	Resume informer.Resume
}

// load loads the state into an empty timeline.
func (s *Seed) load(t *timeline.Timeline) {
	if s.Template.RV != 0 {
		t.Bookmark(scan.Frame{Type: kube.Bookmark, Object: s.Template})
	}
	t.Reset(s.List)
}
