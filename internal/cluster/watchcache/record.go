// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A Record is the history of one resource, as a sink of its upstream watch
// (internal/record/recorder implements it). Resume, the sinks and the function that
// Follow returns are used by one goroutine at a time. The other methods may be called
// concurrently, Seed also while a sink is used.
type Record interface {
	// Resume returns what a reflector that feeds the record resumes from, and the
	// kind of the objects if it is known. With a nil result the reflector begins
	// with a list. Resume reads from the disk.
	Resume(context.Context) (resume *reflector.Resume, kind string, err error)
	// Sink returns a sink that writes to the record. ctx is that of its reflector.
	Sink(ctx context.Context) Sink
	// Seed returns the recorded state, which includes everything that a sink or a
	// timeline passed to the record before the call. It is nil if there is none, if
	// it must not be continued without a list, or if the disk does not deliver it.
	Seed(ctx context.Context) *Seed
	// Follow returns a function that records a timeline until the timeline is closed
	// or recording has ended. From the call on, the record knows the timeline, but
	// it does not access the disk before run is called. epoch is the epoch of a
	// timeline that began with a Seed of this record; with 0 the record is compared
	// with the timeline. complete reports whether everything up to the timeline's
	// end is on disk.
	Follow(t *timeline.Timeline, epoch uint64) (run func() (complete bool))
	// Damaged returns a channel that is closed when the record turns out to be
	// damaged: a reflector that feeds the record has to begin with a list.
	Damaged() <-chan struct{}
	// Continuity is called by the goroutine of a reflector whose sink the record is,
	// or follows, see reflector.Options. It does not block.
	Continuity(reflector.Continuity)
	// RequireList makes the record require a list before it is continued.
	RequireList()
	// Pause returns how long to wait before the next reflector feeds the record,
	// after the last one ended with err: a refusal, [ErrDamaged] or an error of
	// Resume. Nil means that the reflector was stopped.
	Pause(err error) time.Duration
}

// ErrDamaged is the error of a reflector that ended because its record is damaged,
// see [Record].Damaged.
var ErrDamaged = errors.New("the record is damaged")

// A Seed is the recorded state of a resource, from which a timeline starts.
type Seed struct {
	// List is the state at the recorded head, which is its RV.
	List *scan.List
	// Template is a bookmark of the upstream; its RV is 0 if there was none yet.
	Template *scan.Object
	// Resume is what a reflector of the timeline resumes from.
	Resume reflector.Resume
}

// load loads the state into an empty timeline.
func (s *Seed) load(t *timeline.Timeline) {
	if s.Template.RV != 0 {
		t.Bookmark(scan.Frame{Type: kube.Bookmark, Object: s.Template})
	}
	t.Reset(s.List)
}
