// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package uptest

import (
	"crypto/tls"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// open are the paths that a listener answers to somebody without credentials. A listener that
// is not here must not answer.
var open = map[string][]string{
	// RBAC's role system:public-info-viewer.
	"kube-apiserver":          {"/healthz", "/livez", "/readyz", "/version"},
	"kube-controller-manager": {"/healthz"},
	"kube-scheduler":          {"/healthz", "/livez", "/readyz"},
	"kwok":                    {"/discovery/prometheus", "/healthz", "/livez", "/metrics", "/readyz"},
	"pod":                     nil, // a server of one text: see below
}

// asked are paths of all listeners: those above, and what would show something or do it.
var asked = []string{
	"/", "/api/v1/secrets", "/configz", "/debug/pprof/", "/debug/pprof/profile?seconds=1", "/discovery/prometheus", "/healthz", "/livez", "/logs/",
	"/metrics", "/readyz", "/runningpods/", "/spec/", "/stats/summary", "/v3/kv/range", "/version",
	"/attach/default/POD/web?output=1", "/containerLogs/default/POD/web", "/exec/default/POD/web?command=id&output=1", "/exec/x/x/c?command=id&output=1",
	"/portForward/default/POD?port=80", "/run/default/POD/web?cmd=id",
}

// testListeners: what is served to others than the API server and the administrator shows that
// a component runs, and does nothing; so it is with the certificate of another component.
func (c *cluster) testListeners(t *testing.T) {
	ports := c.ports()
	if ports["kubelet"] == 0 || ports["kwok"] == 0 {
		t.Fatalf("the ports are %v", ports)
	}
	pod := c.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
	other, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "pki", "kube-scheduler.crt"), filepath.Join(c.dir, "pki", "kube-scheduler.key"))
	if err != nil {
		t.Fatal(err)
	}
	anyone := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	component := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{other}}}}
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		served := map[string]bool{}
		for _, path := range asked {
			for _, url := range []string{"https://127.0.0.1:", "http://127.0.0.1:"} {
				url += strconv.Itoa(ports[name]) + strings.Replace(path, "POD", pod, 1)
				if answers(t, anyone, http.MethodGet, url) || answers(t, anyone, http.MethodPost, url) {
					served[path] = true
				}
				if name == "kubelet" && answers(t, component, http.MethodGet, url) {
					t.Errorf("%s answers the scheduler", url)
				}
			}
		}
		got := slices.Sorted(maps.Keys(served))
		if name == "pod" {
			if len(got) != len(asked) {
				t.Errorf("pod answers %v", got)
			}
			continue
		}
		if !slices.Equal(got, open[name]) {
			t.Errorf("%s answers %v without credentials, want %v", name, got, open[name])
		}
	}
}

// answers reports whether a request succeeds, or switches protocols.
func answers(t *testing.T, client *http.Client, method, url string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	// As a web page opens a WebSocket.
	req.Header.Set("Origin", "https://evil.example")
	if strings.Contains(url, "command=") || strings.Contains(url, "/attach/") || strings.Contains(url, "/portForward/") {
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
		} {
			req.Header.Set(name, value)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return resp.StatusCode < 300
}
