// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// fieldLabels are all field labels that some built-in kind supports, and some
// that none supports.
var fieldLabels = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "name", "spec.nothing",
	"spec.nodeName", "spec.host", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
	"status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
	"spec.unschedulable", "type", "spec.clusterIP", "spec.type", "status.replicas", "status.successful",
	"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
	"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
	"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
	"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
	"reason", "reportingComponent", "reportingController", "source",
	"spec.signerName", "spec.podName", "spec.driver", "spec.leaseName",
}

// fieldValues are values to try for labels that differ from the path of their
// value.
var fieldValues = map[string][]string{
	"spec.host":          {"node-0"},
	"spec.hostNetwork":   {"true", "false"},
	"spec.unschedulable": {"true", "false"},
	"status.podIPs":      {"127.0.0.1"},
	"status.successful":  {"0", "1", "2"},
	"source":             {"scheduler-of-old", "example.com/new"},
}

// TestFieldSelectors selects objects of every built-in resource and version by
// every field, at the API server and through the gateway, with values that match
// and values that do not. Of each resource it also tries
// WATCHKEEPER_FIELD_REFUSALS of the unsupported fields. The gateway has to support
// exactly the fields that the API server supports.
func TestFieldSelectors(t *testing.T) {
	clustertest.SkipShort(t)
	ns := namespace(t)
	apply(t, strings.ReplaceAll(ofThisVersion(t, fieldObjects(t)), "NAMESPACE", ns))
	for _, patch := range [][]string{
		{"pod/fields-host", `{"status":{"nominatedNodeName":"node-1"}}`},
		{"job/fields", `{"status":{"succeeded":2}}`},
		{"rc/fields", `{"status":{"replicas":3}}`},
	} {
		kubectl(t, "-n", ns, "patch", patch[0], "--subresource=status", "--type=merge", "-p", patch[1])
	}
	kubectl(t, "cordon", "node-2")
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "uncordon", "node-2").Run()
	})

	total := fieldComparison{}
	var none []string
	for _, resource := range builtInResources(t) {
		t.Run(resource.String(), func(t *testing.T) {
			c := compareFields(t, resource)
			if c.objects == 0 {
				none = append(none, resource.String())
			}
			total.accepted += c.accepted
			total.refused += c.refused
			total.objects += c.objects
		})
	}
	t.Logf("%d lists and %d refusals are the same, over %d objects; no objects of %s", total.accepted, total.refused, total.objects, strings.Join(none, ", "))
}

// A fieldComparison counts the lists compared.
type fieldComparison struct{ accepted, refused, objects int }

func compareFields(t *testing.T, resource kube.Resource) (c fieldComparison) {
	t.Helper()
	client, up := direct(t)
	path := resource.Path() + "?resourceVersion=0"
	cached(t, gw, path)
	alike(t, gw, "all", path)
	_, body := get(t, client, up+path)
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	c.objects = len(list.Items)
	var all, refused []string
	selector := func(label, operator, value string) string {
		return path + "&fieldSelector=" + url.QueryEscape(label+operator+fields.EscapeValue(value))
	}
	for _, label := range fieldLabels {
		code, _ := get(t, client, up+selector(label, "=", "no, such=value"))
		if _, known := resource.Field(label); known != (code == http.StatusOK) {
			t.Errorf("%s: the API server answers %d, supported here: %v", label, code, known)
		}
		if code != http.StatusOK {
			refused = append(refused, label)
			continue
		}
		all = append(all, selector(label, "=", "no, such=value"), selector(label, "!=", "no, such=value"), selector(label, "=", ""), selector(label, "!=", ""))
		for _, value := range someValues(list.Items, label) {
			all = append(all, selector(label, "=", value), selector(label, "!=", value), selector(label, "==", value))
		}
	}
	c.accepted = len(all)
	// Each run compares other refusals.
	rand.Shuffle(len(refused), func(i, j int) { refused[i], refused[j] = refused[j], refused[i] })
	for _, label := range refused[:min(len(refused), int(clustertest.FromEnv(t, "WATCHKEEPER_FIELD_REFUSALS", 5)))] {
		all = append(all, selector(label, "=", "no, such=value"), selector(label, "!=", ""))
		c.refused += 2
	}
	before := servedLists(t, gw)
	alike(t, gw, "selected", all...)
	if served := servedLists(t, gw) - before; served < c.accepted {
		t.Errorf("only %d of %d lists are from the cache", served, c.accepted)
	}
	return c
}

// someValues returns a few values that objects have in a field, and some others.
func someValues(items []json.RawMessage, label string) []string {
	values := map[string]bool{}
	for _, item := range items {
		if v := scan.Lookup(string(item), strings.Split(label, ".")...); v != "" && len(values) < 3 {
			values[v] = true
		}
	}
	return append(slices.Sorted(maps.Keys(values)), fieldValues[label]...)
}

// builtInResources returns the built-in resources of all groups and versions that
// can be listed and watched.
func builtInResources(t *testing.T) []kube.Resource {
	t.Helper()
	client, up := direct(t)
	decode := func(path string, into any) {
		t.Helper()
		code, body := get(t, client, up+path)
		if err := json.Unmarshal([]byte(body), into); code != 200 || err != nil {
			t.Fatalf("%s: %d %v", path, code, err)
		}
	}
	var groups struct {
		Groups []struct {
			Name     string
			Versions []struct{ Version string }
		}
	}
	decode("/apis", &groups)
	paths := []string{"/api/v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			paths = append(paths, "/apis/"+g.Name+"/"+v.Version)
		}
	}
	var out []kube.Resource
	for _, path := range paths {
		var found struct {
			GroupVersion string
			Resources    []struct {
				Name  string
				Verbs []string
			}
		}
		decode(path, &found)
		group, version, ok := strings.Cut(found.GroupVersion, "/")
		if !ok {
			group, version = "", found.GroupVersion
		}
		if strings.HasSuffix(group, "example.com") {
			continue
		}
		for _, r := range found.Resources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
				out = append(out, kube.Resource{Group: group, Version: version, Name: r.Name})
			}
		}
	}
	return out
}

var servedList = regexp.MustCompile(`watchkeeper_requests_total\{code="200",source="cache",verb="list"\} (\S+)`)

// servedLists returns how many lists a gateway has served from its cache.
func servedLists(t *testing.T, g *clustertest.Gateway) int {
	t.Helper()
	_, body := get(t, http.DefaultClient, g.Admin+"/metrics")
	found := servedList.FindStringSubmatch(body)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// cached waits until a gateway serves a list from its cache. The gateway passes
// lists of a new resource through until it has cached the resource.
func cached(t *testing.T, g *clustertest.Gateway, path string) {
	t.Helper()
	eventually(t, "a list from the cache of "+path, func() bool {
		before := servedLists(t, g)
		get(t, http.DefaultClient, g.URL+path)
		return servedLists(t, g) > before
	})
}
