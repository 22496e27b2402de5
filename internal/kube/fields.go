// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// BuiltIn reports whether the resource is one of the API server's own as far as
// the table knows.
func (r Resource) BuiltIn() bool { return slices.Contains(builtIn[r.Group], r.Name) }

// Field returns the value that a field selector compares for label, such as
// "spec.nodeName"; a field that is not there is "". ok is false when the
// resource is none of the API server's own, or has no such selectable field as
// far as this table knows: whether that is an error is the API server's to say.
//
// The table is the API server's as of Kubernetes 1.36. The versions of a
// resource do not differ in it.
func (r Resource) Field(label string) (value func(*Object) string, ok bool) {
	if !r.BuiltIn() {
		return nil, false
	}
	own := selectable[r.GroupResource()]
	switch {
	case label == "metadata.name":
		return func(o *Object) string { return o.Key.Name() }, true
	case label == "metadata.namespace" && !own.noNamespace:
		// Also of resources without namespaces: it is "" then.
		return func(o *Object) string { return o.Key.Namespace() }, true
	}
	f, ok := own.fields[label]
	if !ok {
		return nil, false
	}
	return PathValue(f.zero, f.paths...), true
}

// PathValue returns a function that looks an object's value up at paths such as
// "spec.nodeName", of which the first that leads to something counts, and that
// returns zero if none does.
func PathValue(zero string, paths ...string) func(*Object) string {
	names := make([][]string, len(paths))
	for i, p := range paths {
		names[i] = strings.Split(p, ".")
	}
	return func(o *Object) string {
		for _, path := range names {
			if v := Lookup(o.JSON, path...); v != "" {
				return v
			}
		}
		return zero
	}
}

// SimplePath returns the path, such as "spec.color", of a JSONPath that is member
// names only, such as ".spec.color". The definitions of custom resources have
// JSONPaths: little else in the fields to select by, anything in columns.
func SimplePath(jsonPath string) (path string, ok bool) {
	if !simplePath.MatchString(jsonPath) {
		return "", false
	}
	return jsonPath[1:], true
}

var simplePath = regexp.MustCompile(`^(\.[A-Za-z0-9_-]+)+$`)

// builtIn lists the API server's own resources that can be listed and watched,
// by group.
var builtIn = map[string][]string{
	"": {
		"configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims",
		"persistentvolumes", "pods", "podtemplates", "replicationcontrollers", "resourcequotas", "secrets",
		"serviceaccounts", "services",
	},
	"admissionregistration.k8s.io": {
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
	},
	"apiextensions.k8s.io":         {"customresourcedefinitions"},
	"apiregistration.k8s.io":       {"apiservices"},
	"apps":                         {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling":                  {"horizontalpodautoscalers"},
	"batch":                        {"cronjobs", "jobs"},
	"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles", "podcertificaterequests"},
	"coordination.k8s.io":          {"leasecandidates", "leases"},
	"discovery.k8s.io":             {"endpointslices"},
	"events.k8s.io":                {"events"},
	"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
	"internal.apiserver.k8s.io":    {"storageversions"},
	"networking.k8s.io":            {"ingressclasses", "ingresses", "ipaddresses", "networkpolicies", "servicecidrs"},
	"node.k8s.io":                  {"runtimeclasses"},
	"policy":                       {"poddisruptionbudgets"},
	"rbac.authorization.k8s.io":    {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
	"resource.k8s.io": {
		"deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates",
		"resourcepoolstatusrequests", "resourceslices",
	},
	"scheduling.k8s.io": {"podgroups", "priorityclasses", "workloads"},
	"storage.k8s.io": {
		"csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments",
		"volumeattributesclasses",
	},
	"storagemigration.k8s.io": {"storageversionmigrations"},
}

// A field is where a selectable field stands in the JSON, and what it is
// compared as when it is not there, or is what JSON leaves out: false, or 0.
type field struct {
	paths []string
	zero  string
}

// A kindFields is what the API server selects a kind by, beyond metadata.name.
type kindFields struct {
	noNamespace bool // metadata.namespace is not accepted
	fields      map[string]field
}

// plain are fields that are named after where they stand.
func plain(paths ...string) map[string]field {
	m := make(map[string]field, len(paths))
	for _, p := range paths {
		m[p] = field{paths: []string{p}}
	}
	return m
}

// and adds fields to others.
func and(fields map[string]field, more map[string]field) map[string]field {
	maps.Copy(fields, more)
	return fields
}

// selectable has the kinds that are selected by more, or by less, than
// metadata.name and metadata.namespace.
var selectable = map[string]kindFields{
	"pods": {fields: and(
		plain("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
			"status.phase", "status.podIP", "status.nominatedNodeName"),
		map[string]field{
			"spec.host":        {paths: []string{"spec.nodeName"}},
			"spec.hostNetwork": {paths: []string{"spec.hostNetwork"}, zero: "false"},
			"status.podIPs":    {}, // accepted, but never set
		},
	)},
	"nodes": {noNamespace: true, fields: map[string]field{
		"spec.unschedulable": {paths: []string{"spec.unschedulable"}, zero: "false"},
	}},
	"namespaces": {noNamespace: true, fields: plain("status.phase")},
	"secrets":    {fields: plain("type")},
	"services":   {fields: plain("spec.clusterIP", "spec.type")},
	"replicationcontrollers": {fields: map[string]field{
		"status.replicas": {paths: []string{"status.replicas"}, zero: "0"},
	}},
	"jobs.batch": {fields: map[string]field{
		"status.successful": {paths: []string{"status.succeeded"}, zero: "0"},
	}},
	"events": {fields: and(
		plain("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
			"reason", "reportingComponent", "type"),
		map[string]field{
			"source": {paths: []string{"source.component", "reportingComponent"}},
		},
	)},
	"events.events.k8s.io": {fields: plain("regarding.kind", "regarding.namespace", "regarding.name",
		"regarding.uid", "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
		"reason", "reportingController", "type")},
	"certificatesigningrequests.certificates.k8s.io": {noNamespace: true, fields: plain("spec.signerName")},
	"clustertrustbundles.certificates.k8s.io":        {noNamespace: true, fields: plain("spec.signerName")},
	"podcertificaterequests.certificates.k8s.io": {
		noNamespace: true, fields: plain("spec.signerName", "spec.podName", "spec.nodeName"),
	},
	"resourceslices.resource.k8s.io": {noNamespace: true, fields: plain("spec.nodeName", "spec.driver")},
}

// Lookup returns the string, number or boolean at a path of member names in a
// JSON object, as text; "" if there is none.
func Lookup(text string, path ...string) string {
	p := scanner{s: text}
	for _, member := range path {
		if !p.find(member) {
			return ""
		}
	}
	switch p.next() {
	case '"':
		v, _ := p.text() // "" if it is none
		return v
	case '{', '[', 'n':
		return ""
	}
	from := p.i
	if p.skip() != nil {
		return ""
	}
	return p.s[from:p.i]
}

// Has reports whether a JSON object has a member.
func Has(text, member string) bool {
	p := scanner{s: text}
	return p.find(member)
}
