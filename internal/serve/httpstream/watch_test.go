// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// owner is an Owner without a resource.
type owner struct{}

func (owner) CloseWatch()                 {}
func (owner) Unwritable(wire.Form, error) {}
func (owner) Oldest() uint64              { return 20 }
func (owner) Heard() time.Time            { return time.Now() }

// lastFrames is a frameSink that calls then at the first flush.
type lastFrames struct {
	frames []string
	then   func()
}

func (l *lastFrames) frame(parts []string) error {
	l.frames = append(l.frames, strings.Join(parts, ""))
	return nil
}

func (l *lastFrames) flush() error {
	if l.then != nil {
		l.then()
	}
	l.then = nil
	return nil
}

func (l *lastFrames) release() {}

// TestWatchOver: when Over is closed, a watch writes the available events and ends, with
// an ERROR if there is one.
func TestWatchOver(t *testing.T) {
	apply := func(tl *timeline.Timeline, name string, rv uint64) {
		if err := tl.Apply(scan.Frame{Type: kube.Added, Object: pasttest.Pod("d", name, rv)}); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
	}
	for name, test := range map[string]struct {
		then func(*timeline.Timeline)
		want []string
	}{
		"with an event": {func(tl *timeline.Timeline) { apply(tl, "b", 12) }, []string{"ADDED a", "ADDED b"}},
		"with an error": {func(tl *timeline.Timeline) { tl.Reset(pasttest.List(20)) }, []string{"ADDED a", "ERROR "}},
	} {
		t.Run(name, func(t *testing.T) {
			tl := timeline.New(timeline.Options{})
			tl.Reset(pasttest.List(10))
			over, end := context.WithCancel(t.Context())
			sink := &lastFrames{then: func() { test.then(tl); end() }}
			v := tl.View()
			cursor, err := tl.WatchFrom(v, v.RV, timeline.Interest{})
			if err != nil {
				t.Fatal(err)
			}
			apply(tl, "a", 11)
			enc := &wire.Encoder{Resource: pasttest.Pods, Cache: wire.NewCache(1 << 20)}
			s := &Watch{
				Owner: owner{}, Source: cursor, Encoder: enc, Wire: enc.Stream(wire.Form{}, false), Over: over, BookmarkTemplate: v.BookmarkTemplate,
				sink: sink, tracker: NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{})),
			}
			s.SetTimeout(time.Hour)
			s.timer.begin(nil)
			defer s.timer.stop()
			s.run()
			var got []string
			for _, line := range sink.frames {
				var frame struct {
					Type   string
					Object struct{ Metadata struct{ Name string } }
				}
				if err := json.Unmarshal([]byte(line), &frame); err != nil {
					t.Fatal(err)
				}
				got = append(got, frame.Type+" "+frame.Object.Metadata.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
