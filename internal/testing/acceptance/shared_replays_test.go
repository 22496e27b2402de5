// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// An openWatch is a watch that was opened, and what it sent.
type openWatch struct {
	name string
	seen logtest.Log
	done chan struct{} // closed at its end
}

func (s *openWatch) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// open opens a watch.
func (a *attack) open(t *testing.T, path string, lines []string) *openWatch {
	t.Helper()
	conn := a.connect(t, a.URL, "")
	host := strings.TrimPrefix(a.URL, "https://")
	text := a.fill("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.ReplaceAll(strings.Join(lines, "\r\n"), "<host>", host) + "\r\n\r\n")
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil || response.StatusCode/100 > 2 {
		t.Fatalf("%s: %v %+v", path, err, response)
	}
	s := &openWatch{name: path, done: make(chan struct{})}
	body := io.Reader(response.Body)
	if response.StatusCode == http.StatusSwitchingProtocols {
		body = in
	}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(&s.seen, body) // a WebSocket may end in any way
	}()
	return s
}

// pastRevocation: what shows the past ends when the right to read the past is gone.
func (a *attack) pastRevocation(t *testing.T) {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.mine, Name: "revoked"}
	if err := a.bind(t.Context(), "revoked-past", account); err != nil {
		t.Fatal(err)
	}
	token := []string{"Authorization: Bearer <revoked>"}
	maps := api.CoreV1().ConfigMaps(a.mine)
	first, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "replayed"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "replayed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	at := "/at/rv:" + first.ResourceVersion + "/api/v1/namespaces/<mine>/configmaps"
	eventually(t, "the recorded past", func() bool {
		code, _ := a.send(t, a.URL, "", "GET "+at, token, "")
		return code == http.StatusOK
	})
	streams := []*openWatch{
		a.open(t, at+"?watch=1", token),
		a.open(t, at+"?watch=1&speed=0.001", token),
		a.open(t, "/api/v1/namespaces/<mine>/configmaps?watch=1&speed=0.001&resourceVersion="+first.ResourceVersion, token),
	}
	now := a.open(t, "/api/v1/namespaces/<mine>/configmaps?watch=1&resourceVersion=0", token)
	if err := api.RbacV1().ClusterRoleBindings().Delete(t.Context(), "attack-past-revoked", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		eventually(t, "the end of "+s.name, s.over)
	}
	if now.over() {
		t.Error("the watch of the present ended, too")
	}
}

// revocation: every kind of stream ends when its right is gone, and shows nothing
// that happens later.
func (a *attack) revocation(t *testing.T) {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.mine, Name: "revoked"}
	if err := a.bind(t.Context(), "revoked", account); err != nil {
		t.Fatal(err)
	}
	token := []string{"Authorization: Bearer <revoked>"}
	eventually(t, "the right", func() bool {
		code, _ := a.send(t, a.URL, "", "GET /api/v1/namespaces/<mine>/configmaps?resourceVersion=0&limit=1", token, "")
		return code == http.StatusOK
	})
	const watch = "/api/v1/namespaces/<mine>/configmaps?watch=1&resourceVersion=0"
	var streams []*openWatch
	for path, lines := range map[string][]string{
		watch:                             token,
		watch + "&fields=metadata.name":   token,
		watch + "&labelSelector=!nothing": token,
		"/watchkeeper/v1/multiwatch?watch=" + strings.ReplaceAll(strings.ReplaceAll(watch, "?", "%3F"), "&", "%26"): token,
		watch + "&a=websocket": append(upgrade[:len(upgrade):len(upgrade)],
			"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.<revoked64>, base64.binary.k8s.io"),
	} {
		streams = append(streams, a.open(t, path, lines))
	}
	event := func(name string) {
		if _, err := api.CoreV1().ConfigMaps(a.mine).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	event("before")
	for _, s := range streams {
		eventually(t, "an event in "+s.name, func() bool { return strings.Contains(s.seen.String(), `"before"`) })
	}
	if err := api.RbacV1().RoleBindings(a.mine).Delete(t.Context(), "revoked", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		eventually(t, "the end of "+s.name, s.over)
	}
	event("after")
	code, body := a.send(t, a.URL, "", "GET "+watch+"&timeoutSeconds=1", token, "")
	if code != http.StatusForbidden {
		t.Errorf("a watch afterwards: %d %.300s", code, body)
	}
	for _, s := range streams {
		if strings.Contains(s.seen.String(), `"after"`) {
			t.Errorf("%s shows an event after its end", s.name)
		}
		if strings.Contains(s.name, "multiwatch") && !strings.Contains(s.seen.String(), `"code":403`) {
			t.Errorf("the multiwatch does not say why it ended: %.300s", s.seen.String())
		}
	}
}
