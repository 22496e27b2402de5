// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestSharedAttacks attacks a gateway in shared mode, and compares it with the API server.
func TestSharedAttacks(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	a, err := newAttack(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Terminate() })
	eventually(t, "the cluster's CAs", func() bool { return a.whoami(t, a.URL, "erin") == "erin" })
	t.Run("identities", a.identities)
	t.Run("spaces", a.spaces)
	t.Run("reads", a.reads)
	t.Run("extensions", a.extensions)
	t.Run("past", a.past)
	t.Run("revocation", a.revocation)
	t.Run("past revocation", a.pastRevocation)
	t.Run("logs", a.logs)
}

// identities: no header makes a caller somebody else, or more than the API
// server takes it for.
func (a *attack) identities(t *testing.T) {
	_, up := direct(t)
	const alice, bob = "Authorization: Bearer <alice>", "Authorization: Bearer <bob>"
	for _, test := range []struct {
		name, cert string
		lines      []string
		want       string // "" for what the API server says
	}{
		{name: "token", lines: []string{alice}},
		{name: "two tokens", lines: []string{alice, bob}},
		{name: "two tokens, the other first", lines: []string{bob, alice}},
		{name: "lower case", lines: []string{"authorization: bearer <alice>"}},
		{name: "two spaces", lines: []string{"Authorization: Bearer  <alice>"}},
		{name: "a further word", lines: []string{alice + " x"}},
		{name: "empty token", lines: []string{"Authorization: Bearer "}},
		{name: "empty header before a token", lines: []string{"Authorization:", alice}},
		{name: "basic", lines: []string{"Authorization: Basic YTpi"}},
		{name: "basic before a token", lines: []string{"Authorization: Basic YTpi", alice}},
		{name: "folded", lines: []string{"Authorization: Bearer", "\t<alice>"}},
		{name: "nothing", want: nobody},
		{name: "subprotocol", lines: []string{"Connection: x-upgrade", "Upgrade: websocket", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.<alice64>, base64.binary.k8s.io"}},
		{name: "hop-by-hop subprotocol", lines: []string{"Connection: Upgrade, Sec-WebSocket-Protocol", "Upgrade: websocket", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.<alice64>, base64.binary.k8s.io"}},
		{name: "subprotocol and basic", lines: []string{"Authorization: Basic YTpi", "Connection: x-upgrade", "Upgrade: websocket", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.<alice64>, base64.binary.k8s.io"}},
		{name: "hop-by-hop token", lines: []string{alice, "Connection: Authorization"}},
		{name: "impersonation", lines: []string{alice, "Impersonate-User: attack-admin"}},
		{name: "hop-by-hop impersonation", lines: []string{alice, "Impersonate-User: attack-admin", "Connection: Impersonate-User"}},
		{name: "odd case", lines: []string{alice, "iMPERSONATE-uSER: attack-admin"}},
		{name: "underscore", lines: []string{alice, "Impersonate_User: attack-admin"}},
		{name: "twice", lines: []string{alice, "Impersonate-User: ", "Impersonate-User: attack-admin"}},
		{name: "a group", lines: []string{alice, "Impersonate-Group: system:masters"}},
		{name: "an extra", lines: []string{alice, "Impersonate-Extra-Scopes: all"}},
		{name: "a UID", lines: []string{alice, "Impersonate-Uid: 1"}},
		{name: "X-Remote with a token", lines: []string{alice, "X-Remote-User: attack-admin", "X-Remote-Group: system:masters"}},
		{name: "X-Remote alone", lines: []string{"X-Remote-User: attack-admin"}, want: nobody},
		{name: "X-Remote with a client's certificate", cert: "erin", lines: []string{"X-Remote-User: attack-admin"}},
		{name: "certificate", cert: "erin"},
		{name: "certificate and token", cert: "erin", lines: []string{alice}},
		{name: "certificate and basic", cert: "erin", lines: []string{"Authorization: Basic YTpi"}},
		{name: "certificate and impersonation", cert: "erin", lines: []string{"Impersonate-User: attack-admin"}},
		{name: "certificate and hop-by-hop impersonation", cert: "erin", lines: []string{"Impersonate-User: attack-admin", "Connection: Impersonate-User"}},
		{name: "system:masters", cert: "masters", want: nobody},
		{name: "foreign certificate", cert: "foreign", want: nobody},
		{name: "foreign certificate and token", cert: "foreign", lines: []string{alice}},
		{name: "foreign certificate and X-Remote", cert: "foreign", lines: []string{"X-Remote-User: attack-admin"}, want: nobody},
		{name: "front proxy", cert: "front proxy", lines: []string{"X-Remote-User: erin"}},
		{name: "front proxy, two users", cert: "front proxy", lines: []string{"X-Remote-User: erin", "X-Remote-User: attack-admin"}},
		{name: "front proxy, hop-by-hop", cert: "front proxy", lines: []string{"X-Remote-User: erin", "Connection: X-Remote-User"}},
		{name: "front proxy and token", cert: "front proxy", lines: []string{"X-Remote-User: erin", alice}},
		{name: "front proxy without a user, and token", cert: "front proxy", lines: []string{alice}},
		{name: "front proxy without a user", cert: "front proxy", want: nobody},
		{name: "front proxy, system:masters", cert: "front proxy", lines: []string{"X-Remote-User: erin", "X-Remote-Group: system:masters"}, want: nobody},
	} {
		want := test.want
		if want == "" {
			want = a.whoami(t, up, test.cert, test.lines...)
		}
		if got := a.whoami(t, a.URL, test.cert, test.lines...); got != want {
			t.Errorf("%s: %s, want %s", test.name, got, want)
		}
	}
}

// spaces: a name that HTTP/1.1 trims is not impersonated as another one.
func (a *attack) spaces(t *testing.T) {
	for _, cert := range []string{"masters space", "admin space"} {
		code, body := a.send(t, a.URL, cert, "GET /api/v1/namespaces/<other>/secrets?watch=1&timeoutSeconds=1", upgrade, "")
		if code != http.StatusForbidden || strings.Contains(body, secretText) {
			t.Errorf("a WebSocket with the certificate %q: %d %.300s", cert, code, body)
		}
	}
}

// reads: nobody reads what the API server refuses, however the path is spelled.
func (a *attack) reads(t *testing.T) {
	_, up := direct(t)
	const mine, other = "/api/v1/namespaces/<mine>/configmaps", "/api/v1/namespaces/<other>/configmaps"
	var paths []string
	for _, path := range []string{
		mine, other, "/api/v1/configmaps", mine + "/", other + "/", "/" + other, "/api//v1/namespaces/<other>/configmaps",
		"/api/v1/namespaces/<mine>/../<other>/configmaps", "/api/v1/namespaces/<mine>%2f..%2f<other>/configmaps", "/api/v1/namespaces/<mine>/%2e%2e/<other>/configmaps",
		mine + "/../../<other>/configmaps", "/api/v1/watch/namespaces/<other>/configmaps", "/api/v1/watch/configmaps", "/api/v1/watch", "/api/v1/namespaces/<other>",
		"/api/v1/watch/namespaces/<other>", "/api/v1/namespaces/<mine>/namespaces/<other>", "/api/v1/namespaces/<other>/Configmaps", "/api/v1/proxy/namespaces/<other>/pods/x",
		"/openapi/../api/v1/namespaces/<other>/secrets", "/ui/../api/v1/secrets", other + "/" + secretText + "-cm", other + ";a=b", "/api/v1/namespaces/<other>/secrets",
	} {
		for _, query := range []string{
			"", "resourceVersion=0", "watch=1&resourceVersion=0&timeoutSeconds=1", "resourceVersion=0&fieldSelector=metadata.namespace%3D<other>",
			"resourceVersion=0&fieldSelector=metadata.name%3Dcm-a&fieldSelector=metadata.name%3D" + secretText + "-cm", "watch=false&watch=1&resourceVersion=0&timeoutSeconds=1",
			"resourceVersion=0;watch=1", "resourceVersion=0&limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vIn0",
		} {
			paths = append(paths, strings.TrimSuffix(path+"?"+query, "?"))
		}
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for _, path := range paths {
		for _, user := range []struct{ cert, line string }{{"", "Authorization: Bearer <alice>"}, {"erin", "X-Any: y"}} {
			all.Add(1)
			slots <- struct{}{}
			go func() {
				defer func() { <-slots; all.Done() }()
				ask := func(server string) (int, string) {
					return a.send(t, server, user.cert, "GET "+path, []string{user.line, "Connection: close"}, "")
				}
				code, body := ask(a.URL)
				want, _ := ask(up)
				if strings.Contains(body, secretText+"-") && code == http.StatusOK {
					t.Errorf("%s as %q: what the API server refuses: %.300s", path, user.cert, body)
				}
				if (code < 400) != (want < 400) && code != http.StatusServiceUnavailable {
					t.Errorf("%s as %q: %d, and %d from the API server", path, user.cert, code, want)
				}
			}()
		}
	}
	all.Wait()
}

// extensions: what the API server does not know is refused without the right to
// read the objects, and the past also without that to read the past.
func (a *attack) extensions(t *testing.T) {
	alice, impersonating := []string{"Authorization: Bearer <alice>"}, []string{"Authorization: Bearer <alice>", "Impersonate-User: attack-admin"}
	inner := "/watchkeeper/v1/multiwatch?watch="
	const other = "/api/v1/namespaces/<other>/configmaps"
	for _, test := range []struct {
		path, cert string
		lines      []string
		want       int
		has        string
	}{
		{path: other + "?fields=metadata.name", lines: alice, want: 403},
		{path: "/api/v1/configmaps?fields=metadata.name&watch=1", lines: alice, want: 403},
		{path: "/api/v1/namespaces/<mine>/configmaps?fields=metadata.name", lines: impersonating, want: 403},
		{path: inner + other + "%3Fwatch=1", lines: alice, want: 200, has: `"code":403`},
		{path: inner + "/at/1s" + other + "%3Fwatch=1", lines: alice, want: 200, has: `"code":403`},
		{path: inner + "/api/v1/namespaces/<mine>/configmaps%3Fwatch=1", lines: impersonating, want: 403},
		{path: inner + "/watchkeeper/v1/multiwatch%3Fwatch=/api/v1/configmaps", lines: alice, want: 400},
		{path: "/at/1s/api/v1/namespaces/<mine>/configmaps", lines: alice, want: 403},
		{path: "/at/1s/api/v1/namespaces/<mine>/configmaps", cert: "erin", lines: []string{"Impersonate-User: attack-admin"}, want: 403},
		{path: "/at/1s" + other, cert: "erin", want: 403},
		{path: "/at/1s/at/1s" + other, cert: "erin", want: 404},
		{path: "/at/1s/openapi/../api/v1/namespaces/<other>/secrets", cert: "erin", want: 404},
		{path: "/watchkeeper/v1/history", lines: alice, want: 403},
		{path: "/watchkeeper/v1/history/diff" + other, cert: "erin", want: 403},
		{path: "/watchkeeper/v1/history/versions" + other + "/" + secretText + "-cm", cert: "erin", want: 403},
		{path: "/watchkeeper/v1/history/changes?resource=configmaps&namespace=<other>", cert: "erin", want: 403},
		{path: "/watchkeeper/v1/history/counts?resource=configmaps", cert: "erin", want: 403},
		{path: "/watchkeeper/v1/history/export?resource=configmaps", cert: "erin", want: 403},
		{path: "/watchkeeper/v1/story/api/v1/namespaces/<mine>/configmaps/cm-a", lines: alice, want: 403},
		{path: "/watchkeeper/v1/story" + other + "/" + secretText + "-cm", cert: "erin", want: 403},
		{path: "/watchkeeper/v1/story/api/v1/namespaces/<mine>/configmaps/cm-a", cert: "erin", want: 200, has: `"denied":["`},
		{path: "/watchkeeper/v1/story/api/v1/namespaces/<mine>/configmaps/cm-a", want: 401},
		{path: "/watchkeeper/v1/findings", lines: alice, want: 403},
		{path: "/watchkeeper/v1/findings?namespace=<other>", cert: "erin", want: 403},
		{path: "/watchkeeper/v1/access?resource=configmaps", lines: alice, want: 200, has: `"namespaces":["attack-mine"]`},
		{path: "/watchkeeper/v1/access?resource=secrets", cert: "erin", want: 200, has: `"namespaces":[]`},
		{path: "/watchkeeper/v1/access?resource=secrets", lines: impersonating, want: 403},
		{path: "/watchkeeper/v1/access?resource=secrets", want: 401},
		{path: "/watchkeeper/v1/access?resource=x&version=v1/namespaces/<other>/secrets%3Flimit=1", lines: alice, want: 400},
		{path: "/watchkeeper/v1/openapi.json", want: 401},
		{path: "/api/v1/configmaps?access_token=<bob>", want: 401},
		{path: "/api/v1/namespaces/<mine>/configmaps", lines: append([]string{"Origin: https://evil.example"}, alice...), want: 403},
		{path: "/api/v1/namespaces/<mine>/configmaps", cert: "erin", lines: []string{"Sec-Fetch-Site: cross-site"}, want: 403},
		{path: "/api/v1/namespaces/<mine>/configmaps?watch=1", cert: "erin", lines: append(upgrade[:4:4], "Origin: https://evil.example"), want: 403},
		{path: "/api/v1/namespaces/<mine>/pods/x/exec?command=id", cert: "masters", lines: upgrade, want: 403},
	} {
		code, body := a.send(t, a.URL, test.cert, "GET "+test.path, test.lines, "")
		if code != test.want || !strings.Contains(body, test.has) || strings.Contains(body, secretText+"-") && code == 200 {
			t.Errorf("%s as %q %q: %d %.400s, want %d", test.path, test.cert, test.lines, code, body, test.want)
		}
	}
}

// past: a caller without the right to read the past does not get it as a replay.
func (a *attack) past(t *testing.T) {
	maps := api.CoreV1().ConfigMaps(a.mine)
	old, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "past"}, Data: map[string]string{"v": "attack-OLD"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "past", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	replay := "GET /api/v1/namespaces/<mine>/configmaps?watch=1&timeoutSeconds=1&speed=10000&resourceVersion=" + old.ResourceVersion
	code, body := a.send(t, a.URL, "", replay, []string{"Authorization: Bearer <alice>"}, "")
	if code != http.StatusForbidden || strings.Contains(body, old.Data["v"]) {
		t.Errorf("a replay without the right to read the past: %d %.300s", code, body)
	}
}

// logs: the log has no token, however verbose it is, and whatever went wrong.
func (a *attack) logs(t *testing.T) {
	for name := range a.tokens {
		a.send(t, a.URL, "", "GET /api/v1/namespaces/<mine>/configmaps?fields=data&limit=x&access_token=<"+name+">", []string{"Authorization: Bearer <" + name + ">"}, "")
		a.send(t, a.URL, "", "GET /api/v1/nodes/none/proxy/?access_token=<"+name+">", []string{"Authorization: Bearer <" + name + ">", "Connection: close"}, "")
		a.send(t, a.URL, "", "GET /api/v1/configmaps?access_token=<"+name+">", nil, "")
	}
	a.send(t, a.URL, "erin", "GET /api/v1/namespaces/<mine>/configmaps?fields=data&limit=x&access_token=<alice>", nil, "")
	for _, line := range strings.Split(a.Log(), "\n") {
		for name, token := range a.tokens {
			if strings.Contains(line, token) {
				t.Fatalf("the log has the token of %s: %.200s", name, line)
			}
		}
	}
}
