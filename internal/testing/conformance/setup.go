// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

//go:embed fixture.yaml
var fixture string

//go:embed crds.yaml
var crds string

// large is a text that makes lists large enough to be compressed.
var large = strings.Repeat("all work and no play makes a large object. ", 1400)

// Setup creates the fixture in an empty cluster, and compacts the store up to the
// state before it.
func (e *Env) Setup(ctx context.Context) error {
	var err error
	if _, e.old, err = version(ctx, e.Want, "/api/v1/namespaces"); err != nil {
		return err
	}
	if err := e.apply(ctx, crds); err != nil {
		return err
	}
	for _, path := range []string{gadgets, beacons, doodads(fixtureNamespace), gadgets + "/x/status", oldGadgets} {
		if err := eventually(ctx, path, func() (bool, error) {
			// An API server makes the watch cache of a custom resource at the first request.
			return e.all(ctx, path+anyVersion, func(a *compare.Answer) bool {
				return !strings.Contains(a.Text(), "page not found") && a.Code != http.StatusServiceUnavailable && a.Code != http.StatusTooManyRequests
			})
		}); err != nil {
			return err
		}
	}
	if err := e.apply(ctx, fixture); err != nil {
		return err
	}
	if err := e.settle(ctx); err != nil {
		return err
	}
	a, err := e.Want.Do(ctx, compare.Request{
		Method: http.MethodPost, Path: core + "/serviceaccounts/weak/token",
		Body: `{"spec":{"expirationSeconds":3600}}`,
	})
	if err != nil {
		return err
	}
	var token struct{ Status struct{ Token string } }
	if err := json.Unmarshal(a.Body, &token); err != nil || token.Status.Token == "" {
		return fmt.Errorf("no token: %d %s", a.Code, a.Body)
	}
	e.token = token.Status.Token
	// A watch from old begins at the next revision, which must be compacted, too.
	return e.Compact(ctx, e.old+5)
}

// apply creates all objects of a manifest, and then writes their status if the
// manifest has one.
func (e *Env) apply(ctx context.Context, manifest string) error {
	docs := yaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.ReplaceAll(manifest, "LARGE", large)), 4096)
	known := map[string]metav1.APIResourceList{}
	for {
		var o struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
		}
		var raw json.RawMessage
		if err := docs.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		if o.Kind == "" {
			continue
		}
		path, err := e.collectionOf(ctx, known, o.APIVersion, o.Kind, o.Namespace)
		if err != nil {
			return err
		}
		if _, err := e.create(ctx, path, string(raw)); err != nil {
			return err
		}
		var status struct {
			Status json.RawMessage `json:"status,omitempty"`
		}
		if err := json.Unmarshal(raw, &status); err != nil {
			return err
		}
		if status.Status == nil {
			continue
		}
		text, err := json.Marshal(status)
		if err != nil {
			return err
		}
		if _, err := e.patch(ctx, path+"/"+o.Name+"/status", string(text)); err != nil {
			return err
		}
	}
}

// collectionOf returns the path of an object's collection, from discovery.
func (e *Env) collectionOf(ctx context.Context, known map[string]metav1.APIResourceList, version, kind, namespace string) (string, error) {
	prefix := "/apis/" + version
	if version == "v1" {
		prefix = "/api/v1"
	}
	all, ok := known[version]
	if !ok {
		a, err := e.Want.Do(ctx, compare.Request{Path: prefix})
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(a.Body, &all); err != nil {
			return "", fmt.Errorf("%s: %w: %s", prefix, err, a.Body)
		}
		known[version] = all
	}
	for _, r := range all.APIResources {
		if r.Kind == kind && !strings.Contains(r.Name, "/") {
			if r.Namespaced {
				prefix += "/namespaces/" + namespace
			}
			return prefix + "/" + r.Name, nil
		}
	}
	return "", fmt.Errorf("no %s in %s", kind, version)
}

// settle waits until the controllers have finished with the fixture: no object has
// changed for two seconds.
func (e *Env) settle(ctx context.Context) error {
	last, since := "", time.Now()
	return eventually(ctx, "the controllers to be done", func() (bool, error) {
		var now strings.Builder
		for _, path := range controlled {
			a, err := e.Want.Do(ctx, compare.Request{Path: path})
			if err != nil {
				return false, err
			}
			l, err := readList(a)
			if err != nil {
				return false, fmt.Errorf("%s: %w", path, err)
			}
			for _, i := range l.Items {
				now.WriteString(i.Name + "@" + i.ResourceVersion + " ")
			}
		}
		if now.String() != last {
			last, since = now.String(), time.Now()
		}
		a, err := e.Want.Do(ctx, compare.Request{Path: pods + "/host"})
		if err != nil {
			return false, err
		}
		return time.Since(since) > 2*time.Second && strings.Contains(a.Text(), `"phase":"Running"`) &&
			strings.Contains(last, "kube-root-ca.crt") && strings.Contains(last, "one-"), nil
	})
}

// controlled are the collections that controllers write to.
var controlled = []string{
	pods, configMaps, core + "/serviceaccounts", core + "/replicationcontrollers", core + "/services", core + "/persistentvolumeclaims",
	"/api/v1/persistentvolumes", "/api/v1/namespaces",
	"/apis/apps/v1/deployments", "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets", "/apis/apps/v1/daemonsets",
	"/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs", "/apis/policy/v1/poddisruptionbudgets",
	"/apis/autoscaling/v2/horizontalpodautoscalers", "/apis/discovery.k8s.io/v1/endpointslices",
	"/apis/resource.k8s.io/v1/resourceclaims", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
	gadgets, beacons,
}
