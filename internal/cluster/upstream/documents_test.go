// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// TestLacks: only what the documents say is missing is known to be.
func TestLacks(t *testing.T) {
	d := NewDocuments(nil)
	pods, foos := kube.Resource{Version: "v1", Name: "pods"}, kube.Resource{Version: "v1", Name: "foos"}
	bindings := kube.Resource{Version: "v1", Name: "bindings"} // can only be created
	apps, metrics := kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}, kube.Resource{Group: "metrics.k8s.io", Version: "v1beta1", Name: "pods"}
	check := func(lacking ...kube.Resource) {
		t.Helper()
		for _, id := range []kube.Resource{pods, foos, bindings, apps, metrics} {
			want := false
			for _, l := range lacking {
				want = want || l == id
			}
			if d.Lacks(id) != want {
				t.Errorf("lacks %v: %v", id, !want)
			}
		}
	}
	check()
	set := func(path, body string) { d.set(documentKey{path, false}, &Document{Body: []byte(body)}) }
	set("/api", `{"versions":["v1"]}`)
	set("/apis", `{"groups":[{"versions":[{"groupVersion":"apps/v1"}]}]}`)
	check(metrics)
	set("/api/v1", `{"resources":[{"name":"pods","verbs":["get","list"]},{"name":"bindings","verbs":["create"]}]}`)
	check(metrics, foos, bindings)
}
