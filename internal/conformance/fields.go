// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var fieldRules = rules("§9",
	FieldsOfEveryKind, FieldsOfDefaultKinds, FieldsOfPods, FieldsOfNodes, FieldsOfNamespaces, FieldsOfSecrets, FieldsOfServices,
	FieldsOfReplicationControllers, FieldsOfReplicaSets, FieldsOfEvents, FieldsOfGroupEvents, FieldsOfJobs,
	FieldsOfCertificateSigningRequests, FieldsOfResourceSlices, FieldsOfCustomResources, FieldsOfClusterScopedCustomResources,
)

// selects compares lists and watches of a collection by field selectors: those
// that are accepted with the names they select, those that are refused with the
// message.
func (e *Env) selects(ctx context.Context, path string, accepted map[string][]string, refused map[string]string) error {
	rv, err := e.at(ctx, path, 0)
	if err != nil {
		return err
	}
	var all []func() error
	for selector, names := range accepted {
		query := "fieldSelector=" + url.QueryEscape(selector)
		all = append(all,
			func() error {
				return e.same(ctx, path+"?"+query+"&"+exactly(rv), items(names...))
			},
			func() error {
				return e.same(ctx, path+"?"+query+"&watch=1&timeoutSeconds=1&resourceVersion=0", events(added(names...)...))
			})
	}
	for selector, message := range refused {
		query := anyVersion + "&fieldSelector=" + url.QueryEscape(selector)
		all = append(all,
			func() error { return e.same(ctx, path+query, status(400, "BadRequest", message)) },
			func() error {
				return e.same(ctx, path+query+"&watch=1&timeoutSeconds=1", status(400, "BadRequest", message))
			})
	}
	return together(all...)
}

const unknownLabel = `"LABEL" is not a known field selector: only "metadata.name", "metadata.namespace"`

// notSupported are messages about labels, by a pattern.
func notSupported(pattern string, labels ...string) map[string]string {
	out := map[string]string{}
	for _, label := range labels {
		out[label+"=x"] = strings.ReplaceAll(pattern, "LABEL", label)
	}
	return out
}

const labelNotSupported = "field label not supported: LABEL"

// FieldsOfEveryKind: §9, every built-in kind accepts metadata.name; whether it
// accepts metadata.namespace, and how it refuses others, is its own.
func FieldsOfEveryKind(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error {
		if _, err := e.at(ctx, r.all(), 0); err != nil {
			return err
		}
		var errs []error
		for _, path := range r.still() {
			path += "resourceVersion=0&fieldSelector="
			errs = append(errs,
				e.same(ctx, path+"metadata.name=conf", code(200), mask(compare.ListRV), ageing),
				e.same(ctx, path+"metadata.namespace=conf", either(200, 400), mask(compare.ListRV), ageing),
				e.same(ctx, path+"metadata.namespace=", either(200, 400), mask(compare.ListRV), ageing),
				e.same(ctx, path+"bogus=x", code(400)),
				e.same(ctx, path+"spec.bogus=x&watch=1", code(400)))
		}
		return errors.Join(errs...)
	})
}

// FieldsOfDefaultKinds: §9, kinds without fields of their own accept name and
// namespace, even at the cluster scope, where the namespace is "".
func FieldsOfDefaultKinds(ctx context.Context, e *Env) error {
	unknown := notSupported(unknownLabel, "spec.x", "metadata.uid", "data", "type")
	return errors.Join(
		e.selects(ctx, configMaps, map[string][]string{
			"metadata.name=cm-1": {"cm-1"}, "metadata.namespace=conf": still, "metadata.namespace=x": {}, "metadata.namespace=": {},
		}, unknown),
		e.selects(ctx, "/apis/apps/v1/namespaces/conf/deployments", map[string][]string{"metadata.name=web": {"web"}, "metadata.name!=web": {}}, unknown),
		e.selects(ctx, "/apis/storage.k8s.io/v1/storageclasses", map[string][]string{
			"metadata.name=conf": {"conf"}, "metadata.namespace=": {"conf"}, "metadata.namespace=x": {}, "metadata.namespace!=x": {"conf"},
		}, unknown),
	)
}

// FieldsOfPods: §9.
func FieldsOfPods(ctx context.Context, e *Env) error {
	// Two Pods of the still life have names of their own.
	only := ",metadata.name!=plain"
	return e.selects(ctx, pods, map[string][]string{
		"spec.nodeName=node-1":                                            {"host"},
		"spec.host=node-1":                                                {"host"},
		"spec.nodeName=,status.phase=Succeeded":                           {"ready"},
		"spec.restartPolicy=Never":                                        {"ready"},
		"spec.schedulerName=somebody":                                     {"host"},
		"spec.serviceAccountName=weak":                                    {"ready"},
		"spec.hostNetwork=true":                                           {"host"},
		"spec.hostNetwork=false,metadata.name!=ready,metadata.name=plain": {"plain"},
		"spec.hostNetwork=,metadata.name=plain":                           {},
		"status.phase=Succeeded" + only:                                   {"ready"},
		"status.phase=Pending,metadata.name=plain":                        {"plain"},
		"status.podIP=10.1.2.3":                                           {"ready"},
		"status.podIP=fd00::3":                                            {},
		"status.podIPs=10.1.2.3":                                          {},
		"status.podIPs=,metadata.name=ready":                              {"ready"},
		"status.nominatedNodeName=node-0":                                 {"ready"},
		"metadata.namespace=conf,metadata.name=host":                      {"host"},
	}, notSupported(labelNotSupported, "bogus", "spec.containers", "status.hostIP", "metadata.uid"))
}

// FieldsOfNodes: §9.
func FieldsOfNodes(ctx context.Context, e *Env) error {
	return errors.Join(
		e.selects(ctx, "/api/v1/nodes", map[string][]string{"metadata.name=none": {}, "spec.unschedulable=true": {}, "spec.unschedulable=": {}},
			notSupported(labelNotSupported, "metadata.namespace", "spec.x")),
		e.same(ctx, "/api/v1/nodes"+anyVersion+"&fieldSelector=spec.unschedulable=false", items("node-0", "node-1"), mask(compare.ListRV), ageing),
	)
}

// FieldsOfNamespaces: §9.
func FieldsOfNamespaces(ctx context.Context, e *Env) error {
	return e.selects(ctx, "/api/v1/namespaces", map[string][]string{
		"metadata.name=conf": {"conf"}, "status.phase=Active,metadata.name=conf-b": {"conf-b"}, "status.phase=Terminating,metadata.name=conf": {},
		"metadata.name=conf,status.phase!=": {"conf"},
	}, notSupported(labelNotSupported, "metadata.namespace", "name2", "spec.x"))
}

// FieldsOfSecrets: §9.
func FieldsOfSecrets(ctx context.Context, e *Env) error {
	return e.selects(ctx, core+"secrets", map[string][]string{
		"type=Opaque": {"opaque"}, "type=kubernetes.io/basic-auth": {"basic"}, "type!=Opaque": {"basic"}, "type=": {},
		"metadata.namespace=conf,type=Opaque": {"opaque"},
	}, notSupported(labelNotSupported, "data", "immutable"))
}

// FieldsOfServices: §9.
func FieldsOfServices(ctx context.Context, e *Env) error {
	return e.selects(ctx, core+"services", map[string][]string{
		"spec.clusterIP=10.0.0.77": {"web"}, "spec.clusterIP=None": {"headless"}, "spec.clusterIP=": {"elsewhere"},
		"spec.type=ClusterIP": {"headless", "web"}, "spec.type=ExternalName": {"elsewhere"}, "metadata.name=web,metadata.namespace=conf": {"web"},
	}, notSupported(labelNotSupported, "spec.ports", "status"))
}

// FieldsOfReplicationControllers: §9.
func FieldsOfReplicationControllers(ctx context.Context, e *Env) error {
	return e.selects(ctx, core+"replicationcontrollers", map[string][]string{
		"status.replicas=1": {"one"}, "status.replicas=0": {"none"}, "status.replicas=": {}, "metadata.name=one,metadata.namespace=conf": {"one"},
	}, notSupported(labelNotSupported, "spec.replicas"))
}

// FieldsOfReplicaSets: §9, which have no fields of their own.
func FieldsOfReplicaSets(ctx context.Context, e *Env) error {
	return e.selects(ctx, "/apis/apps/v1/namespaces/conf/replicasets", map[string][]string{"metadata.namespace=x": {}}, notSupported(unknownLabel, "status.replicas"))
}

// FieldsOfEvents: §9, Events of the core group.
func FieldsOfEvents(ctx context.Context, e *Env) error {
	const core1 = ",metadata.name=core"
	return e.selects(ctx, core+"events", map[string][]string{
		"involvedObject.kind=Pod,involvedObject.name=plain,reason=Started": {"core"},
		"involvedObject.namespace=conf" + core1:                            {"core"},
		"involvedObject.uid=17":                                            {"core"},
		"involvedObject.apiVersion=v1" + core1:                             {"core"},
		"involvedObject.resourceVersion=18":                                {"core"},
		"involvedObject.fieldPath=spec.containers{c}":                      {"core"},
		"reason=Drained":                                                   {"group"},
		"reportingComponent=" + core1:                                      {"core"},
		"reportingComponent=example.com/drainer":                           {"group"},
		"source=kubelet" + core1:                                           {"core"},
		"source=example.com/drainer":                                       {"group"},
		"type=Warning,reason=Drained":                                      {"group"},
		"metadata.namespace=conf" + core1:                                  {"core"},
	}, notSupported(labelNotSupported, "bogus", "regarding.kind", "reportingController", "message"))
}

// FieldsOfGroupEvents: §9, those of events.k8s.io.
func FieldsOfGroupEvents(ctx context.Context, e *Env) error {
	return e.selects(ctx, "/apis/events.k8s.io/v1/namespaces/conf/events", map[string][]string{
		"regarding.kind=Pod,regarding.name=ready,reason=Drained": {"group"},
		"regarding.namespace=conf,metadata.name=group":           {"group"},
		"regarding.uid=19": {"group"},
		"regarding.apiVersion=v1,metadata.name=group": {"group"},
		"regarding.resourceVersion=20":                {"group"},
		"regarding.fieldPath=spec":                    {"group"},
		"reportingController=example.com/drainer":     {"group"},
		"reportingController=,metadata.name=core":     {"core"},
		"type=Warning,metadata.name=group":            {"group"},
	}, notSupported(labelNotSupported, "bogus", "involvedObject.kind", "source", "reportingComponent"))
}

// FieldsOfJobs: §9, status.successful is what the status calls succeeded.
func FieldsOfJobs(ctx context.Context, e *Env) error {
	return e.selects(ctx, "/apis/batch/v1/namespaces/conf/jobs", map[string][]string{
		"status.successful=2": {"done"}, "status.successful=0": {"waiting"}, "status.successful!=2": {"waiting"}, "metadata.name=done,metadata.namespace=conf": {"done"},
	}, notSupported(`field label "LABEL" not supported for Job`, "status.succeeded", "spec.completions"))
}

// FieldsOfCertificateSigningRequests: §9.
func FieldsOfCertificateSigningRequests(ctx context.Context, e *Env) error {
	return e.selects(ctx, "/apis/certificates.k8s.io/v1/certificatesigningrequests", map[string][]string{
		"spec.signerName=example.com/a": {"conf-a"}, "spec.signerName=example.com/b": {"conf-b"}, "metadata.name=conf-a": {"conf-a"}, "spec.signerName=": {},
	}, notSupported(labelNotSupported, "metadata.namespace", "spec.username"))
}

// FieldsOfResourceSlices: §9.
func FieldsOfResourceSlices(ctx context.Context, e *Env) error {
	return e.selects(ctx, "/apis/resource.k8s.io/v1/resourceslices", map[string][]string{
		"spec.nodeName=node-of-nobody": {"conf-0"}, "spec.nodeName=": {"conf-1"}, "spec.driver=net.example.com": {"conf-1"}, "metadata.name=conf-0": {"conf-0"},
	}, notSupported("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: LABEL", "metadata.namespace", "spec.pool"))
}

// FieldsOfCustomResources: §9, those that the served version's definition
// selects, by their JSON path without the dot in front; what is not there is
// "".
func FieldsOfCustomResources(ctx context.Context, e *Env) error {
	return errors.Join(
		e.selects(ctx, gadgets, map[string][]string{
			"spec.color=red": {"g-1"}, "spec.color!=red": {"g-2"}, "spec.size=2": {"g-2"}, "spec.size=2,spec.color=blue": {"g-2"},
			"spec.color=": {}, "metadata.namespace=conf,spec.size=1": {"g-1"}, "metadata.name=g-2": {"g-2"},
		}, map[string]string{"spec.bogus=x": "field label not supported: spec.bogus", "status.ready=true": "field label not supported: status.ready", ".spec.color=red": "…"}),
		e.selects(ctx, doodads("conf-b"), map[string][]string{"spec.color=no-such": {}}, nil),
		e.selects(ctx, strings.Replace(gadgets, "/v1/", "/v1beta1/", 1), map[string][]string{"metadata.name=g-1": {"g-1"}},
			map[string]string{"spec.color=red": "field label not supported: spec.color"}),
	)
}

// FieldsOfClusterScopedCustomResources: §9, they have no namespace to select.
func FieldsOfClusterScopedCustomResources(ctx context.Context, e *Env) error {
	return e.selects(ctx, beacons, map[string][]string{"metadata.name=north": {"north"}, "metadata.name!=north": {"south"}},
		map[string]string{"metadata.namespace=": "field label not supported: metadata.namespace", "metadata.namespace=x": "field label not supported: metadata.namespace"})
}
