// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package accessapi serves /watchkeeper/v1/access: in which namespaces the caller may
// read a resource. docs/extensions.md and openapi.json describe it.
//
// The API server has no request for that: a SelfSubjectRulesReview is about one
// namespace, and says itself that it may be incomplete. So a [Reviewer] is asked about
// all namespaces at once, and, if the caller may not read all of them, about each.
package accessapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// Path is the path of the API.
const Path = "/watchkeeper/v1/access"

const (
	// defaultMaxNamespaces bounds the namespaces that one request asks about, and
	// maxReviews how many reviews of a request run at a time.
	defaultMaxNamespaces = 1000
	maxReviews           = 16
)

// A Reviewer decides what the caller of a request may do. It caches its decisions for a
// short time, and concurrent equal questions share the answer: a page asks again every
// half minute about each namespace. The error is a *status.Error if the caller gets that
// answer, as a 401 for credentials that are not accepted; another error means that there
// was no decision, which is not a denial.
type Reviewer interface {
	Allowed(r *http.Request, a authorizationv1.ResourceAttributes) (allowed bool, reason string, err error)
}

// A Handler serves [Path]. Its fields are set before the first use.
type Handler struct {
	Reviewer Reviewer
	// Namespaces returns the names of all namespaces, sorted. The error is a
	// *status.Error if the caller gets that answer.
	Namespaces func(context.Context) ([]string, error)
	// Lookup returns a resource's entry in discovery, as upstream.Discovery.Lookup does.
	Lookup func(context.Context, kube.Resource, time.Time) (metav1.APIResource, error)
	// Filter returns why a path of the Kubernetes API may not be read, nil if it may.
	Filter func(*http.Request) *metav1.Status
	// Begin begins a request, which asks about many namespaces, and ends it with end. The
	// error is that of a user with too many; nil bounds nothing.
	Begin func(context.Context) (end func(), err error)
	// MaxNamespaces bounds the namespaces that one request asks about. Zero means 1,000.
	MaxNamespaces int
}

// parameters are the query parameters.
var parameters = []string{"resource", "verb", "group", "version"}

// Parameters returns the query parameters.
func Parameters() []string { return slices.Clone(parameters) }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h.answer(r)
	if err != nil {
		if _, ok := errors.AsType[*status.Error](err); !ok {
			err = &status.Error{Status: status.Unavailable(err.Error(), true)}
		}
		status.Fail(w, r, err, http.MethodGet)
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		status.Write(w, r, status.Internal(err.Error()))
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body) //nolint:errcheck // the client is gone
}

// A question is what a request asks.
type question struct {
	resource kube.Resource
	verb     request.Verb
}

func refuseBad(format string, args ...any) error {
	return &status.Error{Status: status.BadRequest(fmt.Sprintf(format, args...))}
}

// parse reads a request.
func parse(r *http.Request) (q question, err error) {
	if r.Method != http.MethodGet || request.IsUpgrade(r) {
		return q, &status.Error{Status: status.MethodNotAllowed()}
	}
	query, err := request.Parameters(r, parameters)
	if err != nil {
		return q, err
	}
	q.verb = request.Verb(cmp.Or(query.Get("verb"), string(request.List)))
	if !slices.Contains([]request.Verb{request.Get, request.List, request.Watch}, q.verb) {
		return q, refuseBad("verb is %q: it has to be get, list or watch", q.verb)
	}
	// As kubectl has it: pods, deployments.apps, deployments.v1.apps.
	name, rest, _ := strings.Cut(query.Get("resource"), ".")
	version, group := "", rest
	if first, second, ok := strings.Cut(rest, "."); ok && isVersion(first) {
		version, group = first, second
	} else if isVersion(rest) {
		version, group = rest, ""
	}
	for parameter, own := range map[string]*string{"group": &group, "version": &version} {
		if given := query.Get(parameter); given != "" {
			if *own != "" && *own != given {
				return q, refuseBad("resource has the %s %q, and %s is %q", parameter, *own, parameter, given)
			}
			*own = given
		}
	}
	if name == "" || strings.Contains(name, "/") || strings.ToLower(name) != name {
		return q, refuseBad("resource is %q: it has to be the plural of a resource, such as pods or deployments.apps", query.Get("resource"))
	}
	q.resource = kube.Resource{Group: group, Version: cmp.Or(version, "v1"), Name: name}
	// The gateway's identity reads the discovery of the group and version: more than names
	// would make it read another path.
	path := q.resource.Path()
	if target, ok := request.ParsePath(path); !ok || target.Resource != q.resource || (&url.URL{Path: path}).EscapedPath() != path {
		return q, refuseBad("resource, group and version are %q, %q and %q: they have to be names", name, group, q.resource.Version)
	}
	return q, nil
}

// isVersion reports whether a part of a resource's name is a version, such as v1beta2.
func isVersion(part string) bool {
	rest, ok := strings.CutPrefix(part, "v")
	return ok && rest != "" && rest[0] >= '1' && rest[0] <= '9' && !strings.Contains(rest, ".")
}

func (h *Handler) answer(r *http.Request) (*api.Access, error) {
	q, err := parse(r)
	if err != nil {
		return nil, err
	}
	if h.Begin != nil {
		end, err := h.Begin(r.Context())
		if err != nil {
			return nil, err
		}
		defer end()
	}
	// The caller first: without credentials that are accepted, it is told nothing else.
	all, err := h.allowed(r, q, "")
	if err != nil {
		return nil, err
	}
	info, err := h.Lookup(r.Context(), q.resource, time.Time{})
	switch {
	case errors.Is(err, upstream.ErrNoResource):
		return nil, &status.Error{Status: status.NotFound(fmt.Sprintf(
			"there is no resource %s that can be listed and watched: give its plural, and version= if it has no v1", q.resource))}
	case err != nil:
		return nil, fmt.Errorf("cannot tell whether %s have namespaces: the API server gave no answer", q.resource.GroupResource())
	}
	answer := &api.Access{Resource: q.resource.GroupResource(), Verb: string(q.verb), All: all, Namespaces: []string{}}
	if all || !info.Namespaced {
		return answer, nil
	}
	names, err := h.Namespaces(r.Context())
	if err != nil {
		return nil, err
	}
	if limit := cmp.Or(h.MaxNamespaces, defaultMaxNamespaces); len(names) > limit {
		names, answer.Incomplete = names[:limit], true
	}
	may := make([]bool, len(names))
	asking, ctx := errgroup.WithContext(r.Context())
	asking.SetLimit(maxReviews)
	for i, name := range names {
		if ctx.Err() != nil {
			break // the answer is an error
		}
		asking.Go(func() (err error) {
			may[i], err = h.allowed(r.WithContext(ctx), q, name)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err // some were not asked
	}
	for i, name := range names {
		if may[i] {
			answer.Namespaces = append(answer.Namespaces, name)
		}
	}
	return answer, nil
}

// allowed reports whether the caller may do what is asked in a namespace, "" for all. A
// path that the gateway does not serve may not be read by anybody.
func (h *Handler) allowed(r *http.Request, q question, namespace string) (bool, error) {
	inner := r.Clone(r.Context())
	inner.URL.Path = q.resource.ListPath(namespace)
	if h.Filter(inner) != nil {
		return false, nil
	}
	allowed, _, err := h.Reviewer.Allowed(r, authorizationv1.ResourceAttributes{
		Verb: string(q.verb), Group: q.resource.Group, Version: q.resource.Version, Resource: q.resource.Name, Namespace: namespace,
	})
	return allowed, err
}
