// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

var recordedPods = kube.Resource{Version: "v1", Name: "pods"}

// gauge returns a metric of a gateway, by its name with its labels.
func gauge(t *testing.T, g *clustertest.Gateway, name string) (float64, bool) {
	t.Helper()
	_, body := get(t, http.DefaultClient, g.Admin+"/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(body)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v, true
}

// headOf waits until all events of Pods up to rv are recorded.
func headOf(t *testing.T, g *clustertest.Gateway, rv uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("a record up to %d", rv), func() bool {
		head, _ := gauge(t, g, `watchkeeper_history_head_rv{resource="pods.v1"}`)
		return head >= float64(rv)
	})
}

// recordedStream returns the stream of a resource that a gateway, which has ended, has
// recorded.
func recordedStream(t *testing.T, dir string, resource kube.Resource) *history.Stream {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	store, err := history.Open(all[0], history.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	streams := store.Streams(resource)
	if len(streams) != 1 {
		t.Fatalf("%d epochs", len(streams))
	}
	return streams[0]
}

// TestRecorded kills a recording gateway repeatedly, with and without clients. In
// the end the events on disk are those of a watch of the API server, and Pods were
// listed once, at the first start.
func TestRecorded(t *testing.T) {
	clustertest.SkipShort(t)
	dir := t.TempDir()
	upstream := countingProxy(t)
	mine, err := cluster.Gateway("--kubeconfig", upstream.kubeconfig, "--data-dir", dir, "--record", "core", "--idle-timeout", "2s")
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Kill()
	headOf(t, mine, 1)
	stop := load(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	client, up := direct(t)
	_, from := listState(t, "/api/v1/pods")
	want := record(ctx, &wg, &recording{name: "direct", client: client, url: up + "/api/v1/pods?x=", resume: true}, from)

	read := func() (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		got := record(ctx, &wg, &recording{name: "gateway", client: http.DefaultClient, url: mine.URL + "/api/v1/pods?x=", resume: true}, want.place())
		return func() {
			t.Helper()
			eventually(t, "an event through the gateway", func() bool {
				got.mu.Lock()
				defer got.mu.Unlock()
				return len(got.frames) > 0 || got.err != nil
			})
			cancel()
			wg.Wait()
			if got.err != nil {
				t.Error(got.err)
			}
		}
	}
	var killed []time.Time
	for i := range kills(t) {
		end := func() {}
		if i%2 == 0 {
			end = read()
		}
		churned(t, 40)
		mine.Kill()
		killed = append(killed, time.Now())
		churned(t, 40)
		if err := mine.Restart(); err != nil {
			t.Fatal(err)
		}
		headOf(t, mine, churned(t, 40))
		// Another one may be passed through, if the gateway was not ready in time.
		eventually(t, "one watch of Pods at the API server", func() bool {
			passed, _ := gauge(t, mine, `watchkeeper_requests_total{code="200",source="passthrough",verb="watch"}`)
			return upstream.Watches("pods") <= 1+int(passed)
		})
		end()
		for _, line := range strings.Split(mine.Log(), "\n") {
			if strings.Contains(line, "synced") && strings.Contains(line, "pods.v1") {
				t.Errorf("a list after restart %d: %s", i, line)
			}
		}
	}
	end := read() // the recorder takes the watch back when the resource is idle
	churned(t, 40)
	end()
	eventually(t, "an idle resource", func() bool { return strings.Contains(mine.Log(), "stopped caching") })
	to := mark(t)
	waitForAll(t, []*recording{want}, to)
	stop()
	headOf(t, mine, to)
	cancel()
	if code := mine.Terminate(); code != 0 {
		t.Errorf("it ended with %d", code)
	}

	st := recordedStream(t, dir, recordedPods)
	for _, g := range st.Gaps() {
		if !g.Late() {
			t.Errorf("a gap: %v", g)
		}
	}
	for _, at := range killed { // one that is killed before it has caught up continues its gap
		if !slices.ContainsFunc(st.Gaps(), func(g history.Gap) bool { return !at.Before(g.Since) && !at.After(g.Until) }) {
			t.Errorf("killed at %v, outside of the late gaps %v", at, st.Gaps())
		}
	}
	var wants, gots []string
	for _, f := range want.frames {
		if from < f.rv() && f.rv() <= to {
			wants = append(wants, fmt.Sprintf("%s %s %d", f.Type, f.key(), f.rv()))
		}
	}
	for e, err := range st.Events(t.Context(), from, to) {
		if err != nil {
			t.Fatal(err)
		}
		gots = append(gots, fmt.Sprintf("%s %s %d", e.Type, e.Object.Key, e.Object.RV))
	}
	if d := difference(wants, gots); d != "" || len(wants) == 0 {
		t.Error(d)
	}
	t.Logf("%d events are recorded as they happened, through %d kills", len(wants), kills(t))
}

// TestRecordedOutage kills the API server under a recording gateway: the final
// recorded state is the API server's, and unobserved events are in a gap.
func TestRecordedOutage(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, loadedOutages)
	dir := t.TempDir()
	mine, err := cluster.Gateway("--data-dir", dir, "--record", "pods")
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Kill()
	headOf(t, mine, 1)
	outages[loadedOutages].Ready()
	stop := load(t)
	for range 2 {
		churned(t, 100)
		outage(t, loadedOutages, func() {
			// The gateway cannot determine the cluster, but serves anyway.
			mine.Kill()
			if err := mine.Restart(); err != nil {
				t.Fatal(err)
			}
			if _, body := get(t, http.DefaultClient, mine.Admin+"/readyz?verbose"); !strings.Contains(body, "[-]history nothing is recorded: ") {
				t.Errorf("readyz: %s", body)
			}
		})
		eventually(t, "recording to resume", func() bool {
			up, _ := gauge(t, mine, "watchkeeper_history_up")
			return up == 1
		})
	}
	churned(t, 100)
	stop()
	state, rv := listState(t, "/api/v1/pods")
	headOf(t, mine, mark(t))
	if code := mine.Terminate(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	st := recordedStream(t, dir, recordedPods)
	got := map[string]uint64{}
	for o, err := range st.List(t.Context(), rv, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		got[string(o.Key)] = o.RV
	}
	if !maps.Equal(got, state) || len(state) == 0 {
		t.Errorf("%d Pods are recorded, and there are %d", len(got), len(state))
	}
	t.Logf("%d Pods, gaps %v", len(got), st.Gaps())
}

// TestRecordedByOne: of two gateways, one records to a directory.
func TestRecordedByOne(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	dir := t.TempDir()
	mine, err := cluster.Gateway("--data-dir", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Terminate()
	second, err := cluster.Gateway("--data-dir", dir)
	if err == nil {
		second.Terminate()
		t.Fatal("two gateways record to one directory")
	}
	if !strings.Contains(err.Error(), "another process records to "+dir) || !strings.Contains(err.Error(), "another --data-dir") {
		t.Error(err)
	}
}

// TestRecordedVersions: another version of a custom resource becomes the preferred one while it is
// recorded, and then while nothing is, when the one before is no longer served. No change is lost.
func TestRecordedVersions(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	undefine(t)
	beta, v1 := lifeVersion{name: "v1beta1", storage: true, columns: []string{".spec.color"}}, lifeVersion{name: "v1", columns: []string{".spec.color"}}
	define(t, "Namespaced", beta)
	live(t, ns, "v1beta1", "a", "{color: one}")
	live(t, ns, "v1beta1", "gone", "{}")
	mine, err := cluster.Gateway("--data-dir", t.TempDir(), "--record", "*")
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Terminate()
	command := func(args string) string {
		out, _ := cluster.Command(t.Context(), append(strings.Fields(args), "-n", ns, "--server", mine.URL)...)
		return string(out)
	}
	has := func(text string) {
		t.Helper()
		eventually(t, text, func() bool { return strings.Contains(command("changes lives --since 1h"), text) })
	}
	eventually(t, "the record", func() bool { return strings.Contains(command("history life/a"), "was there") })
	live(t, ns, "v1beta1", "a", "{color: two}")
	has("color one → two")
	then := time.Now()
	time.Sleep(time.Second)
	beta.storage, v1.storage = false, true
	define(t, "Namespaced", v1, beta)
	live(t, ns, "v1", "a", "{color: three}") // perhaps before the recorder knows the new version
	kubectl(t, "delete", "lives.v1.life.example.com", "gone", "-n", ns)
	has("color two → three")
	has("gone  deleted")
	mine.Kill()
	live(t, ns, "v1", "a", "{color: four}")
	beta.unserved = true
	define(t, "Namespaced", v1, beta)
	if err := mine.Restart(); err != nil {
		t.Fatal(err)
	}
	has("color three → four")
	live(t, ns, "v1", "a", "{color: five}")
	has("color four → five")
	if out := command("history life/a"); strings.Count(out, "→") != 4 || !strings.Contains(out, "was there when the recorded history begins") {
		t.Errorf("history: %s", out)
	}
	at := then.UTC().Format(time.RFC3339Nano)
	if out := command("get lives --at " + at); !strings.Contains(out, "two") || !strings.Contains(out, "gone") {
		t.Errorf("get: %s", out)
	}
	if out := command("diff lives --from " + at); !strings.Contains(out, "color two → five") {
		t.Errorf("diff: %s", out)
	}
}
