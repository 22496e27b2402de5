// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestPassedLists: large lists of a resource that does not change are the API server's, since it
// answers sooner than the cache is proven fresh. But a user whose clients read them slowly has
// only a few there: the cache answers further ones, and those that it cannot answer wait, and get
// a 429. Another user gets what it asks for meanwhile.
func TestPassedLists(t *testing.T) {
	clustertest.SkipShort(t)
	const lists, passed, attempts = 8, 2, 40
	g := startFairGateway(t, "--max-lists-per-user", fmt.Sprint(lists))
	const objects, size = 24, 512 << 10 // 12 MiB: more than the buffers of a connection
	data := runtime.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("large ", size/6) + `"}`)}
	for n := range objects {
		o := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("large-", n)}, Data: data}
		if _, err := api.AppsV1().ControllerRevisions(g.ns).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	modest, greedy := g.user(t, "modest", "127.0.0.1", true, false), g.user(t, "greedy", "127.0.0.1", false, true)
	modest.mayRead(t)
	greedy.mayRead(t)
	path := "/apis/apps/v1/namespaces/" + g.ns + "/controllerrevisions"
	resp, err := modest.open(t.Context(), path+"?resourceVersion=0&limit=1") // from now on it is watched
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// Other resources change, as in every cluster: the head of this one is behind the API server's RV.
	var writing sync.WaitGroup
	defer writing.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("lease-", n)}}
			if _, err := api.CoordinationV1().Leases(g.ns).Create(ctx, lease, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})

	cached := path + "?labelSelector=zzN!%3Dq"
	for _, c := range []struct {
		name, path string
		api, cache int // how many lists the API server and the gateway answer
	}{
		{"a-list-that-the-cache-can-answer", cached, passed, lists},
		{"a-list-that-only-the-api-server-answers", cached + "&unknown=" + strings.Repeat("x", 5<<10), passed, 0},
	} {
		ctx, cancel := context.WithCancel(ctx)
		codes := &fairCodes{of: map[string]int{}}
		var api, cache atomic.Int64
		var begun sync.WaitGroup
		for range attempts {
			begun.Go(func() {
				resp, err := greedy.open(ctx, c.path)
				if err != nil {
					t.Error(err)
					return
				}
				defer context.AfterFunc(ctx, func() { resp.Body.Close() }) // it is not read
				switch {
				case codes.note(t, resp) != "200":
				case resp.Header.Get("X-Kubernetes-Pf-Flowschema-Uid") != "":
					api.Add(1)
				default:
					cache.Add(1)
				}
			})
		}
		modest.work(t, "beside-"+c.name)
		begun.Wait()
		t.Logf("%s: %d answers of the API server, %d from the cache; %v", c.name, api.Load(), cache.Load(), codes)
		if int(api.Load()) != c.api || int(cache.Load()) != c.cache || codes.count("200")+codes.count("429 max-lists-per-user") != attempts {
			t.Errorf("%s: %d answers of the API server, %d from the cache, want %d and %d; %v", c.name, api.Load(), cache.Load(), c.api, c.cache, codes)
		}
		cancel()
		eventually(t, "nothing that is held", func() bool { return g.metric(t, "watchkeeper_user_buffered_bytes", "") == 0 })
	}
}
