// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestFailing follows a Pod that starts, crashes again and again, and recovers.
func TestFailing(t *testing.T) {
	// Also with the clock of its Node ahead.
	for _, ahead := range []float64{0, 1, 3600} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) { testFailing(t, ahead) })
	}
}

func testFailing(t *testing.T, ahead float64) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	stamp := func(seconds float64) string { return f.At(seconds + ahead).UTC().Format(time.RFC3339) }
	const key = kube.Key("default/a")
	running := func(since float64, restarts int, crashed float64) string {
		text := fmt.Sprintf("{name: main, restartCount: %d, ready: true, state: {running: {startedAt: %q}}", restarts, stamp(since))
		if crashed > 0 {
			text += fmt.Sprintf(", lastState: {terminated: {exitCode: 3, reason: Error, message: no database, finishedAt: %q}}", stamp(crashed))
		}
		return fmt.Sprintf("{phase: Running, containerStatuses: [%s}], conditions: [{type: Ready, status: 'True', lastTransitionTime: %q}]}", text, stamp(since))
	}
	crashed := func(at float64, restarts int) string {
		return fmt.Sprintf("{phase: Running, containerStatuses: [{name: main, restartCount: %d, state: {terminated: {exitCode: 3, reason: Error, message: no database, finishedAt: %q}}}]}", restarts, stamp(at))
	}
	waiting := func(at float64, restarts int) string {
		return fmt.Sprintf("{phase: Running, containerStatuses: [{name: main, restartCount: %d, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 3, reason: Error, message: no database, finishedAt: %q}}}]}", restarts, stamp(at))
	}
	pod := func(rv uint64, status string) history.Event {
		return history.Event{Type: kube.Modified, Object: pasttest.Thing(t, key, rv, "kind: Pod\napiVersion: v1\nstatus: "+status)}
	}
	st := f.Stream(kube.Resource{Version: "v1", Name: "pods"}, 100, 0, pasttest.Thing(t, "default/old", 50, "kind: Pod\napiVersion: v1\nstatus: "+crashed(0, 0)))
	created := pod(101, "{phase: Pending}")
	created.Type = kube.Added
	for i, e := range []struct {
		seconds float64
		event   history.Event
	}{
		{10, created},
		{20, pod(102, running(20, 0, 0))},
		{30, pod(103, crashed(30, 0))},
		{31, pod(104, running(31, 1, 30))}, // ready for a minute at 91, for five at 331
		{500, pod(105, crashed(500, 1))},
		{501, pod(106, waiting(500, 1))},
		{520, pod(107, running(520, 2, 500))}, // until 580
		{600, pod(108, crashed(600, 2))},
		{601, pod(109, waiting(600, 2))},
		{640, pod(110, running(640, 3, 600))}, // until 700
		{800, history.Event{Type: kube.Deleted, Object: pod(111, running(640, 3, 600)).Object}},
	} {
		e.event.At = f.At(e.seconds)
		if err := st.Append([]history.Event{e.event}, uint64(101+i), f.At(e.seconds)); err != nil {
			t.Fatal(err)
		}
	}
	get := func(at float64) api.Failing {
		return ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/a?at="+f.when(at))
	}
	for at, since := range map[float64]float64{
		15: 0, 25: 0, 30: 30, 90: 30, 92: 0, 499: 0, 500: 500, 510: 500, 525: 500, 579: 500, 581: 0, 605: 500, 650: 500, 699: 500, 701: 0, 799: 0,
	} {
		got := get(at)
		if got.Failing != (since > 0) || since > 0 && (!got.SinceKnown || !got.Since.Equal(f.At(since))) {
			t.Errorf("at %v: %+v, want since %v", at, got, since)
		}
	}
	got := get(605)
	if len(got.Containers) != 1 || got.Restarts != 2 {
		t.Fatalf("%+v", got)
	}
	if c := got.Containers[0]; c.Name != "main" || c.State != "waiting" || c.Waiting != "CrashLoopBackOff" || c.Reason != "Error" || *c.ExitCode != 3 || c.Message != "no database" || c.FinishedAt.After(f.At(610)) || ahead == 0 && !c.FinishedAt.Equal(f.At(600)) || c.Restarts != 2 {
		t.Errorf("%+v", c)
	}
	if got := ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/old"); !got.Failing || got.SinceKnown || !got.Since.Equal(f.At(0)) {
		t.Errorf("before the record begins: %+v", got)
	}
	for path, code := range map[string]int32{
		"/failing/api/v1/namespaces/default/pods/a":                  404, // deleted
		"/failing/api/v1/namespaces/default/pods/none":               404,
		"/failing/api/v1/namespaces/default/pods":                    400,
		"/failing/api/v1/namespaces/default/pods/a?at=" + f.when(-5): 410,
		"/failing/apis/apps/v1/namespaces/default/deployments/web":   404,
	} {
		if s, _ := f.refused(path); s.Code != code {
			t.Errorf("%s: %+v", path, s)
		}
	}
}

// TestFailingSinceGap: a Pod that was found failing after a gap has failed since a time in it.
func TestFailingSinceGap(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pod := func(rv uint64, status string) history.Event {
		return history.Event{Type: kube.Modified, At: f.At(80), Inferred: true, Object: pasttest.Thing(t, "default/a", rv, "kind: Pod\napiVersion: v1\nstatus: "+status)}
	}
	st := f.Stream(kube.Resource{Version: "v1", Name: "pods"}, 100, 0, pod(90, "{phase: Running}").Object)
	f.Events(st, 120)
	crashed := fmt.Sprintf("{phase: Running, containerStatuses: [{name: main, restartCount: 1, state: {terminated: {exitCode: 1, finishedAt: %q}}}]}", f.At(40).UTC().Format(time.RFC3339))
	if err := st.AppendGap([]history.Event{pod(165, crashed)}, 180, f.At(80)); err != nil {
		t.Fatal(err)
	}
	got := ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/a?at=rv:180")
	if !got.Failing || !got.SinceKnown || !got.Since.Equal(f.At(80)) || !got.NotBefore.Equal(f.At(20)) {
		t.Errorf("%+v", got)
	}
}

// TestFailingInGap: a Pod that failed before a gap, and does so after it, has not recovered in
// the gap, however long it was.
func TestFailingInGap(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pod := func(rv uint64, at float64, state string) history.Event {
		status := fmt.Sprintf("{phase: Running, containerStatuses: [{name: main, restartCount: 1, %s}]}", state)
		return history.Event{Type: kube.Modified, At: f.At(at), Inferred: at == 900, Object: pasttest.Thing(t, "default/a", rv, "kind: Pod\napiVersion: v1\nstatus: "+status)}
	}
	running := fmt.Sprintf("state: {running: {startedAt: %q}}", f.At(20).UTC().Format(time.RFC3339))
	const crashed = "state: {terminated: {exitCode: 1}}"
	st := f.Stream(kube.Resource{Version: "v1", Name: "pods"}, 100, 0, pod(90, 0, running).Object)
	for _, e := range []history.Event{pod(110, 10, crashed), pod(120, 20, running+", lastState: {terminated: {exitCode: 1}}")} {
		if err := st.Append([]history.Event{e}, e.Object.RV, e.At); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.AppendGap([]history.Event{pod(165, 900, crashed)}, 180, f.At(900)); err != nil {
		t.Fatal(err)
	}
	got := ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/a?at=rv:180")
	if !got.Failing || !got.SinceKnown || !got.Since.Equal(f.At(10)) || !got.NotBefore.IsZero() {
		t.Errorf("%+v", got)
	}
}

// TestFailedBefore: a Pod that terminates does not fail, but its deletion tells since when it
// had, and why it was deleted.
func TestFailedBefore(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	stamp := func(seconds float64) string { return f.At(seconds).UTC().Format(time.RFC3339) }
	crashed := fmt.Sprintf("{phase: Running, containerStatuses: [{name: main, restartCount: 1, state: {terminated: {exitCode: 1, finishedAt: %q}}}]}", stamp(10))
	disrupted := fmt.Sprintf("{phase: Failed, reason: Evicted, message: low on memory, conditions: [{type: DisruptionTarget, status: 'True', reason: DeletionByPodGC, message: no node, lastTransitionTime: %q}]}", stamp(20))
	unschedulable := fmt.Sprintf("{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/5 nodes, lastTransitionTime: %q}]}", stamp(1))
	const terminating = "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\n"
	pod := func(typ kube.EventType, key kube.Key, rv uint64, meta, status string) history.Event {
		return history.Event{Type: typ, At: f.At(float64(rv - 100)), Object: pasttest.Thing(t, key, rv, meta+"kind: Pod\napiVersion: v1\nspec: {nodeName: ghost}\nstatus: "+status)}
	}
	st := f.Stream(kube.Resource{Version: "v1", Name: "pods"}, 100, 0,
		pasttest.Thing(t, "default/old", 50, "kind: Pod\napiVersion: v1\nstatus: "+crashed),
		pasttest.Thing(t, "default/older", 51, terminating+"kind: Pod\napiVersion: v1\nstatus: "+crashed))
	for _, e := range []history.Event{
		pod(kube.Added, "default/a", 101, "", "{phase: Pending}"),
		pod(kube.Added, "default/well", 102, "", "{phase: Running}"),
		pod(kube.Added, "default/stuck", 103, "", unschedulable),
		pod(kube.Modified, "default/a", 110, "", crashed),
		pod(kube.Modified, "default/a", 120, terminating, crashed),
		pod(kube.Modified, "default/a", 121, terminating, disrupted),
		pod(kube.Modified, "default/well", 122, terminating, crashed),
		pod(kube.Modified, "default/old", 123, terminating, crashed),
		pod(kube.Modified, "default/older", 124, terminating, disrupted),
		pod(kube.Added, "default/done", 125, terminating, "{phase: Succeeded, containerStatuses: [{name: main, restartCount: 1, state: {terminated: {exitCode: 0, reason: Completed}}, lastState: {terminated: {exitCode: 143, reason: Error}}}]}"),
	} {
		if err := st.Append([]history.Event{e}, e.Object.RV, e.At); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) api.Failing {
		return ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/"+name+"?at=rv:125")
	}
	got := get("a")
	want := api.Failing{
		FailedBefore: true, Since: f.At(10).UTC(), SinceKnown: true, Containers: []api.FailingContainer{}, Node: "ghost",
		Phase: "Failed", Reason: "Evicted", Message: "low on memory",
		Disruption: &api.PodCondition{Since: f.At(20).UTC().Truncate(time.Second), Reason: "DeletionByPodGC", Message: "no node"},
		Finding:    &api.PodFinding{Title: "Terminating", Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := get("old"); got.Failing || !got.FailedBefore || got.SinceKnown || !got.Since.Equal(f.At(0)) {
		t.Errorf("failed when the record begins: %+v", got)
	}
	for _, name := range []string{"well", "older", "stuck"} {
		if got := get(name); got.Failing || got.FailedBefore || !got.Since.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := get("done").Containers; len(got) != 1 || got[0].Reason != "Completed" || *got[0].ExitCode != 0 {
		t.Errorf("how it ended at last, not its crash before: %+v", got)
	}
	if got := get("stuck").Unschedulable; got == nil || got.Message != "0/5 nodes" || !got.Since.Equal(f.At(1).Truncate(time.Second)) {
		t.Errorf("unschedulable: %+v", got)
	}
}

// TestFailingFinding: what is a finding about a Pod is said of it, too.
func TestFailingFinding(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	stamp := func(seconds float64) string { return f.At(seconds).UTC().Format(time.RFC3339) }
	pod := func(name string, rv uint64, text string) *scan.Object {
		return pasttest.Thing(t, kube.MakeKey("default", name), rv, "kind: Pod\napiVersion: v1\nspec: {nodeName: n1}\n"+text)
	}
	ready := func(status string) string {
		return fmt.Sprintf("status: {phase: Running, conditions: [{type: Ready, status: %q, lastTransitionTime: %q}]}", status, stamp(20))
	}
	terminating := fmt.Sprintf("metadata: {deletionTimestamp: %q, deletionGracePeriodSeconds: 30}\n", stamp(40))
	st := f.Stream(kube.Resource{Version: "v1", Name: "pods"}, 100, 0, pod("well", 50, ready("True")), pod("not-ready", 51, ready("False")), pod("stuck", 52, terminating+ready("True")))
	f.Events(st, 300)
	for name, want := range map[string][2]*api.PodFinding{ // after one and two minutes
		"well":      {},
		"not-ready": {nil, {Title: "not ready", Since: f.At(20).UTC().Truncate(time.Second)}},
		"stuck":     {nil, {Title: "Terminating", Since: f.At(10).UTC().Truncate(time.Second)}},
	} {
		for i, want := range want {
			got := ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/"+name+"?at="+f.when(float64(60*(i+1))))
			if diff := cmp.Diff(want, got.Finding); diff != "" || got.Failing {
				t.Errorf("%s: %v %s", name, got.Failing, diff)
			}
		}
	}
}

// TestHeldSince: a Pod that a finalizer holds terminates since its deletion was requested, not since
// its kubelet has requested it again, and that the finalizer was added is among the changes before,
// not what became of a Node that another Pod of the controller has left.
func TestHeldSince(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pod := func(more string) string {
		return "{kind: Pod, apiVersion: v1, metadata: {uid: u, ownerReferences: [{kind: ReplicaSet, name: web-1, uid: r, controller: true}]" + more + "}, status: {phase: Running}}"
	}
	const held = ", finalizers: [example.com/hold]"
	terminating := func(end float64, grace int) string {
		return pod(fmt.Sprintf("%s, deletionTimestamp: %q, deletionGracePeriodSeconds: %d", held, f.At(end).UTC().Format(time.RFC3339), grace))
	}
	nodes := f.Stream(pasttest.Nodes, 100, 0, pasttest.Thing(t, "n1", 80, "{kind: Node, apiVersion: v1}"))
	f.Event(nodes, kube.Modified, "n1", 106, "{kind: Node, apiVersion: v1, spec: {unschedulable: true}}")
	f.Events(nodes, 120)
	other := strings.Replace(pod(""), "status", "spec: {nodeName: n1}, status", 1)
	pods := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/web-1-a", 90, pod("")), pasttest.Thing(t, "default/web-1-b", 91, other))
	f.Event(pods, kube.Deleted, "default/web-1-b", 107, other)
	f.Event(pods, kube.Modified, "default/web-1-a", 108, pod(held))
	f.Event(pods, kube.Modified, "default/web-1-a", 110, terminating(40, 30))
	f.Event(pods, kube.Modified, "default/web-1-a", 112, terminating(12, 0))
	got := f.findings("").Items
	if len(got) != 1 || !got[0].Since.Equal(f.At(10)) || !got[0].SinceKnown {
		t.Fatalf("%+v", got)
	}
	var before []string
	for _, c := range got[0].Before {
		before = append(before, fmt.Sprintf("%v %s: %s", c.Time.Sub(f.At(0)), c.Name, strings.Join(c.Summary, "; ")))
	}
	if want := []string{"10s web-1-a: deletion requested (grace 30 s)", "8s web-1-a: finalizer example.com/hold added"}; !slices.Equal(before, want) {
		t.Errorf("%q, want %q", before, want)
	}
	if one := ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/web-1-a").Finding; one == nil || !one.Since.Equal(f.At(10)) {
		t.Errorf("%+v", one)
	}
}
