// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	historyapi "github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/faultproxy"
)

// TestFrozenWatch: the upstream watch of a recorded resource stays open and sends nothing,
// while all else works. The first answer about now says since when nothing was observed, and
// the second one has what has happened meanwhile.
func TestFrozenWatch(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	upstream := countingProxy(t)
	g := recordingGateway(t, "--kubeconfig", upstream.kubeconfig)
	changes := func() (c historyapi.Changes) {
		t.Helper()
		code, body := get(t, http.DefaultClient, g.URL+"/watchkeeper/v1/history/changes?since=5m&resource=configmaps&namespace="+ns)
		if err := json.Unmarshal([]byte(body), &c); code != http.StatusOK || err != nil {
			t.Fatal(code, err, body)
		}
		return c
	}
	configMap(t, ns, "before", "red")
	eventually(t, "the first ConfigMap", func() bool { return len(changes().Items) > 0 })
	if n := upstream.Silence(); n == 0 {
		t.Fatal("there is no watch")
	}
	time.Sleep(11 * time.Second) // a watch that was heard in the last ten seconds is believed
	frozen := time.Now()
	configMap(t, ns, "frozen", "red")
	first := changes()
	if !slices.ContainsFunc(first.Unobserved, func(u historyapi.UnobservedSpan) bool {
		return u.Reason == historyapi.Late && u.From.Before(frozen) && !u.To.Before(first.To)
	}) {
		t.Errorf("at %v, the first answer says %+v, up to %v", frozen, first.Unobserved, first.To)
	}
	got := changes().Items
	if len(got) == 0 || got[0].Name != "frozen" {
		t.Fatalf("changes: %+v", got)
	}
	if got[0].NotBefore.IsZero() || got[0].NotBefore.After(frozen) || got[0].Time.Before(frozen) {
		t.Errorf("created between %v and %v, want %v to be between", got[0].NotBefore, got[0].Time, frozen)
	}
}

// TestRefusedResource: while the API server answers all requests for Pods with 429, diagnose does
// not say that nothing fails, and has the exit code of findings, however often it is asked.
func TestRefusedResource(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	var refuse atomic.Bool
	upstream := proxyOf(t, func(resource string, _ faultproxy.Kind, _ int) faultproxy.Fault {
		if resource == "pods" && refuse.Load() {
			return faultproxy.Fault{Name: faultproxy.TooMany}
		}
		return faultproxy.Fault{Name: faultproxy.None}
	})
	g := recordingGateway(t, "--kubeconfig", upstream.kubeconfig)
	kubectl(t, "-n", ns, "create", "deployment", "fine", "--image=x")
	eventually(t, "a namespace in which nothing fails", func() bool {
		out, code := watchkeeper(t, g.URL, "diagnose", "-n", ns)
		return code == 0 && strings.Contains(out, "nothing fails")
	})
	refuse.Store(true)
	upstream.CutAll()
	eventually(t, "a gateway that knows", func() bool {
		_, code := watchkeeper(t, g.URL, "diagnose", "-n", ns)
		return code != 0
	})
	for range 5 { // each takes some seconds
		if out, code := watchkeeper(t, g.URL, "diagnose", "-n", ns); code == 0 || !strings.Contains(out, "pods") {
			t.Fatalf("%d %s", code, out)
		}
	}
}
