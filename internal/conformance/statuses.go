// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var statusRules = rules("§8",
	BadRequest, Unauthorized, Forbidden, ForbiddenEverywhere, Impersonation, ObjectNotFound, PathNotFound,
	MethodNotAllowed, WatchNotSupported, StatusInYAML, StatusInProtobuf, StatusFallsBackToJSON, StatusIsIndented,
)

// BadRequest: §8, 400 has a text and no details.
func BadRequest(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+anyVersion+"&limit=x", status(400, "BadRequest", "…"), hasNot("details")),
		e.same(ctx, configMaps+anyVersion+"&fieldSelector=x=y", status(400, "BadRequest", "…"), hasNot("details")),
		e.same(ctx, configMaps+"?resourceVersion=x", status(400, "BadRequest", "…"), hasNot("details")),
	)
}

// Unauthorized: §8, 401 for who brings a token that is none.
func Unauthorized(ctx context.Context, e *Env) error {
	garbage := header("Authorization", "Bearer garbage")
	var errs []error
	for _, path := range []string{configMaps, configMaps + anyVersion, configMaps + "/cm-1" + anyVersion, configMaps + anyVersion + "&watch=1", "/version"} {
		errs = append(errs, e.same(ctx, path, as(compare.AsNobody), garbage, status(401, "Unauthorized", "Unauthorized")))
	}
	return errors.Join(append(errs,
		e.same(ctx, configMaps+anyVersion, as(compare.AsNobody), garbage, accept(compare.YAML), code(401)),
		e.same(ctx, configMaps+anyVersion, as(compare.AsNobody), header("Authorization", "Bearer "), either(401, 403)),
	)...)
}

// Forbidden: §8, 403 names the user, the verb, the resource and the scope, and
// forbids sniffing.
func Forbidden(ctx context.Context, e *Env) error {
	const user = `User "system:serviceaccount:conf:weak" cannot `
	weak := []option{as(compare.AsNobody), header("Authorization", "Bearer "+e.token)}
	ask := func(path, message, details string, more ...option) error {
		return e.same(ctx, path, append(append(more, weak...), status(403, "Forbidden", message), has(`"details":`+details),
			sends("X-Content-Type-Options", "nosniff"))...)
	}
	return errors.Join(
		ask(pods+anyVersion, `pods is forbidden: `+user+`list resource "pods" in API group "" in the namespace "conf"`, `{"kind":"pods"}`),
		ask("/api/v1/pods", `pods is forbidden: `+user+`list resource "pods" in API group "" at the cluster scope`, `{"kind":"pods"}`),
		ask(pods+"/plain"+anyVersion, `pods "plain" is forbidden: `+user+`get resource "pods" in API group "" in the namespace "conf"`, `{"name":"plain","kind":"pods"}`),
		ask(pods+anyVersion+"&watch=1", `pods is forbidden: `+user+`watch resource "pods" in API group "" in the namespace "conf"`, `{"kind":"pods"}`),
		ask("/apis/apps/v1/deployments"+anyVersion, `deployments.apps is forbidden: `+user+`list resource "deployments" in API group "apps" at the cluster scope`, `{"group":"apps","kind":"deployments"}`),
		ask(gadgets+anyVersion, `gadgets.conformance.example.com is forbidden: `+user+`list resource "gadgets" in API group "conformance.example.com" in the namespace "conf"`,
			`{"group":"conformance.example.com","kind":"gadgets"}`),
		ask("/api/v1/nodes/node-0"+anyVersion, `nodes "node-0" is forbidden: `+user+`get resource "nodes" in API group "" at the cluster scope`, `{"name":"node-0","kind":"nodes"}`),
		ask(core+"no-such", `no-such is forbidden: `+user+`list resource "no-such" in API group "" in the namespace "conf"`, `{"kind":"no-such"}`),
		ask("/logs", `forbidden: `+user+`get path "/logs"`, `{}`),
		e.same(ctx, configMaps+"/cm-1"+anyVersion, append(weak, kind("ConfigMap"))...),
		e.same(ctx, configMaps+"/cm-1", append(weak, kind("ConfigMap"))...),
	)
}

// ForbiddenEverywhere: §8, in other encodings a 403 is JSON all the same.
func ForbiddenEverywhere(ctx context.Context, e *Env) error {
	weak := []option{as(compare.AsNobody), header("Authorization", "Bearer "+e.token), code(403)}
	var errs []error
	for _, media := range []string{compare.YAML, compare.Protobuf, tableV1, metadataList, "text/html"} {
		errs = append(errs,
			e.same(ctx, pods+anyVersion, append(weak, accept(media))...),
			e.same(ctx, pods+anyVersion+"&watch=1", append(weak, accept(media))...))
	}
	return errors.Join(append(errs, e.same(ctx, pods+anyVersion+"&pretty=1", weak...))...)
}

// Impersonation: §8, who acts as somebody else reads what that one may.
func Impersonation(ctx context.Context, e *Env) error {
	who := header("Impersonate-User", "nobody-special")
	const user = `User "nobody-special" cannot `
	return errors.Join(
		e.same(ctx, pods+anyVersion, who, status(403, "Forbidden", `pods is forbidden: `+user+`list resource "pods" in API group "" in the namespace "conf"`)),
		e.same(ctx, pods+"/plain"+anyVersion, who, status(403, "Forbidden", `pods "plain" is forbidden: …`)),
		e.same(ctx, pods+anyVersion+"&watch=1", who, status(403, "Forbidden", `pods is forbidden: …`)),
		e.same(ctx, configMaps+"/cm-1"+anyVersion, header("Impersonate-User", "system:serviceaccount:conf:weak"), kind("ConfigMap")),
	)
}

// ObjectNotFound: §8, 404 of an object names it and its resource.
func ObjectNotFound(ctx context.Context, e *Env) error {
	for _, path := range []string{configMaps, gadgets, "/apis/apps/v1/deployments"} {
		if _, err := e.at(ctx, path, 0); err != nil {
			return err
		}
	}
	return errors.Join(
		e.same(ctx, configMaps+"/x"+anyVersion, status(404, "NotFound", `configmaps "x" not found`), has(`"details":{"name":"x","kind":"configmaps"}`)),
		e.same(ctx, configMaps+"/x", status(404, "NotFound", `configmaps "x" not found`)),
		e.same(ctx, "/apis/apps/v1/namespaces/conf/deployments/x"+anyVersion, status(404, "NotFound", `deployments.apps "x" not found`), has(`"details":{"name":"x","group":"apps","kind":"deployments"}`)),
		e.same(ctx, gadgets+"/x"+anyVersion, status(404, "NotFound", `gadgets.conformance.example.com "x" not found`), has(`"details":{"name":"x","group":"conformance.example.com","kind":"gadgets"}`)),
		e.same(ctx, "/api/v1/nodes/x"+anyVersion, status(404, "NotFound", `nodes "x" not found`)),
		e.same(ctx, configMaps+"/X_y~z"+anyVersion, status(404, "NotFound", `configmaps "X_y~z" not found`)),
		e.same(ctx, configMaps+"/"+"a%22b"+anyVersion, status(404, "NotFound", `configmaps "a\"b" not found`)),
	)
}

// PathNotFound: §8, 404 of a path is a Status where the group is known and
// plain text where it is not, or is one of custom resources.
func PathNotFound(ctx context.Context, e *Env) error {
	const text = "text/plain; charset=utf-8"
	const message = "the server could not find the requested resource"
	return errors.Join(
		e.same(ctx, core+"no-such"+anyVersion, status(404, "NotFound", message), has(`"details":{}`)),
		e.same(ctx, "/apis/apps/v1/no-such", status(404, "NotFound", message), has(`"details":{}`)),
		e.same(ctx, "/apis/no.such.group/v1/x", code(404), contentType(text), has("404 page not found\n")),
		e.same(ctx, custom+"no-such", code(404), contentType(text), has("404 page not found\n")),
		e.same(ctx, custom+"no-such?watch=1", code(404), contentType(text)),
		e.same(ctx, "/no-such", code(404)),
		e.same(ctx, core+"no-such"+anyVersion+"&watch=1", status(404, "NotFound", message)),
	)
}

// MethodNotAllowed: §8, 405.
func MethodNotAllowed(ctx context.Context, e *Env) error {
	const message = "the server does not allow this method on the requested resource"
	return errors.Join(
		e.same(ctx, configMaps, method("PUT"), body("{}"), status(405, "MethodNotAllowed", message)),
		e.same(ctx, configMaps+"/cm-1", method("POST"), body("{}"), status(405, "MethodNotAllowed", message)),
		e.same(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", status(405, "MethodNotAllowed", message)),
	)
}

// WatchNotSupported: §8, what cannot be watched says so.
func WatchNotSupported(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, "/api/v1/componentstatuses?watch=1", status(405, "MethodNotAllowed", `watch is not supported on resources of kind "componentstatuses"`)),
		// Its items come in the order in which they answer.
		e.same(ctx, "/api/v1/componentstatuses", kind("ComponentStatusList"), mask(nothing)),
	)
}

// StatusInYAML: §8, a Status is encoded as was asked for.
func StatusInYAML(ctx context.Context, e *Env) error {
	for _, path := range []string{configMaps, gadgets} {
		if _, err := e.at(ctx, path, 0); err != nil {
			return err
		}
	}
	return errors.Join(
		e.same(ctx, configMaps+"/x"+anyVersion, accept(compare.YAML), code(404), contentType(compare.YAML), has("code: 404\n"), has("kind: Status\n")),
		e.same(ctx, gadgets+"/x"+anyVersion, accept(compare.YAML), code(404), contentType(compare.YAML), has("code: 404\n")),
		e.same(ctx, configMaps+"?limit=x", accept(compare.YAML), code(400), contentType(compare.YAML)),
	)
}

// StatusInProtobuf: §8, so it is in protobuf; of custom resources it is too.
func StatusInProtobuf(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/x"+anyVersion, accept(compare.Protobuf), code(404), contentType(compare.Protobuf), enveloped("Status")),
		e.same(ctx, gadgets+"/x"+anyVersion, accept(compare.Protobuf+",application/json"), code(404)),
		e.same(ctx, gadgets+"/x"+anyVersion, accept(metadataProtobuf), code(404)),
		e.same(ctx, configMaps+"?limit=x", accept(compare.Protobuf), code(400), enveloped("Status")),
		e.same(ctx, configMaps+"?watch=1&resourceVersion=abc", accept(compare.Protobuf), code(500), enveloped("Status")),
	)
}

// StatusFallsBackToJSON: §8, where the encoding is not acceptable a Status is
// JSON, indented.
func StatusFallsBackToJSON(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/x"+anyVersion, accept("text/html"), code(406), contentType(compare.JSON), has("{\n  \"kind\"")),
		e.same(ctx, configMaps+"/x"+anyVersion, accept(tableV1), code(404), contentType(compare.JSON), has("{\n  \"kind\"")),
		e.same(ctx, configMaps+"/x"+anyVersion, accept(metadata), code(404), contentType(compare.JSON)),
		e.same(ctx, gadgets+"/x"+anyVersion, accept(compare.Protobuf), code(406)),
	)
}

// StatusIsIndented: §8, and §2 on pretty, by the same rules as objects.
func StatusIsIndented(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/x"+anyVersion, header("User-Agent", "curl/8"), code(404), indented),
		e.same(ctx, configMaps+"/x"+anyVersion, code(404), hasNot("\n ")),
		e.same(ctx, configMaps+"?resourceVersion=x&pretty=1", code(400), indented),
		e.same(ctx, configMaps+"?resourceVersionMatch=Exact", header("User-Agent", "Mozilla/5.0"), code(422), indented),
	)
}
