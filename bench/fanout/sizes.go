// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// sizes are the numbers of the scenarios.
type sizes struct {
	watches    int     // of one collection
	idle       int     // idle watches
	updates    int     // per measurement
	rate       float64 // of these, per second
	selectors  int     // watches with different label selectors
	atDirect   float64 // updates per second that the API server sustains with these watches
	atGateway  float64
	selecting  time.Duration // duration of these updates
	pods       int           // Pods per LIST
	lists      int           // number of LISTs
	puts       int           // updates, one after the other, for an informer
	cached     int           // Pods of the fake API server, for memory and rates
	ingest     int           // events of the fake API server
	ingestRate float64
	own        int // watches on separate connections
	shared     int // watches over HTTP/2
	holding    time.Duration
	steady     time.Duration // pause before memory is measured
	unhindered time.Duration // duration of updates as fast as possible
	burst      int           // events at once
	lagging    time.Duration // duration of updates when latency is measured
}

func chooseSizes(quick bool) sizes {
	if quick {
		return sizes{
			watches: 200, idle: 500, updates: 40, rate: 20, selectors: 300, atDirect: 20, atGateway: 20, selecting: 5 * time.Second,
			pods: 1000, lists: 3, puts: 50, cached: 5000, ingest: 50_000, ingestRate: 50_000, own: 1000, shared: 2000,
			holding: 4 * time.Second, steady: 2 * time.Second, unhindered: 3 * time.Second, burst: 200, lagging: 2 * time.Second,
		}
	}
	return sizes{
		watches: 1000, idle: 4000, updates: 100, rate: 10, selectors: 3000, atDirect: 20, atGateway: 40, selecting: 30 * time.Second,
		pods: 10_000, lists: 5, puts: 300, cached: 50_000, ingest: 500_000, ingestRate: 50_000, own: 15_000, shared: 50_000,
		holding: 20 * time.Second, steady: 10 * time.Second, unhindered: 8 * time.Second, burst: 1000, lagging: 10 * time.Second,
	}
}

// settle is the pause in which servers finish work that is not measured.
const settle = 1500 * time.Millisecond

// timeout bounds the wait for deliveries.
const timeout = time.Minute
