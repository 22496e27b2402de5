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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/request"
)

const (
	// maxDefinitionAge is how long a definition is used without a relist: one that
	// changed while the API server could not be reached shows so.
	maxDefinitionAge  = 10 * time.Second
	definitionTimeout = 2 * time.Second
	// definitionGrace is how long an API server may forbid to read a definition
	// that was read before it is believed: one that has just started forbids what
	// it does not forbid later.
	definitionGrace = 30 * time.Second

	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

var (
	// ErrUndefined: the API server says that there is no definition to be had. The
	// resource is not a custom one, or its definition may not be read.
	ErrUndefined = errors.New("no definition")
	// errUnreadable: the API server says that it may not be read.
	errUnreadable = fmt.Errorf("%w that may be read", ErrUndefined)
	// ErrTerminating: the definition is being deleted. When the API server stops
	// serving the resource, it keeps the watches of it for a second or more.
	ErrTerminating = errors.New("the definition is being deleted")
)

// A Definition is what the API server knows of one version of a custom resource
// beyond its objects. It is immutable.
type Definition struct {
	// uid and generation identify it: the latter grows with each change, the
	// former is another when the definition was deleted and created again.
	uid        string
	generation int64
	// selectable are the fields that objects can be selected by, beyond their
	// metadata: a path such as "spec.color", which is the field's label, too.
	selectable []string
	// columns are those of a Table, after the name.
	columns []column
}

// Selectable reports whether objects can be selected by a field of this label,
// which is its path.
func (d *Definition) Selectable(label string) bool { return slices.Contains(d.selectable, label) }

// is reports whether it is the same definition, at the same generation.
func (d *Definition) is(other *Definition) bool {
	return d != nil && other != nil && d.uid == other.uid && d.generation == other.generation
}

// A column is one of a custom resource's Table. A cell of type "date" is a time
// since: it has to be worked out when it is served.
type column struct{ Name, Type, JSONPath string }

// date returns the path of the date that a column shows, nil if it shows none;
// false if the definition does not say.
func (d *Definition) date(name string) (path []string, ok bool) {
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

// Definitions knows the definition of one resource, as it changes. When there is
// none, since the resource is not a custom one or the definition may not be read,
// nothing that depends on it is served from the cache. It is safe for concurrent
// use.
//
// The API server ends the watches of a custom resource when its definition
// changes, and the reflector then lists again: an answer is known as of a number of
// lists.
type Definitions struct {
	// Changed, if not nil, is called when what was listed is of a definition that
	// has gone, or that changed without a list since. Set it before the first use.
	Changed func()

	up       *Server
	id       kube.Resource
	inflight *Inflight[Known] // by the number of lists

	mu    sync.Mutex // guards known
	known Known
}

// NewDefinitions returns the definitions of a resource.
func NewDefinitions(up *Server, id kube.Resource, b *Background) *Definitions {
	return &Definitions{up: up, id: id, inflight: NewInflight[Known](b, definitionTimeout)}
}

// Known is what is known of a definition.
type Known struct {
	Definition *Definition // nil if there is none to be had
	// Over is closed when that is no longer so, or no longer known.
	Over <-chan struct{}

	over        chan struct{} // Over
	terminating bool          // there is one, which is being deleted
	lists       int           // the number of lists when it was asked for
	at          time.Time     // zero if the API server has not said anything
	forbidden   time.Time     // since when it may not be read; zero if it may
}

// answer returns k with the error that stands for it.
func (k Known) answer() (Known, error) {
	switch {
	case k.terminating:
		return k, ErrTerminating
	case k.Definition == nil:
		return k, ErrUndefined
	}
	return k, nil
}

// Now returns what is known, without asking.
func (d *Definitions) Now() Known {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// Date returns the path of the date that a column of the Table shows, nil if it
// shows none; false if that is not known now.
func (d *Definitions) Date(column string) (path []string, ok bool) {
	if def := d.Now().Definition; def != nil {
		return def.date(column)
	}
	return nil, false
}

// Get returns the definition as of a number of lists or later. Errors other than
// [ErrUndefined] and [ErrTerminating] mean that the API server does not say.
func (d *Definitions) Get(ctx context.Context, lists int) (Known, error) {
	known := d.Now()
	if !known.at.IsZero() && known.lists >= lists && time.Since(known.at) < maxDefinitionAge {
		return known.answer()
	}
	return d.inflight.Wait(ctx, d.Refresh(lists))
}

// Fields returns what objects of the resource can be selected by, as of a number of
// lists: [request.BuiltInFields] for built-in resources, else what the definition
// says.
func (d *Definitions) Fields(ctx context.Context, lists int, namespaced bool) request.FieldFunc {
	return func(label string) (func(*scan.Object) string, bool) {
		if d.id.BuiltIn() {
			return request.BuiltInFields(d.id)(label)
		}
		known, err := d.Get(ctx, lists)
		switch {
		case err != nil:
			return nil, false
		case label == "metadata.name":
			return request.NameOf, true
		case label == "metadata.namespace" && namespaced:
			return request.NamespaceOf, true
		}
		return scan.FieldValue(kube.Field{Paths: []string{label}}), known.Definition.Selectable(label)
	}
}

// Refresh asks the API server, and does not wait for its answer.
func (d *Definitions) Refresh(lists int) <-chan singleflight.Result {
	return d.inflight.Start(strconv.Itoa(lists), func(ctx context.Context) (Known, error) {
		before := d.Now()
		found, err := d.fetch(ctx, before.Definition)
		known, learnt := d.learn(found, err, lists)
		gone := errors.Is(err, ErrUndefined) && !errors.Is(err, errUnreadable)
		another := learnt == nil && known.Definition != before.Definition && lists == before.lists
		if d.Changed != nil && before.Definition != nil && (gone || another) {
			d.Changed()
		}
		return known, learnt
	})
}

// learn takes the API server's answer over. If it is new, what was known before is
// over.
func (d *Definitions) learn(found *Definition, err error, lists int) (Known, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, now := d.known, time.Now()
	answered := err == nil || errors.Is(err, ErrTerminating) || errors.Is(err, ErrUndefined)
	forbidden := time.Time{}
	if errors.Is(err, errUnreadable) {
		if forbidden = old.forbidden; forbidden.IsZero() {
			forbidden = now
		}
		answered = old.Definition == nil || now.Sub(forbidden) > definitionGrace
	}
	// One that has gone was being deleted, too.
	terminating := errors.Is(err, ErrTerminating) ||
		errors.Is(err, ErrUndefined) && !errors.Is(err, errUnreadable) && (old.Definition != nil || old.terminating)
	switch {
	case old.lists > lists: // it was asked for again since
		return old.answer()
	case answered:
		if found.is(old.Definition) {
			found = old.Definition
		}
		d.known = Known{Definition: found, terminating: terminating, lists: lists, at: now, forbidden: forbidden}
	case old.lists == lists && !old.at.IsZero():
		// The API server does not say: its last answer since this list stays in
		// force, for as long again.
		d.known.at, d.known.forbidden = now, forbidden
		return d.known.answer()
	default:
		d.known = Known{lists: lists}
	}
	if d.known.over = old.over; old.over == nil || d.known.Definition != old.Definition || d.known.terminating != old.terminating {
		if old.over != nil {
			close(old.over)
		}
		d.known.over = make(chan struct{})
	}
	d.known.Over = d.known.over
	if !answered {
		return d.known, err
	}
	return d.known.answer()
}

// fetch asks for the definition. It may be long: if one is known, its metadata is
// asked for first.
func (d *Definitions) fetch(ctx context.Context, known *Definition) (*Definition, error) {
	if known != nil {
		crd, err := d.request(ctx, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		if err != nil {
			return nil, err
		}
		if now := (&Definition{uid: crd.Metadata.UID, generation: crd.Metadata.Generation}); now.is(known) {
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
		found := &Definition{uid: crd.Metadata.UID, generation: crd.Metadata.Generation, columns: v.AdditionalPrinterColumns}
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
	return nil, ErrUndefined
}

// A customResourceDefinition has the fields that are read.
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

func (d *Definitions) request(ctx context.Context, accept string) (crd customResourceDefinition, err error) {
	req := d.up.NewRequest(ctx, http.MethodGet, definitionsPath+d.id.GroupResource(), "")
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
		return crd, ErrUndefined
	default:
		return crd, fmt.Errorf("definition of %s: %s", d.id, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(&crd); err != nil {
		return crd, fmt.Errorf("definition of %s: %w", d.id, err)
	}
	if crd.Metadata.DeletionTimestamp != "" {
		return crd, ErrTerminating
	}
	return crd, nil
}
