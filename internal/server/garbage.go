// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// minGC and maxGC are the percentages by which the heap grows between
	// collections. With Go's default, 100, half of the memory would be slack.
	// Collections are cheap here, because the collector does not scan the text of
	// objects, which is nearly all of the heap.
	minGC, maxGC = 20, 100
	// maxGCShare is the share of the CPU that the collector may take before the
	// heap grows further. At a high rate of events it would take a quarter.
	maxGCShare = 0.1
	// gcEvery is how often the share is measured. A single excess, as during the
	// first list of a resource, does not change the percentage.
	gcEvery = 3 * time.Second
	// minSlack and minSlackShare are the bytes, and the share of the live heap, from
	// which on slack is returned to the system.
	minSlack, minSlackShare = 16 << 20, 0.05
	// minReturnInterval is the least time between two returns: each is a collection.
	minReturnInterval = 30 * time.Second
)

// CollectGarbage adjusts the percentage by which the heap grows, and returns memory to
// the system, until ctx ends, unless GOGC sets the percentage.
//
// The runtime returns memory too, but plans that in a collection. After a burst, such as
// the first list of a resource or of its record, an idle gateway has no collection for
// two minutes, and keeps the size that it had during the last one.
func CollectGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := minGC
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	var returned time.Time
	for last, busy := readHeap(), false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(gcEvery):
		}
		now := readHeap()
		gc, user := now.gc-last.gc, now.user-last.user
		next := gcPercent(percent, gc, user)
		if next < percent || next > percent && busy {
			percent = next
			debug.SetGCPercent(percent)
		}
		if idle(gc, user) && now.excessive() && time.Since(returned) >= minReturnInterval {
			debug.FreeOSMemory()
			returned = time.Now()
		}
		last, busy = now, next > minGC
	}
}

// heap is what the runtime says about the heap, and about the work with it.
type heap struct {
	gc, user            float64 // seconds of CPU that collections and everything else took
	live, objects, free uint64  // bytes after the last collection, now, and free but not returned
}

func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/user:cpu-seconds"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return heap{s[0].Value.Float64(), s[1].Value.Float64(), s[2].Value.Uint64(), s[3].Value.Uint64(), s[4].Value.Uint64()}
}

// excessive reports whether the slack, which is garbage and free memory, is worth a
// collection.
func (h heap) excessive() bool {
	slack := h.free + max(h.objects, h.live) - h.live
	return slack >= minSlack && float64(slack) >= minSlackShare*float64(h.live)
}

// idle reports whether the gateway had next to nothing to do since the last measurement.
func idle(gc, user float64) bool { return gc+user < gcEvery.Seconds()/20 }

// gcPercent returns the new percentage, given the previous one and the seconds of
// CPU that collections and everything else took with it. A collection costs the
// same however rare it is, so the share of collections is inversely proportional
// to the percentage.
func gcPercent(was int, gc, user float64) int {
	if idle(gc, user) {
		return minGC
	}
	share := gc / (gc + user)
	return min(max(int(float64(was)*share/maxGCShare), minGC), maxGC)
}
