// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TestReadLine: readLine bounds the memory for a line of the upstream.
func TestReadLine(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("one\n"+strings.Repeat("x", 100)+"\n"+strings.Repeat("y", 1000)+"\n"), 16)
	for _, want := range []string{"one", strings.Repeat("x", 100)} {
		if got, err := readLine(in, 200); got != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := readLine(in, 200); err == nil {
		t.Errorf("a line of %d bytes", len(got))
	}
}

// replicas are API servers behind a load balancer that picks one for each request. The
// watch cache of an idle one is behind until it answers a consistent list.
type replicas struct {
	mu     sync.Mutex
	rv     uint64   // of the store
	caches []uint64 // RVs of the watch caches
	next   func(n int) int
	lists  int
}

func (r *replicas) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.next(len(r.caches))
	q := req.URL.Query()
	if q.Get("watch") == "" {
		r.lists++
		r.caches[n] = r.rv
		body := fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[]}`, r.rv)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
	from, _ := kube.ParseRV(q.Get("resourceVersion"))
	pr, pw := io.Pipe()
	go func() {
		wait := func(d time.Duration) bool {
			select {
			case <-req.Context().Done():
				pw.CloseWithError(req.Context().Err())
				return false
			case <-time.After(d):
				return true
			}
		}
		if !wait(time.Second) {
			return
		}
		r.mu.Lock()
		rv := r.caches[n]
		r.mu.Unlock()
		if rv > from {
			fmt.Fprintf(pw, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", rv)
		}
		if wait(2 * time.Second) {
			pw.Close()
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: pr, Request: req}, nil
}

// TestProofWithReplicas: a freshness proof does not depend on which of several API
// servers answers, and needs few requests.
func TestProofWithReplicas(t *testing.T) {
	inTurn := func() func(int) int {
		i := -1
		return func(n int) int { i++; return i % n }
	}
	for name, next := range map[string]func() func(int) int{
		"in turn": inTurn,
		"at random": func() func(int) int {
			random := rand.New(rand.NewPCG(1, 2))
			return random.IntN
		},
		"always the same": func() func(int) int { return func(int) int { return 0 } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &replicas{rv: 100, caches: []uint64{100, 100, 100}, next: next()}
				up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: api}, upstream.Options{})
				if err != nil {
					t.Fatal(err)
				}
				b := upstream.NewBackground()
				defer b.Stop()
				tl := timeline.New(timeline.Options{})
				tl.Reset(&scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true, RV: 100})
				p := newProver(up, kube.Resource{Version: "v1", Name: "pods"}, tl, func() reflector.Status { return reflector.Status{Phase: reflector.Watching} }, func(error) {}, func() {}, newCompared(), b)
				for range 20 {
					api.mu.Lock()
					api.rv += 10
					rv := api.rv
					api.mu.Unlock()
					if v, err := p.fresh(t.Context()); err != nil || v.RV < rv {
						t.Fatalf("at %d: %v", rv, err)
					}
				}
				if api.lists > 20*20 {
					t.Errorf("%d lists for 20 proofs", api.lists)
				}
			})
		})
	}
}

// TestProofOfOtherHistory: a proof does not take an upstream that was restored from a backup,
// and has passed the head, for the one that the timeline follows. The reflector hears of
// it: its watch appears to be open.
func TestProofOfOtherHistory(t *testing.T) {
	for name, test := range map[string]struct {
		change func(api *fakeapi.Server, before *fakeapi.Backup, head uint64)
		proven bool
		doubts int
	}{
		"the same history": {
			func(api *fakeapi.Server, _ *fakeapi.Backup, _ uint64) { api.Advance(20) }, true, 0,
		},
		"the same history, compacted": {
			func(api *fakeapi.Server, _ *fakeapi.Backup, head uint64) {
				api.Compact(head)
				api.Advance(20)
			}, true, 0,
		},
		"restored": {
			func(api *fakeapi.Server, before *fakeapi.Backup, _ uint64) {
				api.Restore(before, 0)
				api.Put("pods", pod("b"))
				api.Advance(20)
			}, false, 1,
		},
		"restored, without an event": {
			func(api *fakeapi.Server, before *fakeapi.Backup, _ uint64) {
				api.Restore(before, 0)
				api.Advance(20)
			}, false, 1,
		},
		"restored, with an event of the same object": {
			func(api *fakeapi.Server, before *fakeapi.Backup, _ uint64) {
				api.Restore(before, 0)
				api.Advance(1)
				api.Put("pods", pod("a"))
				api.Advance(20)
			}, false, 1,
		},
		"restored after the last event, with another one before the head": {
			func(api *fakeapi.Server, _ *fakeapi.Backup, head uint64) {
				api.Put("pods", pod("b"))
				api.Advance(20)
			}, false, 1,
		},
		"after a list, the same history": {
			func(api *fakeapi.Server, _ *fakeapi.Backup, _ uint64) { api.Advance(20) }, true, 0,
		},
		"after a list, restored": {
			func(api *fakeapi.Server, before *fakeapi.Backup, _ uint64) {
				api.Restore(before, 0)
				api.Put("pods", pod("b"))
				api.Advance(20)
			}, false, 1,
		},
		"after a list, restored, with another content at the same RV": {
			func(api *fakeapi.Server, before *fakeapi.Backup, _ uint64) {
				api.Restore(before, 0)
				api.Put("pods", `{"metadata":{"namespace":"ns","name":"a"},"spec":{"nodeName":"x"}}`)
				api.Advance(20)
			}, false, 0,
		},
		"after a list, other objects came and went before it": {
			func(api *fakeapi.Server, _ *fakeapi.Backup, _ uint64) {
				api.Put("pods", pod("b"))
				api.Delete("pods", "ns/b")
				api.Advance(20)
			}, true, 0,
		},
		"after a list, restored, with another object before it": {
			func(api *fakeapi.Server, _ *fakeapi.Backup, _ uint64) {
				api.Put("pods", pod("b"))
				api.Advance(20)
			}, false, 1,
		},
		"after a list, restored, with a deletion before it": {
			func(api *fakeapi.Server, _ *fakeapi.Backup, _ uint64) {
				api.Delete("pods", "ns/a")
				api.Advance(20)
			}, false, 1,
		},
		"restored, with the same event": {
			func(api *fakeapi.Server, before *fakeapi.Backup, _ uint64) {
				api.Restore(before, 0)
				api.Put("pods", pod("a"))
				api.Advance(20)
			}, true, 0,
		},
		"restored, and behind": {
			func(api *fakeapi.Server, before *fakeapi.Backup, _ uint64) { api.Restore(before, 0) }, false, 1,
		},
	} {
		for what, prove := range map[string]func(l *lagging) (uint64, error){
			"with the head": func(l *lagging) (uint64, error) {
				v, err := l.p.fresh(l.t.Context())
				if err != nil {
					return 0, err
				}
				return v.RV, nil
			},
			"of the state": func(l *lagging) (uint64, error) {
				_, rv, err := l.p.freshState(l.t.Context())
				return rv, err
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLagging(t)
					before := l.api.Backup()
					head := l.api.Put("pods", pod("a"))
					l.apply(kube.Modified, l.object("a"))
					switch {
					case strings.HasPrefix(name, "after a list"):
						listed := head
						if strings.Contains(name, "before it") {
							listed += 10
						}
						l.tl.Reset(&scan.List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: true, RV: listed, Items: []*scan.Object{l.object("a")}})
					case strings.Contains(name, "after the last event"):
						l.tl.Advance(l.tl.View(), head+10) // as another proof did
					}
					test.change(l.api, before, head)
					rv, err := prove(l)
					if proven := err == nil && rv == l.api.RV(); proven != test.proven || l.doubts != test.doubts {
						t.Errorf("%v, %d doubts", err, l.doubts)
					}
				})
			})
		}
	}
}

func pod(name string) string { return `{"metadata":{"namespace":"ns","name":"` + name + `"}}` }
