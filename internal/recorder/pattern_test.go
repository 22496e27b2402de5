// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// clusterResources are the resources of a cluster.
var clusterResources = []kube.Resource{
	{Version: "v1", Name: "pods"}, {Version: "v1", Name: "services"}, {Version: "v1", Name: "events"}, {Version: "v1", Name: "secrets"},
	{Version: "v1", Name: "configmaps"},
	{Group: "apps", Version: "v1", Name: "deployments"}, {Group: "apps", Version: "v1", Name: "replicasets"},
	{Group: "autoscaling", Version: "v2", Name: "horizontalpodautoscalers"},
	{Group: "coordination.k8s.io", Version: "v1", Name: "leases"},
	{Group: "events.k8s.io", Version: "v1", Name: "events"},
	{Group: "example.com", Version: "v1", Name: "widgets"}, {Group: "stable.example.com", Version: "v1", Name: "crontabs"},
	{Group: "serving.knative.dev", Version: "v1", Name: "services"},
}

func TestSelect(t *testing.T) {
	for _, test := range []struct {
		include, exclude string
		secrets          bool
		want             string
	}{
		{"core", "", false, "pods services events deployments.apps replicasets.apps horizontalpodautoscalers.autoscaling"},
		{"core", "events,*.apps", true, "pods services secrets horizontalpodautoscalers.autoscaling"},
		{"pods", "", false, "pods"},
		{" Pods ", "", false, "pods"},
		{"services", "", false, "services services.serving.knative.dev"},
		{"deployments.apps", "", false, "deployments.apps"},
		{"deployments.example.com", "", false, ""},
		{"apps/*", "", false, "deployments.apps replicasets.apps"},
		{"apps/*s", "apps/r*", false, "deployments.apps"},
		{"core/*", "", false, "pods services events configmaps"},
		{"core/p*", "", false, "pods"},
		{"*.example.com", "", false, "widgets.example.com crontabs.stable.example.com"},
		{"events", "", false, "events"},
		{"events", "core/events", false, "events.events.k8s.io"},
		{"events.events.k8s.io", "", false, "events.events.k8s.io"},
		{"*", "", false, "pods services events configmaps deployments.apps replicasets.apps horizontalpodautoscalers.autoscaling " +
			"widgets.example.com crontabs.stable.example.com services.serving.knative.dev"},
		{"*,leases", "core/*,core", true, "secrets leases.coordination.k8s.io events.events.k8s.io widgets.example.com crontabs.stable.example.com services.serving.knative.dev"},
		{"*", "*", false, ""},
		{"", "", true, "secrets"},
		{"", "", false, ""},
	} {
		split := func(s string) []string {
			return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
		}
		s, err := Select(split(test.include), split(test.exclude), test.secrets)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range s.Choose(clusterResources) {
			got = append(got, r.GroupResource())
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q without %q (-want +got):\n%s", test.include, test.exclude, diff)
		}
	}
}

func TestSelectRefuses(t *testing.T) {
	for _, test := range []struct{ pattern, want string }{
		{"", "is not a pattern"},
		{"pods,deployments", "is not a pattern"},
		{"apps/", "GROUP/RESOURCE"},
		{"/pods", "GROUP/RESOURCE"},
		{"apps/v1/deployments", "GROUP/RESOURCE"},
		{"pods.", "RESOURCE.GROUP"},
		{".apps", "RESOURCE.GROUP"},
		{"po ds", "must consist of letters"},
		{"secrets", "--record-secrets"},
		{"core/secrets", "--record-secrets"},
	} {
		if _, err := Select([]string{test.pattern}, nil, false); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.pattern, err, test.want)
		}
	}
}

func TestUnmatched(t *testing.T) {
	s, err := Select([]string{"core", "pods", "gizmos", "*.example.org"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gizmos", "*.example.org"}, s.Unmatched(clusterResources)); diff != "" {
		t.Error(diff)
	}
}
