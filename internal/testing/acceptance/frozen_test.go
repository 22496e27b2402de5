// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	historyapi "github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
)

// TestFrozenWatch: the upstream watch of a recorded resource stays open and sends nothing,
// while all else works. The first answer about now says since when nothing was observed, and
// soon another one has what has happened meanwhile.
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
	// Another watch may have begun by then, or not yet.
	known := []string{historyapi.Late, historyapi.RecordingStopped}
	first := changes()
	if !slices.ContainsFunc(first.Unobserved, func(u historyapi.UnobservedSpan) bool {
		return slices.Contains(known, u.Reason) && u.From.Before(frozen) && !u.To.Before(first.To)
	}) {
		t.Errorf("at %v, the first answer says %+v, up to %v", frozen, first.Unobserved, first.To)
	}
	got := first.Items
	eventually(t, "what has happened meanwhile", func() bool {
		got = changes().Items
		return len(got) > 0 && got[0].Name == "frozen"
	})
	if got[0].NotBefore.IsZero() || got[0].NotBefore.After(frozen) || got[0].Time.Before(frozen) {
		t.Errorf("created between %v and %v, want %v to be between", got[0].NotBefore, got[0].Time, frozen)
	}
}

// TestMutedWatches: all watches of a recorded resource send nothing, new ones as well, while all
// else works. Within half a minute, no answer about now takes that for silence of the resource,
// and all of them name the time of the last observation. Afterwards the record goes on.
func TestMutedWatches(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	upstream := countingProxy(t)
	g := recordingGateway(t, "--kubeconfig", upstream.kubeconfig)
	ask := func(path string) (code int, body string) {
		t.Helper()
		return get(t, http.DefaultClient, g.URL+path)
	}
	const maps = "/watchkeeper/v1/history/changes?since=5m&resource=configmaps&namespace="
	configMap(t, ns, "before", "red")
	eventually(t, "the first ConfigMap", func() bool {
		_, body := ask(maps + ns)
		return strings.Contains(body, "before")
	})
	lines := multiwatch(t, g.URL, url.Values{"watch": {"/api/v1/namespaces/" + ns + "/configmaps?watch=1"}, "upstream": {"1"}})
	time.Sleep(time.Second)
	unmute := upstream.Mute("configmaps")
	muted := time.Now()
	configMap(t, ns, "muted", "red")
	during := "/at/" + muted.Add(5*time.Second).UTC().Format(time.RFC3339) + configMapsIn(ns)
	told := func() bool {
		var c historyapi.Changes
		if code, body := ask(maps + ns); code != http.StatusOK || json.Unmarshal([]byte(body), &c) != nil {
			t.Fatal(code, body)
		}
		return slices.ContainsFunc(c.Unobserved, func(u historyapi.UnobservedSpan) bool {
			return u.Reason == historyapi.RecordingStopped && !u.From.After(muted.Add(5*time.Second)) && !u.To.Before(c.To)
		})
	}
	// A watch that was heard in the last ten seconds is believed, and what was sent before may arrive a moment later.
	eventually(t, "answers that tell the silence", told)
	for range 2 {
		if !told() {
			t.Errorf("since %v all watches are silent", muted)
		}
		for _, path := range []string{"/at/now" + configMapsIn(ns), during} {
			if code, body := ask(path); code == http.StatusOK {
				t.Errorf("%s: %s", path, body)
			}
		}
		if out, code := watchkeeper(t, g.URL, "diagnose", "-n", ns); code != 3 || !strings.Contains(out, "configmaps") {
			t.Errorf("diagnose: %d %s", code, out)
		}
		time.Sleep(time.Second)
	}
	for {
		f, err := lines.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == "STALE" {
			break
		}
	}
	eventually(t, "/readyz", func() bool {
		_, body := get(t, http.DefaultClient, g.Admin+"/readyz?verbose")
		return strings.Contains(body, "no watch now: configmaps since ")
	})
	unmute()
	eventually(t, "the record of what was missed", func() bool {
		_, body := ask(maps + ns)
		return strings.Contains(body, `"name":"muted"`)
	})
	if code, body := ask(during); code == http.StatusOK {
		t.Errorf("%s, afterwards: %s", during, body)
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
