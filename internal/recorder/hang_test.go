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

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A hangingDisk can be made to answer nothing.
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

// hang has operations not return before the one that is returned is called, or
// the test ends.
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
		t.Fatal("it hangs: " + what)
	}
}

// TestDiskHangs: a disk that does not answer keeps nobody from being served, nor
// from looking at the metrics; when it answers again, all is recorded.
func TestDiskHangs(t *testing.T) {
	disk, api := newHangingDisk(), newFakeAPI(t)
	r := api.recorder(t, disk)
	r.patience = 50 * time.Millisecond
	g := run(t, r)
	g.recorded(100)
	g.recorded(api.write("a", "1")) // 102
	answer := disk.hang(t, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpCreate)
	api.write("a", "2") // 104
	w := g.r.place(pods).track.w
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
	var first *reading
	promptly(t, "Take", func() { first = g.read(timeline.Options{}) })
	if first.tl.View() != nil {
		t.Error("it was served what is recorded")
	}
	// It is served from the upstream, changes, and ends; another one follows.
	rv := api.write("b", "1") // 106
	first.tl.Replace(list(rv, pod("a", 104, "2"), pod("b", rv, "1")))
	rv = api.write("a", "3") // 108
	first.apply(kube.Modified, pod("a", rv, "3"))
	look()
	first.end()
	var second *reading
	promptly(t, "Take again", func() { second = g.read(timeline.Options{}) })
	second.tl.Replace(list(rv, pod("a", rv, "3"), pod("b", 106, "1")))
	rv = api.write("a", "4") // 110
	second.apply(kube.Modified, pod("a", rv, "4"))
	if head := g.recorded(0).Head().RV; head != 102 {
		t.Errorf("the head is %d: nothing hung", head)
	}
	answer()
	st := g.recorded(110)
	want(t, "state", state(t, st), "a=4 b=1")
	second.end()
	st = g.recorded(api.write("b", "2"))
	want(t, "events", events(t, st), "ADDED a@102, MODIFIED a@104<102, ADDED b@106?, MODIFIED a@110<104?, MODIFIED b@112<106, gap 104-110")
	if st.Epoch() != 0 {
		t.Errorf("epoch %d", st.Epoch())
	}
}

// TestReadHangs: what cannot be read, for now, is not waited for.
func TestReadHangs(t *testing.T) {
	disk, api := newHangingDisk(), newFakeAPI(t)
	var first uint64
	for i := range 200 { // more than what going on from there reads
		var text strings.Builder
		for text.Len() < 4<<10 {
			fmt.Fprintf(&text, "%x", rand.Uint64())
		}
		first = api.write(fmt.Sprint("b", i), text.String())
	}
	g := run(t, api.recorder(t, disk))
	g.recorded(first)
	rv := api.write("a", "1")
	g.recorded(rv)
	g.stop()
	r := api.recorder(t, disk)
	r.patience = 50 * time.Millisecond
	g = run(t, r)
	g.recorded(rv)
	until(t, "the recorder's watch", func() bool {
		api.mu.Lock()
		defer api.mu.Unlock()
		return api.open == 1
	})
	answer := disk.hang(t, errorfs.OpFileRead, errorfs.OpFileReadAt)
	var reader *reading
	promptly(t, "Take", func() { reader = g.read(timeline.Options{}) })
	if reader.tl.View() != nil {
		t.Error("nothing hung")
	}
	rv = api.write("a", "2")
	reader.tl.Replace(list(rv, pod("a", rv, "2")))
	answer()
	want(t, "state", state(t, g.recorded(rv)), "a=2")
	reader.end()
}
