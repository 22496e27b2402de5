// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
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
		{"Secret", "--record-secrets"},
	} {
		if _, err := Select([]string{test.pattern}, nil, false); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.pattern, err, test.want)
		}
	}
}

// discovered returns clusterResources with other names.
func discovered() upstream.Preferred {
	found := upstream.Preferred{Kinds: map[kube.Resource]string{}, Names: map[kube.Resource][]string{}}
	for _, id := range clusterResources {
		singular := strings.TrimSuffix(id.Name, "s")
		found.Kinds[id] = singular
		found.Names[id] = []string{singular, singular}
	}
	for name, short := range map[string]string{"pods": "po", "deployments": "deploy", "widgets": "pods"} {
		for id := range found.Kinds {
			if id.Name == name {
				found.Names[id] = append(found.Names[id], short)
			}
		}
	}
	return found
}

// TestResolve: resources can have any of the names that kubectl accepts. A name of a
// resource has precedence over a short name.
func TestResolve(t *testing.T) {
	for _, test := range []struct{ include, exclude, want string }{
		{"po", "", "pods"},
		{"Pod", "", "pods"},
		{"pods", "", "pods"},
		{"deploy", "", "deployments.apps"},
		{"Deployment.apps", "", "deployments.apps"},
		{"apps/deploy", "", "deployments.apps"},
		{"deploy.example.com", "", ""},
		{"service", "", "services services.serving.knative.dev"},
		{"*", "deploy,po,service,core/*,*.example.com,replicaset,hpa,horizontalpodautoscaler,event", ""},
		{"secret.example.com", "", ""},
	} {
		sel, err := Select(strings.Split(test.include, ","), strings.FieldsFunc(test.exclude, func(r rune) bool { return r == ',' }), false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range sel.resolve(discovered()).Choose(clusterResources) {
			got = append(got, r.GroupResource())
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q without %q (-want +got):\n%s", test.include, test.exclude, diff)
		}
	}
}

func TestUnmatched(t *testing.T) {
	s, err := Select([]string{"core", "pods", "po", "podz", "podz", "gizmos", "*.example.org", "deployment.apps"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	names, others := s.resolve(discovered()).unmatched(clusterResources)
	got := map[string][]string{}
	for _, p := range names {
		got["names"] = append(got["names"], notServed(p, discovered()).Error())
	}
	for _, p := range others {
		got["others"] = append(got["others"], p.text)
	}
	if diff := cmp.Diff(map[string][]string{
		"names":  {`"podz" matches no resource of the API server: did you mean pods?`, `"gizmos" matches no resource of the API server`},
		"others": {"*.example.org"},
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"pods", "pods", 0}, {"podz", "pods", 1}, {"pod", "pods", 1}, {"dpeloy", "deploy", 2}, {"", "po", 2}, {"kitten", "sitting", 3}} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("%s to %s: %d", test.a, test.b, got)
		}
		if got := distance(test.b, test.a); got != test.want {
			t.Errorf("%s to %s: %d", test.b, test.a, got)
		}
	}
}
