// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// previousRelease is the commit of the release before this one. Before the first release,
// it is an early commit, whose history has format 1.
const previousRelease = "27e14f8085eb6db9907c0a0a3ab1a859058d87cf"

// previous builds the program of the previous release.
func previous(t *testing.T) string {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, ".git")); os.IsNotExist(err) {
		t.Skipf("these sources have no git history: in a clone, this test builds the previous release, %.8s", previousRelease)
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if missing, err := git("cat-file", "-e", previousRelease+"^{commit}"); err != nil {
		if out, err := git("rev-parse", "--is-shallow-repository"); err == nil && out == "true" {
			t.Skipf("this clone is shallow and lacks the previous release, %.8s: git fetch --unshallow", previousRelease)
		}
		t.Fatalf("the previous release, %.8s, is not in this clone: git fetch: %v: %s", previousRelease, err, missing)
	}
	dir := t.TempDir()
	archive, tree, program := filepath.Join(dir, "tree.zip"), filepath.Join(dir, "tree"), filepath.Join(dir, "watchkeeper")
	if out, err := git("archive", "-0", "-o", archive, previousRelease); err != nil {
		t.Fatalf("git archive: %v: %s", err, out)
	}
	files, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := os.CopyFS(tree, files); err != nil {
		t.Fatal(err)
	}
	if err := clustertest.BuildIn(tree, program, "GOWORK=off"); err != nil {
		t.Fatalf("the previous release, %.8s: %v", previousRelease, err)
	}
	return program
}

// An upgradeRun has a directory that several versions of the program record to, in turn.
type upgradeRun struct {
	ns, dir string
	steps   int // of change
	moments []pastMoment
}

// A pastMoment is a moment at which nothing changed.
type pastMoment struct {
	at    time.Time
	state map[string]uint64 // ConfigMaps: key → RV
	rv    uint64            // the newest ConfigMap's
}

// TestUpgrade: the previous release and this version record to the same directory in turn,
// through SIGTERM and SIGKILL. The record has every event and no gap, and all answers about
// the past stay the same. The previous release refuses the directory that this version has
// written, and damages nothing. Each opens the other's recordings.
func TestUpgrade(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	old := previous(t)
	u := &upgradeRun{ns: namespace(t), dir: filepath.Join(t.TempDir(), "history")}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	g := u.start(t, old)
	client, up := direct(t)
	configMaps := "/api/v1/namespaces/" + u.ns + "/configmaps"
	_, from := listState(t, configMaps)
	want := record(ctx, &wg, &recording{name: "direct", client: client, url: up + configMaps + "?x=", resume: true}, from)
	u.scale(t, 2)
	u.change(t, 100)
	u.look(t, g)
	u.change(t, 600)
	u.look(t, g)
	u.killed(t, g)
	g = u.start(t, old)
	u.scale(t, 3)
	u.change(t, 600)
	u.look(t, g)
	// Format 1 does not have until when a state was observed. It is known up to the next
	// event or bookmark.
	u.scale(t, 4)
	u.change(t, 100)
	observed(t, g, u.ns)
	first := u.moments
	before := u.answers(t, g, first)
	oldFile := u.export(t, g, old)
	ended(t, g)
	u.change(t, 100)

	g = u.start(t, cluster.Program())
	u.same(t, "upgraded", g, first, before)
	u.continued(t, g)
	u.killed(t, g)
	g = u.start(t, cluster.Program())
	u.change(t, 100)
	u.look(t, g)
	after := u.answers(t, g, u.moments)
	newFile := u.export(t, g, cluster.Program())
	ended(t, g)

	if back, err := cluster.GatewayOf(old, "--data-dir", u.dir); err == nil {
		back.Kill()
		t.Errorf("the previous release opens a newer format:\n%s", back.Log())
	} else if !strings.Contains(err.Error(), "the history was written by a newer version") {
		t.Error(err)
	}
	g = u.start(t, cluster.Program())
	u.same(t, "after the previous release", g, u.moments, after)
	u.continued(t, g)
	ended(t, g)

	last := u.moments[len(u.moments)-1].rv
	waitForAll(t, []*recording{want}, last)
	cancel()
	wg.Wait()
	st := recordedStream(t, u.dir, kube.Resource{Version: "v1", Name: "configmaps"})
	for _, gap := range st.Gaps() {
		if !gap.Late() {
			t.Errorf("a gap: %v", gap)
		}
	}
	var got []string
	for e, err := range st.Events(t.Context(), from, last) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(e.Object.Key), u.ns+"/") {
			got = append(got, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", e.Type, e.Object.JSON))
		}
	}
	if d := difference(want.texts(from, last), got); d != "" || len(got) < u.steps {
		t.Errorf("%d changes: %s", u.steps, d)
	}
	t.Logf("%d events are recorded, and %d answers stay the same", len(got), len(after))

	// A recording's RVs are those of its events.
	for _, file := range []string{oldFile, newFile} {
		opened := u.open(t, file, old)
		answers := u.answers(t, opened, first)
		ended(t, opened)
		opened = u.open(t, file, cluster.Program())
		u.same(t, filepath.Base(file), opened, first, answers)
		ended(t, opened)
	}
}

// start starts a version of the program, and waits until it has recorded everything.
func (u *upgradeRun) start(t *testing.T, program string) *clustertest.Gateway {
	t.Helper()
	g, err := cluster.GatewayOf(program, "--data-dir", u.dir, "--record", "core,configmaps")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Kill()
		if t.Failed() {
			t.Log(g.Log())
		}
	})
	observed(t, g, u.ns)
	return g
}

// ended ends a gateway, which must succeed.
func ended(t *testing.T, g *clustertest.Gateway) {
	t.Helper()
	if exit := g.Terminate(); exit != 0 {
		t.Errorf("watchkeeper ended with %d on SIGTERM:\n%s", exit, g.Log())
	}
}

// configMapLives is how many changes a ConfigMap lives. It is more than the deltas in a
// row that the history has.
const configMapLives = 50

// change makes n changes of ConfigMaps: each one is created, modified, deleted, and
// created again. One of them, c0, is not deleted.
func (u *upgradeRun) change(t *testing.T, n int) {
	t.Helper()
	const objects = 5
	all := api.CoreV1().ConfigMaps(u.ns)
	var wg sync.WaitGroup
	for w := range objects {
		wg.Go(func() {
			for step := u.steps; step < u.steps+n; step++ {
				if step%objects != w {
					continue
				}
				cm := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", w)},
					Data:       map[string]string{"step": fmt.Sprint(step), "text": strings.Repeat("the same text in each version. ", 10)},
				}
				var err error
				switch life := step / objects % configMapLives; {
				case step/objects == 0 || life == 0 && w != 0:
					_, err = all.Create(t.Context(), cm, metav1.CreateOptions{})
				case life == configMapLives-1 && w != 0:
					err = all.Delete(t.Context(), cm.Name, metav1.DeleteOptions{})
				default:
					_, err = all.Update(t.Context(), cm, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	u.steps += n
}

// killed kills a gateway amid changes.
func (u *upgradeRun) killed(t *testing.T, g *clustertest.Gateway) {
	t.Helper()
	u.change(t, 200)
	var wg sync.WaitGroup
	wg.Go(g.Kill)
	u.change(t, 400)
	wg.Wait()
}

// scale gives the namespace's Deployment some replicas, and creates it first if needed.
func (u *upgradeRun) scale(t *testing.T, replicas int) {
	t.Helper()
	if len(u.moments) == 0 {
		kubectl(t, "-n", u.ns, "create", "deployment", "web", "--image=web:1")
	}
	kubectl(t, "-n", u.ns, "scale", "deployment", "web", fmt.Sprint("--replicas=", replicas))
	settled(t, u.ns, "web", replicas)
}

// look notes a moment at which nothing changes.
func (u *upgradeRun) look(t *testing.T, g *clustertest.Gateway) {
	t.Helper()
	for {
		before := rvOfAll(t, u.ns)
		state, _ := listState(t, "/api/v1/namespaces/"+u.ns+"/configmaps")
		observed(t, g, u.ns)
		m := pastMoment{at: time.Now(), state: state}
		for _, rv := range state {
			m.rv = max(m.rv, rv)
		}
		if rvOfAll(t, u.ns) == before {
			u.moments = append(u.moments, m)
			return
		}
	}
}

// answers returns what a gateway says about moments, by question. It fails the test if the
// ConfigMaps are not those of the moment.
func (u *upgradeRun) answers(t *testing.T, g *clustertest.Gateway, moments []pastMoment) map[string]string {
	t.Helper()
	all := map[string]string{}
	put := func(path, accept string) string {
		a, err := ask(t.Context(), http.DefaultClient, g.URL+path, accept)
		if err != nil || a.code != http.StatusOK {
			t.Fatalf("%s: %v, %d: %.300s", path, err, a.code, a.body)
		}
		all[path+" "+accept] = a.body
		return a.body
	}
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, m := range moments {
		at := "/at/" + m.at.UTC().Format(time.RFC3339Nano)
		for _, path := range []string{"/api/v1/namespaces/" + u.ns + "/pods", "/apis/apps/v1/namespaces/" + u.ns + "/deployments"} {
			put(at+path, "application/json")
			put(at+path, table)
		}
		put(at+"/api/v1/namespaces/"+u.ns+"/configmaps/c0", "application/json")
		for _, at := range []string{at, fmt.Sprint("/at/rv:", m.rv)} {
			if got := stateIn(t, put(at+"/api/v1/namespaces/"+u.ns+"/configmaps", "application/json")); !maps.Equal(got, m.state) {
				t.Errorf("%s: ConfigMaps %v, there were %v", at, got, m.state)
			}
		}
	}
	from, to := moments[0].at.UTC().Format(time.RFC3339Nano), moments[len(moments)-1].at.UTC().Format(time.RFC3339Nano)
	for _, question := range []string{
		"versions/api/v1/namespaces/" + u.ns + "/configmaps/c0?since=" + from + "&until=" + to,
		"versions/api/v1/namespaces/" + u.ns + "/configmaps/c1?since=" + from + "&until=" + to,
		"versions/apis/apps/v1/namespaces/" + u.ns + "/deployments/web?since=" + from + "&until=" + to,
		"diff/api/v1/namespaces/" + u.ns + "/configmaps?from=" + from + "&to=" + to,
		"diff/apis/apps/v1/namespaces/" + u.ns + "/deployments?from=" + from + "&to=" + to,
	} {
		question = "/watchkeeper/v1/history/" + question + "&noise=show&objects=true"
		var pages strings.Builder
		for path := question; path != ""; {
			items, more := promised(t, put(path, ""))
			delete(all, path+" ")
			pages.WriteString(items)
			if path = ""; more != "" {
				path = question + "&continue=" + url.QueryEscape(more)
			}
		}
		if all[question] = pages.String(); pages.Len() == 0 {
			t.Errorf("%s: nothing", question)
		}
	}
	return all
}

// promised returns those members of a page of the history that keep their meaning, one
// item a line.
func promised(t *testing.T, body string) (items, more string) {
	t.Helper()
	var a struct {
		Continue string
		Items    []struct {
			Type, ResourceVersion, UID, Name, From, To string
			Time                                       time.Time
			Inferred                                   bool
			Changes, Object, Before                    json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("%v: %.300s", err, body)
	}
	var lines strings.Builder
	for _, item := range a.Items {
		if err := json.NewEncoder(&lines).Encode(item); err != nil {
			t.Fatal(err)
		}
	}
	return lines.String(), a.Continue
}

// same fails the test for each answer that has changed.
func (u *upgradeRun) same(t *testing.T, when string, g *clustertest.Gateway, moments []pastMoment, want map[string]string) {
	t.Helper()
	if got := u.answers(t, g, moments); !maps.Equal(got, want) {
		t.Errorf("%s (-before +now)\n%.5000s", when, cmp.Diff(want, got))
	}
}

// continued checks that the record has no gap, and the resources were not listed.
func (u *upgradeRun) continued(t *testing.T, g *clustertest.Gateway) {
	t.Helper()
	for _, resource := range []string{"configmaps.v1", "pods.v1", "deployments.v1.apps", "replicasets.v1.apps"} {
		if n, ok := gauge(t, g, fmt.Sprintf("watchkeeper_history_gaps_total{resource=%q}", resource)); n != 0 || !ok {
			t.Errorf("%s: %v gaps, %v", resource, n, ok)
		}
		for line := range strings.Lines(g.Log()) {
			if strings.Contains(line, "synced") && strings.Contains(line, resource) {
				t.Errorf("a list: %s", line)
			}
		}
	}
}

// export has a version of the program export what is in the namespace.
func (u *upgradeRun) export(t *testing.T, g *clustertest.Gateway, program string) (file string) {
	t.Helper()
	name := "previous.wkr"
	if program == cluster.Program() {
		name = "this.wkr"
	}
	file = filepath.Join(t.TempDir(), name)
	out, ok := run(t, []string{program}, "record", "export", "pods", "deployments.apps", "configmaps", "-n", u.ns, "--server", g.URL, "-o", file)
	if !ok {
		t.Fatal(out)
	}
	return file
}

// open has a version of the program serve a recording.
func (u *upgradeRun) open(t *testing.T, file, program string) *clustertest.Gateway {
	t.Helper()
	g, err := cluster.Run(exec.Command(program, "open", file, "--port", "0"))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// stateIn returns the objects of a list: key → RV.
func stateIn(t *testing.T, list string) map[string]uint64 {
	t.Helper()
	var l metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(list), &l); err != nil {
		t.Fatal(err)
	}
	state := map[string]uint64{}
	for _, o := range l.Items {
		rv, err := kube.ParseRV(o.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		state[o.Namespace+"/"+o.Name] = rv
	}
	return state
}
