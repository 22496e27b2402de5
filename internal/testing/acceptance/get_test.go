// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A replayServer is an API server whose answers stay the same: the first one to each GET is
// given to all that follow. So ages do not pass, and two programs that send the same
// requests have the same to print.
type replayServer struct {
	api  *http.Client
	base string

	mu      sync.Mutex // guards the fields below
	answers map[string]*http.Response
	bodies  map[string][]byte
	others  []string // what watchkeeper has asked first
}

// ServeHTTP implements http.Handler.
func (s *replayServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Accept"), r.Header.Get("Impersonate-User"), r.Header.Get("Impersonate-Group")}, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	resp, known := s.answers[key]
	if !known {
		if strings.HasPrefix(r.UserAgent(), "watchkeeper/") && !discovers(r.URL.Path) {
			s.others = append(s.others, key)
		}
		req := r.Clone(r.Context())
		req.RequestURI = ""
		req.URL.Scheme, req.URL.Host, _ = strings.Cut(s.base, "://")
		req.Host = req.URL.Host
		var err error
		if resp, err = s.api.Do(req); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		s.answers[key], s.bodies[key] = resp, body
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	w.Write(s.bodies[key]) //nolint:errcheck // the client is gone
}

// discovers reports whether a path is one of discovery, whose answers are cached by clients.
func discovers(path string) bool {
	return path == "/api" || path == "/apis" || path == "/api/v1" || strings.HasPrefix(path, "/openapi") ||
		regexp.MustCompile(`^/apis/[^/]+(/[^/]+)?$`).MatchString(path)
}

// getLines returns the command lines of testdata/get/lines.txt.
func getLines(t *testing.T, ns string) (lines [][]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/get/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, shellWords(strings.ReplaceAll(line, "NS", ns)))
		}
	}
	return lines
}

var shellWord = regexp.MustCompile(`(?:'[^']*'|[^\s'])+`)

// shellWords splits a line at spaces outside of single quotes.
func shellWords(line string) (words []string) {
	for _, word := range shellWord.FindAllString(line, -1) {
		words = append(words, strings.ReplaceAll(word, "'", ""))
	}
	return words
}

// ownName is what is printed differently by kubectl 1.37, whose packages watchkeeper has: the
// name of the command. docs/cli.md lists how older versions differ.
var ownName = regexp.MustCompile(`'(watchkeeper|kubectl) get`)

// TestGetPrintsAsKubectl: "watchkeeper get" prints the same bytes as kubectl, to both outputs,
// ends with the same exit code, and asks the API server the same. WATCHKEEPER_KUBECTL names another
// kubectl to compare with.
func TestGetPrintsAsKubectl(t *testing.T) {
	clustertest.SkipShort(t)
	kubectl(t, "apply", "-f", "testdata/get/definition.yaml") // tests of the stage compare discovery
	kubectl(t, "wait", "--for=condition=Established", "crd/gizmos.get.watchkeeper.test", "--timeout=60s")
	inStage(t, quiet)
	ns := namespace(t)
	kubectl(t, "-n", ns, "apply", "-f", "testdata/get/objects.yaml", "-f", "testdata/get/gizmos.yaml")
	for _, workload := range []string{"deployment/web", "deployment/api", "statefulset/store"} {
		kubectl(t, "-n", ns, "rollout", "status", workload, "--timeout=150s")
	}
	client, base := direct(t)
	replay := &replayServer{api: client, base: base, answers: map[string]*http.Response{}, bodies: map[string][]byte{}}
	server := httptest.NewServer(replay)
	defer server.Close()
	dir := getFiles(t, server.URL)
	peer := []string{cluster.Kubectl(t.Context()).Args[0], "kubectl", "--dir", dir}
	if other := os.Getenv("WATCHKEEPER_KUBECTL"); other != "" {
		peer = []string{other}
	}
	lines := getLines(t, ns)
	if len(lines) < 200 {
		t.Fatalf("only %d lines", len(lines))
	}
	var wg sync.WaitGroup
	turns := make(chan struct{}, 4)
	for _, line := range lines {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			args := append([]string{"get"}, line...)
			if !strings.Contains(strings.Join(line, " "), " -n ") {
				args = append(args, "-n", ns)
			}
			want := outcomeOf(t, dir, peer[0], slices.Concat(peer[1:], args))
			got := outcomeOf(t, dir, cluster.Program(), args)
			if slices.Contains(line, "--server-print=false") { // kubectl itself computes the ages
				want, got = likened(want, ns), likened(got, ns)
			}
			want, got = ownName.ReplaceAllString(want, "NAME"), ownName.ReplaceAllString(got, "NAME")
			if got != want {
				t.Errorf("get %s (-kubectl +watchkeeper)\n%s", strings.Join(line, " "), cmp.Diff(want, got))
			}
		})
	}
	wg.Wait()
	for _, other := range replay.others {
		t.Errorf("kubectl does not ask %s", other)
	}
}

// outcomeOf runs a program, in a folder with a kubeconfig, and returns what it printed.
func outcomeOf(t *testing.T, dir, program string, args []string) string {
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), noGC, "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "WATCHKEEPER_SERVER=none",
		"KUBECACHEDIR="+filepath.Join(dir, "cache-of-"+filepath.Base(program)), "KUBECTL_KUBERC=false",
		"KUBECTL_KYAML=true") // for -o kyaml of kubectl 1.34 (KEP-5295)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return "stdout:\n" + out.String() + "stderr:\n" + errs.String() + exit(err)
}

// getFiles writes the files that the command lines name, and a kubeconfig for a server.
func getFiles(t *testing.T, server string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"kubeconfig": "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '" + server + "'}}], " +
			"contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}",
		"columns.txt":                   "NAME            REPLICAS\n.metadata.name  .spec.replicas\n",
		"template.txt":                  "{{range .items}}{{.metadata.name}};{{end}}",
		"path.txt":                      `{.items[*].metadata.name}`,
		"file.yaml":                     "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}\n",
		"broken.yaml":                   "apiVersion: v1\nkind: [\n",
		"folder/one.yaml":               "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}",
		"folder/below/two.yaml":         "{apiVersion: v1, kind: ConfigMap, metadata: {name: empty}}",
		"kustomized/kustomization.yaml": "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: [map.yaml]}",
		"kustomized/map.yaml":           "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestGetThroughGateway: "watchkeeper get" prints the same from the gateway as kubectl from the
// API server, and the same of the past as kubectl below /at.
func TestGetThroughGateway(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	gw, err := cluster.Gateway("--data-dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Terminate()
	ns := namespace(t)
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=registry.example/web:1.0", "--replicas=2")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=150s")
	dir := getFiles(t, cluster.Config.Host)
	ours := func(args ...string) string {
		return likened(outcomeOf(t, dir, cluster.Program(), append([]string{"get", "--server", gw.URL}, args...)), ns)
	}
	peer := func(server string, args ...string) string {
		return likened(outcomeOf(t, dir, cluster.Kubectl(t.Context()).Args[0], append([]string{"kubectl", "--server", server, "--kubeconfig", cluster.Kubeconfig(), "get"}, args...)), ns)
	}
	for _, line := range []string{"deploy,rs,pods", "all -o wide", "pods -o yaml", "deploy/web -o json", "pods --sort-by=.metadata.name --chunk-size=1", "pods --field-selector status.phase=Running -L app", "pod nothing", "secrets", "nodes"} {
		args := append(strings.Fields(line), "-n", ns)
		if want, got := peer(cluster.Config.Host, args...), ours(args...); want != got {
			t.Errorf("get %s (-kubectl +watchkeeper)\n%s", line, cmp.Diff(want, got))
		}
	}
	before := strings.TrimSpace(kubectl(t, "-n", ns, "get", "deployment", "web", "-o", "jsonpath={.metadata.resourceVersion}"))
	kubectl(t, "-n", ns, "scale", "deployment/web", "--replicas=3")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=150s")
	eventually(t, "the scaled Deployment through the gateway", func() bool { return strings.Contains(ours("deploy", "-n", ns), "3/3") })
	for _, line := range []string{"deploy", "deploy/web -o yaml", "deploy -o wide --show-labels", "deploy nothing"} {
		args := append(strings.Fields(line), "-n", ns)
		want, got := peer(gw.URL+"/at/rv:"+before, args...), ours(append(args, "--at", before)...)
		if want != got {
			t.Errorf("get %s --at %s (-kubectl +watchkeeper)\n%s", line, before, cmp.Diff(want, got))
		}
		if strings.Contains(line, "nothing") != strings.Contains(got, "NotFound") || strings.Contains(got, "3/3") {
			t.Errorf("get %s --at %s\n%s", line, before, got)
		}
	}
	if out := ours("deploy", "-n", ns, "--at", "3000-01-01"); !strings.Contains(out, "error: --at: 3000-01-01 is in the future") {
		t.Error(out)
	}
}
