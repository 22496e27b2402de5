// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// spoil overwrites an object in the closed history of a cluster. The streams are in the
// order in which recording began.
func spoil(t *testing.T, fs vfs.FS, stream byte, object string) {
	t.Helper()
	db, err := pebble.Open("data/cluster-1", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{'V', 0, 0, 0, stream}, UpperBound: []byte{'V', 0, 0, 0, stream + 1}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for it.First(); it.Valid(); it.Next() {
		if bytes.Contains(it.Key(), []byte(object)) {
			n++
			if err := db.Set(it.Key(), []byte{0}, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := it.Close(); err != nil || n == 0 {
		t.Fatalf("%d versions, %v", n, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamaged: if the record of a resource is damaged, only this resource begins a new
// epoch, wherever the damage is found: on resume, on a change, in a reader's seed, when
// the record follows a reader's timeline, and when it is trimmed.
func TestDamaged(t *testing.T) {
	gadgets := kube.Resource{Version: "v1", Name: "gadgets"}
	// The damaged epoch can be trimmed already.
	newEpoch := func(g *rig) bool {
		all := g.r.Store().Streams(pods)
		return len(all) > 0 && all[len(all)-1].Epoch() == 1
	}
	for _, test := range []struct {
		name, object string
		found        func(api *fakeAPI, g *rig) (rv uint64)
	}{
		{"resume", "ns/last", func(api *fakeAPI, _ *rig) uint64 { return api.write("c", "1") }},
		{"change", "ns/a", func(api *fakeAPI, _ *rig) uint64 { return api.write("a", "2") }},
		{"seed", "ns/a", func(api *fakeAPI, g *rig) uint64 {
			r := g.read(timeline.Options{})
			defer r.end()
			if r.tl.View() != nil {
				t.Error("the damaged record was read")
			}
			rv := api.write("c", "1")
			r.tl.Replace(list(rv, pod("a", 102, "1"), pod("c", rv, "1"), pod("last", 104, "1")))
			g.recorded(rv)
			return rv
		}},
		{"follow", "ns/a", func(api *fakeAPI, g *rig) uint64 {
			g.recorded(104)
			h, _ := g.hold()
			r := &reading{t: t, h: h, tl: timeline.New(timeline.Options{})}
			defer r.end()
			rv := api.write("a", "2")
			r.tl.Replace(list(rv, pod("a", rv, "2"), pod("last", 104, "1")))
			r.follow()
			g.recorded(rv)
			return rv
		}},
		{"trim", "ns/a", func(api *fakeAPI, g *rig) uint64 {
			// Long enough for the versions to exceed the maximum age.
			until(t, "a new epoch", func() bool {
				api.write("last", "2")
				return newEpoch(g)
			})
			return api.write("last", "3")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			api, fs := newFakeAPI(t), vfs.NewMem()
			api.served, api.gadgets = true, 1
			r := api.recorder(t, fs, "pods")
			g := api.run(t, r)
			g.recorded(100)
			api.write("a", "1")                // 102
			g.recorded(api.write("last", "1")) // 104
			if test.name == "trim" {
				g.recorded(api.write("a", "2"))
				g.recorded(api.write("last", "2"))
			}
			g.stop()
			g = api.run(t, api.recorder(t, fs, "pods", "gadgets"))
			until(t, "the other resource", func() bool {
				all := g.r.Store().Streams(gadgets)
				return len(all) == 1 && all[0].Head().RV > 100
			})
			g.stop()
			spoil(t, fs, 1, test.object)
			api.counts()

			var log logtest.Log
			r = api.recorder(t, fs, "pods", "gadgets")
			r.log = slog.New(slog.NewTextHandler(&log, nil))
			if test.name == "trim" {
				r.opts.MaxAge = 300 * time.Millisecond
			}
			g = api.run(t, r)
			rv := test.found(api, g)
			until(t, "a new epoch", func() bool { return newEpoch(g) })
			st := g.recorded(rv)
			var want []string
			for _, name := range []string{"a", "c", "last"} {
				if o := api.api.Get("pods", "ns/"+name); o != "" {
					want = append(want, name+"="+strings.Split(strings.Split(o, `"text":"`)[1], `"`)[0])
				}
			}
			if got := state(t, st); got != strings.Join(want, " ") {
				t.Errorf("recorded %s, want %v", got, want)
			}
			until(t, "the other resource's events", func() bool { return g.r.Store().Streams(gadgets)[0].Head().RV >= rv })
			if n := len(g.r.Store().Streams(gadgets)); n != 1 {
				t.Errorf("%d epochs of the other resource", n)
			}
			if n := testutil.ToFloat64(r.metrics.of(pods).damaged); n != 1 {
				t.Errorf("damaged %v times", n)
			}
			if n := testutil.ToFloat64(r.metrics.failures); n != 0 {
				t.Errorf("%v sessions failed: %s", n, log.String())
			}
			if text := log.String(); !strings.Contains(text, `level=ERROR msg="the record of the resource is damaged`) || !strings.Contains(text, "resource=pods.v1") {
				t.Errorf("the log: %s", text)
			}
		})
	}
}
