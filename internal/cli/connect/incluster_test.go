// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// newAPI returns a client of a server with these answers, by path and query; others are 403.
func newAPI(t *testing.T, answers map[string]string) (corev1client.CoreV1Interface, *httptest.Server) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok {
			w.Write([]byte(answer))
			return
		}
		code, reason := http.StatusForbidden, "Forbidden"
		if strings.Contains(r.URL.Path, "/none") || strings.HasSuffix(r.URL.Path, gatewayPath) {
			code, reason = http.StatusNotFound, "NotFound"
		}
		w.WriteHeader(code)
		w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"` + reason + `"}`))
	}))
	t.Cleanup(server.Close)
	client, err := corev1client.NewForConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

const (
	services = "/api/v1/services"
	inOwn    = "/api/v1/namespaces/watchkeeper/services"
	none     = `{"kind":"ServiceList","apiVersion":"v1","items":[]}`
	one      = `{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"namespace":"watchkeeper","name":"a"}}]}`
	two      = `{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"namespace":"watchkeeper","name":"a"}},{"metadata":{"namespace":"watchkeeper","name":"b"}}]}`
	other    = `{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"namespace":"lure","name":"a"}}]}`
)

// TestFindService: credentials go only to the namespace watchkeeper, or to the Service that is
// named.
func TestFindService(t *testing.T) {
	for _, c := range []struct {
		what, variable string
		answers        map[string]string
		want, err      string
	}{
		{what: "one", answers: map[string]string{inOwn: one}, want: "watchkeeper/a"},
		{what: "two", answers: map[string]string{inOwn: two}, err: "watchkeeper/a, and watchkeeper/b: if you trust"},
		{what: "in another namespace", answers: map[string]string{inOwn: none, services: other}, err: "set WATCHKEEPER_SERVICE=lure/a"},
		{what: "none", answers: map[string]string{inOwn: none, services: none}},
		{what: "none where the user may look", answers: map[string]string{inOwn: none}},
		{what: "the user may not look", answers: nil},
		{what: "named", variable: "lure/a", answers: map[string]string{"/api/v1/namespaces/lure/services/a": `{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"lure","name":"a"}}`}, want: "lure/a"},
		{what: "named, and not there", variable: "lure/none", err: "WATCHKEEPER_SERVICE: you may not"},
		{what: "badly named", variable: "lure", err: `"lure" is not NAMESPACE/NAME`},
		{what: "a path", variable: "lure/a/b", err: `is not NAMESPACE/NAME`},
	} {
		t.Setenv(ServiceVariable, c.variable)
		client, _ := newAPI(t, c.answers)
		service, err := findService(t.Context(), client)
		got := ""
		if service != nil {
			got = service.Namespace + "/" + service.Name
		}
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.what, got, err)
		}
	}
}

// TestUseService: what cannot be used has an error, and nothing to look at has none.
func TestUseService(t *testing.T) {
	t.Setenv(ServiceVariable, "")
	service := `{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"namespace":"watchkeeper","name":"a"},"spec":{"selector":{"app":"a"},"ports":[{"port":443,"targetPort":"https"}]}}]}`
	base := "/api/v1/namespaces/watchkeeper"
	const ca = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"ca.crt":"x"}}`
	for _, c := range []struct {
		what    string
		answers map[string]string
		err     string
	}{
		{what: "no Service", answers: map[string]string{inOwn: none}},
		{what: "no right to the CA", answers: map[string]string{inOwn: service}, err: "the gateway watchkeeper/a in the cluster: the CA of its certificate: you may not: use --server"},
		{what: "no CA yet", answers: map[string]string{inOwn: service, base + "/configmaps/a": `{"kind":"ConfigMap","apiVersion":"v1","data":{"kubeconfig":"clusters: [{name: a, cluster: {server: 'https://a.b.svc', certificate-authority: ca.crt}}]"}}`},
			err: "has no ca.crt yet"},
		{what: "no Pod", answers: map[string]string{inOwn: service, base + "/configmaps/a": ca, base + "/pods": `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p"}}]}`},
			err: "none of its 1 Pods is ready"},
		{what: "no selector", answers: map[string]string{inOwn: one, base + "/configmaps/a": ca}, err: "has no selector"},
		{what: "no right to port-forward", answers: map[string]string{inOwn: service, base + "/configmaps/a": ca,
			base + "/pods": `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","ports":[{"name":"https","containerPort":8001}]}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`},
			err: "port-forward to Pod p: "},
	} {
		_, server := newAPI(t, c.answers)
		f := newFlags(t, server.URL, "http://127.0.0.1:1")
		got, err := f.UseService(t.Context())
		if got != "" || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.what, got, err)
		}
		if _, err := f.Gateway(t.Context()); (err == nil) != (c.err == "") {
			t.Errorf("%s: Gateway: %v", c.what, err)
		}
	}
	if got, err := newFlags(t, "", "http://127.0.0.1:1").UseService(t.Context()); got != "" || err != nil {
		t.Errorf("no kubeconfig: %q, %v", got, err)
	}
}

// TestVerification: the name of the certificate is that of the chart's kubeconfig.
func TestVerification(t *testing.T) {
	service := &corev1.Service{}
	service.Namespace, service.Name = "ns", "a"
	const path = "/api/v1/namespaces/ns/configmaps/a"
	for name, c := range map[string]struct {
		path, kubeconfig, want string
	}{
		"no ConfigMap": {"/x", "", "a.ns.svc"},
		"a port":       {path, "clusters: [{name: a, cluster: {server: 'https://b.ns.svc:8443', certificate-authority: ca.crt}}]", "b.ns.svc"},
		"a name":       {path, "clusters: [{name: a, cluster: {server: 'https://b.ns.svc', tls-server-name: example.com}}]", "example.com"},
		"no YAML":      {path, "{", "a.ns.svc"},
	} {
		if name == "no ConfigMap" {
			service.Name = "none"
			c.want = "none.ns.svc"
		} else {
			service.Name = "a"
		}
		client, _ := newAPI(t, map[string]string{c.path: `{"kind":"ConfigMap","apiVersion":"v1","data":{"ca.crt":"CA","kubeconfig":"` + c.kubeconfig + `"}}`})
		got, err := verification(t.Context(), client, service)
		if err != nil || got.ServerName != c.want {
			t.Errorf("%s: %q, %v", name, got.ServerName, err)
		}
		if wantCA := name != "no ConfigMap"; (string(got.CAData) == "CA") != wantCA {
			t.Errorf("%s: the CA is %q", name, got.CAData)
		}
	}
}
