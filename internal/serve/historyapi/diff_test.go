// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

const deploymentDiff = "/diff/apis/apps/v1/deployments"

func TestDiff(t *testing.T) {
	f := newFixture(t)
	brief := func(d api.Differences) (out []string) {
		for _, i := range d.Items {
			s := fmt.Sprintf("%s %s %s>%s %s %d", i.Type, i.Path, i.From, i.To, strings.Join(i.Summary, "; "), len(i.Changes))
			if i.Recreated {
				s += " recreated"
			}
			out = append(out, s+i.Selection)
		}
		return append(out, fmt.Sprint(d.Folded, " folded, ", d.Unchanged, " unchanged"))
	}
	const ns = "/apis/apps/v1/namespaces/default/deployments/"
	for _, tc := range []struct {
		path string
		want []string
	}{
		{deploymentDiff + "?from=rv:100&to=rv:120", []string{"MODIFIED " + ns + "web 90>120 replicas 3 → 5; image nginx:1.25 → 1.27 2", "0 folded, 2 unchanged"}},
		{deploymentDiff + "?from=" + f.when(10) + "&to=" + f.when(12.5), []string{"1 folded, 2 unchanged"}},
		{deploymentDiff + "?from=rv:100&to=rv:200", []string{
			"DELETED " + ns + "old 91> deleted 0",
			"MODIFIED " + ns + "web 90>165 deleted and created again; replicas 3 → 2; image nginx:1.25 → 1.27 3 recreated",
			"MODIFIED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1",
			"0 folded, 0 unchanged"}},
		{"/diff/apis/apps/v1/namespaces/kube-system/deployments?from=rv:100&to=rv:200", []string{
			"MODIFIED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1", "0 folded, 0 unchanged"}},
		{deploymentDiff + "?from=rv:100&to=rv:200&labelSelector=app%3Ddns", []string{
			"DELETED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1left", "0 folded, 0 unchanged"}},
		{deploymentDiff + "?from=rv:100&to=rv:200&labelSelector=app%3Dother", []string{
			"ADDED /apis/apps/v1/namespaces/kube-system/deployments/dns 92>135 label app dns → other 1entered", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/pods?from=rv:100&to=rv:110&fieldSelector=spec.nodeName%3Dn1", []string{"ADDED /api/v1/namespaces/default/pods/a >105 created 0", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/pods?from=rv:100&to=rv:110&fieldSelector=metadata.namespace%3Dkube-system", []string{"ADDED /api/v1/namespaces/kube-system/pods/b >106 created 0", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes/n1?from=rv:101&to=rv:150", []string{"MODIFIED /api/v1/nodes/n1 101>150 Ready → Ready unknown (R) 1", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes/n1?from=rv:101&to=rv:102&noise=show", []string{"MODIFIED /api/v1/nodes/n1 101>102 only noise 2", "0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes/none?from=rv:101&to=rv:102", []string{"0 folded, 0 unchanged"}},
		{"/diff/api/v1/nodes?from=rv:150&to=rv:101", []string{"MODIFIED /api/v1/nodes/n1 150>101 Ready unknown → Ready (R) 1", "0 folded, 0 unchanged"}},
	} {
		if diff := cmp.Diff(tc.want, brief(ask[api.Differences](f, tc.path))); diff != "" {
			t.Errorf("%s: %s", tc.path, diff)
		}
	}
	var got []string
	for more := ""; ; {
		d := ask[api.Differences](f, deploymentDiff+"?from=59m50s&limit=1"+more)
		if d.From.ResourceVersion != "110" && d.From.ResourceVersion != "111" && d.From.ResourceVersion != "112" || d.To.ResourceVersion != "200" || !d.To.Time.Equal(f.At(100)) {
			t.Errorf("from %v to %v", d.From, d.To)
		}
		for _, i := range d.Items {
			got = append(got, i.Name)
		}
		if d.Continue == "" {
			break
		}
		more = "&continue=" + d.Continue
	}
	if diff := cmp.Diff([]string{"old", "web", "dns"}, got); diff != "" {
		t.Error(diff)
	}
}
