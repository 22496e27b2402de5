// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// MaxDiscoveryAge is how long an answer about a group version is used.
	MaxDiscoveryAge  = 10 * time.Second
	discoveryTimeout = 5 * time.Second
	// maxGroupVersions bounds the cached answers: clients choose the names.
	maxGroupVersions = 1000
	// maxDocument bounds a discovery document or a definition, in bytes.
	maxDocument = 16 << 20
)

var (
	// ErrNoResource: the resource does not exist, or cannot be listed and watched.
	ErrNoResource = errors.New("no such resource to list and watch")
	// ErrNoDiscovery: the upstream's answer is not a discovery document.
	ErrNoDiscovery = errors.New("no discovery")
)

// A Discovery caches which resources can be listed and watched. It asks the upstream
// when a resource is first used, and again while a resource that is not built in is
// used. It is safe for concurrent use.
type Discovery struct {
	up       *Server
	inflight *Inflight[groupVersion] // by the group version

	mu    sync.Mutex // guards known
	known map[string]groupVersion
}

// NewDiscovery returns a Discovery. It sends no request.
func NewDiscovery(up *Server, b *Background) *Discovery {
	return &Discovery{up: up, inflight: NewInflight[groupVersion](b, discoveryTimeout)}
}

// groupVersion has the resources that the upstream serves of one group version.
type groupVersion struct {
	at        time.Time                     // when it was asked for
	resources map[string]metav1.APIResource // those that can be listed and watched
}

// Lookup returns the resource's entry in discovery as of a time or later. The error is
// [ErrNoResource] if there is none; other errors mean that there was no answer.
func (d *Discovery) Lookup(ctx context.Context, r kube.Resource, notBefore time.Time) (metav1.APIResource, error) {
	gv := r.APIVersion()
	d.mu.Lock()
	known, ok := d.known[gv]
	d.mu.Unlock()
	for !ok || known.at.Before(notBefore) || time.Since(known.at) > MaxDiscoveryAge {
		// The answer of a request that began earlier may be too old: then ask again.
		var err error
		known, err = d.inflight.Do(ctx, gv, func(ctx context.Context) (groupVersion, error) { return d.fetch(ctx, r) })
		if err != nil {
			return metav1.APIResource{}, err
		}
		ok = true
	}
	found, ok := known.resources[r.Name]
	if !ok {
		return found, ErrNoResource
	}
	return found, nil
}

// Forget makes the next Lookup of r ask again.
func (d *Discovery) Forget(r kube.Resource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, r.APIVersion())
}

// Known returns the cached group versions.
func (d *Discovery) Known() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.known))
}

// GroupPath returns the path of the discovery document of r's group version.
func GroupPath(r kube.Resource) string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.APIVersion()
}

// fetch asks about r's group version.
func (d *Discovery) fetch(ctx context.Context, r kube.Resource) (groupVersion, error) {
	path := GroupPath(r)
	gv := groupVersion{at: time.Now(), resources: map[string]metav1.APIResource{}}
	req := d.up.NewRequest(ctx, http.MethodGet, path, "")
	resp, err := d.up.Transport.RoundTrip(req)
	if err != nil {
		return groupVersion{}, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		var list metav1.APIResourceList
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(&list); err != nil {
			return groupVersion{}, fmt.Errorf("%w of %s: %w", ErrNoDiscovery, r.APIVersion(), err)
		}
		for _, res := range list.APIResources {
			if slices.Contains(res.Verbs, "list") && slices.Contains(res.Verbs, "watch") {
				gv.resources[res.Name] = res
			}
		}
	case http.StatusNotFound:
	default:
		return groupVersion{}, fmt.Errorf("%w of %s: %s", ErrNoDiscovery, r.APIVersion(), resp.Status)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxGroupVersions {
		d.known = map[string]groupVersion{}
	}
	d.known[r.APIVersion()] = gv
	return gv, nil
}
