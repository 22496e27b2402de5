// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"runtime/debug"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// largeList is the size of a list, in bytes, from which the memory used to read it is
// returned to the system at once. That takes some 20 ms, more with a large heap.
const largeList = 8 << 20

// A timelineSink is a timeline as a [Sink].
type timelineSink struct {
	*timeline.Timeline
	// listed is called after each list, unless nil. otherColumns is set if its Table has
	// other columns than the objects held before.
	listed func(otherColumns bool)
	// live is called once, at the first list or the first flush of a resumed watch,
	// unless nil.
	live func()
}

// Begin implements Sink.
func (s *timelineSink) Begin() {}

// Replace implements Sink.
func (s *timelineSink) Replace(list *scan.List, diverged bool) (continued bool) {
	size := 0
	for _, o := range list.Items {
		size += len(o.JSON)
	}
	before := s.View()
	if diverged {
		s.Timeline.Reset(list)
	} else {
		continued = s.Timeline.Replace(list)
	}
	if size > largeList {
		debug.FreeOSMemory()
	}
	if s.listed != nil {
		s.listed(before != nil && before.BookmarkTemplate.Columns != list.Columns)
	}
	s.goLive()
	return continued
}

// Flush implements Sink.
func (s *timelineSink) Flush() {
	s.Timeline.Flush()
	if s.live != nil && s.View() != nil {
		s.goLive()
	}
}

func (s *timelineSink) goLive() {
	if s.live != nil {
		s.live()
		s.live = nil
	}
}

// Apply implements Sink.
func (s *timelineSink) Apply(typ kube.EventType, o *scan.Object) error {
	return s.Timeline.Apply(scan.Frame{Type: typ, Object: o})
}

// Bookmark implements Sink.
func (s *timelineSink) Bookmark(_ uint64, o *scan.Object) {
	s.Timeline.Bookmark(scan.Frame{Type: kube.Bookmark, Object: o})
}
