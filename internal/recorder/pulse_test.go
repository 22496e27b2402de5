// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestPause: what the API server sends during a pause of the program comes late, also if the
// first to run again is a write.
func TestPause(t *testing.T) {
	for name, read := range modes {
		inBubble(t, name, func(t *testing.T) {
			api := newFakeAPI(t)
			r := api.recorder(t, vfs.NewMem())
			r.delay.events, r.listenEvery = 50*time.Millisecond, time.Hour // only writes feel the pulse
			g := api.run(t, r)
			if read {
				g.served()
			}
			before := api.write("a", "1")
			st := g.recorded(before)
			r.mu.Lock()
			p := &r.session.pulse
			r.mu.Unlock()
			time.Sleep(20 * time.Millisecond) // the times of a history have milliseconds
			p.mu.Lock()
			p.beat, p.at = p.beat.Add(-time.Hour), time.Now().Add(-10*time.Second)
			p.mu.Unlock()
			after := api.write("a", "2")
			g.recorded(after)
			g.watched()
			checkLate(t, st, before, after)
			timely := api.write("a", "3")
			g.recorded(timely)
			if gaps := st.Gaps(); len(gaps) != 1 {
				t.Errorf("gaps %v", gaps)
			}
		})
	}
}
