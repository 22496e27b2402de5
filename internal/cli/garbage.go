// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// leastGC and mostGC are by how many percent the heap grows before garbage is
	// collected. Go's default, 100, is meant for heaps of pointers. Nearly all of
	// this one is the text of objects, which the collector does not look at, and
	// half of the memory would be slack: the least is cheap where not much happens.
	leastGC, mostGC = 20, 100
	// gcShare is the part of the CPU that the collector may take before the heap
	// grows further: at a high rate of events it would be a quarter.
	gcShare = 0.1
	// gcEvery is how often that is looked at. What takes more only once, as the
	// first list of a resource does, is not worth the memory.
	gcEvery = 3 * time.Second
)

// collectGarbage sets by how much the heap grows until ctx ends, unless GOGC says
// it.
func collectGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := leastGC
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
		last, busy = now, next > leastGC
		select {
		case <-ctx.Done():
			return
		case <-time.After(gcEvery):
		}
		metrics.Read(work)
	}
}

// gcPercent is by how many percent the heap is to grow from now on, where it grew
// by some since the last time, and so many seconds of CPU went into its collection
// and into everything else. What a collection costs is the same however rare it
// is, so that their share is inversely proportional to the growth.
func gcPercent(was int, gc, user float64) int {
	if gc+user < gcEvery.Seconds()/20 { // hardly anything happens
		return leastGC
	}
	share := gc / (gc + user)
	return min(max(int(float64(was)*share/gcShare), leastGC), mostGC)
}
