// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package uptest tests the built localcluster binary from outside. It does not link
// its packages, so that a test run does not link 170 MB again.
//
// The binary is $LOCALCLUSTER_BIN, or bin/localcluster of the repository; a
// missing one fails the tests.
package uptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

const timeout = 3 * time.Minute

func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("LOCALCLUSTER_BIN")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "localcluster")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; build it first: cd localcluster && go build -trimpath -ldflags='-s -w' -o ../bin/localcluster .", err)
	}
	return path
}

// cluster is a running `localcluster up`.
type cluster struct {
	t   *testing.T
	bin string
	dir string
	up  *exec.Cmd

	mu     sync.Mutex
	output bytes.Buffer
	done   chan struct{} // closed once up has ended and its output is read
}

// start runs `up` and returns when it prints ready.
func start(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, bin: binary(t), dir: dir, done: make(chan struct{})}
	c.up = exec.Command(c.bin, append([]string{"up", "--dir", dir}, args...)...)
	pipe, err := c.up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.up.Stderr = c.up.Stdout
	c.up.Env = append(os.Environ(), "GOGC=300") // an API server collects much garbage at its start
	if err := c.up.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			c.mu.Lock()
			fmt.Fprintln(&c.output, lines.Text())
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = c.up.Process.Signal(syscall.SIGTERM)
		<-c.done
		_ = c.up.Wait()
		if t.Failed() {
			t.Logf("output of up:\n%s", c.said())
		}
	})
	c.awaitSaid("ready https://127.0.0.1:")
	return c
}

func (c *cluster) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}

func (c *cluster) awaitSaid(text string) {
	c.t.Helper()
	eventually(c.t, "up says "+strconv.Quote(text), func() error {
		if strings.Contains(c.said(), text) {
			return nil
		}
		select {
		case <-c.done:
			c.t.Fatalf("up ended before it said %q:\n%s", text, c.said())
		default:
		}
		return fmt.Errorf("not said")
	})
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v (after %s)", what, err, timeout)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// try runs a localcluster command on the cluster.
func (c *cluster) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.bin, args...)
	cmd.Env = append(os.Environ(), "LOCALCLUSTER_DIR="+c.dir)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (c *cluster) run(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("localcluster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.run(append([]string{"kubectl"}, args...)...)
}

func (c *cluster) pid(component string) int {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "pids", component))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// deploy creates a Deployment and waits for its rollout.
func (c *cluster) deploy(name string, replicas int) {
	c.t.Helper()
	c.kubectl("create", "deployment", name, "--image=registry.example.test/"+name+":1", "--replicas="+strconv.Itoa(replicas))
	c.kubectl("rollout", "status", "deployment/"+name, "--timeout=150s")
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir(), "--nodes", "3", "--exec", "--feature-gates", "ClusterTrustBundle=true", "--runtime-config", "certificates.k8s.io/v1beta1=true")
	// In this order: each subtest but the last leaves the cluster usable.
	t.Run("nodes", c.testNodes)
	t.Run("pods", c.testPods)
	t.Run("streams", c.testStreams)
	t.Run("crash loop", c.testCrashLoop)
	t.Run("load", c.testLoad)
	t.Run("only loopback", c.testLoopback)
	t.Run("listeners", c.testListeners)
	t.Run("busy directory", c.testBusy)
	t.Run("explicit server", c.testExplicitServer)
	t.Run("stop and start", c.testStopStart)
	t.Run("death of the API server", c.testDeath)
	t.Run("interrupt", c.testInterrupt)
}

func (c *cluster) testNodes(t *testing.T) {
	nodes := strings.Fields(c.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`))
	if want := []string{"node-0=True", "node-1=True", "node-2=True"}; strings.Join(nodes, " ") != strings.Join(want, " ") {
		t.Errorf("nodes are %v, want %v", nodes, want)
	}
	if info, err := os.Stat(filepath.Join(c.dir, "kubeconfig")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v; want mode 0600", info, err)
	}
	if out := c.run("status"); !strings.Contains(out, "API ready") || strings.Count(out, "running") != len(components) {
		t.Errorf("status says:\n%s", out)
	}
	// The feature gate and the API version are off by default.
	c.kubectl("get", "clustertrustbundles.v1beta1.certificates.k8s.io")
	// RBAC is on: a service account without roles has no permissions.
	out, err := c.try("kubectl", "auth", "can-i", "list", "secrets", "--as=system:serviceaccount:default:default")
	if err == nil || !strings.HasPrefix(out, "no") {
		t.Errorf("a service account without roles may list secrets: %s", out)
	}
}

func (c *cluster) testPods(t *testing.T) {
	c.deploy("web", 3)
	c.kubectl("set", "image", "deployment/web", "*=registry.example.test/web:2")
	c.kubectl("rollout", "status", "deployment/web", "--timeout=150s")
	eventually(t, "three pods of the new version run", func() error {
		out := c.kubectl("get", "pods", "-l", "app=web", "-o", `jsonpath={range .items[*]}{.spec.containers[0].image}={.status.phase} {end}`)
		if strings.Fields(out) == nil || strings.TrimSpace(out) != strings.TrimSpace(strings.Repeat("registry.example.test/web:2=Running ", 3)) {
			return fmt.Errorf("pods are %s", out)
		}
		return nil
	})
}

func (c *cluster) testStreams(t *testing.T) {
	if out := c.kubectl("logs", "deployment/web", "--tail=1"); !strings.Contains(out, "request=") && !strings.Contains(out, "listening") {
		t.Errorf("logs say %q", out)
	}
	if out := c.kubectl("exec", "deployment/web", "--", "echo", "hi"); !strings.HasSuffix(out, "hi") {
		t.Errorf("exec echo hi says %q", out)
	}

	follow := exec.CommandContext(t.Context(), c.bin, "kubectl", "--dir", c.dir, "logs", "-f", "deployment/web", "--tail=1")
	pipe, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	var last time.Time
	apart := false
	for n := 0; n < 30 && !apart && lines.Scan(); n++ {
		now := time.Now()
		apart = n > 0 && now.Sub(last) >= 500*time.Millisecond
		last = now
	}
	if !apart {
		t.Errorf("logs -f gave all lines at once (%v), want them to arrive over time", lines.Err())
	}
	_ = follow.Process.Kill()
	_ = follow.Wait()

	forward := exec.CommandContext(t.Context(), c.bin, "kubectl", "--dir", c.dir, "port-forward", "deployment/web", ":8080")
	pipe, err = forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forward.Process.Kill(); _ = forward.Wait() }()
	line, err := bufio.NewReader(pipe).ReadString('\n') // Forwarding from 127.0.0.1:PORT -> 8080
	if err != nil {
		t.Fatal(err)
	}
	address := strings.Fields(strings.TrimPrefix(line, "Forwarding from "))[0]
	response, err := http.Get("http://" + address + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); !strings.Contains(string(body), "GET /orders") {
		t.Errorf("through port-forward came %q", body)
	}
}

func (c *cluster) testCrashLoop(t *testing.T) {
	const state = `jsonpath={.status.containerStatuses[0].state.waiting.reason} {.status.containerStatuses[0].restartCount}{"\n"}`
	c.kubectl("label", "pods", "-l", "app=web", "localcluster.watchkeeper.dev/crash=true")
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	watch := exec.CommandContext(ctx, c.bin, "kubectl", "--dir", c.dir, "get", "pods", "-l", "app=web", "-w", "-o", state)
	pipe, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if last = lines.Text(); strings.HasPrefix(last, "CrashLoopBackOff ") && last != "CrashLoopBackOff 0" {
			cancel()
		}
	}
	_ = watch.Wait() // the process was killed
	if ctx.Err() != context.Canceled {
		t.Errorf("no pod crash-loops after a restart: the last is %q", last)
	}
	c.kubectl("label", "pods", "-l", "app=web", "localcluster.watchkeeper.dev/crash-")
	c.kubectl("wait", "pods", "-l", "app=web", "--for=condition=Ready", "--timeout=150s")
}

func (c *cluster) testLoad(t *testing.T) {
	out := c.run("load", "--pods", "100", "--churn", "50", "--namespaces", "2", "--for", "4s")
	if !strings.Contains(out, "100 pods exist") || !strings.Contains(out, "0 failed") {
		t.Errorf("load says:\n%s", out)
	}
	out = c.run("load", "--pods", "100", "--namespaces", "2", "--cleanup")
	if !strings.Contains(out, "adopted") || !strings.Contains(out, "deleted after") {
		t.Errorf("load --cleanup says:\n%s", out)
	}
	if out := c.kubectl("get", "pods", "-A", "-l", "app.kubernetes.io/managed-by=localcluster", "-o", "name"); out != "" && !strings.HasPrefix(out, "No resources") {
		t.Errorf("load --cleanup left %s", out)
	}
	out = c.run("load", "--life", "--for", "8s", "--cleanup")
	if !strings.Contains(out, "shop/") || !strings.Contains(out, "deleted after") {
		t.Errorf("load --life says:\n%s", out)
	}
}

// testLoopback checks in /proc that every process listens only on loopback.
func (c *cluster) testLoopback(t *testing.T) {
	listening := map[string]string{} // inode to local address
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if fields := strings.Fields(line); len(fields) > 9 && fields[3] == "0A" {
				listening[fields[9]] = fields[1]
			}
		}
	}
	found, known := 0, slices.Collect(maps.Values(c.ports()))
	for _, pid := range append(c.pids(), c.up.Process.Pid) {
		sockets, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, socket := range sockets {
			target, _ := os.Readlink(socket)
			inode := strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")
			address, ok := listening[inode]
			if !ok {
				continue
			}
			found++
			if !strings.HasPrefix(address, "0100007F:") { // 127.0.0.1
				t.Errorf("process %d listens on %s", pid, address)
			}
			// Those of the state are tried by testListeners.
			if port, err := strconv.ParseInt(address[strings.Index(address, ":")+1:], 16, 32); err != nil || !slices.Contains(known, int(port)) {
				t.Errorf("process %d listens on the port of %s, which is not in state.json", pid, address)
			}
		}
	}
	if found < len(components) {
		t.Errorf("found only %d listening sockets", found)
	}
}

// ports returns the ports by what listens there.
func (c *cluster) ports() map[string]int {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "state.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	var state struct{ Ports map[string]int }
	if err := json.Unmarshal(data, &state); err != nil {
		c.t.Fatal(err)
	}
	return state.Ports
}

func (c *cluster) pids() []int {
	c.t.Helper()
	var pids []int
	for _, component := range components {
		pids = append(pids, c.pid(component))
	}
	return pids
}

func (c *cluster) testBusy(t *testing.T) {
	out, err := c.try("up", "--dir", c.dir)
	if err == nil || strings.Count(out, "\n") != 0 || !strings.Contains(out, "already running") {
		t.Errorf("a second up: %v, %q; want one line that it is already running", err, out)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = c.try("up", "--dir", foreign, "--fresh")
	if err == nil || !strings.Contains(out, "not made by localcluster") {
		t.Errorf("up --fresh in a foreign directory: %v, %q", err, out)
	}
	if _, err := os.Stat(filepath.Join(foreign, "thesis.txt")); err != nil {
		t.Error(err)
	}
}

func (c *cluster) testExplicitServer(t *testing.T) {
	server := c.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	out, err := c.try("kubectl", "--kubeconfig", filepath.Join(c.dir, "kubeconfig"), "get", "--raw", "/readyz")
	if err != nil || out != "ok" {
		t.Errorf("with --kubeconfig: %v, %s", err, out)
	}
	// Without credentials and trust the request must fail: the preset kubeconfig
	// would have both.
	cmd := exec.Command(c.bin, "kubectl", "--dir", c.dir, "-s", server, "get", "nodes")
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("with -s the preset kubeconfig was used: %s", out)
	}
}

func (c *cluster) testStopStart(t *testing.T) {
	for _, component := range components {
		before := c.pid(component)
		c.run("stop", component, "--signal", "KILL")
		if alive(before) {
			t.Errorf("%s (pid %d) is alive after stop", component, before)
		}
		if out, err := c.try("status"); !strings.Contains(out, "stopped") {
			t.Errorf("status with %s stopped: %v\n%s", component, err, out)
		}
		c.run("start", component)
		if c.pid(component) == before || !alive(c.pid(component)) {
			t.Errorf("%s was not started again", component)
		}
	}
	if strings.Contains(c.said(), " died") {
		t.Errorf("a stop was reported as a death:\n%s", c.said())
	}
	c.deploy("after-restarts", 2)

	// Once the controller manager is ready, it outlives the API server.
	c.run("stop", "kube-controller-manager")
	c.run("start", "kube-controller-manager")
	c.run("stop", "kube-apiserver", "--signal", "KILL")
	time.Sleep(time.Second) // in which it would end
	c.run("start", "kube-apiserver")
	if !alive(c.pid("kube-controller-manager")) {
		t.Errorf("the controller manager died with the API server:\n%s", c.said())
	}

	c.run("stop", "kwok", "--signal", "STOP")
	if out := c.run("status"); !strings.Contains(out, "frozen") {
		t.Errorf("status with kwok frozen:\n%s", out)
	}
	c.run("start", "kwok")
	if _, err := c.try("stop", "nonsense"); err == nil {
		t.Error("stopping an unknown component succeeded")
	}
}

func (c *cluster) testDeath(t *testing.T) {
	if err := syscall.Kill(c.pid("kube-apiserver"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.awaitSaid("died: signal: killed")
	c.awaitSaid("localcluster start kube-apiserver")
	if out, err := c.try("status"); err == nil || !strings.Contains(out, "died") {
		t.Errorf("status after the death: %v\n%s", err, out)
	}
	c.run("start", "kube-apiserver")
	c.kubectl("get", "deployment", "web")
}

// testInterrupt: Ctrl-C stops everything, and the next up continues.
func (c *cluster) testInterrupt(t *testing.T) {
	dir, ready := c.dir, c.said()
	c.kubectl("create", "configmap", "memory")
	pids := c.pids()
	if err := c.up.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-c.done
	if err := c.up.Wait(); err != nil {
		t.Errorf("up ended with %v, want exit code 0", err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d outlived up", pid)
		}
	}

	again := start(t, dir)
	again.kubectl("get", "configmap", "memory")
	line := func(said string) string {
		line, _, _ := strings.Cut(said[strings.Index(said, "ready https://"):], "\n")
		return line
	}
	if line(ready) != line(again.said()) {
		t.Errorf("the second up is at %s, the first was at %s", line(again.said()), line(ready))
	}

	// No process outlives an up that cannot clean up either.
	pids = again.pids()
	if err := again.up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-again.done
	_ = again.up.Wait()
	for _, pid := range pids {
		eventually(t, "every component is gone", func() error {
			if alive(pid) {
				return fmt.Errorf("process %d lives", pid)
			}
			return nil
		})
	}

	fresh := start(t, dir, "--fresh", "--nodes", "1")
	if out, err := fresh.try("kubectl", "get", "configmap", "memory"); err == nil {
		t.Errorf("--fresh kept the data: %s", out)
	}
	pids = fresh.pids()
	fresh.run("down")
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d outlived down", pid)
		}
	}
}

// TestUntilEOF: with --until-eof, up stops its components at the end of its input, also if
// nobody reads its output any more.
func TestUntilEOF(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, binary(t), "up", "--dir", dir, "--nodes", "0", "--until-eof")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready ") {
		continue
	}
	if lines.Text() == "" {
		t.Error("up ended before it was ready")
	}
	out.Close()
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("up: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "pids")); err != nil || len(left) > 0 {
		t.Errorf("files in pids: %v (%v)", left, err)
	}
}
