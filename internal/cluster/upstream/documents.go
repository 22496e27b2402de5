// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// documentsInterval is how often the API server is asked whether its discovery has
	// changed, and silentInterval how often while it does not answer.
	documentsInterval = 10 * time.Second
	silentInterval    = time.Second
	// groupsInterval is how often the documents of the group versions are read again if
	// those above them have not changed.
	groupsInterval = 2 * time.Minute
	// maxDocuments bounds the memory of all documents, in bytes (T10).
	maxDocuments = 64 << 20

	discoveryGroup = "apidiscovery.k8s.io"
	// aggregatedType is the media type of aggregated discovery (KEP-3352).
	aggregatedType = "application/json;g=" + discoveryGroup + ";v=v2;as=APIGroupDiscoveryList"
)

// A Document is an answer of the API server. It is immutable.
type Document struct {
	Type string // media type
	Body []byte
	etag string

	decode    sync.Once
	resources []metav1.APIResource // see Documents.Resources
}

// Documents has the API server's last answers to the gateway's own identity about what
// it serves: /version, /api, /apis and the group versions below them, in JSON, as
// aggregated discovery and without. Clients that read the past need them while the API
// server does not answer. Documents is safe for concurrent use; without [Documents.Run]
// it has none.
type Documents struct {
	up *Server
	// groupsAt is when the group versions were last read. Only Run uses it.
	groupsAt time.Time

	mu    sync.Mutex // guards known
	known map[documentKey]*Document
}

type documentKey struct {
	path       string
	aggregated bool
}

// NewDocuments returns Documents. It sends no request.
func NewDocuments(up *Server) *Documents {
	return &Documents{up: up, known: map[documentKey]*Document{}}
}

// Find returns the document at a path in the form that an Accept header asks for, nil
// if there is none.
func (d *Documents) Find(path, accept string) *Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	if accept == "" {
		return d.known[documentKey{path, false}]
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		if clause.Type != "*" && clause.Type != "application" || clause.SubType != "*" && clause.SubType != "json" {
			continue
		}
		aggregated := clause.Params["g"] == discoveryGroup
		if aggregated && clause.Params["v"] != "v2" || !aggregated && clause.Params["as"] != "" {
			continue
		}
		if found := d.known[documentKey{path, aggregated}]; found != nil {
			return found
		}
	}
	return nil
}

// Run reads the documents until ctx ends, and again when they have changed. While the
// API server does not answer, they stay as they are; one that it refuses is forgotten.
func (d *Documents) Run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := documentsInterval
		if err := d.refresh(ctx); err != nil && ctx.Err() == nil {
			d.up.SetSilent()
			pause = silentInterval
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// refresh reads the documents. The error means that the API server does not answer.
func (d *Documents) refresh(ctx context.Context) error {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	_, err := d.read(probe, "/version", false)
	cancel()
	if err != nil {
		return err
	}
	changed := time.Since(d.groupsAt) > groupsInterval
	for _, path := range []string{"/api", "/apis"} {
		for _, aggregated := range []bool{true, false} {
			differs, err := d.read(ctx, path, aggregated)
			if err != nil {
				return err
			}
			changed = changed || differs
		}
	}
	if !changed {
		return nil
	}
	paths := d.groups()
	for _, path := range paths {
		// An aggregated API server may be out of service while the API server answers.
		if _, err := d.read(ctx, path, false); err != nil && !errors.Is(err, errServerError) {
			return err
		}
	}
	d.groupsAt = time.Now()
	d.retain(append(paths, "/version", "/api", "/apis"))
	return nil
}

// groups returns the paths of the group versions.
func (d *Documents) groups() (paths []string) {
	var core metav1.APIVersions
	var named metav1.APIGroupList
	for path, into := range map[string]any{"/api": &core, "/apis": &named} {
		if found := d.Find(path, ""); found != nil {
			_ = json.Unmarshal(found.Body, into) // what cannot be read names no groups
		}
	}
	for _, version := range core.Versions {
		paths = append(paths, "/api/"+version)
	}
	for _, group := range named.Groups {
		for _, version := range group.Versions {
			paths = append(paths, "/apis/"+version.GroupVersion)
		}
	}
	return paths
}

// Lacks reports whether the API server serves no lists of a resource, by its documents.
// It is false if they do not say.
func (d *Documents) Lacks(id kube.Resource) bool {
	if d.Find(GroupPath(id), "") == nil {
		return len(d.groups()) > 0 && !slices.Contains(d.groups(), GroupPath(id))
	}
	all := d.Resources(id)
	return len(all) > 0 && !slices.ContainsFunc(all, func(r metav1.APIResource) bool {
		return r.Name == id.Name && slices.Contains(r.Verbs, "list")
	})
}

// Resources returns the resources of the group version of a resource, which the caller does not
// change; none if they are not known.
func (d *Documents) Resources(id kube.Resource) []metav1.APIResource {
	group := d.Find(GroupPath(id), "")
	if group == nil {
		return nil
	}
	group.decode.Do(func() {
		var list metav1.APIResourceList
		if json.Unmarshal(group.Body, &list) == nil {
			group.resources = list.APIResources
		}
	})
	return group.resources
}

// retain forgets the documents at other paths.
func (d *Documents) retain(paths []string) {
	kept := map[string]bool{}
	for _, path := range paths {
		kept[path] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.known {
		if !kept[key.path] {
			delete(d.known, key)
		}
	}
}

// errServerError marks an answer of 500 or above.
var errServerError = errors.New("server error")

// read asks for a document, and reports whether it differs from the last one.
func (d *Documents) read(ctx context.Context, path string, aggregated bool) (differs bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	key := documentKey{path, aggregated}
	d.mu.Lock()
	last := d.known[key]
	d.mu.Unlock()
	req := d.up.NewRequest(ctx, http.MethodGet, path, "")
	if aggregated {
		req.Header.Set("Accept", aggregatedType)
	}
	if last != nil && last.etag != "" {
		req.Header.Set("If-None-Match", last.etag)
	}
	resp, err := d.up.Transport.RoundTrip(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified:
		return false, nil
	case resp.StatusCode >= http.StatusInternalServerError:
		return false, fmt.Errorf("%w: %s: %s", errServerError, path, resp.Status)
	case resp.StatusCode == http.StatusTooManyRequests:
		return false, nil // it answers, and says nothing about the document
	case resp.StatusCode != http.StatusOK:
		return d.set(key, nil), nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	if err != nil {
		return false, err
	}
	return d.set(key, &Document{Type: resp.Header.Get("Content-Type"), Body: body, etag: resp.Header.Get("ETag")}), nil
}

// set replaces a document, and reports whether it differs. nil removes it.
func (d *Documents) set(key documentKey, now *Document) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.known[key]
	if now == nil {
		delete(d.known, key)
		return last != nil
	}
	total := len(now.Body)
	for k, other := range d.known {
		if k != key {
			total += len(other.Body)
		}
	}
	if total > maxDocuments {
		delete(d.known, key)
		return false
	}
	d.known[key] = now
	return last == nil || !bytes.Equal(last.Body, now.Body)
}
