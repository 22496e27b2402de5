// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

// occasionRules are of events by what brings them about.
var occasionRules = rules("§4", ManyUpdates, DeleteCollection, StatusUpdates, ClusterScopedEvents, DefinitionDeleted)

// ManyUpdates: §4, no gaps and no duplicates in a burst of events.
func ManyUpdates(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	var changes []step
	var want []string
	for i := range 200 {
		changes = append(changes, step{http.MethodPatch, p.path + "/a", fmt.Sprintf(`{"data":{"n":"%d"}}`, i)})
		want = append(want, "MODIFIED a")
	}
	return e.live(ctx, p, "resourceVersion="+p.rv, changes, want...)
}

// DeleteCollection: §4, each object of a deleted collection has its event.
func DeleteCollection(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&fieldSelector=metadata.name!=kube-root-ca.crt&resourceVersion="+p.rv)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := e.remove(ctx, p.path+"?fieldSelector=metadata.name!=kube-root-ca.crt"); err != nil {
		return err
	}
	frames, err := w.Until(ctx, count(2))
	if err != nil {
		return err
	}
	for _, f := range frames {
		if f.Type != "DELETED" {
			return fmt.Errorf("the API server: %v", &f)
		}
	}
	return nil
}

// StatusUpdates: §4, writes to a subresource are events of the resource.
func StatusUpdates(ctx context.Context, e *Env) error {
	space, err := e.scratch(ctx)
	if err != nil {
		return err
	}
	path := "/apis/batch/v1/namespaces/" + space + "/jobs"
	made, err := e.create(ctx, path, `{"metadata":{"name":"x"},"spec":{"managedBy":"example.com/nobody","template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)
	if err != nil {
		return err
	}
	rv, err := e.at(ctx, path, made)
	if err != nil {
		return err
	}
	_, err = e.selected(ctx, path, "resourceVersion="+rv, []step{
		{http.MethodPatch, path + "/x/status", `{"status":{"active":1,"startTime":"2026-01-01T00:00:00Z"}}`},
		{http.MethodPatch, path + "/x", `{"spec":{"suspend":false,"parallelism":2}}`},
		{http.MethodDelete, path + "/x?propagationPolicy=Background", ""},
	}, "MODIFIED x", "MODIFIED x", "DELETED x")
	return err
}

// ClusterScopedEvents: §4, events of what is in no namespace.
func ClusterScopedEvents(ctx context.Context, e *Env) error {
	const classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
	rv, err := e.at(ctx, classes, 0)
	if err != nil {
		return err
	}
	_, err = e.selected(ctx, classes, "resourceVersion="+rv, []step{
		{http.MethodPost, classes, `{"metadata":{"name":"conf-x"},"value":3}`},
		{http.MethodPatch, classes + "/conf-x", `{"description":"d"}`},
		{http.MethodDelete, classes + "/conf-x", ""},
	}, "ADDED conf-x", "MODIFIED conf-x", "DELETED conf-x")
	return err
}

// DefinitionDeleted: §4, the streams of a custom resource end when its
// definition goes, after its objects' deletions.
func DefinitionDeleted(ctx context.Context, e *Env) error {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	const path = custom + "mayflies"
	_, err := e.create(ctx, definitions, `{"metadata":{"name":"mayflies.conformance.example.com"},"spec":{
		"group":"conformance.example.com","scope":"Cluster","names":{"plural":"mayflies","singular":"mayfly","kind":"Mayfly"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	if err != nil {
		return err
	}
	if err := eventually(ctx, path, func() (bool, error) {
		a, err := e.Want.Do(ctx, compare.Request{Path: path})
		return err == nil && a.Code == http.StatusOK, err
	}); err != nil {
		return err
	}
	made, err := e.create(ctx, path, `{"apiVersion":"conformance.example.com/v1","kind":"Mayfly","metadata":{"name":"m"}}`)
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, path, made); err != nil {
		return err
	}
	w, err := e.watch(ctx, path+"?watch=1&resourceVersion="+strconv.FormatUint(made, 10))
	if err != nil {
		return err
	}
	defer w.Close()
	if err := e.remove(ctx, definitions+"/mayflies.conformance.example.com"); err != nil {
		return err
	}
	frames, err := w.Until(ctx, nil)
	if err != nil {
		return err
	}
	if err := sequence(frames, "DELETED m"); err != nil {
		return err
	}
	// The API server ends watches a second or more after it stops serving the
	// resource, and what watches it learns of its end by that.
	for _, end := range []compare.Request{{Path: path}, {Path: path + anyVersion}} {
		for _, at := range []*compare.Endpoint{e.Want, e.Got} {
			if err := eventually(ctx, "an end of the path", func() (bool, error) {
				a, err := at.Do(ctx, end)
				return err == nil && a.Code == http.StatusNotFound, err
			}); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		e.same(ctx, path+anyVersion, code(404)),
		e.same(ctx, path+anyVersion+"&watch=1", code(404)),
	)
}
