// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// A background is a kubectl that runs in the background.
type background struct {
	at   side
	args string
	done chan struct{} // closed when it has ended
	exit string        // how it ended, valid once done is closed
	out  logtest.Log
}

// startBackground starts a kubectl, which is killed when the test ends.
func startBackground(t *testing.T, at side, kubectl []string, ns string, args ...string) *background {
	t.Helper()
	b := &background{at: at, args: strings.Join(args, " "), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := at.start(ctx, kubectl, ns, "", args...)
	cmd.Stdout, cmd.Stderr = &b.out, &b.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.done)
		b.exit = exit(cmd.Wait())
	}()
	t.Cleanup(func() { cancel(); <-b.done })
	return b
}

// ended reports whether it has ended.
func (b *background) ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// prints waits until it has printed a text.
func (b *background) prints(t *testing.T, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q from %s at %v", text, b.args, b.at), func() bool {
		return strings.Contains(b.out.String(), text)
	})
}

// watches are kubectl watches of objects and of Tables. NS stands for the
// namespace. A kubectl other than localcluster's runs only the first two.
var watches = [][]string{
	{"get", "configmaps", "-w", "-o", `jsonpath={.metadata.name} {.metadata.resourceVersion} {.data}{"\n"}`},
	{"get", "configmaps", "-w"},
	{"get", "configmaps", "--watch-only", "-o", "custom-columns=:.metadata.name,:.metadata.labels.color,:.metadata.resourceVersion"},
	{"get", "configmap", "one", "-w", "-o", `jsonpath={.metadata.resourceVersion} {.data}{"\n"}`},
	{"get", "configmaps", "-w", "-l", "color=red", "-o", "name"},
	{"get", "configmaps", "-A", "--watch-only", "--output-watch-events", "-l", "color=red,of=NS"},
	{"get", "pods", "-w", "-o", "wide", "--show-labels"},
}

// TestKubectlWatch: get -w prints the same at both sides, and so does watchkeeper get -w.
func TestKubectlWatch(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	watchSession(t, false)
}

// TestKubectlWatchOutlivesUpstream: get -w through the gateway continues when the
// API server is killed.
func TestKubectlWatchOutlivesUpstream(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quietOutage)
	watchSession(t, true)
}

// watchSession runs the commands with every kubectl at both sides while objects
// change, and compares the output. If outlive is set, those at the gateway start
// before the API server is killed, and the others afterwards: a watch of the API
// server ends with it.
func watchSession(t *testing.T, outlive bool) {
	ns := namespace(t)
	s := &changer{t: t, ns: ns}
	var all [2][]*background
	begin := func(at side) {
		for _, name := range slices.Sorted(maps.Keys(kubectls(t))) {
			some := watches
			if name != ownKubectl {
				some = watches[:2]
			}
			for _, words := range some {
				args := strings.Split(strings.ReplaceAll(strings.Join(words, "\x00"), "NS", ns), "\x00")
				all[at] = append(all[at], startBackground(t, at, kubectls(t)[name], ns, args...))
				if outlive || name != ownKubectl {
					continue
				}
				// "watchkeeper get -w" prints the same where it is not in a terminal.
				if at == via {
					all[at] = append(all[at], startBackground(t, at, []string{cluster.Program(), "get"}, ns, args[1:]...))
				} else {
					all[at] = append(all[at], all[at][len(all[at])-1])
				}
			}
		}
	}
	s.tick()
	begin(via)
	if outlive {
		s.tickUntil(all[via])
		outages[quietOutage].Ready()
		outage(t, quietOutage, nil)
	}
	begin(straight)
	s.tickUntil(slices.Concat(all[straight], all[via]))
	s.changes()
	lines := 0
	for i, want := range all[straight] {
		got := all[via][i]
		want.prints(t, "end")
		got.prints(t, "end")
		w, g := changesIn(want.out.String(), ns), changesIn(got.out.String(), ns)
		if w != g {
			t.Errorf("kubectl %s (-direct +gateway)\n%s", got.args, cmp.Diff(w, g))
		}
		if got.ended() || want.ended() {
			t.Errorf("kubectl %s ended:\n%s", got.args, got.out.String())
		}
		lines += strings.Count(g, "\n")
	}
	t.Logf("%d lines of %d watches are the same", lines, len(all[via]))
}

// changesIn returns the part of a watch's output that changer.changes caused.
func changesIn(printed, ns string) string {
	_, printed, _ = strings.Cut(printed, "begin")
	printed, _, _ = strings.Cut(printed, "end")
	return likened(printed, ns)
}

// A changer changes ConfigMaps and Pods in a namespace, at the API server.
type changer struct {
	t     *testing.T
	ns    string
	ticks int
}

// put creates or changes an object.
func (s *changer) put(resource, name, color, fields string) {
	s.t.Helper()
	kind := map[string]string{"configmaps": "ConfigMap", "pods": "Pod"}[resource]
	s.do(http.MethodPatch, resource, name, fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": %q, "labels": {"color": %q, "of": %q}}, %s}`, kind, name, color, s.ns, fields))
}

func (s *changer) do(method, resource, name, body string) {
	s.t.Helper()
	client, up := direct(s.t)
	url, contentType := up+"/api/v1/namespaces/"+s.ns+"/"+resource+"/"+name, "application/json"
	if method == http.MethodPatch {
		url, contentType = url+"?fieldManager=test&force=true", "application/apply-patch+yaml"
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode/100 != 2 {
		s.t.Fatalf("%s %s: %s %v: %s", method, url, resp.Status, err, text)
	}
}

const container = `"spec": {"containers": [{"name": "c", "image": "x"}]}`

// tick changes something that every watch prints.
func (s *changer) tick() {
	s.t.Helper()
	s.ticks++
	name := fmt.Sprintf("tick-%d", s.ticks)
	s.put("configmaps", name, "red", `"data": {}`)
	s.put("configmaps", "one", "red", fmt.Sprintf(`"data": {"n": %q}`, name))
	s.put("pods", name, "red", container)
}

// tickUntil ticks until every watch has printed two more ticks. One of them may
// come from its list; then its watch begins at the list.
func (s *changer) tickUntil(all []*background) {
	s.t.Helper()
	before := make([]int, len(all))
	for i, b := range all {
		before[i] = strings.Count(b.out.String(), "tick-")
	}
	eventually(s.t, "watches", func() bool {
		s.tick()
		time.Sleep(200 * time.Millisecond)
		for i, b := range all {
			if strings.Count(b.out.String(), "tick-") < before[i]+2 {
				return false
			}
		}
		return true
	})
}

// changes makes changes, of which the first is of an object named begin and the
// last of one named end.
func (s *changer) changes() {
	s.t.Helper()
	mark := func(name string) {
		s.put("configmaps", name, "red", `"data": {}`)
		s.put("configmaps", "one", "red", fmt.Sprintf(`"data": {"n": %q}`, name))
		s.put("pods", name, "red", container)
	}
	mark("begin")
	s.put("configmaps", "a", "red", `"data": {"a": "b"}`)
	s.put("configmaps", "b", "red", `"data": {"a": "b", "c": "d"}`)
	s.put("configmaps", "a", "red", `"data": {"a": "c"}`)
	s.put("configmaps", "a", "blue", `"data": {"a": "c"}`)
	s.put("configmaps", "b", "red", `"data": {}`)
	s.put("configmaps", "one", "red", `"data": {"n": "changed"}`)
	s.put("configmaps", "a", "red", `"data": {"back": "again"}`)
	s.do(http.MethodDelete, "configmaps", "a", "")
	s.put("pods", "p", "red", container)
	kubectl(s.t, "-n", s.ns, "wait", "--for=condition=Ready", "pod/p", "pod/begin", "--timeout=150s")
	s.do(http.MethodDelete, "pods", "p", `{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}`)
	s.do(http.MethodDelete, "configmaps", "b", "")
	mark("end")
}
