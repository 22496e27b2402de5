// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"net/http"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

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

// TestRefusedAtOnce: a refusal is known as soon as the answer has come, not only when the
// resource has been removed for it.
func TestRefusedAtOnce(t *testing.T) {
	res := (&definer{code: http.StatusForbidden, body: `{"kind":"Status","apiVersion":"v1","code":403,"message":"no"}`}).resource(t)
	if why := res.cache.Refused(res.ID); why != nil {
		t.Fatalf("before: %v", why)
	}
	r := reflector.New(reflector.Objects(true), newFeed(&timelineSink{Timeline: res.Timeline}), reflector.Options{
		Transport: res.cache.opts.Upstream.Agent(), URL: res.cache.opts.Upstream.URL(res.ID.Path(), ""), Kind: "Widget",
	})
	res.reflector.Store(r)
	refused := r.Run(t.Context())
	if why := res.cache.Refused(res.ID); why == nil || why.Error() != refused.Error() {
		t.Errorf("Refused: %v, want %v", why, refused)
	}
}
