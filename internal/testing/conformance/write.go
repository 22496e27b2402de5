// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// change writes to the API server and returns the new RV, 0 if the answer to a
// deletion has none.
func (e *Env) change(ctx context.Context, method, path, body string) (uint64, error) {
	r := compare.Request{Method: method, Path: path, Body: body, Header: http.Header{}}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	a, err := e.Want.Do(ctx, r)
	if err != nil {
		return 0, err
	}
	if a.Code/100 != 2 {
		return 0, fmt.Errorf("%s %s: %d %s", method, path, a.Code, a.Body)
	}
	rv, err := rvOf(a.Body)
	if method == http.MethodDelete {
		return rv, nil
	}
	return rv, err
}

func (e *Env) create(ctx context.Context, path, body string) (uint64, error) {
	return e.change(ctx, http.MethodPost, path, body)
}

func (e *Env) patch(ctx context.Context, path, body string) (uint64, error) {
	return e.change(ctx, http.MethodPatch, path, body)
}

func (e *Env) remove(ctx context.Context, path string) error {
	_, err := e.change(ctx, http.MethodDelete, path, "")
	return err
}

// A step is one change.
type step struct{ method, path, body string }

// steps makes changes in turn, up to the first error. It returns the RV of the
// last one.
func (e *Env) steps(ctx context.Context, todo ...step) (rv uint64, err error) {
	for _, s := range todo {
		if rv, err = e.change(ctx, s.method, s.path, s.body); err != nil {
			return 0, err
		}
	}
	return rv, nil
}

// namespace creates a namespace for the rule and waits for the objects that
// controllers create in it.
func (e *Env) namespace(ctx context.Context, suffix string) (string, error) {
	name := "conf-" + strings.ToLower(e.rule) + suffix
	if _, err := e.create(ctx, "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`); err != nil {
		return "", err
	}
	for _, path := range []string{"/serviceaccounts/default", "/configmaps/kube-root-ca.crt"} {
		path = "/api/v1/namespaces/" + name + path
		if err := eventually(ctx, path, func() (bool, error) {
			a, err := e.Want.Do(ctx, compare.Request{Path: path})
			return err == nil && a.Code == http.StatusOK, err
		}); err != nil {
			return "", err
		}
	}
	return name, nil
}

// collection creates a namespace for the rule and returns the path of a resource of
// the core group in it, which the gateway watches.
func (e *Env) collection(ctx context.Context, resource string) (path string, err error) {
	space, err := e.namespace(ctx, "")
	if err != nil {
		return "", err
	}
	path = "/api/v1/namespaces/" + space + "/" + resource
	_, err = e.at(ctx, path, 0)
	return path, err
}

// A playground is a collection that the rule may change.
type playground struct {
	path string
	rv   string // of its first state; both endpoints have reached it
}

// playground creates a namespace with ConfigMaps a and b.
func (e *Env) playground(ctx context.Context) (playground, error) {
	space, err := e.namespace(ctx, "")
	if err != nil {
		return playground{}, err
	}
	p := playground{path: "/api/v1/namespaces/" + space + "/configmaps"}
	rv, err := e.steps(ctx,
		step{http.MethodPost, p.path, `{"metadata":{"name":"a"}}`},
		step{http.MethodPost, p.path, `{"metadata":{"name":"b"}}`})
	if err != nil {
		return playground{}, err
	}
	p.rv, err = e.at(ctx, p.path, rv)
	return p, err
}

// customPlayground creates a namespace with a Doodad named first.
func (e *Env) customPlayground(ctx context.Context) (playground, error) {
	space, err := e.namespace(ctx, "")
	if err != nil {
		return playground{}, err
	}
	p := playground{path: doodads(space)}
	rv, err := e.create(ctx, p.path, doodad("first", `"spec":{}`))
	if err != nil {
		return playground{}, err
	}
	p.rv, err = e.at(ctx, p.path, rv)
	return p, err
}

// mark returns the step that creates the last object of a rule.
func (p playground) mark() step {
	return step{http.MethodPost, p.path, `{"metadata":{"name":"z-mark"}}`}
}

// marked reports whether the last object of a rule has arrived.
func marked(all []compare.Frame) bool {
	f := all[len(all)-1]
	return f.Name == "z-mark" && f.Type == "ADDED"
}

// live opens a watch in the playground at both endpoints, makes changes and a
// last one, and compares all events.
func (e *Env) live(ctx context.Context, p playground, query string, changes []step, want ...string) error {
	w, err := e.watch(ctx, p.path+"?watch=1&"+query)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.steps(ctx, append(changes, p.mark())...); err != nil {
		return err
	}
	frames, err := w.Until(ctx, marked)
	if len(frames) > 0 {
		if err := sequence(frames, append(want, "ADDED z-mark")...); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return err
}

// selected opens a watch of a collection at both endpoints, makes changes, and
// compares as many events as are expected.
func (e *Env) selected(ctx context.Context, path, query string, changes []step, want ...string) ([]compare.Frame, error) {
	w, err := e.watch(ctx, path+"?watch=1&"+query)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := e.steps(ctx, changes...); err != nil {
		return nil, err
	}
	all, err := w.Until(ctx, count(len(want)))
	if err != nil {
		return nil, err
	}
	return all, sequence(all, want...)
}

// doodads returns the path of the custom resource that rules change.
func doodads(namespace string) string { return custom + "/namespaces/" + namespace + "/doodads" }

// doodad returns the JSON of a Doodad, with further members.
func doodad(name, more string) string {
	return `{"apiVersion":"conformance.example.com/v1","kind":"Doodad","metadata":{"name":"` + name + `"},` + more + `}`
}

// pod returns the JSON of a Pod that no scheduler handles.
func pod(name string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"schedulerName":"nobody","containers":[{"name":"c","image":"i"}]}}`
}

// labelled returns a patch that sets the label "on".
func labelled(value string) string { return `{"metadata":{"labels":{"on":` + value + `}}}` }

// all asks each API server for a path, and reports whether a condition holds for all
// answers.
func (e *Env) all(ctx context.Context, path string, holds func(*compare.Answer) bool) (bool, error) {
	for _, at := range e.servers() {
		a, err := at.Do(ctx, compare.Request{Path: path})
		if err != nil || !holds(a) {
			return false, err
		}
	}
	return true, nil
}

// eventually waits for a condition, for two minutes.
func eventually(ctx context.Context, what string, ok func() (bool, error)) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timed out waiting for %s", what)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), context.Cause(ctx))
	}
}
