// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/story"
)

var start = time.Date(2026, 1, 2, 14, 0, 0, 0, time.UTC)

// resources has the resource of a kind.
var resources = map[string]kube.Resource{
	"Pod": {Version: "v1", Name: "pods"}, "Node": {Version: "v1", Name: "nodes"}, "Event": {Version: "v1", Name: "events"},
	"ConfigMap": {Version: "v1", Name: "configmaps"}, "Secret": {Version: "v1", Name: "secrets"}, "Namespace": {Version: "v1", Name: "namespaces"},
	"ResourceQuota": {Version: "v1", Name: "resourcequotas"},
	"Deployment":    {Group: "apps", Version: "v1", Name: "deployments"}, "ReplicaSet": {Group: "apps", Version: "v1", Name: "replicasets"},
	"StatefulSet": {Group: "apps", Version: "v1", Name: "statefulsets"}, "DaemonSet": {Group: "apps", Version: "v1", Name: "daemonsets"},
	"CronJob": {Group: "batch", Version: "v1", Name: "cronjobs"}, "Job": {Group: "batch", Version: "v1", Name: "jobs"}, "HorizontalPodAutoscaler": {Group: "autoscaling", Version: "v2", Name: "horizontalpodautoscalers"},
	"PodDisruptionBudget": {Group: "policy", Version: "v1", Name: "poddisruptionbudgets"},
}

// A log is the history of a few objects, which a test writes.
type log struct {
	t       testing.TB
	rv      uint64
	objects map[string]*story.Object
	alive   map[string]*scan.Object
	gap     time.Time // since when nothing was observed until the next versions; zero if it was
	watched bool      // a watch, not a list, sends these
}

// newLog returns a log of what there was before the first version.
func newLog(t testing.TB, initial ...string) *log {
	l := &log{t: t, rv: 100, objects: map[string]*story.Object{}, alive: map[string]*scan.Object{}}
	l.initial(initial...)
	return l
}

// at returns the time so many seconds after the start.
func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// object parses an object from YAML; its namespace is shop, unless its kind has none, and its
// UID is made from its kind and name.
func (l *log) object(text string) (*scan.Object, *story.Object) {
	l.t.Helper()
	tree := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		l.t.Fatalf("%v in %s", err, text)
	}
	l.rv++
	meta, _ := tree["metadata"].(map[string]any)
	kind, name := tree["kind"].(string), meta["name"].(string)
	if meta["uid"] == nil {
		meta["uid"] = "uid-" + kind + "-" + name
	}
	meta["resourceVersion"] = fmt.Sprint(l.rv)
	namespace := ""
	if kind != "Node" && kind != "Namespace" {
		namespace, meta["namespace"] = "shop", "shop"
	}
	tree["apiVersion"] = resources[kind].APIVersion()
	b, err := json.Marshal(tree)
	if err != nil {
		l.t.Fatal(err)
	}
	o, err := scan.ParseObject(string(b))
	if err != nil {
		l.t.Fatal(err)
	}
	id := kind + "/" + name
	if l.objects[id] == nil {
		l.objects[id] = &story.Object{Resource: resources[kind], Key: kube.MakeKey(namespace, name)}
	}
	return o, l.objects[id]
}

// initial adds objects that are there at the start.
func (l *log) initial(texts ...string) {
	l.t.Helper()
	for _, text := range texts {
		o, all := l.object(text)
		all.Initial = o
		l.alive[o.Kind+"/"+o.Key.Name()] = o
	}
}

// put adds versions. It returns l, for the next ones.
func (l *log) put(seconds float64, texts ...string) *log {
	l.t.Helper()
	for _, text := range texts {
		o, all := l.object(text)
		id, typ := o.Kind+"/"+o.Key.Name(), kube.Modified
		if l.alive[id] == nil {
			typ = kube.Added
		}
		l.alive[id] = o
		all.Versions = append(all.Versions, story.Version{Type: typ, Time: at(seconds), NotBefore: l.gap, Inferred: !l.gap.IsZero() && !l.watched, Object: o})
	}
	return l
}

// remove adds deletions.
func (l *log) remove(seconds float64, ids ...string) *log {
	l.t.Helper()
	for _, id := range ids {
		l.rv++
		last := l.alive[id]
		o := last.WithRow(last.Row, last.Columns)
		o.RV = l.rv
		delete(l.alive, id)
		l.objects[id].Versions = append(l.objects[id].Versions, story.Version{Type: kube.Deleted, Time: at(seconds), NotBefore: l.gap, Object: o})
	}
	return l
}

// event adds an Event.
func (l *log) event(seconds float64, name, typ, reason, message, kind, about string) {
	l.t.Helper()
	l.put(seconds, fmt.Sprintf(`{kind: Event, metadata: {name: %q}, type: %s, reason: %s, message: %q, involvedObject: {kind: %s, namespace: shop, name: %s, uid: uid-%s-%s}, source: {component: tester}}`,
		name, typ, reason, message, kind, about, kind, about))
}

// input returns the history as the input of the story of an object.
func (l *log) input(id string, to float64) story.Input {
	in := story.Input{Resource: l.objects[id].Resource, Key: l.objects[id].Key, From: start, To: at(to)}
	ids := make([]string, 0, len(l.objects))
	for id := range l.objects {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		in.Objects = append(in.Objects, *l.objects[id])
	}
	return in
}

// tell returns the story of an object until a time, after checks that hold for all stories.
func (l *log) tell(id string, to float64) api.Story {
	l.t.Helper()
	in := l.input(id, to)
	s := story.Tell(in)
	verify(l.t, in, s)
	return s
}

// lines returns the episodes as lines, with seconds since the start.
func lines(s api.Story) (out []string) {
	for _, e := range s.Episodes {
		seconds := func(notBefore, at time.Time) string {
			text := fmt.Sprintf("%v", at.Sub(start).Seconds())
			if !notBefore.IsZero() {
				text = fmt.Sprintf("%v..%s", notBefore.Sub(start).Seconds(), text)
			}
			return text
		}
		begin, end := seconds(e.NotBefore, e.From), seconds(e.EndNotBefore, e.To)
		if e.BegunBefore != "" {
			begin = ".." + begin
		}
		if e.Ongoing {
			end = ""
		}
		mark := map[string]string{api.EpisodeFailed: "failed", api.EpisodeWarning: "warning", api.EpisodeInfo: "info"}[e.Severity]
		out = append(out, fmt.Sprintf("%s-%s %s: %s", begin, end, mark, e.Title))
	}
	return out
}

// main returns the most important episode.
func main(s api.Story) api.Episode {
	for _, e := range s.Episodes {
		if e.Main {
			return e
		}
	}
	return api.Episode{}
}

// first compares the title of the first line, of which "…" is any text.
func (l *log) first(id string, to float64, want string) {
	l.t.Helper()
	begin, end, some := strings.Cut(want, "…")
	if got := main(l.tell(id, to)).Title; !some && got != want || !strings.HasPrefix(got, begin) || !strings.HasSuffix(got, end) {
		l.t.Errorf("%q, want %q", got, want)
	}
}

func (l *log) want(id string, to float64, want ...string) api.Story {
	l.t.Helper()
	s := l.tell(id, to)
	if diff := cmp.Diff(want, lines(s)); diff != "" {
		l.t.Errorf("%s: %s", id, diff)
	}
	return s
}

// deployment returns a Deployment with an image; more is added to its status.
func deployment(generation, replicas int, image, manager, revision, more string) string {
	return fmt.Sprintf(`{kind: Deployment, metadata: {name: web, generation: %d, annotations: {deployment.kubernetes.io/revision: %q}, managedFields: [{manager: %s, operation: Update, time: %q, fieldsV1: {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {}}}}}}]},
spec: {replicas: %d, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: %q}]}}}, status: {%s}}`,
		generation, revision, manager, fmt.Sprintf("2026-01-02T14:00:%02dZ", generation), replicas, image, more)
}

func done(generation, n int) string {
	return fmt.Sprintf("observedGeneration: %d, replicas: %d, updatedReplicas: %d, readyReplicas: %d, availableReplicas: %d", generation, n, n, n, n)
}

func replicaSet(name, image, more string) string {
	return fmt.Sprintf(`{kind: ReplicaSet, metadata: {name: web-%s, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: uid-Deployment-web, controller: true}]},
spec: {template: {metadata: {labels: {app: web, pod-template-hash: %q}}, spec: {containers: [{name: web, image: %q}]}}}, status: {%s}}`, name, name, image, more)
}

// pod returns a Pod of a ReplicaSet.
func pod(name, rs, meta, spec, status string) string {
	return fmt.Sprintf(`{kind: Pod, metadata: {name: %s, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s, uid: uid-ReplicaSet-%s, controller: true}]%s}, spec: {nodeName: n1, containers: [{name: web, image: x}]%s}, status: {%s}}`,
		name, rs, rs, meta, spec, status)
}

const (
	running = `phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, state: {running: {startedAt: "2026-01-02T14:00:00Z"}}}]`
	crashed = `phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: web, restartCount: 1, state: {terminated: {exitCode: 1, reason: Error, message: "line 1\nno database\n", finishedAt: "2026-01-02T14:00:15Z"}}}]`
	backOff = `phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: web, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 10s"}}, lastState: {terminated: {exitCode: 1, reason: Error, message: "line 1\nno database\n", finishedAt: "2026-01-02T14:00:15Z"}}}]`
)

// failedRollout writes a rollout whose two Pods crash.
func failedRollout(t testing.TB) *log {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)), replicaSet("a", "r/web:1.0", "replicas: 2"))
	l.put(10, deployment(2, 2, "r/web:1.1", "kubectl-set", "1", done(1, 2)))
	l.put(10.1, replicaSet("b", "r/web:1.1", ""))
	l.put(10.2, deployment(2, 2, "r/web:1.1", "kubectl-set", "2", "observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 2, readyReplicas: 2"))
	for i, name := range []string{"web-b-1", "web-b-2"} {
		l.put(11+float64(i), pod(name, "web-b", "", "", "phase: Pending"))
		l.put(13+float64(i), pod(name, "web-b", "", "", running))
		l.put(15+float64(i), pod(name, "web-b", "", "", crashed))
		l.put(17+float64(i), pod(name, "web-b", "", "", backOff))
	}
	return l
}

// TestRolledBack: a rollout that failed and was rolled back is one episode, whose title says
// what failed, why, and what ended it.
func TestRolledBack(t *testing.T) {
	l := failedRollout(t)
	const failed = "rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set) failed: 2 Pods CrashLoopBackOff (exit 1: no database)"
	l.want("Deployment/web", 20, "10- failed: "+failed+"; still so at the end of the story, with 2 of 2 ready")
	l.put(30, deployment(3, 2, "r/web:1.0", "kubectl-rollout", "2", "observedGeneration: 2, replicas: 3, updatedReplicas: 1"))
	l.put(30.5, deployment(3, 2, "r/web:1.0", "kubectl-rollout", "3", "observedGeneration: 3, replicas: 3, updatedReplicas: 2, availableReplicas: 2"))
	l.want("Deployment/web", 31, "10- failed: "+failed+"; rolled back to 1.0 by kubectl-rollout; the rollback is not complete at the end of the story, with 0 of 2 ready")
	l.remove(31, "Pod/web-b-1")
	l.remove(32, "Pod/web-b-2")
	l.put(33, deployment(3, 2, "r/web:1.0", "kubectl-rollout", "3", done(3, 2)))
	s := l.want("Deployment/web", 60, "10-33 failed: "+failed+"; rolled back to 1.0 by kubectl-rollout, complete after 3s; 2 of 2 ready at its end (0 at the lowest)")
	want := []api.Cause{{Kind: "Pod", Namespace: "shop", Name: "web-b-1", Field: "status.containerStatuses[web].lastState.terminated", Text: "Error: exit 1: no database", Path: "/api/v1/namespaces/shop/pods/web-b-1", ResourceVersion: "109", Objects: 2}}
	if diff := cmp.Diff(want, s.Episodes[0].Causes); diff != "" {
		t.Error(diff)
	}
	if e := s.Episodes[0].Entries[0]; e.Name != "web" || !e.Time.Equal(at(10)) || e.ResourceVersion == "" || !slices.Equal(e.By, []string{"kubectl-set"}) || !strings.HasPrefix(e.Path, "/apis/apps/v1/namespaces/shop/deployments/") {
		t.Errorf("the first entry is %+v", e)
	}
	if !slices.ContainsFunc(s.Episodes[0].Entries, func(e api.StoryEntry) bool { return e.LastLog == "no database" }) {
		t.Error("no entry has the last output")
	}
}

// TestRepaired: the next rollout, with another template, replaces one that failed.
func TestRepaired(t *testing.T) {
	l := failedRollout(t)
	l.put(30, deployment(3, 2, "r/web:1.2", "helm", "2", "observedGeneration: 2"))
	l.put(31, deployment(3, 2, "r/web:1.2", "helm", "3", "observedGeneration: 3"))
	l.remove(32, "Pod/web-b-1", "Pod/web-b-2")
	l.put(33, deployment(3, 2, "r/web:1.2", "helm", "3", done(3, 2)))
	l.want("Deployment/web", 60,
		"10-30 failed: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set) failed: 2 Pods CrashLoopBackOff (exit 1: no database); replaced by revision 3 (by helm), which was complete after 3s; 0 of 2 ready at its end, and 2 of 2 at the end of the story",
		"30-33 info: rollout of web from 1.1 to 1.2 (revision 3, by helm), complete after 3s")
	// One that failed, too, is no repair: what is, is named after it.
	l = failedRollout(t)
	l.put(30, deployment(3, 2, "r/web:1.2", "helm", "3", "observedGeneration: 3"))
	l.put(30.1, replicaSet("c", "r/web:1.2", ""))
	l.put(31, pod("web-c-1", "web-c", "", "", running))
	l.remove(32, "Pod/web-b-1", "Pod/web-b-2")
	l.put(33, deployment(3, 2, "r/web:1.2", "helm", "3", done(3, 2)))
	l.put(35, pod("web-c-1", "web-c", "", "", oomKilled))
	l.put(40, deployment(4, 2, "r/web:1.0", "helm", "4", done(4, 2)))
	l.remove(41, "Pod/web-c-1")
	if got := main(l.tell("Deployment/web", 60)).Title; !strings.Contains(got, "; replaced by revision 3 (by helm), which failed, too; then rolled back to 1.0 by helm, complete after less than 1s; 0 of 2 ready at its end, and 2 of 2 at the end of the story") {
		t.Error(got)
	}
}

// TestRecovered: a rollout that was complete, and whose Pods had recovered, before the next one was not
// ended by that one, and is not only said to be complete.
func TestRecovered(t *testing.T) {
	l := newLog(t, deployment(1, 1, "r/web:a", "m", "1", done(1, 1)))
	for i, rs := range []string{"b", "c", "d"} {
		begin, n := float64(10+40*i), i+2
		l.put(begin, deployment(n, 1, "r/web:"+rs, "m", fmt.Sprint(n), fmt.Sprintf("observedGeneration: %d, replicas: 2, updatedReplicas: 1, readyReplicas: 1", n)))
		l.put(begin+.1, replicaSet(rs, "r/web:"+rs, ""))
		l.put(begin+1, pod("web-"+rs, "web-"+rs, "", "", badImage))
		if rs != "c" {
			l.put(begin+7, pod("web-"+rs, "web-"+rs, "", "", running))
			l.put(begin+8, deployment(n, 1, "r/web:"+rs, "m", fmt.Sprint(n), done(n, 1)))
		}
	}
	const failed, ready = " failed: 1 Pod ErrImagePull (manifest unknown)", "; 1 of 1 ready all the time"
	l.want("Deployment/web", 110, "10-18 failed: rollout of web from a to b (revision 2, by m)"+failed+", recovered after 8s"+ready,
		"50-90 failed: rollout of web from b to c (revision 3, by m)"+failed+"; replaced by revision 4 (by m), which failed, too, and recovered"+ready,
		"90-98 failed: rollout of web from c to d (revision 4, by m)"+failed+", recovered after 8s"+ready)
}

func TestRollouts(t *testing.T) {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)))
	l.put(10, deployment(2, 2, "r/web:1.1", "kubectl-set", "1", done(1, 2)))
	l.want("Deployment/web", 11, "10- info: rollout of web from 1.0 to 1.1 (by kubectl-set) requested")
	l.put(11, deployment(2, 2, "r/web:1.1", "kubectl-set", "2", "observedGeneration: 2, updatedReplicas: 1, readyReplicas: 2"))
	l.want("Deployment/web", 12, "10- info: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set), in progress: 1 of 2 Pods updated, 2 ready")
	stuck := `observedGeneration: 2, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: "ReplicaSet \"web-b\" has timed out progressing."}]`
	l.put(80, deployment(2, 2, "r/web:1.1", "kubectl-set", "2", stuck))
	l.want("Deployment/web", 90, `10- failed: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set) failed: ProgressDeadlineExceeded: ReplicaSet "web-b" has timed out progressing; still so at the end of the story, with 0 of 2 ready`)
	l.put(100, deployment(2, 2, "r/web:1.1", "kubectl-set", "2", done(2, 2)))
	l.want("Deployment/web", 110, `10-100 failed: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set) was blocked: ProgressDeadlineExceeded: ReplicaSet "web-b" has timed out progressing; complete after 1m30s; 2 of 2 ready at its end (0 at the lowest)`)
}

// TestNeverReady: a rollout whose Pods were not ready until it was rolled back is a warning, as it was
// while it lasted.
func TestNeverReady(t *testing.T) {
	onDelete := strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "kind: ReplicaSet, name: web-b", "kind: StatefulSet, name: web", "uid-ReplicaSet-web-b", "uid-StatefulSet-web", "spec: {replicas", "spec: {updateStrategy: {type: OnDelete}, replicas")
	for id, of := range map[string]*strings.Replacer{"Deployment/web": strings.NewReplacer(), "StatefulSet/web": onDelete} {
		const some = ", replicas: 2, updatedReplicas: 1, readyReplicas: 1, currentRevision: a, updateRevision: "
		l := newLog(t, of.Replace(deployment(1, 2, "r/web:1.0", "m", "", done(1, 2)+", currentRevision: a, updateRevision: a")))
		l.put(10, of.Replace(deployment(2, 2, "r/web:1.1", "m", "", "observedGeneration: 2"+some+"b")))
		l.put(10.1, replicaSet("b", "r/web:1.1", ""))
		l.put(12, of.Replace(pod("web-b-1", "web-b", "", "", notReady)))
		l.put(82, of.Replace(deployment(3, 2, "r/web:1.0", "m", "", "observedGeneration: 3"+some+"a")))
		l.remove(83, "Pod/web-b-1")
		l.put(85, of.Replace(deployment(3, 2, "r/web:1.0", "m", "", done(3, 2)+", currentRevision: a, updateRevision: a")))
		const want = "rollout of web from 1.0 to 1.1 (by m) did not complete: 1 Pod not ready (ContainersNotReady: containers with unready status: [web]); rolled back to 1.0 by m, complete after 3s; 1 of 2 ready at its end, and 2 of 2 after another 3s"
		if m := main(l.tell(id, 200)); m.Title != want || m.Severity != api.EpisodeWarning {
			t.Errorf("%s: %q", id, m.Title)
		}
	}
}

// TestInProgress: a rollout that had begun before the story.
func TestInProgress(t *testing.T) {
	l := newLog(t, deployment(2, 2, "r/web:1.1", "kubectl-set", "2", "observedGeneration: 2, replicas: 2, updatedReplicas: 1"))
	l.put(5, deployment(2, 2, "r/web:1.1", "kubectl-set", "2", done(2, 2)))
	l.want("Deployment/web", 10, "..0-5 info: rollout of web to r/web:1.1 (revision 2), complete after at least 5s")
}

// TestNamespaceDeleted: what is in a Namespace that is deleted goes with it.
func TestNamespaceDeleted(t *testing.T) {
	l := newLog(t, `{kind: Namespace, metadata: {name: shop}}`, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)))
	l.put(10, `{kind: Namespace, metadata: {name: shop, deletionTimestamp: "2026-01-02T14:00:10Z"}}`)
	l.put(14, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", "observedGeneration: 1"))
	s := l.want("Deployment/web", 16, "10- warning: Namespace shop terminates; still so at the end of the story")
	if m := main(s); len(m.Entries) != 2 {
		t.Errorf("%+v", m.Entries)
	}
	l.remove(15, "Deployment/web")
	l.remove(18, "Namespace/shop")
	l.want("Deployment/web", 20, "10-18 info: Namespace shop deleted", "15-15 info: Deployment web deleted")
}

func TestScaling(t *testing.T) {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)))
	l.put(10, deployment(2, 4, "r/web:1.0", "kubectl-scale", "1", done(1, 2)))
	l.put(12, deployment(2, 4, "r/web:1.0", "kubectl-scale", "1", done(2, 3)))
	l.want("Deployment/web", 13, "10- info: Deployment web scaled 2 → 4 by kubectl-scale, 3 of 4 ready")
	l.put(15, deployment(2, 4, "r/web:1.0", "kubectl-scale", "1", done(2, 4)))
	l.want("Deployment/web", 20, "10-15 info: Deployment web scaled 2 → 4 by kubectl-scale, ready after 5s")
	l.put(100, deployment(3, 9, "r/web:1.0", "kubectl-scale", "1", done(2, 4)))
	l.put(102, deployment(3, 9, "r/web:1.0", "kubectl-scale", "1", done(3, 6)))
	l.put(700, deployment(4, 12, "r/web:1.0", "kubectl-scale", "1", done(3, 6)))
	l.want("Deployment/web", 800, "10-15 info: Deployment web scaled 2 → 4 by kubectl-scale, ready after 5s",
		"100-700 info: Deployment web scaled 4 → 9 by kubectl-scale, 6 of 9 ready when it was scaled again",
		"700- info: Deployment web scaled 9 → 12 by kubectl-scale, 6 of 12 ready")
}

// TestAutoscaler: the steps of an autoscaler are one episode, with what its Events say.
func TestAutoscaler(t *testing.T) {
	l := newLog(t)
	hpa := func(low, active string) string {
		return fmt.Sprintf(`{kind: HorizontalPodAutoscaler, metadata: {name: web, managedFields: [{manager: kubectl-edit, operation: Update, time: "%s", fieldsV1: {"f:spec": {"f:minReplicas": {}}}}]}, spec: {minReplicas: %s, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}, status: {conditions: [%s]}}`, low, low, active)
	}
	l.initial(deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)), hpa("1", ""))
	l.put(5, hpa("2", ""))
	for i, n := range []int{6, 2, 8, 2} {
		second := float64(10 + 20*i)
		l.put(second, deployment(2+i, n, "r/web:1.0", "kube-controller-manager", "1", ""))
		reason := "cpu resource utilization above target"
		if n == 2 {
			reason = "All metrics below target"
		}
		l.event(second+.1, fmt.Sprintf("web.%d", i), "Normal", "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: %s", n, reason), "HorizontalPodAutoscaler", "web")
		l.put(second+3, deployment(2+i, n, "r/web:1.0", "kube-controller-manager", "1", done(2+i, n)))
	}
	const flapping = "10-73 warning: 5s after HorizontalPodAutoscaler web was changed (minReplicas 1 → 2, by kubectl-edit): Deployment web scaled 4 times between 2 and 8 replicas (2 → 6 → 2 → 8 → 2) by HorizontalPodAutoscaler web (cpu resource utilization above target, All metrics below target)"
	l.want("HorizontalPodAutoscaler/web", 90, flapping)
	l.put(100, hpa("2", `{type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: no metrics}`))
	s := l.want("Deployment/web", 110, flapping,
		"100- warning: HorizontalPodAutoscaler web cannot scale: FailedGetResourceMetric: no metrics; still so at the end of the story")
	if m := main(s); m.Kind != api.EpisodeAutoscaler {
		t.Errorf("the main episode is %q", m.Title)
	}
}

// TestFollows: what a controller changes of a Deployment's ReplicaSets is no episode, and what
// somebody else changes is.
func TestFollows(t *testing.T) {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)))
	set := func(seconds float64, annotation, manager, status string) {
		by := fmt.Sprintf(`annotations: {%s}, managedFields: [{manager: %s, operation: Update, time: "%v", fieldsV1: {"f:metadata": {"f:annotations": {"f:a": {}, "f:b": {}}}}}], ownerReferences`, annotation, manager, seconds)
		l.put(seconds, strings.Replace(replicaSet("a", "r/web:1.0", status), "ownerReferences", by, 1))
	}
	l.initial(replicaSet("a", "r/web:1.0", "replicas: 2"))
	set(100, `a: "5"`, "kube-controller-manager", "replicas: 2")
	set(110, `a: "5"`, "kube-controller-manager", "replicas: 3")
	l.want("Deployment/web", 200)
	set(300, `a: "5", b: "6"`, "kubectl-annotate", "replicas: 3")
	l.want("Deployment/web", 400, "300-300 info: ReplicaSet web-a: annotation b=6 added")
}

// TestScaledByTwo: each step has its author, and an autoscaler's reasons are said of its steps,
// also if another scales within seconds of it.
func TestScaledByTwo(t *testing.T) {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)), `{kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`)
	for i, n := range []int{4, 5, 1, 2} {
		second, by := float64(10+16*i), "kube-controller-manager"
		if n == 1 {
			second, by = second+14, "kubectl-scale" // the autoscaler answers after two seconds
		}
		l.put(second, deployment(2+i, n, "r/web:1.0", by, "1", done(1+i, n)))
		if n != 1 {
			l.event(second+.1, fmt.Sprintf("web.%d", i), "Normal", "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: %s", n, map[bool]string{true: "cpu above target", false: "below minReplicas"}[n > 2]), "HorizontalPodAutoscaler", "web")
		}
		l.put(second+1, deployment(2+i, n, "r/web:1.0", by, "1", done(2+i, n)))
	}
	l.want("Deployment/web", 90, "10-59 warning: Deployment web scaled 4 times between 1 and 5 replicas "+
		"(2 → 4 → 5 by HorizontalPodAutoscaler web (cpu above target), → 1 by kubectl-scale, → 2 by HorizontalPodAutoscaler web (below minReplicas))")
}
