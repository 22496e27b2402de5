// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Request is a parsed request.
type Request struct {
	*http.Request
	// Verb is list, watch, get, create, update, delete, discovery, review, or ""
	// for anything else, which is answered with 404.
	Verb string
	// Resource, Namespace and Name are those in the path, if it has them.
	Resource        Resource
	Namespace, Name string
	// Query is that of the URL. A Control may change it before it calls next.
	Query url.Values

	collection *collection // nil without a resource
	endings    uint64      // Server.endings when the request arrived
}

func (s *Server) parse(httpRequest *http.Request) *Request {
	r := &Request{Request: httpRequest, Query: httpRequest.URL.Query()}
	path := strings.Trim(r.URL.Path, "/")
	if r.Method == http.MethodPost && path == "apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		r.Verb = "review"
		return r
	}
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
	if parts[0] == "namespaces" && len(parts) > 2 {
		r.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	for _, c := range s.collections {
		if c.Group == group && c.Version == version && c.Name == parts[0] && (c.Namespaced || r.Namespace == "") {
			r.collection, r.Resource = c, c.Resource
		}
	}
	kubeSystem := path == "api/v1/namespaces/kube-system"
	if r.collection == nil && !kubeSystem || len(parts) > 2 {
		return r
	}
	r.Verb = verb(r)
	return r
}

func verb(r *Request) string {
	switch watch := r.Query.Get("watch"); {
	case r.Method == http.MethodGet && r.Name != "":
		return "get"
	case r.Method == http.MethodGet && (watch == "1" || watch == "true"):
		return "watch"
	case r.Method == http.MethodGet:
		return "list"
	case r.Method == http.MethodPost && r.Name == "":
		return "create"
	case r.Method == http.MethodPut && r.Name != "":
		return "update"
	case r.Method == http.MethodDelete && r.Name != "":
		return "delete"
	}
	return ""
}

// options reads and validates the query of a list or a watch with the API
// server's own code.
func (s *Server) options(r *Request) (*internalversion.ListOptions, error) {
	opts := &internalversion.ListOptions{}
	if err := internalscheme.ParameterCodec.DecodeParameters(r.Query, metav1.SchemeGroupVersion, opts); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateListOptions(opts, !s.opts.NoWatchList); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return opts, nil
}

// key returns the key of the requested object.
func (r *Request) key() string {
	if r.Resource.Namespaced {
		return r.Namespace + "/" + r.Name
	}
	return r.Name
}

func (r *Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Name}
}

func notFound(r *Request) error {
	if r.collection != nil && r.Name != "" {
		return apierrors.NewNotFound(r.groupResource(), r.Name)
	}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", "404 page not found", 0, true)
}

func expired(format string, args ...any) error {
	return apierrors.NewResourceExpired(fmt.Sprintf(format, args...))
}

// tooLarge is the error of a resourceVersion that the server has not reached.
func tooLarge(rv, head uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", rv, head), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// statusOf returns the Status of an error.
func statusOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	out := status.Status()
	out.Kind, out.APIVersion = "Status", "v1"
	return &out
}

// WriteStatus answers a request with a Status, for a Control.
func WriteStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	writeJSON(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

func writeError(w http.ResponseWriter, err error) {
	status := statusOf(err)
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // fails if the client has gone
}
