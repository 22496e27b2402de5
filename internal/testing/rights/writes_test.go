// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"math/rand/v2"
	"net/http"
	"strings"
)

// write makes the request a dry run of a write, or one about a subresource, which the
// gateway never answers itself.
func (w *world) write(r *rand.Rand, q *request, of resource) {
	q.accept, q.contentType = oneOf(r, jsonType, protoType+","+jsonType, tableType+","+jsonType), jsonType
	if len(of.subs) > 0 && chance(r, 35) {
		w.subresource(r, q, of)
		return
	}
	q.query = "dryRun=All"
	switch n := r.IntN(100); {
	case n < 25:
		q.method, q.verb = http.MethodPost, "create"
		q.path, q.body = of.path(q.namespace), of.object(q.namespace, "new", nil)
	case n < 55:
		q.method, q.verb = http.MethodPatch, "patch"
		w.named(r, q, of)
		q.contentType, q.body = "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"patched":"yes"}}}`)
		if chance(r, 30) { // which creates what is absent
			q.query += "&fieldManager=test&force=true"
			q.contentType, q.body = "application/apply-patch+yaml", of.object(q.objectNamespace(of), q.name, map[string]string{"applied": "yes"})
		}
	case n < 65:
		q.method, q.verb = http.MethodPut, "update"
		w.named(r, q, of)
		q.body = of.object(q.objectNamespace(of), q.name, nil)
	case n < 85:
		q.method, q.verb = http.MethodDelete, "delete"
		w.named(r, q, of)
	default:
		q.method, q.verb = http.MethodDelete, "deletecollection"
		q.path = of.path(q.namespace)
		if chance(r, 50) {
			q.name = w.objectName(r, of)
			q.query += "&fieldSelector=metadata.name%3D" + q.name
		}
	}
}

// objectNamespace returns the namespace in the metadata of the object that q is about.
func (q *request) objectNamespace(of resource) string {
	if of.cluster {
		return ""
	}
	return q.namespace
}

// subresource makes the request one about a subresource.
func (w *world) subresource(r *rand.Rand, q *request, of resource) {
	w.named(r, q, of)
	q.sub = oneOf(r, of.subs...)
	q.path += "/" + q.sub
	post := func(body string) {
		q.method, q.verb, q.query, q.body = http.MethodPost, "create", "dryRun=All", []byte(strings.ReplaceAll(body, "NAME", q.name))
	}
	switch q.sub {
	case "eviction":
		post(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"NAME"},"deleteOptions":{"dryRun":["All"]}}`)
	case "binding": // which the Pod has already
		post(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"NAME"},"target":{"kind":"Node","name":"node-0"}}`)
	case "token":
		post(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	case "exec": // without an upgrade, which is an error after the authorization
		q.method, q.verb, q.query = oneOf(r, http.MethodGet, http.MethodPost), "get", "command=true"
		if q.method == http.MethodPost {
			q.verb = "create"
		}
	case "log":
		q.method, q.verb, q.query = http.MethodGet, "get", "tailLines=1"
		q.accept = ""
	default:
		q.method, q.verb = http.MethodGet, "get"
		if chance(r, 50) {
			q.method, q.verb, q.query = http.MethodPatch, "patch", "dryRun=All"
			q.contentType, q.body = "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"patched":"yes"}}}`)
		}
	}
	if q.method == http.MethodGet {
		q.contentType = ""
	}
}
