// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A script is a running node/informer.js.
type script struct {
	input io.Writer

	mu     sync.Mutex // guards what follows
	events map[string]int
	last   map[string]uint64 // by kind and name: the RV of the last event
	known  map[string]bool
	wrong  []string
	held   map[string][]object // by kind, from the last answer
	asked  int                 // answers so far
	errors []string
}

// A scriptLine is a line of its output.
type scriptLine struct {
	Kind, Event, Name, UID, RV, Message string
	Objects                             []object
}

// startScript runs the script with Node until the test ends.
func startScript(t *testing.T, where, ns string) *script {
	t.Helper()
	if _, err := os.Stat("node/node_modules/@kubernetes/client-node"); err != nil {
		t.Fatalf("no packages for Node: run 'npm ci' in clients/node first (%v)", err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "informer.js", where, ns)
	cmd.Dir, cmd.Stderr = "node", os.Stderr
	cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &script{input: input, events: map[string]int{}, last: map[string]uint64{}, known: map[string]bool{}, held: map[string][]object{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			s.see(lines.Bytes())
		}
	}()
	t.Cleanup(func() {
		input.Close()
		<-done
		_ = cmd.Wait() // fails if the context has ended, which kills it
	})
	return s
}

func (s *script) see(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var line scriptLine
	if err := json.Unmarshal(text, &line); err != nil {
		s.wrong = append(s.wrong, fmt.Sprintf("%v in %s", err, text))
		return
	}
	s.events[line.Kind+" "+line.Event]++
	switch line.Event {
	case "held":
		s.held[line.Kind] = line.Objects
		s.asked++
	case "error":
		s.errors = append(s.errors, line.Kind+": "+line.Message)
	case "add", "update", "delete":
		key := line.Kind + " " + line.Name
		var rv uint64
		if _, err := fmt.Sscan(line.RV, &rv); err != nil || rv < s.last[key] || s.known[key] != (line.Event != "add") {
			s.wrong = append(s.wrong, fmt.Sprintf("%s of %s at %s, last seen at %d, known: %v", line.Event, key, line.RV, s.last[key], s.known[key]))
		}
		s.last[key], s.known[key] = rv, line.Event != "delete"
	}
}

// holds asks the script for the objects that it holds, by kind.
func (s *script) holds(t *testing.T) map[string][]object {
	t.Helper()
	s.mu.Lock()
	answered := s.asked + 2 // one line per kind
	s.mu.Unlock()
	if _, err := fmt.Fprintln(s.input); err != nil {
		t.Fatal(err)
	}
	var held map[string][]object
	eventually(t, "an answer from Node", func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked < answered {
			return "none"
		}
		held = map[string][]object{"Pod": s.held["Pod"], "Widget": s.held["Widget"]}
		return ""
	})
	return held
}

// TestNodeInformer runs informers of @kubernetes/client-node for Pods and a custom
// resource, and kills the API server.
func TestNodeInformer(t *testing.T) {
	clustertest.SkipShort(t)
	outages.Join(t)
	t.Parallel()
	ns := namespace(t, "node-informer")
	changing := startChurn(t, ns)
	changing.wait(t, 10)
	// The gateway's window begins with its first list of a resource. For ten seconds
	// it passes through a watch from an earlier RV, which the first client may have.
	for _, resource := range []schema.GroupVersionResource{pods, widgets} {
		warm(t, resource)
	}
	scripts := map[side]*script{
		direct:  startScript(t, cluster.Kubeconfig(), ns),
		gateway: startScript(t, gw.URL, ns),
	}
	for at, s := range scripts {
		eventually(t, "lists by Node, "+string(at), func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.events["Pod list"] == 0 || s.events["Widget list"] == 0 {
				return fmt.Sprintf("%v, errors: %q", s.events, s.errors)
			}
			return ""
		})
	}
	outages.Ready()
	changing.wait(t, 10)
	outage(t)
	changing.wait(t, 10)
	changing.stop()

	client, err := dynamic.NewForConfig(direct.config())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end state", func() string {
		want := map[string][]string{}
		for _, kind := range []selection{{resource: pods}, {resource: widgets, labels: "color in (red,green)"}} {
			list, err := client.Resource(kind.resource).Namespace(ns).List(t.Context(), metav1.ListOptions{LabelSelector: kind.labels})
			if err != nil {
				return err.Error()
			}
			for _, o := range list.Items {
				want[o.GetKind()] = append(want[o.GetKind()], summary(o.GetKind(), o.Object))
			}
		}
		for _, at := range sides {
			got := map[string][]string{}
			for kind, objects := range scripts[at].holds(t) {
				for _, o := range objects {
					got[kind] = append(got[kind], summary(kind, o))
				}
			}
			if d := cmp.Diff(want, got, anyOrder); d != "" {
				return string(at) + " (-API server +Node)\n" + d
			}
		}
		return ""
	})
	for at, s := range scripts {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.wrong) > 0 {
			t.Errorf("%s: impossible: %s", at, strings.Join(s.wrong[:min(len(s.wrong), 5)], "; "))
		}
		t.Logf("%-8s %v", at, s.events)
	}
	for _, kind := range []string{"Pod", "Widget"} {
		if n := scripts[gateway].events[kind+" list"]; n != 1 {
			t.Errorf("%d lists of %ss through the gateway, %d directly", n, kind, scripts[direct].events[kind+" list"])
		}
	}
	if e := scripts[gateway].errors; len(e) > 0 {
		t.Errorf("errors through the gateway: %q", e)
	}
}

// warm makes the gateway watch a resource.
func warm(t *testing.T, resource schema.GroupVersionResource) {
	t.Helper()
	client, err := dynamic.NewForConfig(gateway.config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		t.Fatal(err)
	}
}

// anyOrder compares slices of texts as sets: the script has the order of events.
var anyOrder = cmpopts.SortSlices(func(a, b string) bool { return a < b })

// summary returns the part of an object that Node must have in common with the API
// server. Node's Pods are raw JSON from a watch, and typed from a list; Widgets are
// always raw.
func summary(kind string, fields object) string {
	if kind == "Pod" {
		o := unstructured.Unstructured{Object: fields}
		phase, _, _ := unstructured.NestedString(fields, "status", "phase")
		return fmt.Sprint(o.GetName(), " ", o.GetUID(), " ", o.GetResourceVersion(), " ", o.GetLabels(), " ", phase)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
