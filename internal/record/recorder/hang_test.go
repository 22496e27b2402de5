// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
)

// A hangingDisk is a disk whose operations a test can block.
type hangingDisk struct {
	vfs.FS
	mu    sync.Mutex
	hangs map[errorfs.OpKind]chan struct{}
}

func newHangingDisk() *hangingDisk {
	d := &hangingDisk{hangs: map[errorfs.OpKind]chan struct{}{}}
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		d.mu.Lock()
		c := d.hangs[op.Kind]
		d.mu.Unlock()
		if c != nil {
			<-c
		}
		return nil
	}))
	return d
}

// hang blocks operations until answer is called, or the test ends.
func (d *hangingDisk) hang(t *testing.T, kinds ...errorfs.OpKind) (answer func()) {
	c := make(chan struct{})
	set := func(c chan struct{}) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, kind := range kinds {
			d.hangs[kind] = c
		}
	}
	set(c)
	answer = sync.OnceFunc(func() { set(nil); close(c) })
	t.Cleanup(answer)
	return answer
}

// promptly fails the test if f does not return.
func promptly(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal(what + " hangs")
	}
}

// TestDiskHangs: a disk that does not answer blocks neither clients nor the metrics;
// when it answers again, everything is recorded.
func TestDiskHangs(t *testing.T) {
	disk, api := newHangingDisk(), newFakeAPI(t)
	r := api.recorder(t, disk)
	r.diskTimeout = 50 * time.Millisecond
	g := api.run(t, r)
	g.recorded(100)
	g.recorded(api.write("a", "1")) // 102
	record, _ := r.continuity(pods).current()
	w := record.w
	if err := w.flush(); err != nil { // waits until the last write has ended
		t.Fatal(err)
	}
	answer := disk.hang(t, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpCreate)
	api.write("a", "2") // 104
	until(t, "a write that hangs", func() bool {
		select {
		case w.mu <- struct{}{}:
			<-w.mu
			return false
		default:
			return w.position().RV == 104
		}
	})
	look := func() {
		t.Helper()
		promptly(t, "the metrics", func() {
			registry := prometheus.NewRegistry()
			registry.MustRegister(r.metrics)
			if all, err := registry.Gather(); err != nil || len(all) < 8 {
				t.Errorf("%d metrics, %v", len(all), err)
			}
		})
		promptly(t, "the status", func() {
			if status, _ := r.Status(); !status.Recording {
				t.Errorf("%+v", status)
			}
		})
		promptly(t, "Sync", func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := r.Sync(ctx, pods); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Sync: %v", err)
			}
		})
	}
	look()
	var first *watchcache.Resource
	promptly(t, "the first reader", func() { first = g.served() })
	// The first reader is served from the upstream; another one follows it.
	api.write("b", "1")       // 106
	rv := api.write("a", "3") // 108
	until(t, "the change", func() bool { return first.Timeline.View().RV >= rv })
	look()
	g.idle(first)
	var second *watchcache.Resource
	promptly(t, "the second reader", func() { second = g.served() })
	rv = api.write("a", "4") // 110
	until(t, "the change", func() bool { return second.Timeline.View().RV >= rv })
	if head := g.recorded(0).Head().RV; head != 102 {
		t.Errorf("the head is %d: nothing hung", head)
	}
	answer()
	st := g.recorded(110)
	want(t, "state", state(t, st), "a=4 b=1")
	g.idle(second)
	st = g.recorded(api.write("b", "2"))
	// The first timeline was compared with the record after its end, or not compared.
	got := events(t, st)
	const exact = "ADDED a@102, MODIFIED a@104<102, ADDED b@106, MODIFIED a@108<104, MODIFIED a@110<108, MODIFIED b@112<106"
	missed := strings.NewReplacer("b@106,", "b@106?,", "a@108<104", "a@108<104?").Replace(exact) + ", gap 104-108"
	if got != exact && got != missed {
		t.Errorf("events: %s", got)
	}
	if st.Epoch() != 0 {
		t.Errorf("epoch %d", st.Epoch())
	}
}

// TestReadHangs: a reader does not wait for a record that cannot be read for now.
func TestReadHangs(t *testing.T) {
	disk, api := newHangingDisk(), newFakeAPI(t)
	var first uint64
	for i := range 200 { // more than a resume reads
		var text strings.Builder
		for text.Len() < 4<<10 {
			fmt.Fprintf(&text, "%x", rand.Uint64())
		}
		first = api.write(fmt.Sprint("b", i), text.String())
	}
	g := api.run(t, api.recorder(t, disk))
	g.recorded(first)
	rv := api.write("a", "1")
	g.recorded(rv)
	g.stop()
	r := api.recorder(t, disk)
	r.diskTimeout = 50 * time.Millisecond
	g = api.run(t, r)
	g.recorded(rv)
	until(t, "the recorder's watch", func() bool {
		api.mu.Lock()
		defer api.mu.Unlock()
		return api.open == 1
	})
	answer := disk.hang(t, errorfs.OpFileRead, errorfs.OpFileReadAt)
	var res *watchcache.Resource
	promptly(t, "the reader", func() { res = g.served() })
	rv = api.write("a", "2")
	until(t, "the change", func() bool { return res.Timeline.View().RV >= rv })
	answer()
	if got := state(t, g.recorded(rv)); !strings.HasPrefix(got, "a=2 b0=") {
		t.Errorf("state: %.20s", got)
	}
}
