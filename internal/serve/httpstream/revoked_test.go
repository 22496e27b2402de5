// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// slowSink is a frameSink whose client reads nothing for a while: stall is called in the
// first write of an event.
type slowSink struct {
	frames []string
	stall  func()
}

func (s *slowSink) frame(parts []string) error {
	s.frames = append(s.frames, strings.Join(parts, ""))
	if s.stall != nil {
		s.stall()
	}
	s.stall = nil
	return nil
}

func (s *slowSink) flush() error { return nil }
func (s *slowSink) release()     {}

// TestWatchRevoked: a client that does not read while its right is revoked gets no event
// after the one that is being written. It is done often, since a select chooses at random.
func TestWatchRevoked(t *testing.T) {
	for name, test := range map[string]struct{ before, after []string }{
		"a later event":            {[]string{"a"}, []string{"b"}},
		"an event of the batch":    {[]string{"a", "b"}, nil},
		"an event of the snapshot": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for range 30 {
				tl := timeline.New(timeline.Options{})
				tl.Reset(pasttest.List(10))
				rv := uint64(10)
				apply := func(names []string) {
					for _, name := range names {
						rv++
						if err := tl.Apply(scan.Frame{Type: kube.Added, Object: pasttest.Pod("d", name, rv)}); err != nil {
							t.Fatal(err)
						}
					}
					tl.Flush()
				}
				v := tl.View()
				cursor, err := tl.WatchFrom(v, v.RV, timeline.Interest{})
				if err != nil {
					t.Fatal(err)
				}
				apply(test.before)
				revoked := make(chan struct{})
				sink := &slowSink{stall: func() { close(revoked); apply(test.after) }}
				enc := &wire.Encoder{Resource: pasttest.Pods, Cache: wire.NewCache(1 << 20)}
				s := &Watch{
					Owner: owner{}, Source: cursor, Encoder: enc, Wire: enc.Stream(wire.Form{}, false), Revoked: revoked, BookmarkTemplate: v.BookmarkTemplate,
					sink: sink, tracker: NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{})),
				}
				if test.before == nil {
					s.Initial = []*scan.Object{pasttest.Pod("d", "a", 9), pasttest.Pod("d", "b", 10)}
				}
				s.SetTimeout(time.Hour)
				s.timer.begin(nil)
				s.run()
				s.timer.stop()
				if len(sink.frames) != 1 {
					t.Fatalf("%d frames, want the one that was being written: %.300s", len(sink.frames), sink.frames)
				}
			}
		})
	}
}
