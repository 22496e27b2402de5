// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// These are lines 1–6 of the walkthrough, part A: the API through a proxy.

func TestA1Root(t *testing.T) {
	var root struct{ Paths []string }
	if err := json.Unmarshal([]byte(curl(t, gw.URL)), &root); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/api", "/api/v1", "/apis"} {
		if !strings.Contains(" "+strings.Join(root.Paths, " ")+" ", " "+want+" ") {
			t.Errorf("%s is not among %v", want, root.Paths)
		}
	}
	browser := curl(t, "-D-", "-o/dev/null", "-H", "Accept: text/html,application/xhtml+xml,*/*;q=0.8", gw.URL)
	if !strings.HasPrefix(browser, "HTTP/1.1 302") || !strings.Contains(browser, "Location: ui/") {
		t.Errorf("a browser gets %s", browser)
	}
	if page := curl(t, gw.URL+"/ui/"); !strings.Contains(page, "<html") {
		t.Errorf("the page is %.200q", page)
	}
}

// listRV finds a list's own RV.
var listRV = regexp.MustCompile(`("metadata":\s*\{\s*(?:"continue":\s*"",\s*)?"resourceVersion":\s*)"\d+"`)

// TestA2Reads compares the responses to GETs of all kinds with the API server's,
// by code and byte for byte, except for a list's own RV.
func TestA2Reads(t *testing.T) {
	ns := namespace(t)
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx", "--replicas=2")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web")
	apply(t, strings.ReplaceAll(widgets, "NAMESPACE", ns))
	established(t, "widgets.example.com")
	apply(t, strings.ReplaceAll(widget, "NAMESPACE", ns))
	kubectl(t, "-n", ns, "label", "deployment/web", "a=b")

	var paths []string
	for _, path := range []string{
		"/api", "/apis", "/api/v1", "/apis/apps/v1", "/version", "/openapi/v2?timeout=32s",
		"/api/v1/namespaces", "/api/v1/namespaces/" + ns, "/api/v1/nodes/node-0",
		"/api/v1/namespaces/" + ns + "/pods", "/api/v1/namespaces/" + ns + "/pods/",
		"/apis/apps/v1/namespaces/" + ns + "/deployments", "/apis/apps/v1/namespaces/" + ns + "/deployments/web",
		"/apis/apps/v1/namespaces/" + ns + "/deployments/web/scale",
		"/apis/example.com/v1/namespaces/" + ns + "/widgets", "/apis/example.com/v1/namespaces/" + ns + "/widgets/w",
		"/api/v1/namespaces/nowhere/pods", "/api/v1/namespaces/" + ns + "/pods?labelSelector=app%3Dweb",
		"/api/v1/namespaces/" + ns + "/pods?fieldSelector=status.phase%3DRunning",
		"/api/v1/namespaces/" + ns + "/pods?pretty=true",
		"/apis/example.com/v1/namespaces/nowhere/widgets",
		// errors
		"/api/v1/nothings", "/apis/nothing.example.com/v1/things", "/apis/apps/v9/deployments", "/nothing",
		"/apis/apps/v1/namespaces/" + ns + "/deployments/nothing", "/api/v1/namespaces/nowhere",
		"/api/v1/namespaces/" + ns + "/nodes", "/api/v1/pods/x", "/api/v1/componentstatuses",
		"/api/v1/pods?labelSelector=%3D%3D", "/api/v1/pods?labelSelector=a%20in", "/api/v1/pods?fieldSelector=x",
		"/api/v1/pods?fieldSelector=spec.nothing%3Dx", "/api/v1/pods?limit=abc", "/api/v1/pods?continue=zzz",
		"/api/v1/pods?resourceVersion=abc", "/api/v1/pods?watch=1&resourceVersion=abc", "/api/v1/pods?timeoutSeconds=abc",
		"/api/v1/pods?timeout=abc", "/api/v1/pods?resourceVersionMatch=Exact", "/api/v1/pods?resourceVersion=1&resourceVersionMatch=Foo",
		"/api/v1/pods?resourceVersion=0&resourceVersionMatch=Exact", "/api/v1/pods?sendInitialEvents=false",
		"/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan", "/api/v1/pods?watch=1&sendInitialEvents=true",
		"/api/v1/pods?resourceVersion=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjMyLCJzdGFydCI6Ii9jbTJcdTAwMDAifQ",
		"/api/v1/watch/pods?sendInitialEvents=true", "/api/v1/watch/namespaces/" + ns + "/pods/x?fieldSelector=metadata.name%3Dy",
		"/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact", "/api/v1/pods?resourceVersion=1&limit=1",
		"/api/v1/pods?%zz", "/api/v1/pods?a;b=c&labelSelector=%ff",
	} {
		for _, version := range []string{"", "resourceVersion=0"} {
			url := path
			if version != "" {
				if strings.Contains(path, "resourceVersion") {
					continue
				}
				url += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + version
			}
			paths = append(paths, url)
		}
	}
	alike(t, gw, "as it is", paths...)
}

// alike fails the test for each path where the gateway's response differs from
// the API server's. It requests several paths at once, since a watch takes a
// second.
func alike(t *testing.T, g *clustertest.Gateway, when string, paths ...string) {
	t.Helper()
	client, up := direct(t)
	limit := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for _, path := range paths {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if d := differs(t.Context(), g, client, up, path); d != "" {
				t.Errorf("%s: %s: %s", when, path, d)
			}
		})
	}
	wg.Wait()
}

// compared returns the difference that compare finds, or its error. If repeat is set,
// it repeats for at most a minute while there is a difference: objects may change between
// two requests, caches lag, and a watch with timeoutSeconds may end before its events are
// sent.
func compared(repeat bool, compare func() (difference string, err error)) string {
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		difference, err := compare()
		if err != nil {
			return err.Error()
		}
		if difference == "" || !repeat || time.Now().After(end) {
			return difference
		}
	}
}

// serverAddress finds the API server's own address, in /api.
var serverAddress = regexp.MustCompile(`("serverAddress":\s*)"[^"]*"`)

// differs compares the gateway's response to a GET with the API server's, except
// for a list's own RV and the API server's own address: there may be several.
func differs(ctx context.Context, g *clustertest.Gateway, client *http.Client, up, path string) string {
	return compared(true, func() (string, error) {
		var got answer
		var gotErr error
		var wg sync.WaitGroup
		wg.Go(func() { got, gotErr = ask(ctx, http.DefaultClient, g.URL+path, "") })
		want, err := ask(ctx, client, up+path, "")
		wg.Wait()
		if err := errors.Join(err, gotErr); err != nil {
			return "", err
		}
		for _, body := range []*string{&want.body, &got.body} {
			*body = serverAddress.ReplaceAllString(listRV.ReplaceAllString(*body, `$1"N"`), `$1"N"`)
		}
		if want.code == got.code && want.body == got.body {
			return "", nil
		}
		return fmt.Sprintf("%d, want %d\n%s", got.code, want.code, cmp.Diff(short(want.body), short(got.body))), nil
	})
}

func short(s string) string {
	if len(s) > 2000 {
		return s[:2000] + "…"
	}
	return s
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetCollection}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: NAMESPACE}
spec: {zebra: 1, apple: [x, "<y>"], nested: {b: 1, a: 2}}
`

// commonReads are commands that print the same at the API server and through the gateway.
const commonReads = `
get pods
get pods -o wide
get pods -o name
get pods -o json
get pods -o yaml
get nodes
get deployment,rs
get pods -A -l color=red
get pods --field-selector=metadata.name=solo
get pod solo -o jsonpath={.status.phase}
get pod nothing
get nothings
get pods -l ==
top nodes
top pods
auth can-i --list
api-resources -o name
explain pods.spec.containers
delete pod nothing
get events --chunk-size=1 -o name
get pods --chunk-size=2 -o name
`

// TestA3Kubectl runs kubectl's commands through the gateway. A command that only
// reads prints the same as against the API server.
func TestA3Kubectl(t *testing.T) {
	clustertest.SkipShort(t)
	for name, command := range kubectls(t) {
		t.Run(name, func(t *testing.T) {
			ns := namespace(t)
			via := append(command, "-s", gw.URL, "-n", ns)
			do := func(args ...string) string {
				t.Helper()
				out, ok := run(t, via, args...)
				if !ok {
					t.Errorf("kubectl %v: %s", args, out)
				}
				return out
			}
			contains := func(want string, args ...string) {
				t.Helper()
				if out := do(args...); !strings.Contains(out, want) {
					t.Errorf("kubectl %v prints\n%swithout %q", args, out, want)
				}
			}
			contains("pod/solo created", "run", "solo", "--image=nginx")
			contains("condition met", "wait", "--for=condition=Ready", "pod/solo", "--timeout=150s")
			contains("labeled", "label", "pod", "solo", "color=red")
			contains("created", "create", "deployment", "web", "--image=nginx:1")
			contains("image updated", "set", "image", "deployment/web", "nginx=nginx:2")
			contains("scaled", "scale", "deployment/web", "--replicas=3")
			contains("successfully rolled out", "rollout", "status", "deployment/web", "--timeout=150s")
			contains("nginx:2", "describe", "deployment", "web")
			contains("color=red", "describe", "pod", "solo")
			contains("yes", "auth", "can-i", "create", "pods")
			contains("replicas", "explain", "deployment.spec")
			contains("deployments", "api-resources")
			contains("hi", "exec", "solo", "--", "echo", "hi")
			if out := do("logs", "solo", "--tail=1"); strings.TrimSpace(out) == "" {
				t.Error("no logs")
			}

			straight := append(append([]string{}, command...), "--kubeconfig", cluster.Kubeconfig(), "-n", ns)
			for _, line := range commandsFor(name, commonReads, len(commonReads)) {
				args := strings.Fields(line)
				var want, got string
				for range 20 { // ages and heartbeats may change between the two commands
					var wg sync.WaitGroup
					wg.Go(func() {
						cmd := exec.CommandContext(t.Context(), straight[0], slices.Concat(straight[1:], args)...)
						cmd.Env = append(os.Environ(), noGC)
						out, _ := cmd.CombinedOutput() // the output shows a failure
						want = string(out)
					})
					got, _ = run(t, via, args...)
					wg.Wait()
					if got == want {
						break
					}
				}
				if got != want {
					t.Errorf("kubectl %v (-direct +gateway)\n%s", args, cmp.Diff(want, got))
				}
			}
			contains("deleted", "delete", "deployment", "web")
			contains("deleted", "delete", "pod", "solo")
			portForward(t, via, do)
		})
	}
}

// portForward forwards a port to a Pod and sends a request through it.
func portForward(t *testing.T, via []string, do func(...string) string) {
	t.Helper()
	do("run", "target", "--image=nginx")
	do("wait", "--for=condition=Ready", "pod/target", "--timeout=150s")
	cmd := exec.CommandContext(t.Context(), via[0], append(via[1:len(via):len(via)], "port-forward", "pod/target", ":80")...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	port := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(line)
	if err != nil || port == nil {
		t.Fatalf("port-forward says %q, %v", line, err)
	}
	if code, body := get(t, http.DefaultClient, "http://127.0.0.1:"+port[1]+"/"); code != 200 || body == "" {
		t.Errorf("through the forwarded port: %d %q", code, body)
	}
}

// TestA4Logs: the lines of a log arrive one by one.
func TestA4Logs(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	kubectl(t, "-n", ns, "run", "talker", "--image=nginx")
	kubectl(t, "-n", ns, "wait", "--for=condition=Ready", "pod/talker", "--timeout=150s")
	cmd := exec.CommandContext(t.Context(), "curl", "-sSN", gw.URL+"/api/v1/namespaces/"+ns+"/pods/talker/log?follow=true&tailLines=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for i := range 3 {
		select {
		case line, ok := <-lines:
			if !ok || line == "" {
				t.Fatalf("line %d is %q, %v", i, line, ok)
			}
		case <-time.After(time.Minute):
			t.Fatalf("line %d does not arrive while the stream is open", i)
		}
	}
}

// TestA5Metrics: without a metrics server the response is the API server's own.
func TestA5Metrics(t *testing.T) {
	client, up := direct(t)
	const path = "/apis/metrics.k8s.io/v1beta1/nodes/node-0"
	wantCode, want := get(t, client, up+path)
	if code, body := get(t, http.DefaultClient, gw.URL+path); code != wantCode || code != 404 || body != want {
		t.Errorf("%d %s, want %d %s", code, body, wantCode, want)
	}
}

func TestA6Flags(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	if got := curl(t, gw.URL+"/static/hello.txt"); got != "hello from a folder\n" {
		t.Errorf("a file is %q", got)
	}
	socket := cluster.Dir + "/wk.sock"
	other, err := cluster.Gateway("--www", www, "--www-prefix=/x/", "--api-prefix=/kube/", "--reject-paths=^/api/v1/secrets",
		"--reject-methods=DELETE", "--accept-paths=^/(api/|version)", "--accept-hosts=^good.example$,^127\\.0\\.0\\.1$", "--keepalive=10s")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Terminate()
	for _, test := range []struct {
		want string
		args []string
	}{
		{"200", []string{other.URL + "/x/hello.txt"}},
		{"404", []string{other.URL + "/static/hello.txt"}},
		{"200", []string{other.URL + "/kube/api/v1/pods"}},
		{"404", []string{other.URL + "/api/v1/pods"}},
		{"403", []string{other.URL + "/kube/api/v1/secrets"}},
		{"403", []string{other.URL + "/kube/apis/apps/v1/deployments"}},
		{"403", []string{"-XDELETE", other.URL + "/kube/api/v1/pods"}},
		{"200", []string{"-H", "Host: good.example", other.URL + "/kube/api/v1/pods"}},
		{"403", []string{"-H", "Host: evil.example", other.URL + "/kube/api/v1/pods"}},
		{"403", []string{"-H", "Host: evil.example", gw.URL + "/api/v1/pods"}},
		{"403", []string{"-XPOST", "-H", "Origin: http://evil.example", "-d", "{}", gw.URL + "/api/v1/namespaces"}},
		{"200", []string{"--http2-prior-knowledge", gw.URL + "/api/v1/pods"}},
	} {
		if got := curl(t, append([]string{"-o/dev/null", "-w%{http_code}"}, test.args...)...); got != test.want {
			t.Errorf("curl %v: %s, want %s", test.args, got, test.want)
		}
	}
	sock, err := cluster.Gateway("--unix-socket", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Terminate()
	if got := curl(t, "-o/dev/null", "-w%{http_code}", "--unix-socket", socket, "http://localhost/api/v1/pods"); got != "200" {
		t.Errorf("through the socket: %s", got)
	}
}
