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
)

// CollectGarbage adjusts the percentage by which the heap grows until ctx ends,
// unless GOGC sets it.
func CollectGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := minGC
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	work := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/user:cpu-seconds"}}
	metrics.Read(work)
	for last, busy := [2]float64{}, false; ; {
		now := [2]float64{work[0].Value.Float64(), work[1].Value.Float64()}
		next := gcPercent(percent, now[0]-last[0], now[1]-last[1])
		if next < percent || next > percent && busy {
			percent = next
			debug.SetGCPercent(percent)
		}
		last, busy = now, next > minGC
		select {
		case <-ctx.Done():
			return
		case <-time.After(gcEvery):
		}
		metrics.Read(work)
	}
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
