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
	// minReturnInterval is the least time between two returns of memory, which are
	// collections. returnShare is the share of the time that they may take.
	minReturnInterval = 30 * time.Second
	returnShare       = 0.01
)

// CollectGarbage adjusts the percentage by which the heap grows, and returns memory to
// the system, until ctx ends, unless GOGC sets the percentage.
//
// The runtime returns memory too, but as the last collection planned. After a burst, such
// as the first list of a resource or the loading of its record, that is out of date: much
// has become garbage since, and an idle gateway has no other collection for two minutes.
func CollectGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := minGC
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	worked := false // since memory was returned
	var next time.Time
	for last, busy := readWork(), false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(gcEvery):
		}
		now := readWork()
		done := work{now.gc - last.gc, now.user - last.user}
		wanted := gcPercent(percent, done)
		if wanted < percent || wanted > percent && busy {
			percent = wanted
			debug.SetGCPercent(percent)
		}
		last, busy = now, wanted > minGC
		if !done.idle() {
			worked = true
		} else if worked && time.Now().After(next) {
			start := time.Now()
			debug.FreeOSMemory()
			took := time.Since(start)
			next = start.Add(max(minReturnInterval, time.Duration(float64(took)/returnShare)))
			worked = false
			last = readWork()
		}
	}
}

// work is the seconds of CPU that collections and everything else took.
type work struct{ gc, user float64 }

func readWork() work {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/user:cpu-seconds"}}
	metrics.Read(s)
	return work{s[0].Value.Float64(), s[1].Value.Float64()}
}

// idle reports whether this is next to nothing in gcEvery.
func (w work) idle() bool { return w.gc+w.user < gcEvery.Seconds()/20 }

// gcPercent returns the new percentage, given the previous one and the work with it. A
// collection costs the same however rare it is, so the share of collections is inversely
// proportional to the percentage.
func gcPercent(was int, w work) int {
	if w.idle() {
		return minGC
	}
	share := w.gc / (w.gc + w.user)
	return min(max(int(float64(was)*share/maxGCShare), minGC), maxGC)
}
