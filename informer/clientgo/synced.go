// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"reflect"

	"k8s.io/client-go/tools/cache"
)

// A syncState is whether the first list is complete. It is embedded for its method
// HasSyncedChecker: interfaces of client-go have it since 0.36, and its result type
// does not exist in older versions, for which this package compiles, too. So the
// method is that of one of client-go's controllers, which never runs and whose queue
// synced sets.
type syncState struct {
	cache.Controller
	queue *cache.DeltaFIFO
}

func newSyncState(name string) syncState {
	var opts cache.DeltaFIFOOptions
	// The name of HasSyncedChecker's result: queues have it since the method exists.
	if f := reflect.ValueOf(&opts).Elem().FieldByName("Name"); f.IsValid() {
		f.SetString(name)
	}
	queue := cache.NewDeltaFIFOWithOptions(opts)
	return syncState{cache.New(&cache.Config{Queue: queue}), queue}
}

// set completes the first list.
func (s syncState) set() {
	// A queue without objects has synced when it is replaced by none.
	_ = s.queue.Replace(nil, "")
}
