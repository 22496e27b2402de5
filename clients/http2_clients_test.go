// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// An http2Target is a gateway for clients that use HTTP/2, with its namespace.
type http2Target struct {
	t       *testing.T
	url, ca string // ca is "" in cleartext
	ns      string
	path    string // of the namespace's ConfigMaps
	admin   *kubernetes.Clientset
}

// TestHTTP2Clients uses clients of other projects, over TLS, and in cleartext with prior
// knowledge where they can: lists, a hundred of them on one connection, a watch that is
// cancelled, and an upload of a megabyte, which is passed through.
func TestHTTP2Clients(t *testing.T) {
	clustertest.SkipShort(t)
	secure := tlsGateway(t)
	admin, err := kubernetes.NewForConfig(direct.config())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []*http2Target{{url: gw.URL}, {url: secure.URL, ca: secure.ca}} {
		name := "cleartext"
		if target.ca != "" {
			name = "tls"
		}
		t.Run(name, func(t *testing.T) {
			target.ns, target.admin = namespace(t, "http2-"+name), admin
			target.path = "/api/v1/namespaces/" + target.ns + "/configmaps"
			for client, use := range map[string]func(*http2Target){
				"curl": (*http2Target).curl, "nghttp": (*http2Target).nghttp, "h2load": (*http2Target).h2load,
				"node": (*http2Target).node, "kubectl": (*http2Target).kubectl,
			} {
				if client == "kubectl" && target.ca == "" {
					continue // it uses HTTP/1.1 in cleartext
				}
				t.Run(client, func(t *testing.T) {
					one := *target
					one.t = t
					use(&one)
				})
			}
		})
	}
}

// names returns the names of the ConfigMaps, from the API server itself.
func (h *http2Target) names() (names []string) {
	h.t.Helper()
	list, err := h.admin.CoreV1().ConfigMaps(h.ns).List(h.t.Context(), metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	return names // sorted
}

// same checks a list of the gateway's, as JSON.
func (h *http2Target) same(what string, text []byte) {
	h.t.Helper()
	var list corev1.ConfigMapList
	if err := json.Unmarshal(text, &list); err != nil {
		h.t.Fatalf("%s: %v: %.300s", what, err, text)
	}
	var got []string
	for _, o := range list.Items {
		got = append(got, o.Name)
	}
	slices.Sort(got)
	if want := h.names(); !slices.Equal(got, want) {
		h.t.Errorf("%s: %q, the API server has %q", what, got, want)
	}
}

// big writes a ConfigMap of a megabyte for a client into a file.
func (h *http2Target) big(client string) (file string) {
	h.t.Helper()
	text, err := json.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "big-" + client},
		Data:       map[string]string{"text": strings.Repeat("x", 1_000_000)},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	file = filepath.Join(h.t.TempDir(), "big.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return file
}

// uploaded checks that the ConfigMap of big has arrived, and deletes it.
func (h *http2Target) uploaded(client string) {
	h.t.Helper()
	maps := h.admin.CoreV1().ConfigMaps(h.ns)
	o, err := maps.Get(h.t.Context(), "big-"+client, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	if n := len(o.Data["text"]); n != 1_000_000 {
		h.t.Errorf("%d bytes have arrived", n)
	}
	if err := maps.Delete(h.t.Context(), o.Name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// event creates the ConfigMap "event", and deletes it first if it exists.
func (h *http2Target) event() {
	h.t.Helper()
	maps := h.admin.CoreV1().ConfigMaps(h.ns)
	if err := maps.Delete(h.t.Context(), "event", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		h.t.Fatal(err)
	}
	if _, err := maps.Create(h.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "event"}}, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// watchQuery selects the object of event.
const watchQuery = "?watch=1&fieldSelector=metadata.name%3Devent"

// run runs a program and returns its output.
func (h *http2Target) run(name string, args ...string) []byte {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), name, args...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%s %.300q: %v: %s%.1000s", name, args, err, &problem, out)
	}
	return out
}

// seesEvent runs a program that watches, creates events until it prints one, and kills it.
func (h *http2Target) seesEvent(cmd *exec.Cmd) {
	h.t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	found := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "event") {
				close(found)
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	eventually(h.t, "an event", func() string {
		h.event() // the watch may begin later
		select {
		case <-found:
			return ""
		default:
			return "none yet"
		}
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (h *http2Target) curl() {
	args := []string{"-sS", "--fail-with-body", "--http2-prior-knowledge"}
	if h.ca != "" {
		args = []string{"-sS", "--fail-with-body", "--http2", "--cacert", h.ca}
	}
	with := func(more ...string) []string { return append(slices.Clone(args), more...) }
	h.same("a list", h.run("curl", with(h.url+h.path)...))

	if h.ca != "" {
		h.curlParallel(with)
	}
	h.run("curl", with("-H", "Content-Type: application/json", "--data-binary", "@"+h.big("curl"), h.url+h.path)...)
	h.uploaded("curl")
	h.seesEvent(exec.CommandContext(h.t.Context(), "curl", with("-N", h.url+h.path+watchQuery)...))
}

// curlParallel has a hundred lists on one connection: with -Z curl waits for the first
// connection to know that others can use it too. With prior knowledge, curl 7.88 fails to
// use a connection twice, with any server.
func (h *http2Target) curlParallel(with func(...string) []string) {
	out := filepath.Join(h.t.TempDir(), "list-#1.json")
	lines := strings.Split(strings.TrimSpace(string(h.run("curl", with("-Z", "--parallel-max", "100",
		"-o", out, "-w", "%{http_version} %{http_code} %{num_connects}\n", h.url+h.path+"?resourceVersion=0&limit=[1000-1099]")...))), "\n")
	connects := 0
	for _, line := range lines {
		switch line {
		case "2 200 1":
			connects++
		case "2 200 0":
		default:
			h.t.Errorf("curl: %s", line)
		}
	}
	if len(lines) != 100 || connects != 1 {
		h.t.Errorf("%d answers on %d connections", len(lines), connects)
	}
	text, err := os.ReadFile(strings.Replace(out, "#1", "1099", 1))
	if err != nil {
		h.t.Fatal(err)
	}
	h.same("the last of the parallel lists", text)
}

func (h *http2Target) nghttp() {
	// It does not verify certificates. Without "-v" it prints only bodies.
	h.same("a list", h.run("nghttp", h.url+h.path))
	out := h.run("nghttp", "-v", "-n", "--no-dep", h.url+h.path)
	if got := bytes.Count(out, []byte("recv HEADERS frame")); got != 1 || !bytes.Contains(out, []byte(":status: 200")) {
		h.t.Errorf("%d HEADERS frames: %.2000s", got, out)
	}
	// Priorities and padding, as nghttp likes to send them, and small windows.
	h.same("a list with priorities, padding and small windows",
		h.run("nghttp", "--padding=100", "--weight=256", "-w10", "-W11", "--header-table-size=0", h.url+h.path))
	out = h.run("nghttp", "-n", "-s", "-m", "100", h.url+h.path+"?resourceVersion=0")
	if got := len(regexp.MustCompile(`(?m) 200 +[0-9]+[KMG]? `).FindAll(out, -1)); got != 100 {
		h.t.Errorf("%d of 100 answers: %.3000s", got, out)
	}
	h.run("nghttp", "-n", "-H", "content-type: application/json", "-d", h.big("nghttp"), h.url+h.path)
	h.uploaded("nghttp")
	h.seesEvent(exec.CommandContext(h.t.Context(), "nghttp", h.url+h.path+watchQuery))
}

func (h *http2Target) h2load() {
	for _, more := range [][]string{
		{"-n", "3000", "-c", "1", "-m", "100"},
		{"-n", "3000", "-c", "10", "-m", "50", "-w", "14", "-W", "16"},
		{"-n", "300", "-c", "3", "-m", "100", "-H", "accept-encoding: gzip"},
	} {
		out := h.run("h2load", append(more, h.url+h.path+"?resourceVersion=0")...)
		total := more[1]
		if !bytes.Contains(out, fmt.Appendf(nil, "%s done, %s succeeded, 0 failed, 0 errored, 0 timeout", total, total)) ||
			!bytes.Contains(out, fmt.Appendf(nil, "status codes: %s 2xx", total)) {
			h.t.Errorf("h2load %v: %s", more, out)
		}
	}
}

func (h *http2Target) node() {
	cmd := exec.CommandContext(h.t.Context(), "node", "http2.js", h.url, h.ca, h.ns)
	var problem bytes.Buffer
	cmd.Dir, cmd.Stderr = "node", &problem
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	want := h.names()
	if i := slices.Index(want, "event"); i >= 0 { // of another client
		if err := h.admin.CoreV1().ConfigMaps(h.ns).Delete(h.t.Context(), "event", metav1.DeleteOptions{}); err != nil {
			h.t.Fatal(err)
		}
	}
	var steps []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line struct {
			Step, Name, Protocol string
			Names                []string
			Trailers             bool
			Status, Count        int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			h.t.Fatalf("%v: %s", err, lines.Bytes())
		}
		steps = append(steps, line.Step)
		protocol := "h2c"
		if h.ca != "" {
			protocol = "h2"
		}
		switch line.Step {
		case "list", "after":
			if len(line.Names) == 0 || line.Trailers {
				h.t.Errorf("%+v", line)
			}
		case "parallel":
			if line.Count != 100 || line.Protocol != protocol || !slices.Contains(line.Names, "kube-root-ca.crt") {
				h.t.Errorf("%+v", line)
			}
		case "upload":
			if line.Status != 201 {
				h.t.Errorf("%+v", line)
			}
			h.uploaded("node")
		case "watching":
			h.event()
		case "event":
			if line.Name != "event" {
				h.t.Errorf("%+v", line)
			}
		}
	}
	if err := cmd.Wait(); err != nil || strings.Join(steps, " ") != "list parallel upload watching event after" {
		h.t.Errorf("%v, after the steps %v: %s", err, steps, &problem)
	}
}

func (h *http2Target) kubectl() {
	// The credentials are for the API server. Without any, kubectl asks for a password.
	kubectl := func(args ...string) *exec.Cmd {
		return cluster.Kubectl(h.t.Context(), append([]string{"--kubeconfig", cluster.Kubeconfig(), "--server", h.url, "--certificate-authority", h.ca, "-n", h.ns}, args...)...)
	}
	get := func(args ...string) []byte {
		cmd := kubectl(args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			h.t.Fatalf("kubectl %q: %v: %s", args, err, out)
		}
		return out
	}
	h.same("a list", get("get", "configmaps", "-o", "json"))
	debug := kubectl("get", "configmaps")
	debug.Env = append(os.Environ(), "GODEBUG=http2debug=1")
	if out, err := debug.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("http2: Transport")) {
		h.t.Errorf("kubectl does not use HTTP/2: %v: %.1000s", err, out)
	}
	get("create", "-f", h.big("kubectl"))
	h.uploaded("kubectl")
	h.seesEvent(kubectl("get", "configmaps", "--watch"))
}
