// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
)

var update = flag.Bool("update", false, "write the findings of testdata anew")

// now is the moment of all tests. "-90s" in a test's objects is the time so long before.
var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// resourceOf has the resources of the kinds in tests.
var resourceOf = map[string]kube.Resource{
	"Pod": {Version: "v1", Name: "pods"}, "Node": {Version: "v1", Name: "nodes"}, "Event": {Version: "v1", Name: "events"},
	"Namespace": {Version: "v1", Name: "namespaces"}, "PersistentVolumeClaim": {Version: "v1", Name: "persistentvolumeclaims"},
	"Deployment": {Group: "apps", Version: "v1", Name: "deployments"}, "ReplicaSet": {Group: "apps", Version: "v1", Name: "replicasets"},
	"ReplicationController": {Version: "v1", Name: "replicationcontrollers"},
	"StatefulSet":           {Group: "apps", Version: "v1", Name: "statefulsets"}, "DaemonSet": {Group: "apps", Version: "v1", Name: "daemonsets"},
	"Job": {Group: "batch", Version: "v1", Name: "jobs"}, "CronJob": {Group: "batch", Version: "v1", Name: "cronjobs"},
	"HorizontalPodAutoscaler": {Group: "autoscaling", Version: "v2", Name: "horizontalpodautoscalers"},
	"PodDisruptionBudget":     {Group: "policy", Version: "v1", Name: "poddisruptionbudgets"},
	"EndpointSlice":           {Group: "discovery.k8s.io", Version: "v1", Name: "endpointslices"},
	"APIService":              {Group: "apiregistration.k8s.io", Version: "v1", Name: "apiservices"},
	"Widget":                  {Group: "example.com", Version: "v1", Name: "widgets"},
}

// objects parses the objects of a test. An owner is written as "owner: ReplicaSet/web-1".
func objects(t testing.TB, text string) (all []*scan.Object) {
	t.Helper()
	for i, doc := range strings.Split(text, "\n---\n") {
		tree := map[string]any{}
		if err := yaml.Unmarshal([]byte(ages(doc)), &tree); err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		key, _ := tree["key"].(string)
		delete(tree, "key")
		meta, _ := tree["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		if owner, ok := tree["owner"].(string); ok {
			kind, name, _ := strings.Cut(owner, "/")
			meta["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": kind, "name": name, "uid": "uid-" + name, "controller": true}}
			delete(tree, "owner")
		}
		meta["name"], meta["resourceVersion"] = kube.Key(key).Name(), fmt.Sprint(i+1)
		if ns := kube.Key(key).Namespace(); ns != "" {
			meta["namespace"] = ns
		}
		if meta["uid"] == nil {
			meta["uid"] = "uid-" + kube.Key(key).Name()
		}
		if meta["creationTimestamp"] == nil {
			meta["creationTimestamp"] = now.Add(-time.Hour).Format(time.RFC3339)
		}
		tree["metadata"] = meta
		if tree["apiVersion"] == nil {
			tree["apiVersion"] = "v1"
		}
		// In the order of the API server, so that a kind is found by its text.
		b, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if b, err = yaml.YAMLToJSON(b); err != nil {
			t.Fatal(err)
		}
		o, err := scan.ParseObject(string(b))
		if err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		all = append(all, o)
	}
	return all
}

// ages replaces words such as @-90s by the time so long before now.
func ages(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "@-") {
		if i == 0 {
			b.WriteString(part)
			continue
		}
		end := strings.IndexAny(part, " ,}]\n\"'")
		if end < 0 {
			end = len(part)
		}
		age, err := time.ParseDuration(part[:end])
		if err != nil {
			panic(err)
		}
		b.WriteString(`"` + now.Add(-age).Format(metav1.RFC3339Micro) + `"` + part[end:])
	}
	return b.String()
}

// deleted is when Pods of the controllers of vanished.txt were deleted.
var deleted = map[string]time.Time{
	"uid-all-1": now.Add(-5 * time.Minute), "uid-some": now.Add(-2 * time.Minute), "uid-just-1": now.Add(-20 * time.Second), "uid-written": now.Add(-5 * time.Minute),
}

// find returns the findings of some objects.
func find(all []*scan.Object) []*findings.Finding {
	byKey := map[string]*scan.Object{}
	resources := []kube.Resource{}
	for _, o := range all {
		r := resourceOf[o.Kind]
		byKey[r.GroupResource()+"/"+string(o.Key)] = o
		if !slices.Contains(resources, r) {
			resources = append(resources, r)
		}
	}
	get := func(resource string, key kube.Key) *scan.Object { return byKey[resource+"/"+string(key)] }
	s := &findings.State{At: now, Get: get, Deleted: func(string) map[string]time.Time { return deleted }}
	findings.Order(resources)
	for _, r := range resources {
		for _, o := range all {
			if resourceOf[o.Kind] == r {
				s.Add(r, o)
			}
		}
		s.AllNodes = s.AllNodes || r.Name == "nodes"
		s.AllPods = s.AllPods || r.Name == "pods"
	}
	return s.Find()
}

// show writes a finding as text.
func show(f *findings.Finding) string {
	var b strings.Builder
	since := "?"
	if !f.Since.IsZero() {
		since = now.Sub(f.Since).String()
	}
	if f.Others > 0 {
		since += fmt.Sprintf(", %d since %s", f.Others, now.Sub(f.OthersSince))
	}
	fmt.Fprintf(&b, "%s %s %s %s: %s (%s)\n", f.Rule, f.Severity, f.Subject.Kind, f.Subject.Key, f.Title, since)
	for _, m := range f.Messages {
		fmt.Fprintf(&b, "  says %s\n", m)
	}
	names := func(refs []findings.Ref) string {
		var all []string
		for _, r := range refs {
			all = append(all, r.Kind+" "+string(r.Key))
		}
		return strings.Join(all, ", ")
	}
	fmt.Fprintf(&b, "  touches %s\n", names(f.Objects))
	if len(f.Related) > 1 {
		fmt.Fprintf(&b, "  related %s\n", names(f.Related[1:]))
	}
	return b.String()
}

// TestRules finds what testdata/RULE.txt says: objects, a line ====, and the findings.
func TestRules(t *testing.T) {
	tested := map[string]bool{findings.Unobserved: true}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, want, _ := strings.Cut(string(b), "\n====\n")
			all := objects(t, text)
			got := ""
			for _, f := range find(all) {
				got += show(f)
				tested[f.Rule] = true
			}
			if *update {
				if err := os.WriteFile(file, []byte(text+"\n====\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			// The order of the objects does not matter.
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			again := ""
			for _, f := range find(all) {
				again += show(f)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("in another order: %s", diff)
			}
		})
	}
	for _, id := range findings.Rules() {
		if !tested[id] {
			t.Errorf("no test has a finding of the rule %s", id)
		}
	}
}

// TestUnavailable: whichever rule has found something of the Pods of a workload without available
// ones, the finding is critical, and how many exist is told.
func TestUnavailable(t *testing.T) {
	b, err := os.ReadFile("testdata/unavailable.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(b), "\n====\n")
	rules, size := map[string]bool{}, map[findings.Ref]bool{}
	number := regexp.MustCompile(`\d of \d (Pods )?exist|, 0 available`)
	all := find(objects(t, text))
	for _, f := range all {
		rules[f.Rule] = true
		size[f.Subject] = size[f.Subject] || number.MatchString(f.Title)
	}
	for _, f := range all {
		if f.Severity != api.SeverityCritical || !size[f.Subject] {
			t.Errorf("%s without the severity or the number", show(f))
		}
	}
	others := []string{"node", "node-deleted", "endpoints", "apiservice", "claim", "job", "autoscaler", "budget", "short"}
	for _, id := range findings.Rules() {
		if !rules[id] && !slices.Contains(others, id) {
			t.Errorf("no workload is found by the rule %s", id)
		}
	}
}

// TestUnknowns: resources that are not observed are one finding for each reason.
func TestUnknowns(t *testing.T) {
	got := ""
	for _, f := range findings.Unknowns([]findings.Unknown{
		{Resource: "pods", Reason: "no answer", Since: now.Add(-time.Minute)},
		{Resource: "nodes", Reason: "no answer", Since: now.Add(-2 * time.Minute)},
		{Resource: "events", Reason: "a gap"},
	}) {
		got += show(f)
	}
	want := `unobserved warning Recording watchkeeper: 2 resources not observed: nodes, pods (2m0s)
  says no answer
  touches nodes , pods 
unobserved warning Recording watchkeeper: 1 resource not observed: events (?)
  says a gap
  touches events 
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCompare: severity, then the number of objects, then the latest.
func TestCompare(t *testing.T) {
	finding := func(severity string, n int, age time.Duration) *findings.Finding {
		return &findings.Finding{Severity: severity, Objects: make([]findings.Ref, n), Since: now.Add(-age)}
	}
	want := []*findings.Finding{
		finding(api.SeverityCritical, 2, time.Hour), finding(api.SeverityCritical, 1, time.Minute), finding(api.SeverityCritical, 1, time.Hour),
		finding(api.SeverityWarning, 9, time.Second), finding(api.SeverityInfo, 10, 0),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, findings.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// FuzzFind: no object makes a rule panic, and what is found has a subject, a title and a
// severity.
func FuzzFind(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		text, _, _ := strings.Cut(string(b), "\n====\n")
		all := objects(f, text)
		for i, o := range all {
			f.Add(o.JSON, all[(i+1)%len(all)].JSON, o.Kind, all[(i+1)%len(all)].Kind)
		}
	}
	f.Fuzz(func(t *testing.T, a, b, kindA, kindB string) {
		var all []*scan.Object
		for text, kind := range map[string]string{a: kindA, b: kindB} {
			o, err := scan.ParseObject(text)
			if err != nil {
				continue
			}
			if o.Kind = kind; resourceOf[kind].Name != "" {
				all = append(all, o)
			}
		}
		for _, found := range find(all) {
			if found.Title == "" || found.Severity == "" || len(found.Objects) == 0 {
				t.Errorf("%+v", found)
			}
		}
	})
}
