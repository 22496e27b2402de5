// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var urlRules = rules("§1",
	PathsThatList, PathsThatGet, PathsThatWatch, WatchIsTruthy, GetIgnoresWatch,
	WatchPaths, WatchPathsOfOneObject, WatchPathConflict, WatchPathIsAList, WatchPathOfCustomResources,
	Subresources, NamespaceSubresources, TrailingSlash, OddPaths, HeadAndOptions, Writes,
	NoSuchNamespace, WrongScope, NameSelector, NameSelectorAndRBAC,
	NamespaceSelectorNarrows, NamespaceSelectorElsewhere,
)

// still are the ConfigMaps in the namespace, in the order of their names.
var still = []string{"cm-1", "cm-2", "cm-3", "cm-4", "cm-5", "kube-root-ca.crt"}

// added are the events that tell of objects that are there already.
func added(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "ADDED "+name)
	}
	return out
}

// anyVersion is added to a path so that any state will do.
const anyVersion = "?resourceVersion=0"

// exactly is the query for the state at an RV.
func exactly(rv string) string { return "resourceVersionMatch=Exact&resourceVersion=" + rv }

// PathsThatList: §1, collections at the cluster, in all namespaces and in one
// are listed, in the core group and in others.
func PathsThatList(ctx context.Context, e *Env) error {
	var errs []error
	for path, list := range map[string]string{
		"/api/v1/namespaces":                        "NamespaceList",
		"/api/v1/nodes":                             "NodeList",
		"/api/v1/configmaps":                        "ConfigMapList",
		configMaps:                                  "ConfigMapList",
		"/apis/apps/v1/deployments":                 "DeploymentList",
		"/apis/apps/v1/namespaces/conf/deployments": "DeploymentList",
		"/apis/storage.k8s.io/v1/storageclasses":    "StorageClassList",
		gadgets:                                     "GadgetList",
		custom + "gadgets":                          "GadgetList",
		beacons:                                     "BeaconList",
	} {
		rv, err := e.at(ctx, path, 0)
		if err != nil {
			return err
		}
		errs = append(errs, e.same(ctx, path+"?"+exactly(rv), kind(list), has(`"resourceVersion":"`+rv+`"`)))
	}
	return errors.Join(errs...)
}

// PathsThatGet: §1, one object at the cluster and in a namespace.
func PathsThatGet(ctx context.Context, e *Env) error {
	var errs []error
	for path, object := range map[string]string{
		"/api/v1/namespaces/conf":                       "Namespace",
		"/api/v1/namespaces/conf-b":                     "Namespace",
		configMaps + "/cm-1":                            "ConfigMap",
		"/apis/apps/v1/namespaces/conf/deployments/web": "Deployment",
		"/apis/storage.k8s.io/v1/storageclasses/conf":   "StorageClass",
		gadgets + "/g-1":                                "Gadget",
		beacons + "/north":                              "Beacon",
	} {
		if _, err := e.at(ctx, path[:strings.LastIndexByte(path, '/')], 0); err != nil {
			return err
		}
		errs = append(errs, e.same(ctx, path+anyVersion, kind(object)))
	}
	return errors.Join(errs...)
}

// PathsThatWatch: §1, the paths that list also watch, if told to.
func PathsThatWatch(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, configMaps+"?watch=true", events(added(still...)...)),
		e.replay(ctx, "/api/v1/configmaps?watch=true&labelSelector=color=red", events("ADDED cm-1", "ADDED cm-1", "ADDED cm-3")),
		e.replay(ctx, "/api/v1/namespaces?watch=true&labelSelector=life=still", events("ADDED conf", "ADDED conf-b")),
		e.replay(ctx, "/apis/storage.k8s.io/v1/storageclasses?watch=true", events("ADDED conf")),
		e.replay(ctx, gadgets+"?watch=true", events("ADDED g-1", "ADDED g-2")),
		e.replay(ctx, custom+"gadgets?watch=true", events("ADDED g-3", "ADDED g-1", "ADDED g-2")),
		e.replay(ctx, beacons+"?watch=true", events("ADDED north", "ADDED south")),
	)
}

// replay compares a watch of a second in full, from its initial state on. The
// gateway has been warmed up for its resource.
func (e *Env) replay(ctx context.Context, path string, options ...option) error {
	collection, query, _ := strings.Cut(path, "?")
	collection = strings.Replace(collection, "/watch/", "/", 1)
	if _, err := e.at(ctx, collection, 0); err != nil {
		return err
	}
	path += "&timeoutSeconds=1"
	if !strings.Contains(query, "resourceVersion=") {
		path += "&resourceVersion=0"
	}
	return e.same(ctx, path, append([]option{code(200), bookmarks}, options...)...)
}

// WatchIsTruthy: §1, watch is true unless it is absent, 0 or false, in any
// case; with nothing behind it, it is true.
func WatchIsTruthy(ctx context.Context, e *Env) error {
	var errs []error
	for _, value := range []string{"watch", "watch=", "watch=1", "watch=true", "watch=TRUE", "watch=yes", "watch=00", "watch=no"} {
		errs = append(errs, e.replay(ctx, beacons+"?"+value, events("ADDED north", "ADDED south")))
	}
	for _, value := range []string{"watch=0", "watch=false", "watch=False", "watch=FALSE", "Watch=true", "x"} {
		errs = append(errs, e.same(ctx, beacons+anyVersion+"&"+value, mask(compare.ListRV), items("north", "south")))
	}
	return errors.Join(errs...)
}

// GetIgnoresWatch: §1, a GET of an object ignores watch=true.
func GetIgnoresWatch(ctx context.Context, e *Env) error {
	for _, path := range []string{configMaps, beacons} {
		if _, err := e.at(ctx, path, 0); err != nil {
			return err
		}
	}
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&watch=true", kind("ConfigMap")),
		e.same(ctx, beacons+"/north"+anyVersion+"&watch=1&timeoutSeconds=1", kind("Beacon")),
		e.same(ctx, configMaps+"/no-such"+anyVersion+"&watch=true", status(404, "NotFound", `configmaps "no-such" not found`)),
	)
}

// WatchPaths: §1, the deprecated paths below /watch/ are watches without
// being told so.
func WatchPaths(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, "/api/v1/watch/namespaces/conf/configmaps?", events(added(still...)...)),
		e.replay(ctx, "/api/v1/watch/configmaps?labelSelector=color=red", events("ADDED cm-1", "ADDED cm-1", "ADDED cm-3")),
		e.replay(ctx, "/api/v1/watch/namespaces?labelSelector=life=still", events("ADDED conf", "ADDED conf-b")),
		e.replay(ctx, "/apis/storage.k8s.io/v1/watch/storageclasses?", events("ADDED conf")),
		e.replay(ctx, "/apis/apps/v1/watch/namespaces/conf/deployments?", events("ADDED web")),
		e.replay(ctx, "/api/v1/watch/namespaces/conf/configmaps?watch=false", events(added(still...)...)),
	)
}

// WatchPathsOfOneObject: §1, below /watch/ one object may be named.
func WatchPathsOfOneObject(ctx context.Context, e *Env) error {
	var errs []error
	for path, name := range map[string]string{
		"/api/v1/watch/namespaces/conf/configmaps/cm-2":       "cm-2",
		"/api/v1/watch/namespaces/conf":                       "conf",
		"/apis/storage.k8s.io/v1/watch/storageclasses/conf":   "conf",
		"/apis/apps/v1/watch/namespaces/conf/deployments/web": "web",
	} {
		collection := strings.Replace(path[:strings.LastIndexByte(path, '/')], "/watch/", "/", 1)
		if _, err := e.at(ctx, collection, 0); err != nil {
			return err
		}
		errs = append(errs,
			e.same(ctx, path+anyVersion+"&timeoutSeconds=1", events("ADDED "+name)),
			e.same(ctx, path+anyVersion+"&timeoutSeconds=1&fieldSelector=metadata.name="+name, events("ADDED "+name)))
	}
	return errors.Join(errs...)
}

// WatchPathConflict: §1, a field selector may not name another object than the
// path.
func WatchPathConflict(ctx context.Context, e *Env) error {
	return e.same(ctx, "/api/v1/watch/namespaces/conf/configmaps/cm-1"+anyVersion+"&timeoutSeconds=1&fieldSelector=metadata.name=cm-2",
		status(400, "BadRequest", "fieldSelector metadata.name doesn't match requested name"))
}

// WatchPathIsAList: §1, below /watch/ a request is validated and defaulted as
// a list: there is no end bookmark, and sendInitialEvents is an error. With
// watch=true it is a watch.
func WatchPathIsAList(ctx context.Context, e *Env) error {
	const path = "/api/v1/watch/namespaces/conf/configmaps?allowWatchBookmarks=true&resourceVersion=0&timeoutSeconds=1&fieldSelector=metadata.name=cm-1"
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	return errors.Join(
		e.endBookmark(ctx, path, false),
		e.endBookmark(ctx, path+"&watch=true", true),
		e.same(ctx, path+"&sendInitialEvents=true",
			status(422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`)),
		e.same(ctx, path+"&resourceVersionMatch=Exact",
			status(422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`)),
	)
}

// endBookmark compares the events of a watch but for later bookmarks, and
// whether there is an end bookmark.
func (e *Env) endBookmark(ctx context.Context, path string, wanted bool) error {
	text := `"k8s.io/initial-events-end":"true"`
	if wanted {
		return e.same(ctx, path, code(200), mask(noBookmarks), has(text))
	}
	return e.same(ctx, path, code(200), mask(noBookmarks), hasNot(text))
}

// noBookmarks takes out the bookmarks of a watch in JSON that are not the end
// bookmark, and blanks the RV of that one: whether one more comes within a
// short watch depends on how far a server has seen.
func noBookmarks(body []byte) []byte { return withoutBookmarks(compare.JSON)(body) }

// WatchPathOfCustomResources: §1, custom resources have the deprecated paths
// as well.
func WatchPathOfCustomResources(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, custom+"watch/namespaces/conf/gadgets?", events("ADDED g-1", "ADDED g-2")),
		e.replay(ctx, custom+"watch/gadgets?", events("ADDED g-3", "ADDED g-1", "ADDED g-2")),
		e.replay(ctx, custom+"watch/beacons?", events("ADDED north", "ADDED south")),
		e.same(ctx, custom+"watch/beacons/north"+anyVersion+"&timeoutSeconds=1", events("ADDED north")),
		e.same(ctx, custom+"watch/namespaces/conf/gadgets/g-1"+anyVersion+"&timeoutSeconds=1", events("ADDED g-1")),
	)
}

// Subresources: §1, whatever has one is not a read of the collection.
func Subresources(ctx context.Context, e *Env) error {
	const deployment = "/apis/apps/v1/namespaces/conf/deployments/web"
	return errors.Join(
		e.same(ctx, deployment+"/scale", kind("Scale")),
		e.same(ctx, deployment+"/status"+anyVersion, kind("Deployment")),
		e.same(ctx, pods+"/plain/status", kind("Pod")),
		e.same(ctx, pods+"/plain/ephemeralcontainers", kind("Pod")),
		e.same(ctx, gadgets+"/g-1/status", kind("Gadget")),
		e.same(ctx, pods+"/plain/log", code(204)),
		e.same(ctx, pods+"/plain/bogus", status(404, "NotFound", "the server could not find the requested resource")),
		e.same(ctx, pods+"/plain/status?watch=true", kind("Pod")),
	)
}

// NamespaceSubresources: §1, namespaces is a resource and a prefix: status and
// finalize are subresources of the namespace, any other tail is a resource.
func NamespaceSubresources(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, "/api/v1/namespaces/conf/status", kind("Namespace")),
		e.same(ctx, "/api/v1/namespaces/conf/status?watch=true", kind("Namespace")),
		e.same(ctx, "/api/v1/namespaces/conf/finalize", status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")),
		e.same(ctx, "/api/v1/namespaces/conf/bogus", status(404, "NotFound", "the server could not find the requested resource")),
		e.same(ctx, "/api/v1/namespaces/conf/namespaces", status(404, "NotFound", "the server could not find the requested resource")),
	)
}

// TrailingSlash: §1, a slash behind a path changes nothing.
func TrailingSlash(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/"+anyVersion, mask(compare.ListRV), items(still...)),
		e.same(ctx, configMaps+"/cm-1/"+anyVersion, kind("ConfigMap")),
		e.same(ctx, beacons+"/"+anyVersion+"&watch=1&timeoutSeconds=1", events("ADDED north", "ADDED south")),
		e.same(ctx, "/api/v1/namespaces/conf/"+anyVersion, kind("Namespace")),
	)
}

// OddPaths: §1, paths that are nearly one of the API: with empty or dotted
// segments, with escapes, of unknown groups, versions and resources.
func OddPaths(ctx context.Context, e *Env) error {
	var errs []error
	for path, want := range map[string]int{
		"/api/v1/namespaces/conf//configmaps":       404,
		"//api/v1/namespaces/conf/configmaps":       404,
		"/api/v1/namespaces/conf/./configmaps":      404,
		"/api/v1/namespaces/conf/x/../configmaps":   404,
		"/api/v1/namespaces/conf/configmaps//":      200,
		"/api/v1/namespaces/conf/%63onfigmaps/cm-1": 200,
		"/api/v1/namespaces/conf/configmaps/cm%2D1": 200,
		"/api/v1/namespaces/conf/configmaps/a%20b":  404,
		"/api/v1/namespaces/conf/configmaps/%2e%2e": 400,
		"/api/v1/namespaces/conf/configmaps/a%2Fb":  404,
		"/api/v1/namespaces/conf/configmaps/CM-1":   404,
		"/api/v1/namespaces/conf/ConfigMaps":        404,
		"/api/v1/namespaces/conf/configmap":         404,
		"/api/v2/namespaces/conf/configmaps":        404,
		"/api/v1/watch":                             500,
		"/api/v1/watch/":                            500,
		"/api/v1/watch/watch/configmaps":            404,
		"/apis/v1/configmaps":                       404,
		"/apis/apps/v1/configmaps":                  404,
		"/apis/apps/v1beta1/deployments":            404,
		"/apis/no.such.group/v1/things":             404,
		"/apis/conformance.example.com/v2/gadgets":  404,
		"/apis/conformance.example.com/v1/no-such":  404,
		"/api/v1/namespaces/conf/configmaps/a/b/c":  404,
		"/api/v1/namespaces/conf/configmaps;x=y":    404,
		"/api":                                      200,
		"/api/":                                     200,
		"/apis/apps/v1":                             200,
		"/version":                                  200,
	} {
		errs = append(errs, e.same(ctx, path, mask(compare.ListRV), code(want)))
	}
	return errors.Join(errs...)
}

// HeadAndOptions: §1, both are refused, except that HEAD of a custom resource
// is a GET without its body.
func HeadAndOptions(ctx context.Context, e *Env) error {
	const message = "the server does not allow this method on the requested resource"
	var errs []error
	for _, path := range []string{configMaps, configMaps + "/cm-1", configMaps + "?watch=1", "/api/v1/nodes"} {
		errs = append(errs,
			e.same(ctx, path, method(http.MethodHead), code(405)),
			e.same(ctx, path, method(http.MethodOptions), status(405, "MethodNotAllowed", message)))
	}
	for _, path := range []string{gadgets, beacons + "/north"} {
		errs = append(errs,
			e.same(ctx, path, method(http.MethodHead), code(200), contentType(compare.JSON)),
			e.same(ctx, path, method(http.MethodOptions), status(405, "MethodNotAllowed", " is not supported on resources of kind …")))
	}
	return errors.Join(errs...)
}

// Writes: §1, any other method is not a read, whatever it says about watching.
func Writes(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps, method(http.MethodPost), body(`{"metadata":{"name":"A B"}}`),
			status(422, "Invalid", `ConfigMap "A B" is invalid: metadata.name: Invalid value: "A B": …`)),
		e.same(ctx, configMaps+"?watch=true", method(http.MethodPost), body(`{"metadata":{"name":"cm-1"}}`),
			status(409, "AlreadyExists", `configmaps "cm-1" already exists`)),
		e.same(ctx, configMaps+"/no-such"+anyVersion, method(http.MethodDelete), status(404, "NotFound", `configmaps "no-such" not found`)),
		e.same(ctx, configMaps+"/cm-1", method(http.MethodPut), body(`{"metadata":{"name":"cm-1","resourceVersion":"1"}}`),
			status(409, "Conflict", `Operation cannot be fulfilled on configmaps "cm-1": …`)),
		e.same(ctx, configMaps+"/cm-1", method(http.MethodPatch), body(`{}`), status(415, "UnsupportedMediaType", "…")),
		e.same(ctx, configMaps, method(http.MethodPost), body(`nonsense`), status(400, "BadRequest", "…")),
		e.same(ctx, gadgets, method(http.MethodPost), body(`{"metadata":{"name":"x"},"kind":"Gadget","apiVersion":"conformance.example.com/v1","spec":{"size":"big"}}`),
			status(422, "Invalid", `Gadget.conformance.example.com "x" is invalid: …`)),
		e.same(ctx, configMaps+"?dryRun=All", method(http.MethodPost), body(`{"metadata":{"name":"dry"}}`), mask(noIdentity), code(201), has(`"name":"dry"`)),
		e.same(ctx, configMaps, method("BOGUS"), code(405)),
	)
}

// noIdentity blanks what is drawn for each new object.
func noIdentity(body []byte) []byte {
	return blank(body, `"uid":"[^"]*"`, `"(creationTimestamp|time)":"[^"]*"`)
}

// NoSuchNamespace: §1, a namespace that does not exist has empty collections.
func NoSuchNamespace(ctx context.Context, e *Env) error {
	const nowhere = "/api/v1/namespaces/nowhere/configmaps"
	return errors.Join(
		e.same(ctx, nowhere+anyVersion, mask(compare.ListRV), items(), has(`"items":[]`)),
		e.same(ctx, nowhere+anyVersion+"&watch=1&timeoutSeconds=1", events()),
		e.same(ctx, nowhere+"/x"+anyVersion, status(404, "NotFound", `configmaps "x" not found`)),
		e.same(ctx, custom+"namespaces/nowhere/gadgets"+anyVersion, mask(compare.ListRV), items(), has(`"items":[]`)),
		e.same(ctx, custom+"namespaces/nowhere/gadgets/x"+anyVersion, status(404, "NotFound", `gadgets.conformance.example.com "x" not found`)),
	)
}

// WrongScope: §1, what is cluster-scoped has no collections in namespaces, and
// what is not has no objects outside of them.
func WrongScope(ctx context.Context, e *Env) error {
	var errs []error
	for _, path := range []string{core + "nodes", configMaps[:len("/api/v1/")] + "configmaps/cm-1", custom + "gadgets/g-1", custom + "namespaces/conf/beacons"} {
		errs = append(errs, e.same(ctx, path+anyVersion, code(404)), e.same(ctx, path+anyVersion+"&watch=1&timeoutSeconds=1", code(404)))
	}
	return errors.Join(errs...)
}

// NameSelector: §1, a field selector that requires a name yields a list of one
// or no item, never 404.
func NameSelector(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	exact := "&" + exactly(rv)
	return errors.Join(
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=cm-2"+exact, items("cm-2")),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name==cm-2"+exact, items("cm-2")),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=no-such"+exact, items(), has(`"items":[]`)),
		e.same(ctx, "/api/v1/configmaps?fieldSelector=metadata.name=cm-1"+exact, items("conf-b/cm-1", "conf/cm-1")),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=cm-2,metadata.name=cm-1"+exact, items()),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=cm-2,metadata.name!=cm-2"+exact, items()),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=cm-1&labelSelector=color=blue"+exact, items()),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name="+url.QueryEscape("a/b")+exact, items()),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=.."+exact, items()),
		e.same(ctx, configMaps+"?limit=1&fieldSelector=metadata.name=cm-1"+exact, items("cm-1"), hasNot("continue")),
		e.same(ctx, gadgets+"?fieldSelector=metadata.name=g-2"+anyVersionAnd, items("g-2"), mask(compare.ListRV)),
		e.same(ctx, beacons+"?fieldSelector=metadata.name=no-such"+anyVersionAnd, items(), mask(compare.ListRV)),
		e.replay(ctx, configMaps+"?watch=1&fieldSelector=metadata.name=cm-3", events("ADDED cm-3")),
		e.replay(ctx, beacons+"?watch=1&fieldSelector=metadata.name=south", events("ADDED south")),
	)
}

const anyVersionAnd = "&resourceVersion=0"

// NameSelectorAndRBAC: §1, the name of a field selector is the name that RBAC
// is asked for.
func NameSelectorAndRBAC(ctx context.Context, e *Env) error {
	weak := header("Authorization", "Bearer "+e.token)
	return errors.Join(
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=cm-1"+anyVersionAnd, as(compare.AsNobody), weak, mask(compare.ListRV), items("cm-1")),
		e.same(ctx, configMaps+"?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=cm-1"+anyVersionAnd, as(compare.AsNobody), weak, events("ADDED cm-1")),
		e.same(ctx, configMaps+"?fieldSelector=metadata.name=cm-2"+anyVersionAnd, as(compare.AsNobody), weak,
			status(403, "Forbidden", `configmaps "cm-2" is forbidden: User "system:serviceaccount:conf:weak" cannot list resource "configmaps" in API group "" in the namespace "conf"`)),
		e.same(ctx, configMaps+anyVersion, as(compare.AsNobody), weak,
			status(403, "Forbidden", `configmaps is forbidden: User "system:serviceaccount:conf:weak" cannot list resource "configmaps" in API group "" in the namespace "conf"`)),
	)
}

// NamespaceSelectorNarrows: §1, metadata.namespace in a field selector narrows
// the scope of a request for all namespaces.
func NamespaceSelectorNarrows(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	exact := "&" + exactly(rv)
	return errors.Join(
		e.same(ctx, "/api/v1/configmaps?fieldSelector=metadata.namespace=conf&labelSelector=color"+exact, items("cm-1", "cm-2", "cm-3", "cm-5")),
		e.same(ctx, "/api/v1/configmaps?fieldSelector=metadata.namespace=conf,metadata.name=cm-1"+exact, items("cm-1")),
		e.same(ctx, "/api/v1/configmaps?fieldSelector=metadata.namespace!=conf&labelSelector=color"+exact, items("conf-b/cm-1")),
		e.same(ctx, "/api/v1/configmaps?limit=2&fieldSelector=metadata.namespace=conf"+exact, items("cm-1", "cm-2"), has(`"continue":"`)),
		e.same(ctx, custom+"gadgets?fieldSelector=metadata.namespace=conf-b"+anyVersionAnd, items("g-3"), mask(compare.ListRV)),
		e.replay(ctx, "/api/v1/configmaps?watch=1&fieldSelector=metadata.namespace=conf-b,metadata.name!=kube-root-ca.crt", events("ADDED cm-1")),
		e.same(ctx, "/api/v1/configmaps?fieldSelector=metadata.namespace="+exact, items()),
	)
}

// NamespaceSelectorElsewhere: §1, a path in a namespace and a field selector
// for another one have nothing in common.
func NamespaceSelectorElsewhere(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"?fieldSelector=metadata.namespace=conf-b"+anyVersionAnd, items(), mask(compare.ListRV)),
		e.same(ctx, configMaps+"?fieldSelector=metadata.namespace=conf-b,metadata.name=cm-1"+anyVersionAnd, items(), mask(compare.ListRV)),
		e.same(ctx, gadgets+"?fieldSelector=metadata.namespace=conf-b"+anyVersionAnd, items(), mask(compare.ListRV)),
		e.replay(ctx, configMaps+"?watch=1&fieldSelector=metadata.namespace=conf-b", events()),
	)
}
