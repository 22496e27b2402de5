// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const requestTimeout = 15 * time.Second

// found is what discovery tells.
type found struct {
	// kinds are those of what can be listed and watched, each resource in the
	// version that its group prefers.
	kinds map[kube.Resource]string
	// unknown are the groups that nothing is known of, as those of an aggregated
	// API server that is out of service.
	unknown []string
}

// discover asks the API server what there is.
func (r *Recorder) discover(ctx context.Context) (*found, error) {
	base := *r.opts.URL("/", "")
	base.Path = strings.TrimSuffix(base.Path, "/")
	client, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: base.String()},
		&http.Client{Transport: bound{ctx, r.opts.Transport}, Timeout: requestTimeout})
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	out := &found{kinds: map[kube.Resource]string{}}
	if partial, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for gv := range partial.Groups {
			out.unknown = append(out.unknown, gv.Group)
		}
	} else if err != nil {
		return nil, err
	}
	for _, list := range lists {
		group, version, ok := strings.Cut(list.GroupVersion, "/")
		if !ok {
			group, version = "", list.GroupVersion
		}
		for _, res := range list.APIResources {
			if slices.Contains(res.Verbs, "list") && slices.Contains(res.Verbs, "watch") && !strings.Contains(res.Name, "/") {
				out.kinds[kube.Resource{Group: group, Version: version, Name: res.Name}] = res.Kind
			}
		}
	}
	return out, nil
}

// bound ends requests with a context: the discovery client has none.
type bound struct {
	ctx  context.Context
	next http.RoundTripper
}

func (b bound) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(b.ctx, cancel)
	resp, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	resp.Body = body{resp.Body, func() { stop(); cancel() }}
	return resp, nil
}

// body is a body that tells when it is closed.
type body struct {
	io.ReadCloser
	closed func()
}

func (b body) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// cluster asks the API server which cluster it is of: the UID of the namespace
// kube-system.
func (r *Recorder) cluster(ctx context.Context) (uid string, err error) {
	namespace, err := r.metadata(ctx, "/api/v1/namespaces/kube-system")
	if refused, ok := errors.AsType[*refusal](err); err != nil && (!ok || refused.passes()) {
		err = fmt.Errorf("%w: %w", errAway, err)
	}
	if err != nil {
		return "", fmt.Errorf("the API server does not tell which cluster it is of: namespace kube-system: %w", err)
	}
	uid = string(namespace.UID)
	if uid == "" || strings.ContainsAny(uid, `/\.`) {
		return "", fmt.Errorf("namespace kube-system: %q is no UID", uid)
	}
	return uid, nil
}

// same asks whether the cluster is still that which is recorded. It asks a few
// times if there is no answer.
func (s *session) same(ctx context.Context) error {
	for n := 1; ; n++ {
		uid, err := s.r.cluster(ctx)
		switch {
		case err == nil && uid == s.uid:
			return nil
		case err == nil:
			return fmt.Errorf("%w: it was %s, and is %s", errOtherCluster, s.uid, uid)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case n == 5 || !errors.Is(err, errAway):
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.r.redial):
		}
	}
}

// errAway marks that the API server does not answer, or not for now.
var errAway = errors.New("no answer")

// A refusal is an answer of the API server that is an error.
type refusal struct {
	code    int
	message string
}

func (e *refusal) Error() string { return e.message }

// passes reports whether the same request may be answered soon.
func (e *refusal) passes() bool {
	return e.code >= http.StatusInternalServerError || e.code == http.StatusTooManyRequests
}

// definition tells which definition a custom resource is under, by its UID and
// generation. "" means that this is not known, or that there is none: it is one of
// the API server's own, or of an aggregated one.
func (r *Recorder) definition(ctx context.Context, id kube.Resource) string {
	if id.BuiltIn() {
		return ""
	}
	crd, err := r.metadata(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+id.GroupResource())
	if err != nil || crd.DeletionTimestamp != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d", crd.UID, crd.Generation)
}

// metadata asks for an object's metadata.
func (r *Recorder) metadata(ctx context.Context, path string) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.opts.URL(path, "").String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	resp, err := r.opts.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
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
