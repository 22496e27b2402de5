// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// ErrUnavailable marks that the API server does not answer now; it may soon.
var ErrUnavailable = errors.New("no answer")

// Cluster returns an identity of the API server's cluster: the UID of the namespace
// kube-system. It can be used as the name of a directory.
func (u *Server) Cluster(ctx context.Context) (uid string, err error) {
	namespace, err := u.metadata(ctx, "/api/v1/namespaces/kube-system")
	if refused, ok := errors.AsType[*refusal](err); err != nil && (!ok || refused.temporary()) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return "", fmt.Errorf("the cluster of the API server is not known: namespace kube-system: %w", err)
	}
	uid = string(namespace.UID)
	if uid == "" || strings.ContainsAny(uid, `/\.`) {
		return "", fmt.Errorf("namespace kube-system: %q is no UID", uid)
	}
	return uid, nil
}

// DefinitionID returns an identity of the definition of a custom resource: its UID
// and generation. "" means that it is unknown, or that there is none: the resource is
// built in, or of an aggregated API server.
func (u *Server) DefinitionID(ctx context.Context, id kube.Resource) string {
	if id.BuiltIn() {
		return ""
	}
	crd, err := u.metadata(ctx, definitionsPath+id.GroupResource())
	if err != nil || crd.DeletionTimestamp != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d", crd.UID, crd.Generation)
}

// A refusal is an answer that is an error.
type refusal struct {
	code    int
	message string
}

func (e *refusal) Error() string { return e.message }

// temporary reports whether the same request may succeed soon.
func (e *refusal) temporary() bool {
	return e.code >= http.StatusInternalServerError || e.code == http.StatusTooManyRequests
}

// metadata asks for an object's metadata.
func (u *Server) metadata(ctx context.Context, path string) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req := u.NewRequest(ctx, http.MethodGet, path, "")
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	resp, err := u.Agent().RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		var s metav1.Status
		if json.Unmarshal(text, &s) != nil || s.Message == "" {
			s.Message = resp.Status
		}
		return nil, &refusal{resp.StatusCode, s.Message}
	}
	o := &metav1.PartialObjectMetadata{}
	return o, json.Unmarshal(text, o)
}
