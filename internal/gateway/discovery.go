// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// discoveryFresh is how long an answer about a group version stands.
	discoveryFresh   = 10 * time.Second
	discoveryTimeout = 5 * time.Second
	// discoveryMost bounds what is remembered: clients choose the names.
	discoveryMost = 1000
)

var (
	// errNoResource: the resource is not there, or cannot be listed and watched.
	errNoResource = errors.New("no such resource to list and watch")
	// errNoDiscovery: the upstream's answer tells nothing.
	errNoDiscovery = errors.New("no discovery")
)

// discovery knows which resources can be listed and watched, by asking the
// upstream when a resource is first used, and again while one that is not the
// API server's own is.
type discovery struct {
	up    *Upstream
	asked shared[groupVersion] // by the group version

	mu    sync.Mutex // guards known
	known map[string]groupVersion
}

// groupVersion is what the upstream serves of one group version.
type groupVersion struct {
	at        time.Time                     // when it was asked for
	resources map[string]metav1.APIResource // those that can be listed and watched
}

// lookup returns the resource's entry in discovery as of a time or later;
// [errNoResource] if it is not to be had or cannot be watched, other errors if
// the upstream does not tell.
func (d *discovery) lookup(ctx context.Context, r kube.Resource, notBefore time.Time) (metav1.APIResource, error) {
	gv := r.APIVersion()
	d.mu.Lock()
	known, ok := d.known[gv]
	d.mu.Unlock()
	for !ok || known.at.Before(notBefore) || time.Since(known.at) > discoveryFresh {
		// One that was on its way already may be too early: then there is another.
		var err error
		known, err = d.asked.get(ctx, gv, func(ctx context.Context) (groupVersion, error) { return d.fetch(ctx, r) })
		if err != nil {
			return metav1.APIResource{}, err
		}
		ok = true
	}
	found, ok := known.resources[r.Name]
	if !ok {
		return found, errNoResource
	}
	return found, nil
}

// forget has the next lookup of r ask again.
func (d *discovery) forget(r kube.Resource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, r.APIVersion())
}

// groupPath returns where the upstream tells of r's group version.
func groupPath(r kube.Resource) string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.APIVersion()
}

// fetch asks about r's group version.
func (d *discovery) fetch(ctx context.Context, r kube.Resource) (groupVersion, error) {
	path := groupPath(r)
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
		if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&list); err != nil {
			return groupVersion{}, fmt.Errorf("%w of %s: %w", errNoDiscovery, r.APIVersion(), err)
		}
		for _, res := range list.APIResources {
			if slices.Contains(res.Verbs, "list") && slices.Contains(res.Verbs, "watch") {
				gv.resources[res.Name] = res
			}
		}
	case http.StatusNotFound:
	default:
		return groupVersion{}, fmt.Errorf("%w of %s: %s", errNoDiscovery, r.APIVersion(), resp.Status)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= discoveryMost {
		d.known = map[string]groupVersion{}
	}
	d.known[r.APIVersion()] = gv
	return gv, nil
}
