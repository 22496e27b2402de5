// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestField reads every selectable field, except those of metadata, from an object
// that has it and from one that lacks it.
func TestField(t *testing.T) {
	const bare = `{"kind":"K","apiVersion":"v","metadata":{"name":"n","namespace":"ns","resourceVersion":"1"}}`
	eventOf := func(object string) string {
		return `{"` + object + `":{"kind":"Pod","namespace":"d","name":"p","uid":"u","apiVersion":"v1","resourceVersion":"7","fieldPath":"spec.x"}`
	}
	for _, test := range []struct {
		resource kube.Resource
		members  string // of the object, with the opening brace
		set      map[string]string
		unset    map[string]string // the fields that are not "" when they are absent
	}{
		{
			kube.Resource{"", "v1", "pods"},
			`{"spec":{"nodeName":"n1","restartPolicy":"Never","schedulerName":"s","serviceAccountName":"sa","hostNetwork":true},` +
				`"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"nominatedNodeName":"n2"}`,
			map[string]string{
				"spec.nodeName": "n1", "spec.host": "n1", "spec.restartPolicy": "Never", "spec.schedulerName": "s",
				"spec.serviceAccountName": "sa", "spec.hostNetwork": "true", "status.phase": "Running",
				"status.podIP": "10.0.0.1", "status.podIPs": "", "status.nominatedNodeName": "n2",
			},
			map[string]string{"spec.hostNetwork": "false"},
		},
		{kube.Resource{"", "v1", "nodes"}, `{"spec":{"unschedulable":true}`, map[string]string{"spec.unschedulable": "true"}, map[string]string{"spec.unschedulable": "false"}},
		{kube.Resource{"", "v1", "namespaces"}, `{"status":{"phase":"Active"}`, map[string]string{"status.phase": "Active"}, nil},
		{kube.Resource{"", "v1", "secrets"}, `{"type":"Opaque"`, map[string]string{"type": "Opaque"}, nil},
		{kube.Resource{"", "v1", "services"}, `{"spec":{"clusterIP":"None","type":"ClusterIP"}`, map[string]string{"spec.clusterIP": "None", "spec.type": "ClusterIP"}, nil},
		{kube.Resource{"", "v1", "replicationcontrollers"}, `{"status":{"replicas":3}`, map[string]string{"status.replicas": "3"}, map[string]string{"status.replicas": "0"}},
		{kube.Resource{"batch", "v1", "jobs"}, `{"status":{"succeeded":2}`, map[string]string{"status.successful": "2"}, map[string]string{"status.successful": "0"}},
		{
			kube.Resource{"", "v1", "events"},
			eventOf("involvedObject") + `,"reason":"r","type":"Normal","reportingComponent":"c","source":{"component":"s"}`,
			map[string]string{
				"involvedObject.kind": "Pod", "involvedObject.namespace": "d", "involvedObject.name": "p", "involvedObject.uid": "u",
				"involvedObject.apiVersion": "v1", "involvedObject.resourceVersion": "7", "involvedObject.fieldPath": "spec.x",
				"reason": "r", "type": "Normal", "reportingComponent": "c", "source": "s",
			}, nil,
		},
		{kube.Resource{"", "v1", "events"}, `{"reportingComponent":"c","source":{}`, map[string]string{"source": "c"}, nil},
		{
			kube.Resource{"events.k8s.io", "v1", "events"},
			eventOf("regarding") + `,"reason":"r","type":"Normal","reportingController":"c"`,
			map[string]string{
				"regarding.kind": "Pod", "regarding.namespace": "d", "regarding.name": "p", "regarding.uid": "u",
				"regarding.apiVersion": "v1", "regarding.resourceVersion": "7", "regarding.fieldPath": "spec.x",
				"reason": "r", "type": "Normal", "reportingController": "c",
			}, nil,
		},
		{kube.Resource{"certificates.k8s.io", "v1", "certificatesigningrequests"}, `{"spec":{"signerName":"s"}`, map[string]string{"spec.signerName": "s"}, nil},
		{kube.Resource{"certificates.k8s.io", "v1beta1", "clustertrustbundles"}, `{"spec":{"signerName":"s"}`, map[string]string{"spec.signerName": "s"}, nil},
		{
			kube.Resource{"certificates.k8s.io", "v1beta1", "podcertificaterequests"}, `{"spec":{"signerName":"s","podName":"p","nodeName":"n"}`,
			map[string]string{"spec.signerName": "s", "spec.podName": "p", "spec.nodeName": "n"}, nil,
		},
		{
			kube.Resource{"resource.k8s.io", "v1", "resourceslices"}, `{"spec":{"nodeName":"n","driver":"d"}`,
			map[string]string{"spec.nodeName": "n", "spec.driver": "d"}, nil,
		},
	} {
		for label, want := range test.set {
			field, ok := test.resource.Field(label)
			if !ok {
				t.Errorf("%s is not selectable by %s", test.resource, label)
				continue
			}
			for members, want := range map[string]string{test.members: want, "{": test.unset[label]} {
				comma := ","
				if members == "{" {
					comma = ""
				}
				o, err := scan.ParseObject(members + comma + bare[1:])
				if err != nil {
					t.Fatal(err)
				}
				if got := scan.FieldValue(field)(o); got != want {
					t.Errorf("%s of %s is %q, want %q", label, o.JSON, got, want)
				}
			}
		}
	}
}

// TestFieldMetadata: all built-in resources are selectable by name, and most by
// namespace, including cluster-scoped ones. Others are not in the table.
func TestFieldMetadata(t *testing.T) {
	for _, test := range []struct {
		resource        kube.Resource
		name, namespace bool
	}{
		{kube.Resource{"", "v1", "pods"}, true, true},
		{kube.Resource{"", "v1", "persistentvolumes"}, true, true},
		{kube.Resource{"rbac.authorization.k8s.io", "v1", "clusterroles"}, true, true},
		{kube.Resource{"", "v1", "nodes"}, true, false},
		{kube.Resource{"", "v1", "namespaces"}, true, false},
		{kube.Resource{"certificates.k8s.io", "v1beta1", "podcertificaterequests"}, true, false},
		{kube.Resource{"resource.k8s.io", "v1beta2", "resourceslices"}, true, false},
		{kube.Resource{"", "v1", "widgets"}, false, false},
		{kube.Resource{"example.com", "v1", "pods"}, false, false},
	} {
		for label, want := range map[string]bool{"metadata.name": test.name, "metadata.namespace": test.namespace, "metadata.uid": false} {
			if _, ok := test.resource.Field(label); ok != want {
				t.Errorf("%s by %s: %v", test.resource, label, ok)
			}
		}
	}
	o, err := scan.ParseObject(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"42"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{"metadata.name": "a", "metadata.namespace": "ns"} {
		if field, ok := (kube.Resource{"", "v1", "pods"}).Field(label); !ok || scan.FieldValue(field)(o) != want {
			t.Errorf("%s is not %q", label, want)
		}
	}
}
