// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TestNoWindow has watches over HTTP/2 on one connection whose clients give no window: from
// the beginning, or after some bytes, or only for a part of an event. They are reset after
// WriteTimeout, and not before. A watch with a window goes on, and so does an idle one
// without.
func TestNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := timeline.New(timeline.Options{})
		tl.Reset(pasttest.List(10))
		rv := uint64(10)
		apply := func(size int) {
			rv++
			if err := tl.Apply(scan.Frame{Type: kube.Modified, Object: pasttest.Pod("d", "a", rv, "filling", strings.Repeat("x", size))}); err != nil {
				t.Fatal(err)
			}
			tl.Flush()
		}
		tracker := NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		hs := &http.Server{Protocols: &protocols, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := newWatch(t, tl, 10)
			s.SetTimeout(24 * time.Hour)
			if r.URL.Path == "/idle" {
				s.Interest = timeline.Interest{Match: func(*scan.Object) bool { return false }}
			}
			tracker.Serve(w, r, s)
		})}
		h2.Configure(hs)
		c := h2test.New(t, h2test.Start(t, hs, nil).Connect(t), h2test.With(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
		if err := c.Grant(0, 1<<30); err != nil {
			t.Fatal(err)
		}
		ids := map[string]uint32{}
		for path, window := range map[string]uint32{"/none": 0, "/some": 1000, "/part": 5500, "/all": 1 << 30, "/idle": 0} {
			id, err := c.Get(path)
			if err == nil && window > 0 {
				err = c.Grant(id, window)
			}
			if err != nil {
				t.Fatal(err)
			}
			ids[path] = id
		}
		synctest.Wait()
		for range 10 {
			apply(2000)
		}
		reset := func() (paths []string) {
			synctest.Wait()
			c.Look(func(s *h2test.State) {
				for path, id := range ids {
					if s.Streams[id].Done() {
						paths = append(paths, path)
					}
				}
			})
			return paths
		}
		time.Sleep(WriteTimeout - time.Second)
		if early := reset(); len(early) > 0 {
			t.Errorf("before the timeout: %v", early)
		}
		time.Sleep(2 * bookmarkInterval) // the timer of a watch is that coarse
		if late := reset(); len(late) != 3 || strings.Contains(strings.Join(late, " "), "/all") || strings.Contains(strings.Join(late, " "), "/idle") {
			t.Errorf("after the timeout: %v", late)
		}
		if n := tracker.Active(); n != 2 {
			t.Errorf("%d watches are left", n)
		}
		time.Sleep(3 * WriteTimeout)
		apply(100)
		c.Wait("an event", func(s *h2test.State) bool {
			return strings.Contains(string(s.Streams[ids["/all"]].Body), `"resourceVersion":"21"`)
		})
		if n := tracker.Active(); n != 2 {
			t.Errorf("%d watches are left in the end", n)
		}
		c.Close()
		<-tracker.Idle()
	})
}
