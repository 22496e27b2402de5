// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// byTeam is a QueueBy that is wrong, as a label may change.
func byTeam(e Event[testPod]) string {
	team, _ := e.Ref().Label("team")
	return team
}

func putTeam(api *informertest.Server, name, team string) {
	api.Put("pods", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","labels":{"team":%q}}}`, name, team))
}

// withTeams calls a test with a server and an informer of its Pods, which logs to log.
func withTeams(t *testing.T, test func(t *testing.T, api *informertest.Server, i *Informer[testPod], log *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		api := informertest.New(informertest.Options{})
		network := informertest.NewNetwork(api)
		defer network.Close()
		log := &bytes.Buffer{}
		i := New(NewSource(network.URL(), network), pods, JSON[testPod](), Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))})
		test(t, api, i, log)
	})
}

func locked[T any](r *reconciler[T], f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// TestI11QueueBy: an object keeps its queue while it has pending events, also when QueueBy
// names another one, which is logged once. Afterwards it has the other queue.
func TestI11QueueBy(t *testing.T) {
	withTeams(t, func(t *testing.T, api *informertest.Server, i *Informer[testPod], log *bytes.Buffer) {
		d := &transcript{}
		began := time.Now()
		failures := 1
		r := newReconciler(i, ReconcileOptions[testPod]{QueueBy: byTeam, MinBackoff: time.Hour, MaxBackoff: time.Hour}, func(_ context.Context, e Event[testPod]) error {
			if e.Key.Name == "b" {
				d.add(fmt.Sprint("b of ", byTeam(e), " at ", time.Since(began)))
				return nil
			}
			d.add("a of " + byTeam(e))
			time.Sleep(time.Minute)
			if failures--; failures == 0 {
				return errNo
			}
			return nil
		})
		r.start()
		stop := start(t, i)
		synctest.Wait()
		for _, team := range []string{"blue", "green", "red"} { // handled, waiting, paused
			putTeam(api, "a", team)
			time.Sleep(10 * time.Second)
			putTeam(api, "b", "green")
			time.Sleep(40 * time.Second)
		}
		locked(r, func() {
			if p := r.pending["ns/a"]; p == nil || p.queue.name != "blue" {
				t.Errorf("pending %v", r.pending)
			}
		})
		time.Sleep(2 * time.Hour)
		want(t, d.read(), "a of blue", "b of green at 10s", "b of green at 1m0s", "b of green at 1m50s", "a of red")
		putTeam(api, "a", "white")
		synctest.Wait()
		locked(r, func() {
			if got := strings.Count(log.String(), "QueueBy"); got != 1 || !strings.Contains(log.String(), "resource=pods key=ns/a queue=blue other=green") {
				t.Errorf("log %s", log)
			}
			if len(r.queues) != 1 || r.queues["white"] == nil {
				t.Errorf("queues %v", r.queues)
			}
		})
		time.Sleep(3 * time.Hour)
		locked(r, func() {
			if len(r.pending) > 0 || len(r.queues) > 0 {
				t.Errorf("pending %v in %v", r.pending, r.queues)
			}
		})
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestI11QueueByLabel: calls for one object do not overlap while its label changes, events
// are coalesced, calls fail and runs end.
func TestI11QueueByLabel(t *testing.T) {
	for seed := range seeds() {
		withTeams(t, func(t *testing.T, api *informertest.Server, i *Informer[testPod], log *bytes.Buffer) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			atWork, last := map[string]bool{}, map[string]string{}
			r := newReconciler(i, ReconcileOptions[testPod]{QueueBy: byTeam, EveryEvent: seed%2 == 0}, func(_ context.Context, e Event[testPod]) error {
				mu.Lock()
				defer mu.Unlock()
				if atWork[e.Key.Name] {
					t.Errorf("seed %d: calls for %s overlap", seed, e.Key)
				}
				atWork[e.Key.Name] = true
				pause, fails := time.Duration(random.IntN(20))*time.Millisecond, random.IntN(4) == 0
				mu.Unlock()
				time.Sleep(pause)
				mu.Lock()
				atWork[e.Key.Name] = false
				if fails {
					return errNo
				}
				last[e.Key.Name] = e.New.RV()
				return nil
			})
			r.start()
			steps := rand.New(rand.NewPCG(seed, 1))
			stop := start(t, i)
			for range 300 {
				putTeam(api, string(rune('a'+steps.IntN(3))), fmt.Sprint("team-", steps.IntN(4)))
				time.Sleep(time.Duration(steps.IntN(15)) * time.Millisecond)
				if steps.IntN(50) == 0 {
					if err := stop(); err != nil {
						t.Error(err)
					}
					stop = start(t, i)
				}
			}
			time.Sleep(time.Hour)
			locked(r, func() {
				for key, ref := range i.All() {
					if last[key.Name] != ref.RV() {
						t.Errorf("seed %d: %s was handled at %q, want %s", seed, key, last[key.Name], ref.RV())
					}
				}
				if len(last) != 3 || len(r.pending) > 0 || len(r.queues) > 0 || r.total > 0 || strings.Count(log.String(), "QueueBy") != 1 {
					t.Errorf("seed %d: handled %v, pending %v in %v, log %s", seed, last, r.pending, r.queues, log)
				}
			})
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
