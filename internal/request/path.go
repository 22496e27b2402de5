// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net/http"
	"path"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A Verb is what a request does, as RBAC names it.
type Verb string

// The verbs of reads.
const (
	Get   Verb = "get"
	List  Verb = "list"
	Watch Verb = "watch"
)

// A Target is what the path of a read names (docs/kubernetes-watch.md, "URLs and
// verbs").
type Target struct {
	Verb      Verb
	Resource  kube.Resource
	Namespace string // "" for all namespaces, or a cluster-scoped resource
	Name      string // "" for a collection
	// WatchPath is set for the deprecated /watch/ paths.
	WatchPath bool
}

// maxNameLength is how long the name of a group, a version or a resource can be:
// they are DNS names. Longer ones would have to be remembered as unknown (T10).
const maxNameLength = 253

// ParsePath reads the path of a GET request: a resource or an object, not a
// subresource.
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

// ListPath returns the path of the objects of a namespace, "" for all.
func ListPath(r kube.Resource, namespace string) string {
	if namespace != "" {
		r.Name = "namespaces/" + namespace + "/" + r.Name
	}
	return r.Path()
}

// ObjectPath returns the path of an object.
func ObjectPath(r kube.Resource, key kube.Key) string {
	return ListPath(r, key.Namespace()) + "/" + key.Name()
}

// IsWatch reports whether a request is a watch, of the present or below /at/.
func IsWatch(r *http.Request) bool {
	p := r.URL.Path
	if IsAt(p) {
		_, p, _ = strings.Cut(strings.TrimPrefix(p, AtPrefix), "/")
	}
	t, ok := ParsePath(p)
	return ok && (t.WatchPath || IsTrue(r, "watch"))
}

// IsLongRunning reports whether a request goes on until one of its ends stops it.
func IsLongRunning(r *http.Request) bool {
	return IsUpgrade(r) || IsTrue(r, "follow") || IsWatch(r)
}

// IsInteractive reports whether p leads to a subresource that runs commands
// in a Pod or opens connections to it.
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

// IsDiscovery reports whether p leads to discovery, OpenAPI or the version:
// what a client reads before it reads objects.
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

// RawPath returns the path as the client sent it, where that is known.
func RawPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		p, _, _ := strings.Cut(r.RequestURI, "?")
		return p
	}
	return r.URL.EscapedPath()
}

// VerbOf returns the Kubernetes verb of any request, as far as its method and the
// shape of its path show it; "other" for methods that Kubernetes does not use.
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
	return "other" // clients choose methods freely, and metric labels must stay few
}
