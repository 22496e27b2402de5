// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A Request is a parsed request.
type Request struct {
	*http.Request
	// Verb is list, watch, get, create, update, patch, delete, discovery, or ""
	// for anything else, which Options.Others answers.
	Verb string
	// Resource, Namespace, Name and Subresource are those in the path, if it has
	// them.
	Resource                     Resource
	Namespace, Name, Subresource string
	// Query is that of the URL. A Control may change it before it calls next.
	Query url.Values

	collection *collection // nil without a resource
	endings    uint64      // Server.endings when the request arrived
}

func (s *Server) parse(httpRequest *http.Request) *Request {
	r := &Request{Request: httpRequest, Query: httpRequest.URL.Query()}
	path := strings.Trim(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	group, version := "", ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		if r.Method == http.MethodGet {
			r.Verb = "discovery"
		}
		return r
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = parts[2]
	}
	for _, c := range s.collections {
		if c.Group == group && c.Version == version && c.Name == parts[0] && (c.Namespaced || r.Namespace == "") {
			r.collection, r.Resource = c, c.Resource
		}
	}
	if r.collection != nil && len(parts) <= 3 {
		r.Verb = verb(r)
	}
	return r
}

func verb(r *Request) string {
	writable := r.Subresource == "" || r.Subresource == "status"
	switch watch := r.Query.Get("watch"); {
	case r.Method == http.MethodGet && r.Name != "" && writable:
		return "get"
	case r.Method == http.MethodGet && r.Name == "" && (watch == "1" || watch == "true"):
		return "watch"
	case r.Method == http.MethodGet && r.Name == "":
		return "list"
	case r.Method == http.MethodPost && r.Name == "":
		return "create"
	case r.Method == http.MethodPut && r.Name != "" && writable:
		return "update"
	case r.Method == http.MethodPatch && r.Name != "" && writable:
		return "patch"
	case r.Method == http.MethodDelete && r.Name != "" && r.Subresource == "":
		return "delete"
	}
	return ""
}

// key returns the key of the requested object.
func (r *Request) key() string { return r.Resource.key(r.Namespace, r.Name) }

// listOptions are the query of a list or a watch, as metav1.ListOptions.
type listOptions struct {
	rv               uint64 // 0 if it is unset
	rvText           string
	match, continued string
	limit            int
	timeout          int   // seconds; 0 means the server's
	bookmarks        bool  // allowWatchBookmarks
	initial          *bool // sendInitialEvents
	selection        selection
}

const (
	matchExact        = "Exact"
	matchNotOlderThan = "NotOlderThan"
)

// collectionRequest reads what lists and watches have in common: the query, and the
// format of the response.
func (s *Server) collectionRequest(r *Request) (*listOptions, Format, *Status) {
	opts, wrong := s.options(r)
	if wrong != nil {
		return nil, nil, wrong
	}
	format, wrong := s.negotiate(r)
	if wrong != nil {
		return nil, nil, wrong
	}
	if opts.rv, wrong = parseRV(opts.rvText); wrong != nil {
		return nil, nil, wrong
	}
	return opts, format, nil
}

// options reads and validates the query of a list or a watch.
func (s *Server) options(r *Request) (*listOptions, *Status) {
	q := r.Query
	o := &listOptions{
		rvText: q.Get("resourceVersion"), match: q.Get("resourceVersionMatch"), continued: q.Get("continue"),
		bookmarks: q.Has("allowWatchBookmarks") && isTrue(q.Get("allowWatchBookmarks")),
	}
	if q.Has("sendInitialEvents") {
		o.initial = new(isTrue(q.Get("sendInitialEvents")))
	}
	for name, into := range map[string]*int{"limit": &o.limit, "timeoutSeconds": &o.timeout} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, badRequest("%v", err)
			}
			*into = n
		}
	}
	var err error
	if o.selection, err = parseSelection(r.Namespace, q.Get("labelSelector"), q.Get("fieldSelector")); err != nil {
		return nil, badRequest("%v", err)
	}
	if wrong := o.wrong(r.Verb == "watch", s.opts.NoWatchList); wrong != "" {
		return nil, failure(http.StatusUnprocessableEntity, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: %s", wrong)
	}
	return o, nil
}

// isTrue reads a boolean as the API server does.
func isTrue(text string) bool { return text != "0" && !strings.EqualFold(text, "false") }

// wrong says what API machinery's ValidateListOptions refuses; "" for nothing.
func (o *listOptions) wrong(watch, noWatchList bool) string {
	const forbidden = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden "
	switch {
	case !watch && o.initial != nil:
		return "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
	case o.initial != nil && o.match != matchNotOlderThan:
		return "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
	case o.initial != nil && noWatchList:
		return "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
	case o.match == "":
		return ""
	case watch && o.initial == nil:
		return forbidden + "for watch unless sendInitialEvents is provided"
	case !watch && o.rvText == "":
		return forbidden + "unless resourceVersion is provided"
	case o.continued != "":
		return forbidden + "when continue is provided"
	case o.match != matchExact && o.match != matchNotOlderThan:
		return `resourceVersionMatch: Unsupported value: "` + o.match + `": supported values: "Exact", "NotOlderThan"`
	case o.match == matchExact && o.rvText == "0":
		return forbidden + `"Exact" for resourceVersion "0"`
	}
	return ""
}

func parseRV(text string) (uint64, *Status) {
	if text == "" {
		return 0, nil
	}
	rv, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badRequest("Invalid value for resourceVersion: %s", text)
	}
	return rv, nil
}
