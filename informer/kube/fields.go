// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"regexp"
	"slices"
)

// BuiltIn reports whether the resource is in the table of the API server's own.
func (r Resource) BuiltIn() bool { return slices.Contains(builtIn[r.Group], r.Name) }

// A Field says where a selectable field is in an object's JSON.
type Field struct {
	// Paths are member names joined by dots, such as "spec.nodeName". The first
	// path with a value counts.
	Paths []string
	// Zero is the value of an absent field. JSON omits false and 0.
	Zero string
}

// Field returns the field that a field selector names by label, such as
// "spec.nodeName". ok is false when the table does not have the resource or the
// field; the API server decides whether that is an error.
//
// The table is as of Kubernetes 1.37, without spec.pool.name of ResourceSlices, which
// older API servers refuse. All versions of a resource have the same fields.
func (r Resource) Field(label string) (f Field, ok bool) {
	if !r.BuiltIn() {
		return Field{}, false
	}
	own := selectable[r.GroupResource()]
	switch {
	case label == "metadata.name",
		// Also for cluster-scoped resources, whose namespace is "".
		label == "metadata.namespace" && !own.noNamespace:
		return Field{Paths: []string{label}}, true
	}
	f, ok = own.fields[label]
	return f, ok
}

// SimplePath returns the path, such as "spec.color", of a JSONPath of member names
// only, such as ".spec.color". The JSONPaths of a custom resource's selectable
// fields are nearly always of this kind; those of its columns may be of any.
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
	"lifecycle.k8s.io":             {"evictionrequests", "evictions"},
	"networking.k8s.io":            {"ingressclasses", "ingresses", "ipaddresses", "networkpolicies", "servicecidrs"},
	"node.k8s.io":                  {"runtimeclasses"},
	"policy":                       {"poddisruptionbudgets"},
	"rbac.authorization.k8s.io":    {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
	"resource.k8s.io": {
		"deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates",
		"resourcepoolstatusrequests", "resourceslices",
	},
	"scheduling.k8s.io": {"compositepodgroups", "podgroups", "priorityclasses", "workloads"},
	"storage.k8s.io": {
		"csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments",
		"volumeattributesclasses",
	},
	"storagemigration.k8s.io": {"storageversionmigrations"},
}

// resourceFields are the selectable fields of a resource, besides metadata.name.
type resourceFields struct {
	noNamespace bool // metadata.namespace is not selectable
	fields      map[string]Field
}

// byPath returns fields whose labels are their paths.
func byPath(paths ...string) map[string]Field {
	m := make(map[string]Field, len(paths))
	for _, p := range paths {
		m[p] = Field{Paths: []string{p}}
	}
	return m
}

// merge adds more fields to fields.
func merge(fields, more map[string]Field) map[string]Field {
	maps.Copy(fields, more)
	return fields
}

// selectable has the resources whose selectable fields are not metadata.name and
// metadata.namespace exactly.
var selectable = map[string]resourceFields{
	"pods": {fields: merge(
		byPath("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
			"status.phase", "status.podIP", "status.nominatedNodeName"),
		map[string]Field{
			"spec.host":        {Paths: []string{"spec.nodeName"}},
			"spec.hostNetwork": {Paths: []string{"spec.hostNetwork"}, Zero: "false"},
			"status.podIPs":    {}, // accepted, but never set
		},
	)},
	"nodes": {noNamespace: true, fields: map[string]Field{
		"spec.unschedulable": {Paths: []string{"spec.unschedulable"}, Zero: "false"},
	}},
	"namespaces": {noNamespace: true, fields: byPath("status.phase")},
	"secrets":    {fields: byPath("type")},
	"services":   {fields: byPath("spec.clusterIP", "spec.type")},
	"replicationcontrollers": {fields: map[string]Field{
		"status.replicas": {Paths: []string{"status.replicas"}, Zero: "0"},
	}},
	"jobs.batch": {fields: map[string]Field{
		"status.successful": {Paths: []string{"status.succeeded"}, Zero: "0"},
	}},
	"events": {fields: merge(
		byPath("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
			"reason", "reportingComponent", "type"),
		map[string]Field{
			"source": {Paths: []string{"source.component", "reportingComponent"}},
		},
	)},
	"events.events.k8s.io": {fields: byPath("regarding.kind", "regarding.namespace", "regarding.name",
		"regarding.uid", "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
		"reason", "reportingController", "type")},
	"certificatesigningrequests.certificates.k8s.io": {noNamespace: true, fields: byPath("spec.signerName")},
	"clustertrustbundles.certificates.k8s.io":        {noNamespace: true, fields: byPath("spec.signerName")},
	"podcertificaterequests.certificates.k8s.io": {
		noNamespace: true, fields: byPath("spec.signerName", "spec.podName", "spec.nodeName"),
	},
	"resourceslices.resource.k8s.io": {noNamespace: true, fields: byPath("spec.nodeName", "spec.driver")},
}
