// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// An aggregate is the server of an aggregated API, life.example.org/v1. Its
// resources are as able as their names say; all hold the same objects. Like
// many such servers it knows no field selectors, no Tables and no limits.
type aggregate struct {
	mu      sync.Mutex // guards what follows
	down    bool       // answers 503
	rv      int
	objects map[string]aggregateObject
	events  []string // that of RV 101 first
	changed chan struct{}
}

type aggregateObject struct {
	RV     int
	Labels map[string]string
}

// The resources of an aggregate.
const (
	things      = "things"      // lists, watches, streaming lists, bookmarks
	plains      = "plains"      // lists and watches
	unwatched   = "unwatched"   // lists; no watch in discovery
	refusing    = "refusing"    // lists; a watch is answered with 405
	unlisted    = "unlisted"    // a list is answered with 405
	forbidden   = "forbidden"   // everything is answered with 403
	versionless = "versionless" // lists without a resourceVersion, as metrics are
)

func newAggregate() *aggregate {
	return &aggregate{objects: map[string]aggregateObject{}, rv: 100, changed: make(chan struct{})}
}

// set makes or changes an object.
func (a *aggregate) set(name string, l map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	typ := "ADDED"
	if _, ok := a.objects[name]; ok {
		typ = "MODIFIED"
	}
	a.rv++
	a.objects[name] = aggregateObject{a.rv, l}
	a.event(typ, name)
}

// remove deletes an object.
func (a *aggregate) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rv++
	o := a.objects[name]
	o.RV = a.rv
	a.objects[name] = o
	a.event("DELETED", name)
	delete(a.objects, name)
}

func (a *aggregate) event(typ, name string) {
	a.events = append(a.events, fmt.Sprintf(`{"type":%q,"object":%s}`, typ, a.object("Thing", name, true)))
	close(a.changed)
	a.changed = make(chan struct{})
}

// setDown has every request be answered with 503, or not.
func (a *aggregate) setDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
	close(a.changed)
	a.changed = make(chan struct{})
}

// object is an object's JSON in the form of typed ones.
func (a *aggregate) object(kind, name string, whole bool) string {
	o := a.objects[name]
	l, _ := json.Marshal(o.Labels)
	text := fmt.Sprintf(`"metadata":{"name":%q,"uid":"uid-%s","resourceVersion":"%d","labels":%s}}`, name, name, o.RV, l)
	if whole {
		return fmt.Sprintf(`{"kind":%q,"apiVersion":"life.example.org/v1",`, kind) + text
	}
	return "{" + text
}

func (a *aggregate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	down := a.down
	a.mu.Unlock()
	rest, ok := strings.CutPrefix(r.URL.Path, "/apis/life.example.org/v1")
	resource, name, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	watch := r.URL.Query().Get("watch") != ""
	switch {
	case down:
		http.Error(w, "out of service", http.StatusServiceUnavailable)
	case !ok:
		http.NotFound(w, r)
	case resource == "":
		a.discovery(w)
	case resource == forbidden:
		a.status(w, http.StatusForbidden, "Forbidden", "not for you")
	case resource == unlisted && name == "", watch && (resource == refusing || resource == unwatched):
		a.status(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "not here")
	case name != "":
		a.get(w, resource, name)
	case watch:
		a.watch(w, r, resource == things)
	default:
		a.list(w, r, resource)
	}
}

func (a *aggregate) status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`+"\n", message, reason, code)
}

func (a *aggregate) discovery(w http.ResponseWriter) {
	var all []string
	for _, name := range []string{things, plains, unwatched, refusing, unlisted, forbidden, versionless} {
		verbs := `"get","list","watch"`
		if name == unwatched {
			verbs = `"get","list"`
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"singularName":"","namespaced":false,"kind":"Thing","verbs":[%s]}`, name, verbs))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"life.example.org/v1","resources":[%s]}`+"\n", strings.Join(all, ","))
}

func (a *aggregate) get(w http.ResponseWriter, resource, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.objects[name]; !ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%[1]s.life.example.org \"%[2]s\" not found",`+
			`"reason":"NotFound","details":{"name":%[2]q,"group":"life.example.org","kind":%[1]q},"code":404}`+"\n", resource, name)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintln(w, a.object("Thing", name, true))
}

// selected are the names of the objects that a request selects, in order.
func (a *aggregate) selected(r *http.Request) []string {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil
	}
	var names []string
	for name, o := range a.objects {
		if selector.Matches(labels.Set(o.Labels)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (a *aggregate) list(w http.ResponseWriter, r *http.Request, resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []string{}
	for _, name := range a.selected(r) {
		items = append(items, a.object("Thing", name, false))
	}
	metadata := fmt.Sprintf(`{"resourceVersion":"%d"}`, a.rv)
	if resource == versionless {
		metadata = "{}"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"ThingList","apiVersion":"life.example.org/v1","metadata":%s,"items":[%s]}`+"\n", metadata, strings.Join(items, ","))
}

// watch is a watch of everything, with selectors for the initial events only:
// nobody asks for more.
func (a *aggregate) watch(w http.ResponseWriter, r *http.Request, able bool) {
	query := r.URL.Query()
	ctx := r.Context()
	end := time.After(time.Hour)
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		end = time.After(time.Duration(seconds) * time.Second)
	}
	bookmark := func(rv int, annotations string) {
		if able && query.Get("allowWatchBookmarks") != "" {
			fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Thing","apiVersion":"life.example.org/v1","metadata":{"resourceVersion":"%d"%s}}}`+"\n", rv, annotations)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	from, err := strconv.Atoi(query.Get("resourceVersion"))
	if streaming := able && query.Get("sendInitialEvents") != ""; err != nil || from == 0 || streaming {
		for _, name := range a.selected(r) {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", a.object("Thing", name, true))
		}
		if from = a.rv; streaming {
			bookmark(from, `,"annotations":{"k8s.io/initial-events-end":"true"}`)
		}
	}
	for !a.down {
		for _, event := range a.events[min(from-100, len(a.events)):] {
			fmt.Fprintln(w, event)
		}
		if a.rv > from {
			from = a.rv
			bookmark(from, "")
		}
		changed := a.changed
		a.mu.Unlock()
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
		a.mu.Lock()
	}
	a.mu.Unlock()
}
