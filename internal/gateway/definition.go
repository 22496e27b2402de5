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
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

const (
	// definitionFresh is how long a definition stands without a relist: one
	// that changed while the API server could not be reached shows so.
	definitionFresh   = 10 * time.Second
	definitionTimeout = 2 * time.Second
)

// errUndefined is the API server's word that there is no definition to be had:
// the resource is not a custom one, or its definition may not be read.
var errUndefined = errors.New("no definition")

// A definition is what the API server knows of one version of a custom resource
// beyond its objects.
type definition struct {
	// uid and edition tell definitions apart: the latter grows with each
	// change, the former is another when it was deleted and made anew.
	uid     string
	edition int64
	// selectable are the fields that objects can be selected by, beyond their
	// metadata: a path such as "spec.color", which is the field's label, too.
	selectable []string
	// columns are those of a Table, behind the name.
	columns []column
	// over is closed when the definition has been replaced, or can no longer
	// be had.
	over chan struct{}
}

// A column is one of a custom resource's Table. A cell of type "date" is a time
// since: it has to be worked out when it is served.
type column struct{ Name, Type, JSONPath string }

// date returns where objects have the date that a column shows, nil for one that
// shows none; false if the definition does not tell.
func (d *definition) date(name string) (path []string, ok bool) {
	for _, c := range d.columns {
		if c.Name != name {
			continue
		}
		if ok {
			return nil, false // one of two
		}
		if ok = true; c.Type == "date" {
			simple, isSimple := kube.SimplePath(c.JSONPath)
			path, ok = strings.Split(simple, "."), isSimple
		}
	}
	return path, ok
}

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
	at         time.Time // zero if the API server has not said anything
}

// answer is what is known.
func (k knownDefinition) answer() (*definition, error) {
	if k.definition == nil {
		return nil, errUndefined
	}
	return k.definition, nil
}

// generation counts the lists of a reflector.
func generation(s informer.Status) int {
	n := 0
	for _, lists := range s.Relists {
		n += lists
	}
	return n
}

// now returns what is known, without a question.
func (d *definitions) now() knownDefinition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// date is [definition.date] of what is known now.
func (d *definitions) date(column string) (path []string, ok bool) {
	if def := d.now().definition; def != nil {
		return def.date(column)
	}
	return nil, false
}

// get returns the definition as of a generation or later. An error other than
// errUndefined means that the API server does not say.
func (d *definitions) get(ctx context.Context, generation int) (*definition, error) {
	known := d.now()
	if !known.at.IsZero() && known.generation >= generation && time.Since(known.at) < definitionFresh {
		return known.answer()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case res := <-d.ask(generation):
		found, _ := res.Val.(*definition)
		return found, res.Err
	}
}

// ask asks the API server.
func (d *definitions) ask(generation int) <-chan singleflight.Result {
	return d.flight.DoChan(strconv.Itoa(generation), func() (any, error) {
		ctx, end, ok := d.begin()
		if !ok {
			return nil, errDraining
		}
		defer end()
		found, err := d.fetch(ctx)
		return d.learn(found, err, generation)
	})
}

// learn takes over what the API server said. Where that is something new, the
// definition before is over.
func (d *definitions) learn(found *definition, err error, generation int) (*definition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.known.definition
	switch {
	case d.known.generation > generation: // it was asked again since
		return d.known.answer()
	case err == nil || errors.Is(err, errUndefined):
		if found != nil && old != nil && found.uid == old.uid && found.edition == old.edition {
			found = old
		}
		d.known = knownDefinition{found, generation, time.Now()}
	case d.known.generation == generation && !d.known.at.IsZero():
		// It does not say: its last word of this generation stands, for as
		// long again.
		d.known.at = time.Now()
		return d.known.answer()
	default:
		d.known = knownDefinition{generation: generation}
	}
	if old != nil && old != d.known.definition {
		close(old.over)
	}
	return d.known.definition, err
}

// fetch asks for the definition.
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
		return nil, errUndefined
	default:
		return nil, fmt.Errorf("definition of %s: %s", d.id, resp.Status)
	}
	var crd struct {
		Metadata struct {
			UID        string
			Generation int64
		}
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
		found := &definition{
			uid: crd.Metadata.UID, edition: crd.Metadata.Generation,
			columns: v.AdditionalPrinterColumns, over: make(chan struct{}),
		}
		for _, f := range v.SelectableFields {
			if path, ok := kube.SimplePath(f.JSONPath); ok {
				found.selectable = append(found.selectable, path)
			}
		}
		if len(found.columns) == 0 {
			found.columns = []column{{"Age", "date", ".metadata.creationTimestamp"}} // as the API server
		}
		return found, nil
	}
	return nil, errUndefined
}

// fields returns what objects of the resource can be selected by: what
// [kube.Resource.Field] is to the API server's own.
func (res *resource) fields(ctx context.Context, generation int) fieldFunc {
	return func(label string) (func(*kube.Object) string, bool) {
		if res.id.BuiltIn() {
			return res.id.Field(label)
		}
		def, err := res.defined.get(ctx, generation)
		switch {
		case err != nil:
			return nil, false
		case label == "metadata.name":
			return func(o *kube.Object) string { return o.Key.Name() }, true
		case label == "metadata.namespace" && res.info.Namespaced:
			return func(o *kube.Object) string { return o.Key.Namespace() }, true
		}
		return kube.PathValue("", label), slices.Contains(def.selectable, label)
	}
}

// definition returns the definition that a read is bound to: a Table depends on
// it in its columns, and the watches of a custom resource end with it, as the
// API server ends them. nil is one that never ends; false means that it is not
// known whether there is one.
func (res *resource) definition(ctx context.Context, rd *read, generation int) (*definition, bool) {
	if res.id.BuiltIn() || rd.verb != verbWatch && rd.form.View != wire.Table {
		return nil, true
	}
	def, err := res.defined.get(ctx, generation)
	return def, err == nil || errors.Is(err, errUndefined)
}

// listed is called after a list, which may have been taken because the
// definition of a custom resource has changed: it is asked for again, so that
// what began under the old one ends.
func (res *resource) listed() {
	if defined := &res.defined; defined.now().definition != nil {
		defined.ask(generation(res.reflector.Status()))
	}
}
