// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/internal/kube"
)

const (
	// definitionFresh is how long a definition stands without a relist: one
	// that changed while the API server could not be reached shows so.
	definitionFresh   = 10 * time.Second
	definitionTimeout = 2 * time.Second
)

// A definition is what the API server knows of one version of a custom resource
// beyond its objects.
type definition struct {
	// selectable are the fields that objects can be selected by, beyond their
	// metadata: a path such as "spec.color", which is the field's label, too.
	selectable []string
	// columns are those of a Table, behind the name.
	columns []column
}

// A column is one of a custom resource's Table. A cell of type "date" is a time
// since: it has to be worked out when it is served.
type column struct{ Name, Type, JSONPath string }

// definitions knows the definition of a resource, as it changes. When there is
// none, since the resource is not a custom one, or it may not be read, nothing
// that depends on it is served from the cache.
//
// The API server ends the watches of a custom resource when its definition
// changes, and the reflector then lists again: what is remembered is of a
// generation, which counts the lists.
type definitions struct {
	up     *Upstream
	id     kube.Resource
	begin  beginFunc
	flight singleflight.Group

	mu    sync.Mutex // guards known
	known knownDefinition
}

type knownDefinition struct {
	definition *definition // nil if there is none to be had
	generation int
	at         time.Time
}

// generation counts the lists of a reflector.
func generation(s informer.Status) int {
	n := 0
	for _, lists := range s.Relists {
		n += lists
	}
	return n
}

// get returns the definition as of a generation or later; false if there is
// none to be had.
func (d *definitions) get(ctx context.Context, generation int) (*definition, bool) {
	d.mu.Lock()
	known := d.known
	d.mu.Unlock()
	current := !known.at.IsZero() && known.generation >= generation
	if current && time.Since(known.at) < definitionFresh {
		return known.definition, known.definition != nil
	}
	answer := d.flight.DoChan(strconv.Itoa(generation), func() (any, error) {
		ctx, end, ok := d.begin()
		if !ok {
			return nil, errDraining
		}
		defer end()
		found, err := d.fetch(ctx)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.known.generation <= generation {
			d.known = knownDefinition{found, generation, time.Now()}
		}
		return found, nil
	})
	select {
	case <-ctx.Done():
		return nil, false
	case res := <-answer:
		if res.Err == nil {
			found := res.Val.(*definition)
			return found, found != nil
		}
	}
	// The API server does not say: its last word of this generation stands, for
	// as long again.
	if !current {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == known {
		d.known.at = time.Now()
	}
	return known.definition, known.definition != nil
}

// fetch asks for the definition; nil without an error is a definitive no.
func (d *definitions) fetch(ctx context.Context) (*definition, error) {
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	req := d.up.NewRequest(ctx, http.MethodGet, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+d.id.GroupResource(), "")
	resp, err := d.up.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return nil, nil
	default:
		return nil, fmt.Errorf("definition of %s: %s", d.id, resp.Status)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name                     string
				AdditionalPrinterColumns []column
				SelectableFields         []struct{ JSONPath string }
			}
		}
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&crd); err != nil {
		return nil, fmt.Errorf("definition of %s: %w", d.id, err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != d.id.Version {
			continue
		}
		found := &definition{columns: v.AdditionalPrinterColumns}
		for _, f := range v.SelectableFields {
			if simplePath.MatchString(f.JSONPath) {
				found.selectable = append(found.selectable, f.JSONPath[1:])
			}
		}
		if len(found.columns) == 0 {
			found.columns = []column{{"Age", "date", ".metadata.creationTimestamp"}} // as the API server
		}
		return found, nil
	}
	return nil, nil
}

// simplePath matches the JSON paths that are member names only. The API server
// allows for little else in a selectable field.
var simplePath = regexp.MustCompile(`^(\.[A-Za-z0-9_-]+)+$`)

// fields returns what objects of the resource can be selected by: what
// [kube.Resource.Field] is to the API server's own.
func (res *resource) fields(ctx context.Context, generation int) fieldFunc {
	return func(label string) (func(*kube.Object) string, bool) {
		if res.id.BuiltIn() {
			return res.id.Field(label)
		}
		def, ok := res.defined.get(ctx, generation)
		switch {
		case !ok:
			return nil, false
		case label == "metadata.name":
			return func(o *kube.Object) string { return o.Key.Name() }, true
		case label == "metadata.namespace" && res.info.Namespaced:
			return func(o *kube.Object) string { return o.Key.Namespace() }, true
		}
		return kube.PathValue("", label), slices.Contains(def.selectable, label)
	}
}
