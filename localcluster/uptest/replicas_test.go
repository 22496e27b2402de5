// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package uptest

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// TestReplicas: three API servers behind a balancer that forwards requests.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir(), "--nodes", "1", "--apiservers", "3", "--balance", "request", "--exec")
	if out := c.run("status"); !strings.Contains(out, "API ready") || strings.Count(out, "running") != len(components)+2 {
		t.Errorf("status says:\n%s", out)
	}
	c.deploy("web", 1)
	t.Run("streams", c.testStreams)
	t.Run("identity", c.testIdentity)
	t.Run("lag", c.testLag)
	t.Run("dead API server", c.testDeadAPIServer)
}

// address returns the address of a component.
func (c *cluster) address(component string) string {
	c.t.Helper()
	for _, line := range strings.Split(c.run("status"), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == component {
			return fields[len(fields)-1]
		}
	}
	c.t.Fatalf("status does not have %s", component)
	return ""
}

// server returns the host and port of the cluster.
func (c *cluster) server() string {
	c.t.Helper()
	return strings.TrimPrefix(c.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"), "https://")
}

// client returns an HTTP client with the named certificate; "" for none.
func (c *cluster) client(certificate string, http2 bool) *http.Client {
	c.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // the tests look only at what the server knows of the client
	if certificate != "" {
		path := filepath.Join(c.dir, "pki", certificate)
		pair, err := tls.LoadX509KeyPair(path+".crt", path+".key")
		if err != nil {
			c.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: timeout}
}

func body(t *testing.T, client *http.Client, request *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := client.Do(request.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// testIdentity: the API servers know the user of a client certificate or token, and
// believe no header of a client.
func (c *cluster) testIdentity(t *testing.T) {
	if out := c.kubectl("auth", "whoami"); !strings.Contains(out, "kubernetes-admin") || !strings.Contains(out, "system:masters") {
		t.Errorf("whoami says:\n%s", out)
	}
	token := c.kubectl("create", "token", "default")
	server := c.server()
	for _, test := range []struct{ certificate, token, user string }{
		{"kube-scheduler", "", "system:kube-scheduler"},
		{"", token, "system:serviceaccount:default:default"},
		{"", "", "system:anonymous"},
	} {
		for _, http2 := range []bool{false, true} {
			client := c.client(test.certificate, http2)
			for range 3 { // one for each API server
				request, err := http.NewRequest(http.MethodGet, "https://"+server+"/api/v1/secrets", nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("X-Remote-User", "kubernetes-admin")
				request.Header.Set("X-Remote-Group", "system:masters")
				if test.token != "" {
					request.Header.Set("Authorization", "Bearer "+test.token)
				}
				response, text := body(t, client, request)
				if response.StatusCode != http.StatusForbidden || !strings.Contains(text, fmt.Sprintf(`User \"%s\"`, test.user)) {
					t.Errorf("the request of %s: %s: %s", test.user, response.Status, text)
				}
				if (response.ProtoMajor == 2) != http2 {
					t.Errorf("the balancer speaks %s", response.Proto)
				}
			}
		}
	}
}

// testLag: an API server whose watches are held back serves old objects from its cache,
// and the newest ones on request.
func (c *cluster) testLag(t *testing.T) {
	client, server, lagging := c.client("admin", true), c.server(), c.address("kube-apiserver-2")
	has := func(server, path, name string) bool {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, "https://"+server+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, text := body(t, client, request)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %s", path, response.Status, text)
		}
		return strings.Contains(text, `"name":"`+name+`"`)
	}
	arrives := func(name string) {
		t.Helper()
		eventually(t, name+" arrives", func() error {
			if !has(lagging, configMaps+"?resourceVersion=0", name) {
				return fmt.Errorf("the cache does not have it")
			}
			return nil
		})
	}

	c.run("lag", "kube-apiserver-2")
	if out := c.run("status"); !strings.Contains(out, "running, watches held back") {
		t.Errorf("status says:\n%s", out)
	}
	c.kubectl("create", "configmap", "held")
	seen := map[bool]bool{}
	eventually(t, "requests go to API servers that lag, and to others", func() error {
		if seen[has(server, configMaps+"?resourceVersion=0", "held")] = true; len(seen) < 2 {
			return fmt.Errorf("all have or have not the new object: %v", seen)
		}
		return nil
	})
	if has(lagging, configMaps+"?resourceVersion=0", "held") {
		t.Error("the cache has an object of the time when it lags")
	}
	if !has(lagging, configMaps+"/held", "held") || !has(lagging, configMaps, "held") {
		t.Error("a consistent read does not have the object")
	}
	c.run("lag", "kube-apiserver-2", "--off")
	arrives("held")

	c.run("lag", "kube-apiserver-2", "--delay", "1h")
	c.kubectl("create", "configmap", "delayed")
	if has(lagging, configMaps+"?resourceVersion=0", "delayed") {
		t.Error("the cache has an object an hour too soon")
	}
	c.run("lag", "kube-apiserver-2", "--delay", "1h", "--for", "1s")
	arrives("delayed")
	if out := c.run("status"); strings.Contains(out, "watches") {
		t.Errorf("after the lag, status says:\n%s", out)
	}
}

// testDeadAPIServer: clients do not notice that an API server is down.
func (c *cluster) testDeadAPIServer(t *testing.T) {
	c.run("stop", "kube-apiserver", "--signal", "KILL")
	for range 4 {
		c.kubectl("get", "configmap", "held")
	}
	if out := c.run("status"); !strings.Contains(out, "stopped") || !strings.Contains(out, "API ready") {
		t.Errorf("status says:\n%s", out)
	}
}

// TestSnapshot: two API servers behind a balancer that forwards connections.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir(), "--nodes", "0", "--apiservers", "2")
	names := func() string { return c.kubectl("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}") }
	file := filepath.Join(t.TempDir(), "snapshot.db")
	c.kubectl("create", "configmap", "early")
	c.run("snapshot", file)
	c.kubectl("create", "configmap", "late")

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := c.try("restore", damaged); err == nil || !strings.Contains(out, "nothing was changed") {
		t.Errorf("restoring a damaged snapshot: %v, %s", err, out)
	}
	if !strings.Contains(names(), "late") {
		t.Error("a damaged snapshot was restored")
	}

	old := filepath.Join(c.dir, "etcd-before-restore")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := c.try("restore", file); err == nil || !strings.Contains(out, old) {
		t.Errorf("a restore over the data of a failed one: %v, %s", err, out)
	}
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}

	const bump = 1_000_000_000
	before := c.pid("kube-apiserver-2")
	c.run("restore", file, "--keep-running", "--bump-revision", fmt.Sprint(bump))
	for _, server := range []string{"kube-apiserver", "kube-apiserver-2"} {
		eventually(t, server+" has the snapshot", func() error {
			out := c.kubectl("--kubeconfig", filepath.Join(c.dir, "kubeconfig"), "-s", "https://"+c.address(server), "get", "--raw", configMaps+"?resourceVersion=0")
			if !strings.Contains(out, "early") || strings.Contains(out, "late") {
				return fmt.Errorf("its cache has %s", out)
			}
			return nil
		})
	}
	if c.pid("kube-apiserver-2") != before {
		t.Error("kube-apiserver-2 was restarted")
	}
	version := func(name string) int {
		var n int
		if _, err := fmt.Sscan(c.kubectl("create", "configmap", name, "-o", "jsonpath={.metadata.resourceVersion}"), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := version("bumped"); n < bump {
		t.Errorf("the revision is %d after a bump by %d", n, bump)
	}

	c.run("restore", file)
	if got := names(); strings.Contains(got, "bumped") || !strings.Contains(got, "early") {
		t.Errorf("the second restore has %s", got)
	}
	if n := version("again"); n > bump {
		t.Errorf("without a bump, the revision is %d", n)
	}
	if c.pid("kube-apiserver-2") == before {
		t.Error("kube-apiserver-2 was not restarted")
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the old data is still there")
	}

	c.run("stop", "kube-apiserver", "--signal", "KILL")
	for range 3 {
		c.kubectl("get", "configmap", "early")
	}
}
