// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const readerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: list-and-watch}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: list-and-watch}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: list-and-watch}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
`

// TestAccess has a gateway act as a user who may list and watch, but not get, and
// who then loses these rights: no client reads from the cache what the API server
// would refuse (T8).
func TestAccess(t *testing.T) {
	inStage(t, quiet)
	apply(t, readerRole)
	jane, err := cluster.Gateway("--as", "jane")
	if err != nil {
		t.Fatal(err)
	}
	defer jane.Terminate()
	const list = "/api/v1/configmaps?resourceVersion=0"
	code := func(path string) int {
		code, _ := get(t, http.DefaultClient, jane.URL+path)
		return code
	}
	eventually(t, "a list for jane", func() bool { return code(list) == 200 })
	if got := code("/api/v1/namespaces/default/configmaps/kube-root-ca.crt?resourceVersion=0"); got != 403 {
		t.Errorf("a get that is not allowed: %d", got)
	}
	if got := code("/api/v1/secrets?resourceVersion=0"); got != 403 {
		t.Errorf("another resource: %d", got)
	}
	kubectl(t, "delete", "clusterrolebinding", "list-and-watch")
	eventually(t, "a refusal of lists and watches", func() bool {
		return code(list) == 403 && code("/api/v1/configmaps?watch=1&resourceVersion=0&timeoutSeconds=1") == 403
	})
}

// TestCallersOwnToken: a request with a token is authenticated by the token,
// though the gateway has a client certificate, which the API server prefers.
func TestCallersOwnToken(t *testing.T) {
	inStage(t, quiet)
	kubectl(t, "-n", "default", "get", "serviceaccount", "default")
	token := strings.TrimSpace(kubectl(t, "-n", "default", "create", "token", "default"))
	for _, test := range []struct{ token, want string }{{"garbage", "401"}, {token, "403"}} {
		for _, path := range []string{"/api/v1/secrets", "/api/v1/secrets?resourceVersion=0", "/api/v1/pods?watch=1&resourceVersion=0"} {
			if got := curl(t, "-o/dev/null", "-w%{http_code}", "-H", "Authorization: Bearer "+test.token, gw.URL+path); got != test.want {
				t.Errorf("%s with a token: want %s, got %s", path, test.want, got)
			}
		}
	}
}

// TestCustomResources changes the defaults of a definition, deletes it, and
// creates another one with the same name.
func TestCustomResources(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	client, up := direct(t)
	const kind = "gadgets.example.com"
	crd := func(scope, kind, fallback string) string {
		return strings.NewReplacer("SCOPE", scope, "KIND", kind, "DEFAULT", fallback).Replace(gadgets)
	}
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "delete", "crd", kind, "--ignore-not-found").Run()
	})
	const all = "/apis/example.com/v1/gadgets?resourceVersion=0"
	one := "/apis/example.com/v1/namespaces/" + ns + "/gadgets/g?resourceVersion=0"

	apply(t, crd("Namespaced", "Gadget", ""))
	established(t, kind)
	alike(t, gw, "when empty", all)
	apply(t, strings.NewReplacer("NAMESPACE", ns).Replace(gadget))
	alike(t, gw, "with one", all)
	frames := curlWatch(t, gw.URL+all+"&watch=1")
	next(t, frames, "ADDED", "g", nil)

	apply(t, crd("Namespaced", "Gadget", ", default: blue"))
	eventually(t, "the new default at the API server", func() bool {
		_, body := get(t, client, up+one)
		return strings.Contains(body, `"color":"blue"`)
	})
	alike(t, gw, "after a change of the defaults", one)
	alike(t, gw, "after a change of the defaults", all)

	frames = curlWatch(t, gw.URL+all+"&watch=1")
	next(t, frames, "ADDED", "g", nil)
	kubectl(t, "delete", "crd", kind)
	next(t, frames, "DELETED", "g", nil)
	if f, open := <-frames; open {
		t.Errorf("after the deletion of the definition: %s", f.text)
	}
	alike(t, gw, "when it is gone", all)
	alike(t, gw, "when it is gone", one)
	apply(t, crd("Cluster", "Gizmo", ""))
	established(t, kind)
	alike(t, gw, "with another scope", all)
	alike(t, gw, "with another scope", one)
	alike(t, gw, "with another scope", "/apis/example.com/v1/namespaces/"+ns+"/gadgets?resourceVersion=0")
}

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: SCOPE
  names: {plural: gadgets, singular: gadget, kind: KIND}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: stringDEFAULT}
`

const gadget = `
apiVersion: example.com/v1
kind: Gadget
metadata: {name: g, namespace: NAMESPACE}
spec: {}
`

// TestWarnings: the API server's warnings about deprecated versions are relayed.
func TestWarnings(t *testing.T) {
	const path = "/api/v1/endpoints?resourceVersion=0"
	client, up := direct(t)
	warnings := func(client *http.Client, url string) string {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return strings.Join(resp.Header.Values("Warning"), "; ")
	}
	want := warnings(client, up+path)
	if !strings.Contains(want, "deprecated") {
		t.Fatalf("the API server sends no warning: %q", want)
	}
	for range 3 {
		if got := warnings(http.DefaultClient, gw.URL+path); got != want {
			t.Errorf("warnings %q, want %q", got, want)
		}
	}
}

const exporterRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE-export}
rules:
- {apiGroups: [export.example.com], resources: [gadgets], verbs: [get, list, watch]}
- {nonResourceURLs: [/watchkeeper/v1/history], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAMESPACE-export}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAMESPACE-export}
subjects: [{kind: ServiceAccount, name: exporter, namespace: NAMESPACE}]
`

// TestExportOfDefinitions: in shared mode, an export has the definition of its resource only
// if the caller may read it, however the caller sends the token.
func TestExportOfDefinitions(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	const secret = "only-for-those-who-may-read-definitions"
	const kind = "gadgets.export.example.com"
	of := func(template string, values ...string) string {
		return strings.NewReplacer(append(values, "example.com", "export.example.com")...).Replace(template)
	}
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "delete", "crd", kind, "--ignore-not-found").Run()
	})
	apply(t, of(gadgets, "SCOPE", "Namespaced", "KIND", "Gadget", "DEFAULT", ", description: "+secret))
	established(t, kind)
	g := startFairGateway(t, "--data-dir", t.TempDir(), "--record", kind)
	ns := g.ns
	apply(t, of(gadget, "NAMESPACE", ns))
	kubectl(t, "-n", ns, "create", "serviceaccount", "exporter")
	apply(t, strings.ReplaceAll(exporterRole, "NAMESPACE", ns))
	user := g.user(t, "exporter", "127.0.0.1", false, false)
	token := user.token
	export := func(headers ...string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/watchkeeper/v1/history/export?resource="+kind, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := user.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return resp.StatusCode, ""
		}
		plain, err := zstd.NewReader(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		text, err := io.ReadAll(plain)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	eventually(t, "an export", func() bool {
		code, _ := export("Authorization", "Bearer "+token)
		return code == http.StatusOK
	})
	// This is a WebSocket for the authenticator of the API server, and none for its proxies.
	protocol := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token)) + ", other"
	for name, headers := range map[string][]string{
		"a header":      {"Authorization", "Bearer " + token},
		"a subprotocol": {"Connection", "x-upgrade", "Upgrade", "websocket", "Sec-Websocket-Protocol", protocol},
	} {
		if code, text := export(headers...); code != http.StatusOK || !strings.Contains(text, "/apis/export.example.com/v1") || strings.Contains(text, secret) {
			t.Errorf("by %s: %d; the definition is in it: %t", name, code, strings.Contains(text, secret))
		}
	}
	apply(t, strings.NewReplacer("NAMESPACE", ns, "[export.example.com]", "[export.example.com, apiextensions.k8s.io]", "[gadgets]", "[gadgets, customresourcedefinitions]").Replace(exporterRole))
	eventually(t, "the definition, once it may be read", func() bool {
		_, text := export("Authorization", "Bearer "+token)
		return strings.Contains(text, secret)
	})
}
