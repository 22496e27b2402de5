// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

func versionsIncrease(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	var changes []step
	for i := range 10 {
		for _, name := range []string{"a", "b"} {
			changes = append(changes, step{http.MethodPatch, p.path + "/" + name, fmt.Sprintf(`{"data":{"n":"%d"}}`, i)})
		}
	}
	changes = append(changes, p.mark())
	w, err := e.watch(ctx, p.path+"?watch=1&resourceVersion="+p.rv)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.steps(ctx, changes...); err != nil {
		return err
	}
	frames, err := w.Until(ctx, marked)
	if err != nil {
		return err
	}
	if len(frames) != len(changes) {
		return fmt.Errorf("the API server: %d events of %d changes", len(frames), len(changes))
	}
	last := uint64(0)
	for i, f := range frames {
		rv, err := strconv.ParseUint(f.RV, 10, 64)
		if err != nil || rv <= last {
			return fmt.Errorf("the API server: event %d is at %s, after %d: %w", i, f.RV, last, err)
		}
		last = rv
	}
	return e.same(ctx, p.path+"?watch=1&timeoutSeconds=1&resourceVersion="+frames[7].RV, code(200), has("z-mark"))
}

func orderAcrossNamespaces(ctx context.Context, e *Env) error {
	p, err := e.customPlayground(ctx)
	if err != nil {
		return err
	}
	other := doodads("conf-b")
	if _, err := e.create(ctx, other, doodad("across", `"spec":{}`)); err != nil {
		return err
	}
	for i := range 10 {
		n := fmt.Sprintf(`{"metadata":{"labels":{"across":"%d"}}}`, i)
		if _, err := e.steps(ctx, step{http.MethodPatch, p.path + "/first", n}, step{http.MethodPatch, other + "/across", n}); err != nil {
			return err
		}
	}
	// Other rules change doodads at the same time; those events are compared too.
	w, err := e.watch(ctx, custom+"/doodads?watch=1&resourceVersion="+p.rv)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = w.Until(ctx, func(all []compare.Frame) bool {
		f := all[len(all)-1]
		return f.Name == "across" && strings.Contains(string(f.Object), `"across":"9"`)
	})
	return err
}

func manyUpdates(ctx context.Context, e *Env) error {
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

func deleteCollection(ctx context.Context, e *Env) error {
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

func definitionDeleted(ctx context.Context, e *Env) error {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	const path = custom + "/mayflies"
	_, err := e.create(ctx, definitions, `{"metadata":{"name":"mayflies.conformance.example.com"},"spec":{
		"group":"conformance.example.com","scope":"Cluster","names":{"plural":"mayflies","singular":"mayfly","kind":"Mayfly"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	if err != nil {
		return err
	}
	if err := eventually(ctx, path, func() (bool, error) {
		return e.all(ctx, path+anyVersion, func(a *compare.Answer) bool { return a.Code == http.StatusOK })
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
	// resource. The gateway learns of the removal from the end of its own watch.
	for _, end := range []compare.Request{{Path: path}, {Path: path + anyVersion}} {
		for _, at := range slices.Concat(e.servers(), []*compare.Endpoint{e.Got}) {
			if err := eventually(ctx, "404 from "+path, func() (bool, error) {
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
