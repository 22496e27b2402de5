// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

const (
	// minKinds is the minimum number of resources, so that a rule about every kind
	// does not hold vacuously.
	minKinds = 50
	// maxKinds is how many of them a rule checks at the same time. Those that
	// watch mostly wait.
	maxKinds, maxKindsWatched = 6, 24
)

// A resource can be listed and watched.
type resource struct {
	prefix, name string
	namespaced   bool
}

// all is the path of its objects in all namespaces.
func (r resource) all() string { return r.prefix + "/" + r.name }

// unchanging returns paths, with parameters, of objects that do not change.
func (r resource) unchanging() []string {
	switch {
	case r.namespaced:
		return []string{r.prefix + "/namespaces/conf/" + r.name + "?", r.prefix + "/namespaces/conf-b/" + r.name + "?"}
	case r.name == "namespaces":
		return []string{r.all() + "?labelSelector=life=still&"}
	}
	return []string{r.all() + "?"}
}

func (r resource) custom() bool { return strings.Contains(r.prefix, "example.com") }

// everyKind runs a check for every resource that can be listed and watched, limit at
// a time.
func (e *Env) everyKind(ctx context.Context, limit int, check func(r resource) error) error {
	all, err := e.resources(ctx)
	if err != nil {
		return err
	}
	if len(all) < minKinds {
		return fmt.Errorf("there are only %d resources", len(all))
	}
	var todo []func() error
	for _, r := range all {
		todo = append(todo, func() error { return check(r) })
	}
	return together(limit, todo...)
}

// resources returns all resources in discovery that can be listed and watched, without
// the custom resources that rules create and change.
func (e *Env) resources(ctx context.Context) ([]resource, error) {
	a, err := e.Want.Do(ctx, compare.Request{Path: "/apis"})
	if err != nil {
		return nil, err
	}
	var groups metav1.APIGroupList
	if err := json.Unmarshal(a.Body, &groups); err != nil {
		return nil, err
	}
	prefixes := []string{"/api/v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			prefixes = append(prefixes, "/apis/"+v.GroupVersion)
		}
	}
	var out []resource
	for _, prefix := range prefixes {
		a, err := e.Want.Do(ctx, compare.Request{Path: prefix})
		if err != nil {
			return nil, err
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal(a.Body, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", prefix, err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && r.Name != "mayflies" && r.Name != "doodads" {
				out = append(out, resource{prefix, r.Name, r.Namespaced})
			}
		}
	}
	return out, nil
}

// listed compares the list of all objects of a kind, and the first objects.
func (e *Env) listed(ctx context.Context, r resource, listMedia, objectMedia string, options ...option) error {
	rv, err := e.at(ctx, r.all(), 0)
	if err != nil {
		return err
	}
	errs := []error{e.same(ctx, r.all()+"?"+exactly(rv), append(options, accept(listMedia), retried, code(200))...)}
	for _, path := range r.unchanging() {
		a, err := e.Want.Do(ctx, compare.Request{Path: path + "limit=3"})
		if err != nil {
			return err
		}
		l, err := readList(a)
		if err != nil {
			return err
		}
		collection, _, _ := strings.Cut(path, "?")
		for _, i := range l.Items {
			errs = append(errs, e.same(ctx, collection+"/"+url.PathEscape(i.Name)+anyVersion, append(options, accept(objectMedia), retried, code(200))...))
		}
	}
	return errors.Join(errs...)
}

// everyKindListed is a rule about lists and objects of all kinds.
func everyKindListed(listMedia, objectMedia string) checkFunc {
	return func(ctx context.Context, e *Env) error {
		return e.everyKind(ctx, maxKinds, func(r resource) error {
			return e.listed(ctx, r, listMedia, objectMedia, mask(withoutAges)) // of Tables; each age is of its own second
		})
	}
}

// everyKindInProtobuf is about built-in kinds: custom resources have no
// protobuf.
func everyKindInProtobuf(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, maxKinds, func(r resource) error {
		if r.custom() {
			return nil
		}
		return e.listed(ctx, r, compare.Protobuf, compare.Protobuf, contentType(compare.Protobuf))
	})
}

func everyKindAsMetadata(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, maxKinds, func(r resource) error {
		return errors.Join(
			e.listed(ctx, r, metadataList, metadata),
			e.listed(ctx, r, metadataListProtobuf, metadataProtobuf))
	})
}

// watched compares a short watch of a kind, with its initial events and the
// bookmark that ends them.
func (e *Env) watched(ctx context.Context, r resource, media, framing string) error {
	if _, err := e.at(ctx, r.all(), 0); err != nil {
		return err
	}
	var todo []func() error
	for _, path := range r.unchanging() {
		todo = append(todo, func() error {
			return e.same(ctx, path+"watch=1&allowWatchBookmarks=1&timeoutSeconds=2&resourceVersion=0", accept(media), retried,
				code(200), contentType(framing), mask(withoutLaterBookmarks(framing)), mask(withoutAges))
		})
	}
	return together(len(todo), todo...)
}

// everyKindWatched is a rule about watches of all kinds that have a media type.
func everyKindWatched(media, framing string) checkFunc {
	return func(ctx context.Context, e *Env) error {
		return e.everyKind(ctx, maxKindsWatched, func(r resource) error {
			if media == compare.Protobuf && r.custom() {
				return nil
			}
			return e.watched(ctx, r, media, framing)
		})
	}
}

func fieldsOfEveryKind(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, maxKinds, func(r resource) error {
		if _, err := e.at(ctx, r.all(), 0); err != nil {
			return err
		}
		var errs []error
		for _, path := range r.unchanging() {
			path += "resourceVersion=0&fieldSelector="
			errs = append(errs,
				e.same(ctx, path+"metadata.name=conf", code(200), mask(compare.ListRV), retried),
				e.same(ctx, path+"metadata.namespace=conf", code(200, 400), mask(compare.ListRV), retried),
				e.same(ctx, path+"metadata.namespace=", code(200, 400), mask(compare.ListRV), retried),
				e.same(ctx, path+"bogus=x", code(400)),
				e.same(ctx, path+"spec.bogus=x&watch=1", code(400)))
		}
		return errors.Join(errs...)
	})
}
