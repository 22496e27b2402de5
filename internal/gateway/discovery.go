// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

const (
	// discoveryFresh is how long an answer about a group version stands.
	// Only resources that are not being watched are looked up.
	discoveryFresh   = 10 * time.Second
	discoveryTimeout = 5 * time.Second
	// discoveryMost bounds what is remembered: clients choose the names.
	discoveryMost = 1000
)

// discovery knows which resources can be listed and watched, by asking the
// upstream when a resource is first used.
type discovery struct {
	up     *Upstream
	begin  beginFunc
	flight singleflight.Group

	mu    sync.Mutex // guards known
	known map[string]groupVersion
}

// groupVersion is what the upstream serves of one group version.
type groupVersion struct {
	at        time.Time
	resources map[string]metav1.APIResource // those that can be listed and watched
}

// lookup returns the resource's entry in discovery, false if it is not to be
// had, cannot be watched, or the upstream does not tell.
func (d *discovery) lookup(ctx context.Context, r kube.Resource) (metav1.APIResource, bool) {
	gv := r.APIVersion()
	d.mu.Lock()
	known, ok := d.known[gv]
	d.mu.Unlock()
	if !ok || time.Since(known.at) > discoveryFresh {
		// Callers share one question; it is not the first caller's to cancel.
		answer := d.flight.DoChan(gv, func() (any, error) {
			ctx, end, ok := d.begin()
			if !ok {
				return nil, errDraining
			}
			defer end()
			return d.fetch(ctx, r)
		})
		select {
		case <-ctx.Done():
			return metav1.APIResource{}, false
		case res := <-answer:
			if res.Err != nil {
				return metav1.APIResource{}, false
			}
			known = res.Val.(groupVersion)
		}
	}
	found, ok := known.resources[r.Name]
	return found, ok
}

// forget has the next lookup of r ask again.
func (d *discovery) forget(r kube.Resource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, r.APIVersion())
}

// fetch asks about r's group version.
func (d *discovery) fetch(ctx context.Context, r kube.Resource) (groupVersion, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	path := "/apis/" + r.APIVersion()
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	req := d.up.NewRequest(ctx, http.MethodGet, path, "")
	resp, err := d.up.Transport.RoundTrip(req)
	if err != nil {
		return groupVersion{}, err
	}
	defer resp.Body.Close()
	gv := groupVersion{at: time.Now(), resources: map[string]metav1.APIResource{}}
	switch resp.StatusCode {
	case http.StatusOK:
		var list metav1.APIResourceList
		if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&list); err != nil {
			return groupVersion{}, fmt.Errorf("discovery of %s: %w", r.APIVersion(), err)
		}
		for _, res := range list.APIResources {
			if slices.Contains(res.Verbs, "list") && slices.Contains(res.Verbs, "watch") {
				gv.resources[res.Name] = res
			}
		}
	case http.StatusNotFound:
	default:
		return groupVersion{}, fmt.Errorf("discovery of %s: %s", r.APIVersion(), resp.Status)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= discoveryMost {
		d.known = map[string]groupVersion{}
	}
	d.known[r.APIVersion()] = gv
	return gv, nil
}
