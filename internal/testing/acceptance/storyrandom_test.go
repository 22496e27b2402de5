// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	historyapi "github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/storytest"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestStoryOfRandomCommands: real controllers act on random commands, and the stories of the
// workloads say no more than what was commanded: a rollout begins with a command that
// changes a Pod template, a failure has something that can fail, and a rollback is one. The
// stories of parts of the time, and of the Pods, agree with them. WATCHKEEPER_STORIES is the
// number of histories (1), WATCHKEEPER_STORY_SEED that of the first.
func TestStoryOfRandomCommands(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	seed := clustertest.FromEnv(t, "WATCHKEEPER_STORY_SEED", rand.Uint64N(1<<32))
	for range clustertest.FromEnv(t, "WATCHKEEPER_STORIES", 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { storyOfRandomCommands(t, seed) })
		seed++
	}
}

// A told command is one that a story may tell.
type told struct {
	from, to time.Time
	line     string
	template bool   // it may begin a rollout
	bad      string // what it makes fail, until a command with good
	good     string
}

// A commander gives commands about one workload, in its own namespace.
type commander struct {
	c      *ownCluster
	r      *rand.Rand
	ns     string
	kind   string // Deployment, StatefulSet or DaemonSet
	paused bool
	quota  bool
	exists bool
	told   []told
}

// name is the workload's, as kubectl takes it.
func (c *commander) name() string { return strings.ToLower(c.kind) + "/app" }

// do runs kubectl. It may fail, as a command of a person.
func (c *commander) do(t told, args ...string) {
	t.from, t.line = time.Now(), strings.Join(args, " ")
	out, ok := run(c.c.t, c.c.Kubectl(c.c.t.Context()).Args, append([]string{"-n", c.ns}, args...)...)
	t.to = time.Now()
	if !ok {
		t.line += ": " + strings.TrimSpace(out)
	}
	c.told = append(c.told, t)
}

const randomImage = "registry.example/shop/checkout:"

func (c *commander) create() {
	strategy := map[string][]string{
		"Deployment":  {`"strategy":{}`, `"strategy":{}`, `"strategy":{"type":"Recreate"}`},
		"StatefulSet": {`"serviceName":"app","podManagementPolicy":"Parallel"`, `"serviceName":"app"`, `"serviceName":"app","updateStrategy":{"type":"OnDelete"}`},
		"DaemonSet":   {`"updateStrategy":{}`, `"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}`, `"updateStrategy":{"type":"OnDelete"}`},
	}[c.kind][c.r.IntN(3)]
	replicas := `"replicas":3,`
	if c.kind == "DaemonSet" {
		replicas = ""
	}
	file := filepath.Join(c.c.t.TempDir(), "app.json")
	text := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":"app"},"spec":{%s%s,"selector":{"matchLabels":{"app":"app"}},
		"template":{"metadata":{"labels":{"app":"app"}},"spec":{"containers":[{"name":"checkout","image":%q}]}}}}`, c.kind, replicas, strategy, randomImage+"1.0")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		c.c.t.Error(err)
	}
	c.do(told{template: true, good: "image"}, "create", "-f", file)
	c.exists, c.paused = true, false
}

// next gives a random command.
func (c *commander) next() {
	if !c.exists {
		c.create()
		return
	}
	switch n := c.r.IntN(20); {
	case n < 4 && c.kind != "DaemonSet":
		c.do(told{}, "scale", c.name(), fmt.Sprintf("--replicas=%d", 1+c.r.IntN(5)))
	case n < 8:
		version := []string{"1.0", "1.1", "1.2", "2.4.1"}[c.r.IntN(4)]
		does := told{template: true, good: "image"}
		if version == "2.4.1" { // which cannot be pulled
			does.bad, does.good = does.good, ""
		}
		c.do(does, "set", "image", c.name(), "checkout="+randomImage+version)
	case n < 10:
		c.do(told{template: true}, "set", "env", c.name(), fmt.Sprintf("A=%d", c.r.IntN(4)))
	case n < 11:
		c.do(told{template: true}, "rollout", "restart", c.name())
	case n < 13:
		c.do(told{template: true}, "rollout", "undo", c.name())
	case n < 15:
		c.hold()
	case n < 17:
		c.do(told{}, "delete", "pod", "--wait=false", "-l", "app=app", "--field-selector", "status.phase=Running")
	case n < 18 && c.quota:
		c.do(told{good: "quota"}, "delete", "quota", "few")
		c.quota = false
	case n < 18:
		c.do(told{bad: "quota"}, "create", "quota", "few", "--hard=pods=2")
		c.quota = true
	case n < 19:
		c.do(told{good: "image"}, "delete", c.name())
		c.exists = false
	default:
		node := fmt.Sprintf("node-%d", c.r.IntN(4))
		c.do(told{}, "drain", node, "--ignore-daemonsets", "--force", "--timeout=8s")
		c.do(told{}, "uncordon", node)
	}
}

// hold makes rollouts wait, or go on.
func (c *commander) hold() {
	does := told{template: c.paused}
	switch c.kind {
	case "Deployment":
		c.do(does, "rollout", map[bool]string{true: "resume", false: "pause"}[c.paused], c.name())
	case "StatefulSet":
		c.do(told{template: true}, "patch", c.name(), "-p", fmt.Sprintf(`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":%d}}}}`, c.r.IntN(3)))
	case "DaemonSet":
		types := map[bool]string{true: `"RollingUpdate"`, false: `"OnDelete","rollingUpdate":null`}
		c.do(told{template: true}, "patch", c.name(), "-p", fmt.Sprintf(`{"spec":{"updateStrategy":{"type":%s}}}`, types[c.paused]))
	}
	c.paused = !c.paused
}

func storyOfRandomCommands(t *testing.T, seed uint64) {
	const apps, during = 3, 50 * time.Second
	stages, err := filepath.Abs("../../../demo/scenarios/stages")
	if err != nil {
		t.Fatal(err)
	}
	c := &ownCluster{t: t}
	if c.Cluster, err = clustertest.Start(4, "--stages", stages); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	g := c.gateway("--data-dir", t.TempDir(), "--record", "core,configmaps,resourcequotas")
	eventually(t, "a recording", func() bool {
		code, _ := get(t, http.DefaultClient, g.URL+"/at/now/apis/apps/v1/deployments")
		return code == http.StatusOK
	})
	all := make([]*commander, apps)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = &commander{c: c, r: rand.New(rand.NewPCG(seed, uint64(i))), ns: fmt.Sprintf("random-%d", i), kind: []string{"Deployment", "StatefulSet", "DaemonSet"}[(i+int(seed))%3]}
		c.command("create", "namespace", all[i].ns)
		wg.Go(func() {
			for deadline := time.Now().Add(during); time.Now().Before(deadline); {
				all[i].next()
				time.Sleep(time.Second + time.Duration(all[i].r.IntN(8000))*time.Millisecond)
			}
		})
	}
	wg.Wait()
	time.Sleep(3 * time.Second)
	file := filepath.Join(t.TempDir(), "random.wkr")
	if out, code := watchkeeper(t, g.URL, "record", "export", "-A", "-o", file); code != 0 {
		t.Fatal(out)
	}
	for _, app := range all {
		app.judge(t, g.URL, seed)
		if t.Failed() {
			var lines strings.Builder
			for _, one := range all { // others drain Nodes, too
				for _, command := range one.told {
					fmt.Fprintf(&lines, "%s %s %s\n", command.from.UTC().Format("15:04:05.000"), one.ns, command.line)
				}
			}
			kept := keep(t, file)
			t.Fatalf("WATCHKEEPER_STORY_SEED=%d, %s; the recording is %s; the commands were\n%s", seed, app.ns, kept, lines.String())
		}
	}
}

// keep copies a file to where it stays after the test.
func keep(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	kept := filepath.Join(os.TempDir(), "watchkeeper-"+strings.ReplaceAll(t.Name(), "/", "-")+filepath.Ext(file))
	if err := errors.Join(err, os.WriteFile(kept, data, 0o644)); err != nil {
		t.Error(err)
	}
	return kept
}

// story returns a story of an object in the namespace; ok is false if nothing is recorded of it.
func (c *commander) story(t *testing.T, server, object string, from, to time.Time) (s historyapi.Story, ok bool) {
	t.Helper()
	query := "?since=" + url.QueryEscape(from.Format(time.RFC3339Nano)) + "&until=" + url.QueryEscape(to.Format(time.RFC3339Nano))
	path := "/watchkeeper/v1/story" + strings.Replace(object, "NAMESPACE", c.ns, 1)
	code, body := get(t, http.DefaultClient, server+path+query)
	if code == http.StatusNotFound && strings.Contains(body, "nothing is recorded of") {
		return s, false
	}
	if err := json.Unmarshal([]byte(body), &s); code != http.StatusOK || err != nil {
		t.Fatal(path+query, code, err, body)
	}
	return s, true
}

// judge compares the stories with the commands, and with each other.
func (c *commander) judge(t *testing.T, server string, seed uint64) {
	t.Helper()
	begin, end := c.told[0].from.Add(-time.Second), time.Now()
	app := "/apis/apps/v1/namespaces/NAMESPACE/" + strings.ToLower(c.kind) + "s/app"
	whole, ok := c.story(t, server, app, begin, end)
	if !ok {
		t.Fatal("there is no story")
	}
	t.Logf("%s:\n%s", c.ns, storytest.Titles(whole))
	deleted, tells := 0, 0
	for _, e := range whole.Episodes {
		c.judgeEpisode(t, e)
		if e.Kind == historyapi.EpisodeDeletion && strings.HasPrefix(e.Title, c.kind+" app deleted") {
			tells++
		}
	}
	for _, command := range c.told {
		if command.line == "delete "+c.name() {
			deleted++
		}
	}
	if tells != deleted {
		t.Errorf("%d deletions are told, want %d:\n%s", tells, deleted, storytest.Titles(whole))
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for range 12 {
		from := begin.Add(time.Duration(r.Int64N(int64(end.Sub(begin)))))
		to := from.Add(1 + time.Duration(r.Int64N(int64(end.Sub(from)))))
		part, _ := c.story(t, server, app, from, to)
		for _, e := range storytest.Added(whole, part) {
			t.Errorf("%v to %v: %s: is not in\n%s", from, to, storytest.Title(e), storytest.Titles(whole))
		}
	}
	pods := map[string]bool{}
	for _, e := range whole.Episodes {
		for _, entry := range e.Entries {
			if entry.Kind != "Pod" || pods[entry.Name] || len(pods) == 6 {
				continue
			}
			pods[entry.Name] = true
			of, _ := c.story(t, server, "/api/v1/namespaces/NAMESPACE/pods/"+entry.Name, begin, end)
			for _, e := range of.Episodes {
				if e.Kind == historyapi.EpisodeRollout && !slices.ContainsFunc(whole.Episodes, func(w historyapi.Episode) bool {
					return w.Title == e.Title && w.From.Equal(e.From) && w.To.Equal(e.To)
				}) {
					t.Errorf("the story of Pod %s has %s: is not in\n%s", entry.Name, storytest.Title(e), storytest.Titles(whole))
				}
			}
		}
	}
}

// judgeEpisode compares an episode with the commands.
func (c *commander) judgeEpisode(t *testing.T, e historyapi.Episode) {
	t.Helper()
	given := func(from, to time.Time, is func(told) bool) bool {
		return slices.ContainsFunc(c.told, func(command told) bool {
			return is(command) && !command.from.After(to) && !command.to.Before(from)
		})
	}
	if e.BegunBefore != "" {
		t.Errorf("%s: all has begun after the record", storytest.Title(e))
	}
	const soon = 3 * time.Second // controllers act within seconds
	begins := func(what string, is func(told) bool) {
		t.Helper()
		if !given(e.From.Add(-soon), e.From.Add(soon), is) {
			t.Errorf("%s: no command %s", storytest.Title(e), what)
		}
	}
	starts := func(line string) func(told) bool { return func(c told) bool { return strings.HasPrefix(c.line, line) } }
	switch {
	case strings.Contains(e.Title, "paused by"):
		begins("has paused it", starts("rollout pause"))
	case e.Kind == historyapi.EpisodeRollout:
		begins("has begun one", func(c told) bool { return c.template })
	case e.Kind == historyapi.EpisodeScaling:
		begins("has scaled it", starts("scale"))
	case e.Kind == historyapi.EpisodeDeletion:
		begins("has deleted anything", starts("delete"))
	}
	if strings.Contains(e.Title, "rolled back") && !given(e.From, e.To.Add(soon), func(c told) bool { return c.template }) {
		t.Errorf("%s: there was no command", storytest.Title(e))
	}
	if e.Severity != historyapi.EpisodeFailed {
		return
	}
	// What is bad at the begin of an episode may have been so for a while, and its end is only
	// seen by the next try.
	var bad []string
	for _, command := range c.told {
		if command.from.After(e.To) {
			break
		}
		if command.good != "" && command.to.Before(e.From.Add(-soon)) {
			bad = slices.DeleteFunc(bad, func(what string) bool { return what == command.good })
		}
		if command.bad != "" {
			bad = append(bad, command.bad)
		}
	}
	if len(bad) == 0 {
		t.Errorf("%s: nothing was bad", storytest.Title(e))
	}
}
