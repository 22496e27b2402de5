// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

// These are those of package informertest.
type (
	Request  = informertest.Request
	Control  = informertest.Control
	Resource = informertest.Resource
	Backup   = informertest.Backup
	Network  = informertest.Network
)

// Resources of the API server that tests use.
var (
	Pods        = informertest.Pods
	ConfigMaps  = informertest.ConfigMaps
	Secrets     = informertest.Secrets
	Nodes       = informertest.Nodes
	Deployments = informertest.Deployments
)

// NewNetwork serves a handler until Close is called.
func NewNetwork(handler http.Handler) *Network { return informertest.NewNetwork(handler) }

// WriteStatus answers a request with a Status, for a Control.
func WriteStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	informertest.WriteStatus(w, code, string(reason), message)
}

// Options configure a Server. The zero value is a server of Pods, which has none yet.
// Fields without a comment are those of informertest.Options.
type Options struct {
	Resources      []Resource
	FirstRV, Step  uint64
	Bookmarks      time.Duration
	LastBookmark   time.Duration
	EagerBookmarks bool
	NoWatchList    bool
	// ClusterUID is the UID of the namespace kube-system, which identifies the
	// cluster; "" means a constant.
	ClusterUID string
	// Allow decides SelfSubjectAccessReviews of resources; nil allows everything.
	// Requests are not checked: a Control can refuse them.
	Allow func(r *Request, a authorizationv1.ResourceAttributes) bool
	// Population has the initial objects of a server for benchmarks.
	Population Population
}

// A Server is a simulated API server. It is an http.Handler; [Listen] and
// [NewNetwork] serve it. Its methods may be called by several goroutines.
type Server struct {
	*informertest.Server
	opts       Options
	formats    map[string][formats]informertest.Format // by the full names of resources
	population *population                             // nil without a population
}

// New returns a server. It encodes the population, which takes about 0.1 ms for
// each Pod and format.
func New(o Options) *Server {
	if o.Resources == nil {
		o.Resources = []Resource{Pods}
	}
	if o.ClusterUID == "" {
		o.ClusterUID = "6b3a1a5e-0f6e-4c53-9c58-1f4b8b8d2c11"
	}
	if o.Population.Pods > 0 {
		o.Resources = o.Population.resources(o.Resources)
		o.FirstRV = synthetic.FirstRV - 1
	}
	s := &Server{opts: o, formats: map[string][formats]informertest.Format{}}
	plain := informertest.Options{
		Resources: o.Resources, FirstRV: o.FirstRV, Step: o.Step,
		Bookmarks: o.Bookmarks, LastBookmark: o.LastBookmark, EagerBookmarks: o.EagerBookmarks, NoWatchList: o.NoWatchList,
		Format: s.negotiate, Others: s.serveOthers, Live: s.live,
	}
	for _, r := range o.Resources {
		s.formats[r.FullName()] = formatsOf(r, o.Population.tableOf(r))
	}
	s.Server = informertest.New(plain)
	if o.Population.Pods > 0 {
		s.populate(o.Population)
	}
	return s
}

// Resources returns the resources that the server serves.
func (s *Server) Resources() []Resource { return s.opts.Resources }

// serveOthers answers what package informertest does not serve.
func (s *Server) serveOthers(w http.ResponseWriter, r *Request) (answered bool) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		s.serveReview(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/kube-system":
		informertest.WriteJSON(w, http.StatusOK, map[string]any{
			"kind": "Namespace", "apiVersion": "v1",
			"metadata": map[string]any{"name": "kube-system", "uid": s.opts.ClusterUID, "resourceVersion": "1"},
		})
	default:
		return false
	}
	return true
}
