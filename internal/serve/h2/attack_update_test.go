// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// TestLateUpdates has a client that gives windows back as it reads the answers, which is
// after their streams have ended: a WINDOW_UPDATE for each KiB. It is not disconnected,
// whatever the number of answers. One that sends many more than it has received bytes for
// is.
func TestLateUpdates(t *testing.T) {
	const answers, size, part = 50, 256 << 10, 1 << 10
	handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }
	connect := func(t *testing.T) *h2test.Conn {
		c := h2test.New(t, start(t, http.HandlerFunc(handler)).Connect(t), h2test.With(http2.Setting{ID: initialWindow, Val: size}))
		if err := c.Grant(0, 1<<30); err != nil {
			t.Fatal(err)
		}
		return c
	}
	bubble(t, "as it reads", func(t *testing.T) {
		c := connect(t)
		for i := range answers {
			a := c.Exchange("/large")
			if err := c.Frames(func(f *http2.Framer) {
				for range size / part {
					_ = f.WriteWindowUpdate(a.ID, part)
				}
			}); err != nil {
				t.Fatalf("after %d answers: %v", i, err)
			}
			c.Forget(a.ID)
		}
		if err := c.Sync(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "without reading", func(t *testing.T) {
		if standard {
			t.Skip("net/http accepts any number")
		}
		c := connect(t)
		a := c.Exchange("/large")
		// maxUpdates is what the server may take: one for each 256 bytes, and some more.
		const maxUpdates = size/256 + 20_000
		n := 0
		for ; n < maxUpdates && !c.Refused(); n += batch {
			if err := c.Frames(func(f *http2.Framer) {
				for range batch {
					_ = f.WriteWindowUpdate(a.ID, 1)
				}
			}); err != nil {
				break
			}
			synctest.Wait()
		}
		if n >= maxUpdates {
			t.Fatalf("%d updates were accepted", n)
		}
		expelled(t, c)
	})
}
