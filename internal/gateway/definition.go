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
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	// definitionFresh is how long a definition stands without a relist: one
	// that changed while the API server could not be reached shows so.
	definitionFresh   = 10 * time.Second
	definitionTimeout = 2 * time.Second
	// definitionGrace is for how long a definition that was read may be
	// forbidden before that is believed: an API server that has just started
	// forbids what it does not forbid later.
	definitionGrace = 30 * time.Second
)

var (
	// errUndefined is the API server's word that there is no definition to be
	// had: the resource is not a custom one, or its definition may not be read.
	errUndefined = errors.New("no definition")
	// errUnreadable is its word that it may not be read.
	errUnreadable = fmt.Errorf("%w that may be read", errUndefined)
	// errGoing: it is being deleted. When the API server stops serving the
	// resource, it keeps the watches of it for a second or more.
	errGoing = errors.New("the definition is being deleted")
)

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
}

// is reports whether it is the same definition, at the same edition.
func (d *definition) is(other *definition) bool {
	return d != nil && other != nil && d.uid == other.uid && d.edition == other.edition
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
	up    *Upstream
	id    kube.Resource
	asked shared[knownDefinition] // by its generation
	// changed, if there is one, is called when what was listed is of a
	// definition that has gone, or that was found to be another though there
	// was no list since.
	changed func()

	mu    sync.Mutex // guards known
	known knownDefinition
}

type knownDefinition struct {
	definition *definition // nil if there is none to be had
	going      bool        // there is one, that is being deleted
	// over is closed when that is no longer so, or no longer known.
	over       chan struct{}
	generation int
	at         time.Time // zero if the API server has not said anything
	forbidden  time.Time // since when it may not be read; zero if it may
}

// answer is what is known.
func (k knownDefinition) answer() (knownDefinition, error) {
	switch {
	case k.going:
		return k, errGoing
	case k.definition == nil:
		return k, errUndefined
	}
	return k, nil
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

// get returns the definition as of a generation or later. Errors other than
// errUndefined and errGoing mean that the API server does not say.
func (d *definitions) get(ctx context.Context, generation int) (knownDefinition, error) {
	known := d.now()
	if !known.at.IsZero() && known.generation >= generation && time.Since(known.at) < definitionFresh {
		return known.answer()
	}
	return d.asked.wait(ctx, d.ask(generation))
}

// ask asks the API server.
func (d *definitions) ask(generation int) <-chan singleflight.Result {
	return d.asked.start(strconv.Itoa(generation), func(ctx context.Context) (knownDefinition, error) {
		before := d.now()
		found, told := d.fetch(ctx, before.definition)
		known, err := d.learn(found, told, generation)
		gone := errors.Is(told, errUndefined) && !errors.Is(told, errUnreadable)
		another := err == nil && known.definition != before.definition && generation == before.generation
		if d.changed != nil && before.definition != nil && (gone || another) {
			d.changed()
		}
		return known, err
	})
}

// learn takes over what the API server said. Where that is something new, what
// was known before is over.
func (d *definitions) learn(found *definition, err error, generation int) (knownDefinition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, now := d.known, time.Now()
	told := err == nil || errors.Is(err, errGoing) || errors.Is(err, errUndefined)
	forbidden := time.Time{}
	if errors.Is(err, errUnreadable) {
		if forbidden = old.forbidden; forbidden.IsZero() {
			forbidden = now
		}
		told = old.definition == nil || now.Sub(forbidden) > definitionGrace
	}
	// One that has gone was on its way, too.
	going := errors.Is(err, errGoing) ||
		errors.Is(err, errUndefined) && !errors.Is(err, errUnreadable) && (old.definition != nil || old.going)
	switch {
	case old.generation > generation: // it was asked again since
		return old.answer()
	case told:
		if found.is(old.definition) {
			found = old.definition
		}
		d.known = knownDefinition{definition: found, going: going, generation: generation, at: now, forbidden: forbidden}
	case old.generation == generation && !old.at.IsZero():
		// It does not say: its last word of this generation stands, for as
		// long again.
		d.known.at, d.known.forbidden = now, forbidden
		return d.known.answer()
	default:
		d.known = knownDefinition{generation: generation}
	}
	if d.known.over = old.over; old.over == nil || d.known.definition != old.definition || d.known.going != old.going {
		if old.over != nil {
			close(old.over)
		}
		d.known.over = make(chan struct{})
	}
	if !told {
		return d.known, err
	}
	return d.known.answer()
}

// fetch asks for the definition. It may be long: of one that is known, its
// metadata is asked for first.
func (d *definitions) fetch(ctx context.Context, known *definition) (*definition, error) {
	if known != nil {
		crd, err := d.request(ctx, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		if err != nil {
			return nil, err
		}
		if now := (&definition{uid: crd.Metadata.UID, edition: crd.Metadata.Generation}); now.is(known) {
			return known, nil
		}
	}
	crd, err := d.request(ctx, "application/json")
	if err != nil {
		return nil, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != d.id.Version {
			continue
		}
		found := &definition{uid: crd.Metadata.UID, edition: crd.Metadata.Generation, columns: v.AdditionalPrinterColumns}
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

// A customResourceDefinition is what is read of one.
type customResourceDefinition struct {
	Metadata struct {
		UID               string
		Generation        int64
		DeletionTimestamp string
	}
	Spec struct {
		Versions []struct {
			Name                     string
			AdditionalPrinterColumns []column
			SelectableFields         []struct{ JSONPath string }
		}
	}
}

func (d *definitions) request(ctx context.Context, accept string) (crd customResourceDefinition, err error) {
	req := d.up.NewRequest(ctx, http.MethodGet, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+d.id.GroupResource(), "")
	req.Header.Set("Accept", accept)
	resp, err := d.up.Transport.RoundTrip(req)
	if err != nil {
		return crd, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return crd, errUnreadable
	case http.StatusNotFound:
		return crd, errUndefined
	default:
		return crd, fmt.Errorf("definition of %s: %s", d.id, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&crd); err != nil {
		return crd, fmt.Errorf("definition of %s: %w", d.id, err)
	}
	if crd.Metadata.DeletionTimestamp != "" {
		return crd, errGoing
	}
	return crd, nil
}

// fields returns what objects of the resource can be selected by: what
// [kube.Resource.Field] is to the API server's own.
func (res *resource) fields(ctx context.Context, generation int) fieldFunc {
	return func(label string) (func(*scan.Object) string, bool) {
		if res.id.BuiltIn() {
			return builtInFields(res.id)(label)
		}
		known, err := res.defined.get(ctx, generation)
		switch {
		case err != nil:
			return nil, false
		case label == "metadata.name":
			return func(o *scan.Object) string { return o.Key.Name() }, true
		case label == "metadata.namespace" && res.info.Namespaced:
			return func(o *scan.Object) string { return o.Key.Namespace() }, true
		}
		return scan.FieldValue(kube.Field{Paths: []string{label}}), slices.Contains(known.definition.selectable, label)
	}
}

// definition has the definition of a custom resource be known: what is held of
// the resource is as it says. Watches end when over is closed, as the API server
// ends them; nil never is. ok is false when it is not known whether there is a
// definition, or when it is being deleted.
func (res *resource) definition(ctx context.Context, generation int) (over <-chan struct{}, ok bool) {
	if res.id.BuiltIn() {
		return nil, true
	}
	known, err := res.defined.get(ctx, generation)
	return known.over, err == nil || errors.Is(err, errUndefined)
}

// listed is called after a list, which may have been taken because the
// definition of a custom resource has changed: it is asked for again, so that
// what began under the old one ends.
func (res *resource) listed() {
	if defined := &res.defined; defined.now().definition != nil {
		defined.ask(generation(res.reflector.Status()))
	}
}
