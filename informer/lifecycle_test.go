// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestI4Relist: a list without changes causes no event, changes nothing and
// allocates almost nothing.
func TestI4Relist(t *testing.T) {
	const objects = 2000
	var items []string
	for n := range objects {
		items = append(items, strings.Replace(script.Pod(fmt.Sprintf("pod-%d", n), n+1), `"spec":{}`, `"spec":{"text":"`+strings.Repeat("x", 3000)+`"}`, 1))
	}
	text := script.Page(objects+1, "", items...)
	i, _ := newInformer(t, Options{})
	s := i.shards[""]
	sub := i.subscribe(allRuns)
	list := func() { takeList(t, s, text) }
	list()
	before := contents(i)
	events := i.events.end()
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	list()
	runtime.ReadMemStats(&is)
	if n, b := is.Mallocs-was.Mallocs, is.TotalAlloc-was.TotalAlloc; n > objects/4 || b > uint64(len(text)/20) {
		t.Errorf("%d allocations, %d bytes, for %d objects in %d bytes", n, b, objects, len(text))
	}
	if n := i.events.end() - events; n > 0 || len(contents(i)) != len(before) {
		t.Errorf("%d events", n)
	}
	i.unsubscribe(sub)
}

// takeList gives a shard a list of Pods, as a reflector does.
func takeList[T any](t testing.TB, s *shard[T], text string) {
	t.Helper()
	s.Begin(false)
	var it scan.Item
	list := scan.NewItemReader(strings.NewReader(text), &scan.List{Typed: true, ItemKind: "Pod", APIVersion: "v1"})
	for {
		ok, err := list.Next(&it)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			s.End(list.List())
			return
		}
		if err := s.Item(&it); err != nil {
			t.Fatal(err)
		}
	}
}

// TestI7StartStop runs and stops informers WATCHKEEPER_STARTS times, 1000 by
// default: new ones and ones that have run before, stopped at once, after the sync
// or while watching, with a handler and a loop over Events.
func TestI7StartStop(t *testing.T) {
	starts := 1000
	if n, err := strconv.Atoi(os.Getenv("WATCHKEEPER_STARTS")); err == nil {
		starts = n
	}
	synctest.Test(t, func(t *testing.T) {
		src, err := FromURL("http://upstream")
		if err != nil {
			t.Fatal(err)
		}
		api := informertest.New(informertest.Options{})
		api.Put("pods", script.Pod("a", 1))
		network := informertest.NewNetwork(api)
		defer network.Close()
		transport := src.transport.(*http.Transport)
		transport.DialContext, transport.Proxy = network.Dial, nil
		defer transport.CloseIdleConnections()

		var i *Informer[json.RawMessage]
		added := make(chan Key, 1)
		for n := range starts {
			isNew := n%4 < 2
			if isNew {
				i = New(src, pods, Raw(), Options{})
				i.Handle(Handler[json.RawMessage]{Add: func(now Ref[json.RawMessage]) { added <- now.Key() }})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			result := make(chan error, 1)
			go func() { result <- i.Run(ctx) }()
			if n%4 > 0 { // else stopped at once
				if err := i.WaitSynced(ctx); err != nil {
					t.Fatal(n, err)
				}
				for e, err := range i.Events(ctx) {
					if e.Type == Synced || err != nil {
						break
					}
				}
				if isNew {
					<-added
				}
			}
			if n%4 == 3 {
				synctest.Wait()
				if phase := i.Status().Phase; phase != Watching {
					t.Fatal(n, phase)
				}
			}
			cancel()
			if err := <-result; err != nil {
				t.Fatal(n, err)
			}
			if n := len(i.events.subs); n != 1 {
				t.Errorf("%d subscriptions", n)
			}
			select {
			case <-added:
			default:
			}
		}
	})
}
