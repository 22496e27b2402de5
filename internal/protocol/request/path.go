// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net/http"
	"path"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A Verb is an RBAC verb.
type Verb string

// The verbs of reads.
const (
	Get   Verb = "get"
	List  Verb = "list"
	Watch Verb = "watch"
)

// A Target is the resource or object that the path of a read names
// (docs/kubernetes-watch.md, "URLs and verbs").
type Target struct {
	Verb      Verb
	Resource  kube.Resource
	Namespace string // "" for all namespaces, or a cluster-scoped resource
	Name      string // "" for a collection
	// WatchPath is set for the deprecated /watch/ paths.
	WatchPath bool
}

// maxNameLength bounds the name of a group, a version or a resource, which are DNS
// names. It also bounds the memory for names that are cached as unknown (T10).
const maxNameLength = 253

// ParsePath reads the path of a GET request for a resource or an object. ok is false
// for other paths, such as those of subresources.
func ParsePath(p string) (Target, bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(p, "/"), "/"), "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return Target{}, false
		}
	}
	var t Target
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Resource.Group, t.Resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return Target{}, false
	}
	if len(parts) > 1 && parts[0] == "watch" {
		t.WatchPath, parts = true, parts[1:]
	}
	// "namespaces" is a resource and a prefix: namespaces/NAME/status and
	// /finalize are subresources, any other tail is a namespaced resource.
	if len(parts) > 2 && parts[0] == "namespaces" {
		if parts[2] == "status" || parts[2] == "finalize" {
			return Target{}, false
		}
		t.Namespace, parts = parts[1], parts[2:]
	}
	switch len(parts) {
	case 1:
		t.Verb = List
	case 2:
		t.Verb, t.Name = Get, parts[1]
	default:
		return Target{}, false // a subresource
	}
	t.Resource.Name = parts[0]
	if max(len(t.Resource.Group), len(t.Resource.Version), len(t.Resource.Name)) > maxNameLength {
		return Target{}, false
	}
	if t.WatchPath {
		t.Verb = Watch
	}
	return t, true
}

// IsWatch reports whether a request is a watch, live or below /at/.
func IsWatch(r *http.Request) bool {
	p := r.URL.Path
	if IsAt(p) {
		_, p, _ = strings.Cut(strings.TrimPrefix(p, AtPrefix), "/")
	}
	t, ok := ParsePath(p)
	return ok && (t.WatchPath || IsTrue(r, "watch"))
}

// IsLongRunning reports whether a request lasts until the client or the server ends
// it.
func IsLongRunning(r *http.Request) bool {
	return IsUpgrade(r) || IsTrue(r, "follow") || IsWatch(r)
}

// IsInteractive reports whether p is the path of a subresource that runs commands in
// a Pod or opens connections to it.
func IsInteractive(p string) bool {
	if !strings.Contains(p, "/pods/") {
		return false
	}
	switch path.Base(p) {
	case "exec", "attach", "portforward":
		return true
	}
	return false
}

// Connects reports whether a subresource opens connections to something in the cluster.
// Its caller can change anything there, with a GET too.
func Connects(subresource string) bool {
	switch subresource {
	case "exec", "attach", "portforward", "proxy":
		return true
	}
	return false
}

// Subresource returns the name of the subresource that the path of the API names, "" if
// it names none. The path has to be clean: without empty parts and dots.
func Subresource(p string) string {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return ""
	}
	// /api/v1/proxy/… was a way to the same as a subresource, and may be one again.
	if parts[0] == "proxy" {
		return parts[0]
	}
	if parts[0] == "watch" {
		parts = parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// IsDiscovery reports whether p is a path of discovery, OpenAPI or the version, which
// clients read before they read objects.
func IsDiscovery(p string) bool {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	switch parts[0] {
	case "", "version":
		return len(parts) == 1
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	case "openapi":
		return true
	}
	return false
}

// RawPath returns the path as the client sent it, if it is known.
func RawPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		p, _, _ := strings.Cut(r.RequestURI, "?")
		return p
	}
	return r.URL.EscapedPath()
}

// VerbOf returns the Kubernetes verb of any request, derived from its method and the
// shape of its path. It returns "other" for methods that Kubernetes does not use.
func VerbOf(r *http.Request) string {
	if IsUpgrade(r) {
		return "connect"
	}
	named := false // a single object, or no resource at all
	seg := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case seg[0] == "api" && len(seg) > 2:
		seg = seg[2:]
	case seg[0] == "apis" && len(seg) > 3:
		seg = seg[3:]
	default:
		seg, named = nil, true
	}
	if len(seg) > 1 && seg[0] == "watch" && r.Method == http.MethodGet {
		return "watch"
	}
	if len(seg) > 2 && seg[0] == "namespaces" && seg[2] != "status" && seg[2] != "finalize" {
		seg = seg[2:]
	}
	named = named || len(seg) > 1
	switch r.Method {
	case http.MethodGet:
		if named {
			return "get"
		}
		if IsTrue(r, "watch") {
			return "watch"
		}
		return "list"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodHead, http.MethodOptions:
		return strings.ToLower(r.Method)
	}
	return "other" // clients can send any method, and metrics must not have a label for each
}
