// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// sizes are the numbers of the scenarios.
type sizes struct {
	watches    int     // of one collection
	idle       int     // idle watches
	updates    int     // per measurement
	rate       float64 // of them in a second
	selectors  int     // watches with a label selector of their own
	atDirect   float64 // updates in a second the API server bears with them
	atGateway  float64
	pods       int // to list
	lists      int // how often
	cached     int // Pods of the fake API server, for memory and rates
	ingest     int // events of the fake API server
	ingestRate float64
	own        int // watches on connections of their own
	shared     int // watches over HTTP/2
	holding    time.Duration
	steady     time.Duration // before memory is called steady
	unhindered time.Duration // of updates as fast as they go
	burst      int           // events at once
	lagging    time.Duration // of updates whose latency is measured
}

func chooseSizes(quick bool) sizes {
	if quick {
		return sizes{
			watches: 200, idle: 500, updates: 40, rate: 20, selectors: 300, atDirect: 20, atGateway: 20,
			pods: 1000, lists: 3, cached: 5000, ingest: 50_000, ingestRate: 50_000, own: 1000, shared: 2000,
			holding: 4 * time.Second, steady: 2 * time.Second, unhindered: 3 * time.Second, burst: 200, lagging: 2 * time.Second,
		}
	}
	return sizes{
		watches: 1000, idle: 4000, updates: 100, rate: 10, selectors: 3000, atDirect: 20, atGateway: 40,
		pods: 10_000, lists: 5, cached: 50_000, ingest: 500_000, ingestRate: 50_000, own: 15_000, shared: 50_000,
		holding: 20 * time.Second, steady: 10 * time.Second, unhindered: 8 * time.Second, burst: 1000, lagging: 10 * time.Second,
	}
}

// settle is how long servers get to finish what is not measured.
const settle = 1500 * time.Millisecond

// timeout is how long deliveries are waited for.
const timeout = time.Minute
