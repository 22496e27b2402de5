// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/accessapi"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/serve/workbookapi"
	"github.com/watchkeeper/watchkeeper/internal/serve/yamlapi"
)

const (
	// extensionPrefix is the path below which extensions of the API are served.
	extensionPrefix = "/watchkeeper/v1/"
	multiwatchPath  = extensionPrefix + "multiwatch"
	// openAPIPath serves the OpenAPI description of the extensions.
	openAPIPath = extensionPrefix + "openapi.json"
)

// extensions serves what is below extensionPrefix.
type extensions struct {
	multiwatch http.Handler
	history    http.Handler
	access     http.Handler
	workbook   http.Handler
	yaml       http.Handler
}

// maxFields and maxQuery bound the fields of a header, which are copied for each request that
// an extension makes of its own, and the bytes of a query. A multiwatch has many reads in its
// query.
const (
	maxFields = 1000
	maxQuery  = 32 << 10
)

func (e *extensions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fields := 0
	for _, values := range r.Header {
		fields += len(values)
	}
	switch path := r.URL.Path; {
	case fields > maxFields:
		status.Write(w, r, status.New(http.StatusRequestHeaderFieldsTooLarge, metav1.StatusReasonBadRequest,
			fmt.Sprintf("the header has %d fields: at most %d are possible", fields, maxFields)))
	case path != multiwatchPath && len(r.URL.RawQuery) > maxQuery:
		status.Write(w, r, status.New(http.StatusRequestURITooLong, metav1.StatusReasonBadRequest,
			fmt.Sprintf("the query has %d bytes: at most %d are possible", len(r.URL.RawQuery), maxQuery)))
	case path == multiwatchPath:
		e.multiwatch.ServeHTTP(w, r)
	case isBelow(path, historyapi.Path), isBelow(path, historyapi.StoryPath), path == historyapi.FindingsPath:
		e.history.ServeHTTP(w, r)
	case path == accessapi.Path:
		e.access.ServeHTTP(w, r)
	case path == workbookapi.Path:
		e.workbook.ServeHTTP(w, r)
	case path == yamlapi.Path:
		e.yaml.ServeHTTP(w, r)
	case path == openAPIPath:
		serveOpenAPI(w, r)
	default:
		status.Write(w, r, status.New(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there is nothing at "+path+": "+openAPIPath+" says what there is"))
	}
}

// isBelow reports whether a path is another, or below it.
func isBelow(path, other string) bool { return path == other || strings.HasPrefix(path, other+"/") }

func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		status.Write(w, r, status.MethodNotAllowed())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(api.OpenAPI) //nolint:errcheck // the client is gone
}

var namespaces = kube.Resource{Version: "v1", Name: "namespaces"}

// newAccessAPI returns the handler of the access API. The API server decides about the
// caller of each request.
func (g *Gateway) newAccessAPI() *accessapi.Handler {
	h := g.reads
	var reviewer accessapi.Reviewer = accessapi.NewSelfReviews(h.up, h.background)
	if g.shared != nil {
		reviewer = sharedReviewer{g.shared}
	}
	// It costs as much as a list.
	return &accessapi.Handler{Reviewer: reviewer, Namespaces: h.namespaces, Lookup: h.discovery.Lookup, Filter: g.checkAPI, Begin: h.users.List}
}

// A sharedReviewer is the reviewer of shared mode.
type sharedReviewer struct{ shared *access.Shared }

// Allowed implements accessapi.Reviewer.
func (v sharedReviewer) Allowed(r *http.Request, a authorizationv1.ResourceAttributes) (allowed bool, reason string, err error) {
	caller := access.CallerOf(r.Context())
	if caller == nil { // the gateway's identity never answers for a caller
		return false, "", &status.Error{Status: status.Unauthorized("the request has no caller")}
	}
	verdict := v.shared.Decide(r.Context(), caller, access.TargetAttributes(caller.User, request.Target{
		Verb: request.Verb(a.Verb), Resource: kube.Resource{Group: a.Group, Version: a.Version, Name: a.Resource}, Namespace: a.Namespace,
	}))
	if verdict.Decision == upstream.Unknown {
		return false, "", fmt.Errorf("the API server gave no decision on what the caller may %s: %s", a.Verb, verdict.Reason)
	}
	return verdict.Allowed(), verdict.Reason, nil
}

// namespaces returns the names of all namespaces from the cache, in its order. It proves
// no freshness: a client that asks again every half minute needs none.
func (h *reads) namespaces(ctx context.Context) ([]string, error) {
	if res := h.cache.Acquire(ctx, namespaces); res != nil {
		defer res.Release()
		state := res.StateFor(ctx, request.List)
		// The list proves only that the gateway was allowed to list when it was made (T8).
		if state.Readable && res.Access.Allows(ctx, request.List) {
			names := make([]string, 0, state.View.Len())
			for o := range state.View.All("", "") {
				names = append(names, o.Key.Name())
			}
			return names, nil
		}
		if state.Readable {
			return nil, mayNotListNamespaces("")
		}
	}
	if refusal := h.cache.Refused(namespaces); refusal != nil {
		return nil, mayNotListNamespaces(": " + refusal.Message)
	}
	return nil, &status.Error{Status: status.Unavailable("the gateway has no list of the namespaces now: try again", true)}
}

func mayNotListNamespaces(why string) error {
	return &status.Error{Status: status.Unavailable(
		"in which namespaces the caller may read is not known, since the gateway may not list and watch namespaces"+why, false)}
}
