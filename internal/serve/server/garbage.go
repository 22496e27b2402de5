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
	// maxQuietShare is the share of the live heap that a quiet gateway allocates at most
	// in gcEvery, besides quietBytes. If it allocates more, its next collection is near
	// (minGC).
	maxQuietShare, quietBytes = 0.04, 1 << 20
	// minReturnInterval is the least time between two returns of memory, which are
	// collections. maxReturnShare is the share of the time that they may take.
	minReturnInterval = 10 * time.Second
	maxReturnShare    = 0.01
)

// CollectGarbage adjusts the percentage by which the heap grows, and returns memory to
// the system, until ctx ends, unless GOGC sets the percentage.
func CollectGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := minGC
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	var r returns
	for last, busy := readUsage(), false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(gcEvery):
		}
		now := readUsage()
		next := gcPercent(percent, now.gc-last.gc, now.user-last.user)
		if next < percent || next > percent && busy {
			percent = next
			debug.SetGCPercent(percent)
		}
		last, busy = now, next > minGC
		if start := time.Now(); r.due(start, now) {
			debug.FreeOSMemory()
			r.done(start, time.Since(start), readUsage())
		}
	}
}

// usage is what the runtime has used since the start of the process.
type usage struct {
	gc, user  float64 // seconds of CPU, for collections and for everything else
	allocated uint64  // bytes
	live      uint64  // bytes, as of the last collection
}

func readUsage() usage {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/user:cpu-seconds"},
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	return usage{s[0].Value.Float64(), s[1].Value.Float64(), s[2].Value.Uint64(), s[3].Value.Uint64()}
}

// returns decides when memory is returned to the system.
//
// The runtime returns memory too, but what the last collection planned. After a burst,
// such as the first list of a resource or the loading of its record, that is out of date:
// much has become garbage since, and a quiet gateway has no other collection for two
// minutes.
type returns struct {
	last   uint64 // bytes allocated as of the last call of due
	worked bool   // since the last return
	after  time.Time
}

// due reports whether memory is to be returned: the gateway has become quiet. It is called
// every gcEvery.
func (r *returns) due(now time.Time, u usage) bool {
	quiet := float64(u.allocated-r.last) <= maxQuietShare*float64(u.live)+quietBytes
	r.last = u.allocated
	if !quiet {
		r.worked = true
	}
	return quiet && r.worked && !now.Before(r.after)
}

// done says that memory was returned, and how long that took.
func (r *returns) done(start time.Time, took time.Duration, u usage) {
	r.worked, r.last = false, u.allocated
	r.after = start.Add(max(minReturnInterval, time.Duration(float64(took)/maxReturnShare)))
}

// gcPercent returns the new percentage, given the previous one and the seconds of
// CPU that collections and everything else took with it. A collection costs the
// same however rare it is, so the share of collections is inversely proportional
// to the percentage.
func gcPercent(was int, gc, user float64) int {
	if gc+user < gcEvery.Seconds()/20 { // idle
		return minGC
	}
	share := gc / (gc + user)
	return min(max(int(float64(was)*share/maxGCShare), minGC), maxGC)
}
