// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history/budget"
)

// TestBudget: many concurrent readers of events, some of them slow, get all events in
// order, and hold about the budget at most.
func TestBudget(t *testing.T) {
	t.Parallel()
	s := must(Open("history", Options{Cluster: "c", FS: vfs.NewMem()}))
	defer s.Close()
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(1000)); err != nil {
		t.Fatal(err)
	}
	last := map[kube.Key]*scan.Object{}
	var events []Event
	for rv := uint64(101); rv <= 800; rv++ {
		e := Event{Type: kube.Added, Object: object(kube.Key(fmt.Sprint("n/p", rv%40)), rv, 2000), At: ms(rv * 1000)}
		if e.Prev = last[e.Object.Key]; e.Prev != nil {
			e.Type = kube.Modified
		}
		last[e.Object.Key] = e.Object
		events = append(events, e)
	}
	if err := st.Append(events, 800, ms(800_000)); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	s.readBudget = budget.New(most)
	want := briefs(events)
	var wg, stuck sync.WaitGroup
	var highest atomic.Int64
	release := make(chan bool)
	stuck.Add(3)
	for reader := range 12 {
		wg.Go(func() {
			var got []Event
			for e, err := range st.Events(t.Context(), 100, 800) {
				if err != nil {
					t.Error(err)
					return
				}
				if got = append(got, e); len(got)%100 != 1 {
					continue
				}
				if held := s.ReadUsage().Bytes; held > highest.Load() {
					highest.Store(held)
				}
				if len(got) == 1 && reader < 3 {
					stuck.Done()
					<-release
				}
			}
			if diff := cmp.Diff(want, briefs(got)); diff != "" {
				t.Errorf("reader %d: %s", reader, diff)
			}
		})
	}
	stuck.Wait()
	for s.ReadUsage().Readers > 3 { // the others finish while three are stuck
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	if highest.Load() > 2*most || highest.Load() < most/4 {
		t.Errorf("%d bytes were held, of a budget of %d", highest.Load(), most)
	}
	if r := s.ReadUsage(); r != (ReadUsage{}) {
		t.Errorf("without readers: %+v", r)
	}
}
