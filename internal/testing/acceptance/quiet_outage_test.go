// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const template = `
apiVersion: v1
kind: PodTemplate
metadata: {name: "NAME", namespace: "NAMESPACE"}
template: {spec: {containers: [{name: c, image: i}]}}
`

// TestQuietResourceThroughOutage: the list of a resource without changes is passed through,
// and has an RV that the gateway's head has not reached. A watch from there outlives a restart
// of the API server, in which the API server loses its events of before.
func TestQuietResourceThroughOutage(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quietOutage)
	ns := namespace(t)
	podTemplate := func(name string) {
		t.Helper()
		apply(t, strings.NewReplacer("NAMESPACE", ns, "NAME", name).Replace(template))
	}
	podTemplate("before")
	shared := startShared(t)
	token, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type mode struct {
		name   string
		client *http.Client
		url    string
		curl   []string
		frames <-chan frame
	}
	modes := []*mode{
		{name: "local", client: http.DefaultClient, url: gw.URL},
		{
			name: "shared", url: shared.URL, curl: []string{"--cacert", shared.CA, "-H", "Authorization: Bearer " + token},
			client: newSharedUser(t, shared, "admin", token).clients[0],
		},
	}
	list := func(m *mode, query string) (rv uint64) {
		t.Helper()
		eventually(t, "a list with the object", func() bool {
			a, err := ask(t.Context(), m.client, m.url+"/api/v1/podtemplates"+query, "")
			var l struct {
				Metadata struct{ ResourceVersion string }
			}
			if err != nil || !strings.Contains(a.body, `"name":"before"`) || json.Unmarshal([]byte(a.body), &l) != nil {
				return false
			}
			rv, err = kube.ParseRV(l.Metadata.ResourceVersion)
			return err == nil
		})
		return rv
	}
	cached := func(m *mode) uint64 { t.Helper(); return list(m, "?resourceVersion=0") }
	for _, m := range modes {
		cached(m)
	}
	// The API server sends a bookmark a second after a watch begins, and the next one a
	// minute later. They move the head, too.
	time.Sleep(2 * time.Second)
	outages[quietOutage].Ready()
	for _, m := range modes {
		configMap(t, ns, "elsewhere-"+m.name, "red")
		rv := list(m, "")
		if head := cached(m); head >= rv {
			t.Errorf("%s: the head %d is not behind the list, at %d", m.name, head, rv)
		}
		m.frames = curlWatch(t, m.url+"/api/v1/namespaces/"+ns+"/podtemplates?watch=1&resourceVersion="+kube.FormatRV(rv), m.curl...)
		for deadline := time.Now().Add(20 * time.Second); cached(m) < rv; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Logf("%s: the head %d has not reached %d", m.name, cached(m), rv)
				break
			}
		}
	}
	configMap(t, ns, "elsewhere", "red") // so that the RVs of the watches are before the end of the gap
	outage(t, quietOutage, nil)
	podTemplate("after")
	kubectl(t, "-n", ns, "delete", "podtemplate", "before")
	for _, m := range modes {
		next(t, m.frames, "ADDED", "after", nil)
		next(t, m.frames, "DELETED", "before", nil)
	}
}
