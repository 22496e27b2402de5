// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// TestWaitingForgets: a refusal is reported from the API server's answer on, and until it
// has ended; an outage after the first list is not.
func TestWaitingForgets(t *testing.T) {
	for _, looksMeanwhile := range []bool{false, true} {
		simulate(t, informertest.Options{}, informer.Options{}, func(t *testing.T, c *cluster) {
			g := &Group{Informers: []Informer{c.widgets}}
			want := func(when, reason string) {
				t.Helper()
				synctest.Wait()
				w := strings.Join(g.Waiting(), " ")
				if reason == "" && w != "" || !strings.Contains(w, reason) {
					t.Errorf("%s: waiting for %q, want %q", when, w, reason)
				}
			}
			end := c.refuse(500)
			stop := start(t, g)
			settle()
			want("failures before the first list", "500")
			end()
			end = c.refuse(403)
			settle()
			want("refused", "refused with 403")
			end()
			settle()
			if looksMeanwhile {
				want("served", "")
			}

			time.Sleep(24 * time.Hour)
			end = c.refuse(500)
			c.CutWatches()
			for range 30 {
				time.Sleep(time.Second)
				want("an outage a day later", "")
			}
			end()
			settle()
			for _, breakWatch := range []func(){c.CutWatches, c.EndWatches, func() { c.Expire() }} {
				endHang := c.hang()
				breakWatch()
				for range 30 {
					time.Sleep(time.Second)
					want("no answer", "")
				}
				endHang()
				settle()
			}

			end = c.refuse(403)
			c.CutWatches()
			time.Sleep(10 * time.Second)
			want("refused again, before the run of the informer ends", "refused with 403")
			for range 120 {
				time.Sleep(time.Second)
				want("refused again", "refused with 403")
			}
			end()
			end = c.refuse(500)
			settle()
			want("an outage after a refusal", "")
			end()
			settle()
			want("served again", "")
			if err := stop(); err != nil {
				t.Error(err)
			}
			want("after the group", "")
		})
	}
}

// TestWaitingNamespaces: a namespace that is refused is reported while others fail.
func TestWaitingNamespaces(t *testing.T) {
	simulate(t, informertest.Options{}, informer.Options{Namespaces: []string{"a"}}, func(t *testing.T, c *cluster) {
		g := &Group{Informers: []Informer{c.widgets}}
		stop := start(t, g)
		for _, namespace := range []string{"b", "c"} {
			if err := c.widgets.AddNamespace(namespace); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		codes := map[string]int{"a": 500, "b": 403, "c": 403}
		c.Control(func(w http.ResponseWriter, r *informertest.Request, _ func(http.ResponseWriter)) {
			informertest.WriteStatus(w, codes[r.Namespace], "No", "no")
		})
		c.CutWatches()
		settle()
		for range 50 {
			if w := g.Waiting(); len(w) != 1 || !strings.Contains(w[0], "namespaces/b/widgets") || !strings.Contains(w[0], "refused with 403") {
				t.Fatalf("waiting for %q", w)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// hang answers requests for Widgets after the end of the hang.
func (c *cluster) hang() (end func()) {
	ended := make(chan struct{})
	remove := c.Control(func(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
		if strings.Contains(r.URL.Path, "/widgets") {
			select {
			case <-ended:
			case <-r.Context().Done():
			}
		}
		next(w)
	})
	return func() {
		close(ended)
		remove()
	}
}
