// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import "strings"

// Field returns the value that a field selector compares for label, such as
// "spec.nodeName"; a field that is not there is "". ok is false when the
// resource has no such selectable field as far as this table knows: whether it
// is an error is then the API server's to say.
//
// The table is the API server's own per kind, as of Kubernetes 1.36.
func (r Resource) Field(label string) (value func(*Object) string, ok bool) {
	switch label {
	case "metadata.name":
		return func(o *Object) string { return o.Key.Name() }, true
	case "metadata.namespace":
		if noNamespaceField[r.GroupResource()] {
			return nil, false
		}
		return func(o *Object) string { return o.Key.Namespace() }, true
	}
	f, ok := selectable[r.GroupResource()][label]
	if !ok {
		return nil, false
	}
	path := strings.Split(f.path, ".")
	return func(o *Object) string {
		if v := Lookup(o.JSON, path...); v != "" {
			return v
		}
		return f.zero
	}, true
}

// A field is where a selectable field stands in the JSON, and what it is
// compared as when it is not there.
type field struct{ path, zero string }

func paths(list ...string) map[string]field {
	m := make(map[string]field, len(list))
	for _, p := range list {
		m[p] = field{path: p}
	}
	return m
}

func with(m map[string]field, label string, f field) map[string]field {
	m[label] = f
	return m
}

var selectable = map[string]map[string]field{
	"pods": with(with(paths("spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
		"spec.serviceAccountName", "status.phase", "status.nominatedNodeName"),
		"spec.host", field{path: "spec.nodeName"}),
		"spec.hostNetwork", field{path: "spec.hostNetwork", zero: "false"}),
	"nodes":      with(paths(), "spec.unschedulable", field{path: "spec.unschedulable", zero: "false"}),
	"namespaces": paths("status.phase"),
	"secrets":    paths("type"),
	"services":   paths("spec.clusterIP", "spec.type"),
	"events": paths("involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
		"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
		"involvedObject.fieldPath", "reason", "reportingComponent", "type"),
	"events.events.k8s.io": paths("regarding.kind", "regarding.namespace", "regarding.name",
		"regarding.uid", "regarding.apiVersion", "regarding.resourceVersion",
		"regarding.fieldPath", "reason", "reportingController", "type"),
}

// noNamespaceField lists the resources whose kinds do not accept
// metadata.namespace in a field selector, and those that have not been
// compared with a live API server.
var noNamespaceField = map[string]bool{
	"nodes":      true,
	"namespaces": true,
	"certificatesigningrequests.certificates.k8s.io": true,
	"clustertrustbundles.certificates.k8s.io":        true,
	"podcertificaterequests.certificates.k8s.io":     true,
	"resourceslices.resource.k8s.io":                 true,
}

// Lookup returns the string, number or boolean at a path of member names in a
// JSON object, as text; "" if there is none.
func Lookup(text string, path ...string) string {
	p := scanner{s: text}
	v, _ := p.lookup(path)
	return v
}

func (p *scanner) lookup(path []string) (string, error) {
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil || !ok {
			return "", err
		}
		if name != path[0] {
			if err := p.skip(); err != nil {
				return "", err
			}
			continue
		}
		if len(path) > 1 {
			if p.next() != '{' {
				return "", nil
			}
			return p.lookup(path[1:])
		}
		switch p.next() {
		case '"':
			return p.text()
		case '{', '[', 'n':
			return "", nil
		}
		from := p.i
		err = p.skip()
		return p.s[from:p.i], err
	}
}
