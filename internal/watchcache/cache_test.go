// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import "testing"

// TestIdleResourceIsStopped: a resource is stopped once it has no readers.
func TestIdleResourceIsStopped(t *testing.T) {
	res := (&definer{}).resource(t)
	held := res.cache.Acquire(t.Context(), res.ID)
	held.OpenWatch()
	held.Release()
	if res.cache.stopIdle(0); res.watch.reader == nil {
		t.Fatal("stopped with an open watch")
	}
	held.CloseWatch()
	if res.cache.stopIdle(0); res.watch.reader != nil || res.cache.Watched(res.ID) != nil {
		t.Error("not stopped")
	}
}
