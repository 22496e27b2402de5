// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// up returns the metric that says whether recording works.
func (g *rig) up() float64 {
	g.t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(g.r.metrics); err != nil {
		g.t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "watchkeeper_history_up" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	g.t.Fatal("there is no metric")
	return 0
}

// TestNames: a resource is recorded under any of its names, at the first and at later
// starts. A name that no resource has prevents the start.
func TestNames(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	for range 2 {
		g := api.run(t, api.recorder(t, fs, "po", "*.example.com"))
		g.recorded(api.write("a", "1"))
		until(t, "a healthy recording", func() bool { return g.up() == 1 })
		g.stop()
	}
	r := api.recorder(t, fs, "po", "podz")
	err := r.Open(t.Context())
	if !errors.Is(err, ErrNotServed) || !strings.HasPrefix(err.Error(), `--record: "podz" `) || !strings.Contains(err.Error(), "did you mean pods?") {
		t.Errorf("got %v", err)
	}
	r = api.recorder(t, fs)
	defer r.Close()
	if err := r.Open(t.Context()); err != nil {
		t.Errorf("the history is still open: %v", err)
	}
}

// TestNamesUnknown: if the API server cannot be asked at the start, names that no
// resource has are reported while others are recorded.
func TestNamesUnknown(t *testing.T) {
	api := newFakeAPI(t)
	api.hidden = true
	g := api.run(t, api.recorder(t, vfs.NewMem(), "po", "podz"))
	api.change(func() { api.hidden = false })
	g.recorded(api.write("a", "1"))
	var status Status
	until(t, "the report of the name", func() bool {
		status, _ = g.r.Status()
		return len(status.NotServed) == 1
	})
	if !status.Recording || !strings.Contains(status.NotServed[0], `"podz" matches no resource of the API server: did you mean pods?`) || g.up() != 0 {
		t.Errorf("%+v, up %v", status, g.up())
	}
}

// TestNameIsGone: a recorded resource whose definition is removed does not prevent the
// next start, but is reported until it is back.
func TestNameIsGone(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	api.gadgets, api.served = 1, true
	patterns := []string{"pods", "gadgets"}
	g := api.run(t, api.recorder(t, fs, patterns...))
	g.recorded(api.write("a", "1"))
	until(t, "a record of gadgets", func() bool { return len(g.r.Store().Resources()) == 2 && g.up() == 1 })
	g.stop()
	api.change(func() { api.gadgets, api.served = 0, false })
	g = api.run(t, api.recorder(t, fs, patterns...))
	until(t, "a report", func() bool { status, _ := g.r.Status(); return len(status.NotServed) == 1 && g.up() == 0 })
	api.change(func() { api.gadgets, api.served = 2, true })
	until(t, "a healthy recording", func() bool { return g.up() == 1 })
}

// now returns the recorder of a resource.
func now(g *rig, id kube.Resource) *resourceRecorder {
	r, _ := g.r.continuity(id).current()
	return r
}

// TestPreferredVersion: where another version becomes the preferred one, a new epoch begins with
// its list, also after a restart, and at once where the record is of a version from before.
func TestPreferredVersion(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	beta, v1 := kube.Resource{Group: "example.com", Version: "v1beta1", Name: "things"}, kube.Resource{Group: "example.com", Version: "v1", Name: "things"}
	prefer := func(version string) { api.change(func() { api.things = version }) }
	epochs := func(g *rig, want string) {
		t.Helper()
		until(t, "the epochs "+want, func() bool {
			var got []string
			for i, st := range g.r.Store().Streams(v1) {
				if st.Epoch() != i {
					t.Errorf("epoch %d is %d", i, st.Epoch())
				}
				got = append(got, st.Resource().Version+"@"+kube.FormatRV(st.Head().RV))
			}
			return strings.Join(got, " ") == want
		})
		if all := g.r.Store().Resources(); len(all) != 1 {
			t.Errorf("recorded: %v", all)
		}
	}
	prefer("v1beta1")
	g := api.run(t, api.recorder(t, fs, "things.example.com"))
	api.write("a", "1") // 102
	epochs(g, "v1beta1@102")
	prefer("v1")
	epochs(g, "v1beta1@102 v1@102")
	api.write("a", "2") // 104
	epochs(g, "v1beta1@102 v1@104")
	if now(g, v1) == nil || now(g, beta) != nil {
		t.Error("not the preferred version is recorded")
	}
	api.change(func() { api.broken = "v1" }) // discovery then has v1beta1, and the group as unknown
	time.Sleep(10 * g.r.rediscover)
	api.write("a", "3") // 106
	epochs(g, "v1beta1@102 v1@106")
	api.change(func() { api.broken = "" })
	g.stop()
	api.write("b", "1") // 108
	prefer("v1beta1")
	g = api.run(t, api.recorder(t, fs, "things.example.com"))
	api.write("b", "2") // 110
	until(t, "the third epoch", func() bool { all := g.r.Store().Streams(v1); return len(all) == 3 && all[2].Head().RV == 110 })
	all := g.r.Store().Streams(v1)
	if first, second, third := all[0], all[1], all[2]; second.Span().From.RV < first.Head().RV || third.Span().From.RV < second.Head().RV || third.Resource() != beta {
		t.Errorf("the epochs overlap: %v, %v, %v", first.Span(), second.Span(), third.Span())
	}
	want(t, "the state", state(t, all[2]), "a=3 b=2")
}

// TestPreferredUnreadable: if the version that the API server prefers now cannot be read, as with a
// conversion webhook that fails, nothing watches the resource for the record, although its other
// version can be read.
func TestPreferredUnreadable(t *testing.T) {
	api := newFakeAPI(t)
	beta := kube.Resource{Group: "example.com", Version: "v1beta1", Name: "things"}
	api.things = "v1beta1"
	g := api.run(t, api.recorder(t, vfs.NewMem(), "things.example.com"))
	api.write("a", "1")
	until(t, "the record", func() bool { return g.r.Sync(t.Context(), beta) == nil })
	api.change(func() { api.things, api.refuse = "v1", http.StatusInternalServerError })
	until(t, "the end of the record", func() bool { return errors.Is(g.r.Sync(t.Context(), beta), past.ErrUnwatched) })
	api.change(func() { api.refuse = http.StatusForbidden })
	until(t, "the refusal", func() bool {
		_, refused := errors.AsType[*reflector.RefusedError](g.r.Sync(t.Context(), beta))
		return refused
	})
}

// TestPreferredAfterRead: the record of a version that has been read before begins with its newest
// state, and not with the begin of its timeline, which the record of the version before has.
func TestPreferredAfterRead(t *testing.T) {
	api := newFakeAPI(t)
	v1 := kube.Resource{Group: "example.com", Version: "v1", Name: "things"}
	api.things = "v1beta1"
	g := api.run(t, api.recorder(t, vfs.NewMem(), "things.example.com"))
	res := g.cache.Acquire(t.Context(), v1)
	defer res.Release()
	res.WaitSynced(t.Context())
	api.write("a", "1")
	api.write("b", "1")
	api.write("a", "2")
	rv := api.remove("b")
	until(t, "the changes in the record and in the cache", func() bool {
		all := g.r.Store().Streams(v1)
		return len(all) == 1 && all[0].Head().RV == rv && res.Timeline.View().RV == rv
	})
	api.change(func() { api.things = "v1" })
	until(t, "the second epoch", func() bool { all := g.r.Store().Streams(v1); return len(all) == 2 && all[1].Head().RV == rv })
	second := g.r.Store().Streams(v1)[1]
	want(t, "the first state", state(t, second), "a=2")
	want(t, "events", events(t, second), "")
	rv = api.write("a", "3")
	until(t, "the next change", func() bool { return second.Head().RV == rv })
	want(t, "events", events(t, second), "MODIFIED a@"+kube.FormatRV(rv)+"<"+kube.FormatRV(rv-4))
}

// TestPreferredUnlisted: nothing was recorded of a version that could not be listed.
func TestPreferredUnlisted(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	v1 := kube.Resource{Group: "example.com", Version: "v1", Name: "things"}
	api.things, api.refuse = "v1beta1", 403
	g := api.run(t, api.recorder(t, fs, "things.example.com"))
	until(t, "an empty stream", func() bool { return len(g.r.Store().Streams(v1)) == 1 })
	api.change(func() { api.things = "v1" })
	until(t, "the recorder of v1", func() bool { return now(g, v1) != nil })
	api.change(func() { api.refuse = 0 })
	api.write("a", "1")
	until(t, "the record", func() bool { all := g.r.Store().Streams(v1); return all[len(all)-1].Head().RV == 102 })
	g.stop()
	g = api.run(t, api.recorder(t, fs, "things.example.com"))
	if all := g.r.Store().Streams(v1); len(all) != 1 || all[0].Resource() != v1 || all[0].Epoch() != 0 {
		t.Errorf("%d streams, the first of %v", len(all), all[0].Resource())
	}
}
