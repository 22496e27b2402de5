// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
)

// requirePast returns why a caller may not read the past at a path, /at or the history
// API; nil if it may. What it may read there is decided for each resource.
func (h *reads) requirePast(ctx context.Context, path string) *metav1.Status {
	caller := access.CallerOf(ctx)
	if caller == nil {
		return nil
	}
	return h.shared.Require(ctx, caller, access.PathAttributes(caller.User, path))
}

// checkServer returns why the API server's decisions do not tell what a caller may see of a
// resource, nil if they do. An aggregated API server may show each caller other objects of
// the same list, such as only their own, which no review tells. What is neither built in nor
// defined by a CustomResourceDefinition may be its.
func (h *reads) checkServer(ctx context.Context, id kube.Resource) *metav1.Status {
	if h.shared == nil || id.BuiltIn() {
		return nil
	}
	var err error
	if res := h.cache.Watched(id); res != nil {
		_, err = res.Definitions.Get(ctx, 0)
	} else {
		_, err = h.pastForms.of(h, id, nil).definitions.Get(ctx, 0)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, upstream.ErrUndefined):
		return status.Forbidden(fmt.Sprintf("%s may be those of an aggregated API server, which decides itself who sees which: only it can answer "+
			"(or the gateway may not get their CustomResourceDefinition)", id.GroupResource()))
	}
	return status.Unavailable(fmt.Sprintf("the API server does not say whether %s have a CustomResourceDefinition: try again", id.GroupResource()), true)
}

// pastPath is the nonResourceURL that callers need to read the past.
const pastPath = "/at"

// checkPath is checkAPI for a path that the gateway reads for a request. It includes what
// only the gateway's identity could read for a caller without a token.
func (g *Gateway) checkPath(r *http.Request) *metav1.Status {
	if refusal := g.checkAPI(r); refusal != nil {
		return refusal
	}
	caller := access.CallerOf(r.Context())
	if caller == nil || caller.HasToken() {
		return nil
	}
	a, err := access.AttributesOf(r, caller.User)
	if err != nil {
		return status.BadRequest(err.Error())
	}
	return g.shared.Require(r.Context(), caller, a)
}

// serveExtension serves what is below extensionPrefix.
func (g *Gateway) serveExtension(w http.ResponseWriter, r *http.Request) {
	past := ""
	if isBelow(r.URL.Path, historyapi.Path) || isBelow(r.URL.Path, historyapi.StoryPath) || r.URL.Path == historyapi.FindingsPath {
		past = historyapi.Path
	}
	if refusal := g.checkCaller(r, past); refusal != nil {
		status.Write(w, r, refusal)
		return
	}
	g.extensions.ServeHTTP(w, r)
}

// checkCaller returns why the gateway does not answer a caller what the API server does
// not know, nil if it may. past is the nonResourceURL that the caller needs, "" for none.
func (g *Gateway) checkCaller(r *http.Request, past string) *metav1.Status {
	switch {
	case access.CallerOf(r.Context()) == nil:
		return nil
	case access.Impersonates(r.Header):
		return noImpersonation()
	case past == "":
		return nil
	}
	return g.reads.requirePast(r.Context(), past)
}

func noImpersonation() *metav1.Status {
	return status.Forbidden("impersonation is for the API server to decide on, and this is answered by the gateway: leave it out")
}
