// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"runtime/debug"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// largeList is how many bytes a list has, of which what was left over in reading
// it, or held before, is given back at once. That takes some 20 ms, more with a
// large heap.
const largeList = 8 << 20

// A feed is a timeline as the sink of a reflector. Readers are to see all of a
// list or nothing of it, so its objects are collected until it ends.
type feed struct {
	*timeline.Timeline
	items []*scan.Object
	// replaced is called after each list; nil calls nothing.
	replaced func()
	// fed is called once, when the timeline has what the upstream says, or there
	// is a watch that brings it; nil calls nothing.
	fed func()
}

// Begin implements informer.Sink.
func (f *feed) Begin(bool) { f.items = nil }

// Item implements informer.Sink.
func (f *feed) Item(o *scan.Object) { f.items = append(f.items, o) }

// End implements informer.Sink.
func (f *feed) End(list *scan.List) (continued bool) {
	whole := *list
	whole.Items, f.items = f.items, nil
	size := 0
	for _, o := range whole.Items {
		size += len(o.JSON)
	}
	continued = f.Replace(&whole)
	if size > largeList {
		debug.FreeOSMemory()
	}
	if f.replaced != nil {
		f.replaced()
	}
	f.began()
	return continued
}

// Flush implements informer.Sink.
func (f *feed) Flush() {
	f.Timeline.Flush()
	if f.fed != nil && f.View() != nil {
		f.began()
	}
}

func (f *feed) began() {
	if f.fed != nil {
		f.fed()
		f.fed = nil
	}
}

// Apply implements informer.Sink.
func (f *feed) Apply(typ kube.EventType, o *scan.Object) error {
	return f.Timeline.Apply(scan.Frame{Type: typ, Object: o})
}

// Bookmark implements informer.Sink.
func (f *feed) Bookmark(_ uint64, o *scan.Object) {
	f.Timeline.Bookmark(scan.Frame{Type: kube.Bookmark, Object: o})
}
