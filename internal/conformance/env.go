// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

// An Env is what rules run against. [Setup] fills in the rest.
type Env struct {
	// Want is the API server, with the rights of a cluster admin. All changes
	// are made there.
	Want *compare.Endpoint
	// Got is what is judged.
	Got *compare.Endpoint
	// Compact has the store behind Want forget everything before an RV.
	Compact func(ctx context.Context, rv uint64) error
	// Sockets counts the WebSockets that Got has answered without Want. nil
	// means that it does not tell.
	Sockets func(ctx context.Context) (int, error)

	// old is an RV that the store has forgotten. No watch cache of our custom
	// resources ever had it; that of a built-in resource may.
	old uint64
	// token is that of a service account with next to no rights.
	token string
	// sockets is held while WebSockets are counted.
	sockets *sync.Mutex

	rule  string // the rule being checked
	asked *asked
}

// asked counts the answers that were compared, and those of them that Got gave
// without asking Want.
type asked struct{ answers, own atomic.Int64 }

// Where the still life is.
const (
	ns         = "conf"
	core       = "/api/v1/namespaces/conf/"
	configMaps = core + "configmaps"
	pods       = core + "pods"
	custom     = "/apis/conformance.example.com/v1/"
	gadgets    = custom + "namespaces/conf/gadgets"
	beacons    = custom + "beacons"
)

// An option of same says how to ask, or what the API server must answer.
type option func(*asking)

type asking struct {
	compare.Request
	masks  []compare.Mask
	checks []func(*compare.Answer) error
	// tries is how often it may be asked until the answers are the same.
	tries int
	// bookmarks has a watch keep those that are no end of the initial events.
	bookmarks bool
}

// same asks both endpoints for a path, and returns an error if the API server
// does not answer what the options say or the answers are not the same.
func (e *Env) same(ctx context.Context, path string, options ...option) error {
	_, err := e.ask(ctx, path, options...)
	return err
}

// ask is same, and returns the API server's answer.
func (e *Env) ask(ctx context.Context, path string, options ...option) (*compare.Answer, error) {
	a := asking{Request: compare.Request{Path: path, Header: http.Header{}}, tries: 1}
	for _, o := range options {
		o(&a)
	}
	for {
		a.tries--
		want, got, err := e.both(ctx, a.Request)
		if err != nil {
			return nil, err
		}
		for _, check := range a.checks {
			if err := check(want); err != nil {
				return nil, fmt.Errorf("%s: the API server: %w\n  it is %d %.500q", a.Request, err, want.Code, want.Body)
			}
		}
		err = compare.Diff(a.Request, want, got, a.masks...)
		if err == nil || a.tries == 0 {
			return want, err
		}
	}
}

// both asks both endpoints at the same time.
func (e *Env) both(ctx context.Context, r compare.Request) (want, got *compare.Answer, err error) {
	var wantErr, gotErr error
	var wg sync.WaitGroup
	wg.Go(func() { want, wantErr = e.Want.Do(ctx, r) })
	wg.Go(func() { got, gotErr = e.Got.Do(ctx, r) })
	wg.Wait()
	if wantErr != nil {
		return nil, nil, fmt.Errorf("the API server: %w", wantErr)
	}
	if gotErr != nil {
		return nil, nil, &compare.Difference{Request: r.String(), What: "answer", Want: strconv.Itoa(want.Code), Got: gotErr.Error()}
	}
	e.count(got)
	return want, got, nil
}

func (e *Env) count(got *compare.Answer) {
	e.asked.answers.Add(1)
	if !got.FromUpstream() {
		e.asked.own.Add(1)
	}
}

// watch opens a watch at both endpoints; the caller closes it. Bookmarks in
// passing are skipped unless the rule is about them: when they come depends on
// how a server's clock ticks.
func (e *Env) watch(ctx context.Context, path string, options ...option) (*compare.Pair, error) {
	a := asking{Request: compare.Request{Path: path, Header: http.Header{}}}
	for _, o := range options {
		o(&a)
	}
	p, err := compare.Watch(ctx, e.Want, e.Got, a.Request)
	if err != nil {
		return nil, err
	}
	e.count(p.Got.Answer)
	if !a.bookmarks {
		for _, s := range []*compare.Stream{p.Want, p.Got} {
			s.Skip = func(f *compare.Frame) bool { return f.Type == "BOOKMARK" && !f.EndsInitial() }
		}
	}
	return p, nil
}

// at returns an RV at which both endpoints can be asked for a collection: one
// that both have come to, and not before least. It warms up the gateway: its
// first list of a resource starts the watch.
func (e *Env) at(ctx context.Context, path string, least uint64) (string, error) {
	path += "?resourceVersion=0&fieldSelector=" + url.QueryEscape("metadata.name=nothing-of-that-name")
	deadline := time.Now().Add(2 * time.Minute)
	for {
		want, wantRV, err := version(ctx, e.Want, path)
		if err != nil {
			return "", err
		}
		got, gotRV, err := version(ctx, e.Got, path)
		if err != nil {
			return "", err
		}
		if wantRV >= least && gotRV >= least && wantRV > 0 && !got.FromUpstream() {
			return strconv.FormatUint(gotRV, 10), nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("%s: %d is wanted; want is at %d, got at %d (%q)", path, least, wantRV, gotRV, want.Body)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
}

// version asks an endpoint for a list's RV.
func version(ctx context.Context, e *compare.Endpoint, path string) (*compare.Answer, uint64, error) {
	a, err := e.Do(ctx, compare.Request{Path: path})
	if err != nil {
		return nil, 0, err
	}
	if a.Code != http.StatusOK {
		return nil, 0, fmt.Errorf("%s: %d %s", path, a.Code, a.Body)
	}
	rv, err := rvOf(a.Body)
	return a, rv, err
}

// rvOf is the RV of an object or a list in JSON.
func rvOf(body []byte) (uint64, error) {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return 0, err
	}
	return strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
}

// change writes to the API server and returns the new RV. What is deleted has
// none in the answer: then it is 0.
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

// steps does what is given in turn, up to the first error. It returns the RV
// of the last change.
func (e *Env) steps(ctx context.Context, todo ...step) (rv uint64, err error) {
	for _, s := range todo {
		if rv, err = e.change(ctx, s.method, s.path, s.body); err != nil {
			return 0, err
		}
	}
	return rv, nil
}

// A step is one change.
type step struct{ method, path, body string }

// scratch makes a namespace for the rule and waits until nothing stirs in it.
func (e *Env) scratch(ctx context.Context) (string, error) {
	name := "conf-" + strings.ToLower(e.rule)
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

// scratchPath makes a namespace for the rule and returns the path of a resource
// of the core group in it, which the gateway watches.
func (e *Env) scratchPath(ctx context.Context, resource string) (path string, err error) {
	space, err := e.scratch(ctx)
	if err != nil {
		return "", err
	}
	path = "/api/v1/namespaces/" + space + "/" + resource
	_, err = e.at(ctx, path, 0)
	return path, err
}

// eventually waits until a condition holds, for two minutes.
func eventually(ctx context.Context, what string, ok func() (bool, error)) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("there never was %s", what)
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

// doodads is the collection of the custom resource that rules change, in a
// namespace.
func doodads(space string) string { return custom + "namespaces/" + space + "/doodads" }

// doodad is one, with further members.
func doodad(name, more string) string {
	return `{"apiVersion":"conformance.example.com/v1","kind":"Doodad","metadata":{"name":"` + name + `"},` + more + `}`
}

// together does at the same time what mostly waits.
func together(all ...func() error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, f := range all {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
