// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strconv"
	"strings"
)

// A Resource is a group, version and resource name, as in a URL:
// {"apps", "v1", "deployments"}. The group of the core API is "".
type Resource struct {
	Group, Version, Name string
}

// String returns "pods.v1" or "deployments.v1.apps", as kubectl accepts it.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name + "." + r.Version
	}
	return r.Name + "." + r.Version + "." + r.Group
}

// APIVersion returns "v1" or "apps/v1".
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// GroupResource returns "pods" or "deployments.apps", as Status messages name
// a resource.
func (r Resource) GroupResource() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// Path returns the URL path of the collection over all namespaces.
func (r Resource) Path() string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Name
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Name
}

// ListPath returns the URL path of the collection in a namespace, or over all namespaces if it
// is "".
func (r Resource) ListPath(namespace string) string {
	if namespace != "" {
		r.Name = "namespaces/" + namespace + "/" + r.Name
	}
	return r.Path()
}

// ObjectPath returns the URL path of an object.
func (r Resource) ObjectPath(key Key) string { return r.ListPath(key.Namespace()) + "/" + key.Name() }

// A Key identifies an object within its resource: "namespace/name", or "name" if
// it is cluster-scoped. The byte order of keys is the order of the API server's
// lists (namespace "a-b" comes before "a", since '-' is less than '/').
type Key string

// MakeKey joins a namespace, which may be "", and a name.
func MakeKey(namespace, name string) Key {
	if namespace == "" {
		return Key(name)
	}
	return Key(namespace + "/" + name)
}

// Namespace returns the namespace, "" for a cluster-scoped object.
func (k Key) Namespace() string {
	ns, _, ok := strings.Cut(string(k), "/")
	if !ok {
		return ""
	}
	return ns
}

// Name returns the object's name.
func (k Key) Name() string {
	return string(k[strings.IndexByte(string(k), '/')+1:])
}

// ParseRV parses a resourceVersion, an unsigned decimal integer (KEP-5504). The
// empty string is 0.
func ParseRV(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	rv, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: %w", err)
	}
	return rv, nil
}

// FormatRV is the inverse of [ParseRV].
func FormatRV(rv uint64) string { return strconv.FormatUint(rv, 10) }

// Uncached reports whether the API server keeps no watch cache for the resource: it
// then honours the limit of a LIST at RV 0, and sends no bookmarks.
func (r Resource) Uncached() bool {
	return r.Name == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}
