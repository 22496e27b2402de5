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
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

const (
	// maxDefinitionAge is how long a definition is used without asking again. So a
	// change during an outage of the API server is found without a relist.
	maxDefinitionAge  = 10 * time.Second
	definitionTimeout = 2 * time.Second
	// definitionGrace is how long a definition that was read stays in use while the
	// API server answers 401 or 403, as it may do just after its start.
	definitionGrace = 30 * time.Second

	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

var (
	// ErrUndefined: there is no definition. The resource is not a custom one, or the
	// gateway may not read its definition.
	ErrUndefined = errors.New("no definition")
	// errUnreadable: the gateway may not read the definition (401 or 403).
	errUnreadable = fmt.Errorf("%w that may be read", ErrUndefined)
	// ErrTerminating: the definition is being deleted. When the API server stops
	// serving the resource, it keeps the watches of it for a second or more.
	ErrTerminating = errors.New("the definition is being deleted")
)

// A Definition is the part of a CustomResourceDefinition that is used here, for one
// version of the resource. It is immutable.
type Definition struct {
	// uid and generation identify the definition: the generation grows with each
	// change, the uid differs after the definition was deleted and created again.
	uid        string
	generation int64
	// selectable are the paths of selectable fields besides metadata, such as
	// "spec.color". A path is also the field's label.
	selectable []string
	// columns are those of a Table, after the name.
	columns []column
}

// Selectable reports whether objects can be selected by the field with this label.
func (d *Definition) Selectable(label string) bool { return slices.Contains(d.selectable, label) }

// is reports whether it is the same definition, at the same generation.
func (d *Definition) is(other *Definition) bool {
	return d != nil && other != nil && d.uid == other.uid && d.generation == other.generation
}

// A column is a column of a custom resource's Table. A cell of type "date" shows the
// time since a date: it is computed when it is served.
type column struct{ Name, Type, JSONPath string }

// date returns the path of the date that a column shows, nil if it shows none;
// false if the definition does not say.
func (d *Definition) date(name string) (path []string, ok bool) {
	for _, c := range d.columns {
		if c.Name != name {
			continue
		}
		if ok {
			return nil, false // two columns of this name
		}
		if ok = true; c.Type == "date" {
			simple, isSimple := kube.SimplePath(c.JSONPath)
			path, ok = strings.Split(simple, "."), isSimple
		}
	}
	return path, ok
}

// Definitions reads and caches the current definition of one resource. Without a
// definition, because the resource is not a custom one or the gateway may not read
// it, nothing that depends on it is served from the cache. It is safe for concurrent
// use.
//
// The API server ends the watches of a custom resource when its definition changes,
// and the reflector then relists. So the age of an answer is a number of lists: the
// lists that the reflector had taken when the definition was read.
type Definitions struct {
	// Changed, if not nil, is called when the listed objects are outdated: their
	// definition was deleted, or has changed without a relist. Set it before the
	// first use.
	Changed func()

	up       *Server
	id       kube.Resource
	inflight *Inflight[Known] // by the number of lists

	mu       sync.Mutex // guards what follows
	known    Known
	outdated bool // see Outdate
}

// NewDefinitions returns the definitions of a resource.
func NewDefinitions(up *Server, id kube.Resource, b *Background) *Definitions {
	return &Definitions{up: up, id: id, inflight: NewInflight[Known](b, definitionTimeout)}
}

// Known is the last answer about a definition.
type Known struct {
	Definition *Definition // nil if there is none
	// Over ends when the answer has changed, or may have changed, and after
	// [Definitions.Outdate]; nil before the first answer.
	Over context.Context

	end         context.CancelFunc // of Over
	terminating bool               // the definition is being deleted
	lists       int                // the number of lists when the gateway asked
	at          time.Time          // zero without an answer of the API server
	forbidden   time.Time          // when reading it was first forbidden; zero if it is allowed
}

// answer returns k with its error.
func (k Known) answer() (Known, error) {
	switch {
	case k.terminating:
		return k, ErrTerminating
	case k.Definition == nil:
		return k, ErrUndefined
	}
	return k, nil
}

// Now returns the last answer, without a request.
func (d *Definitions) Now() Known {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// Date returns the path of the date that a column of the Table shows, nil if it shows
// none; false if that is unknown now.
func (d *Definitions) Date(column string) (path []string, ok bool) {
	if def := d.Now().Definition; def != nil {
		return def.date(column)
	}
	return nil, false
}

// Get returns the definition as of a number of lists or later. Errors other than
// [ErrUndefined] and [ErrTerminating] mean that there was no answer.
func (d *Definitions) Get(ctx context.Context, lists int) (Known, error) {
	known := d.Now()
	if !known.at.IsZero() && known.lists >= lists && (time.Since(known.at) < maxDefinitionAge || d.up.Silent()) {
		return known.answer()
	}
	return d.inflight.Wait(ctx, d.Refresh(lists))
}

// Fields returns the selectable fields of the resource's objects, as of a number of
// lists: [request.BuiltInFields] for built-in resources, else those of the definition.
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

// Outdate makes the next request to the API server close Over, even if the definition is
// the same: the API server may have taken its time to follow a change of it, so that the
// objects look different now.
func (d *Definitions) Outdate() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outdated = d.known.Over != nil
}

// Refresh asks the API server, without waiting for its answer.
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

// learn stores the API server's answer. If the answer is new, it ends Over of the
// previous one.
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
	// A definition that is gone was being deleted, too.
	terminating := errors.Is(err, ErrTerminating) ||
		errors.Is(err, ErrUndefined) && !errors.Is(err, errUnreadable) && (old.Definition != nil || old.terminating)
	switch {
	case old.lists > lists: // a later answer has arrived before
		return old.answer()
	case answered:
		if found.is(old.Definition) {
			found = old.Definition
		}
		d.known = Known{Definition: found, terminating: terminating, lists: lists, at: now, forbidden: forbidden}
	case old.lists == lists && !old.at.IsZero() && !d.outdated:
		// Without a new answer, the last one since this list is used for another
		// maxDefinitionAge.
		d.known.at, d.known.forbidden = now, forbidden
		return d.known.answer()
	default:
		d.known = Known{lists: lists}
	}
	d.known.Over, d.known.end = old.Over, old.end
	if old.Over == nil || d.outdated || d.known.Definition != old.Definition || d.known.terminating != old.terminating {
		if old.Over != nil {
			old.end()
		}
		d.known.Over, d.known.end = context.WithCancel(context.Background())
		d.outdated = false
	}
	if !answered {
		return d.known, err
	}
	return d.known.answer()
}

// fetch reads the definition. Definitions can be large: if one is known, fetch reads only
// the metadata first.
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
			found.columns = []column{{"Age", "date", ".metadata.creationTimestamp"}} // the API server's default
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
