// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

func listConsistent(ctx context.Context, e *Env) error {
	path, err := e.collection(ctx, "secrets")
	if err != nil {
		return err
	}
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("s-%d", i))
		if _, err := e.create(ctx, path, `{"metadata":{"name":"`+names[i]+`"}}`); err != nil {
			return err
		}
		// The gateway may not have seen the write yet.
		if err := e.same(ctx, path, items(names...), mask(compare.ListRV)); err != nil {
			return err
		}
	}
	return errors.Join(
		e.consistent(ctx, path, items(names...)),
		e.consistent(ctx, path+"?resourceVersion=", items(names...)),
		e.consistent(ctx, path+"?fieldSelector=metadata.name=s-3", items("s-3")),
		e.consistent(ctx, gadgets, items("g-1", "g-2")),
	)
}

// consistent sends a consistent list to the API server, the gateway and the API
// server again: the gateway's RV must lie between the other two.
func (e *Env) consistent(ctx context.Context, path string, options ...option) error {
	_, before, err := version(ctx, e.Want, path)
	if err != nil {
		return err
	}
	got, at, err := version(ctx, e.Got, path)
	if err != nil {
		return err
	}
	_, after, err := version(ctx, e.Want, path)
	if err != nil {
		return err
	}
	e.count(got)
	if at < before || at > after {
		return &compare.Difference{Request: path, What: "RV of a consistent list",
			Want: fmt.Sprintf("from %d to %d", before, after), Got: strconv.FormatUint(at, 10)}
	}
	return e.same(ctx, path, append(options, mask(compare.ListRV))...)
}

func listConsistentPages(ctx context.Context, e *Env) error {
	space, err := e.namespace(ctx, "")
	if err != nil {
		return err
	}
	path := "/api/v1/namespaces/" + space + "/secrets"
	for _, name := range []string{"a", "b", "c"} {
		if _, err := e.create(ctx, path, `{"metadata":{"name":"`+name+`"}}`); err != nil {
			return err
		}
	}
	if _, err := e.at(ctx, path, 0); err != nil {
		return err
	}
	if err := e.same(ctx, path+"?limit=2", items("a", "b"), mask(compare.ListRV)); err != nil {
		return err
	}
	for _, first := range []*compare.Endpoint{e.Want, e.Got} {
		page, err := first.Do(ctx, compare.Request{Path: path + "?limit=2"})
		if err != nil {
			return err
		}
		l, err := readList(page)
		if err != nil {
			return err
		}
		late := "d-" + strconv.FormatUint(uint64(len(l.Continue)), 10) + l.ResourceVersion
		rv, err := e.create(ctx, path, `{"metadata":{"name":"`+late+`"}}`)
		if err != nil {
			return err
		}
		if _, err := e.at(ctx, path, rv); err != nil {
			return err
		}
		err = e.same(ctx, path+"?limit=5&continue="+url.QueryEscape(l.Continue), lacks(`"`+late+`"`), has(`"resourceVersion":"`+l.ResourceVersion+`"`))
		if err != nil {
			return err
		}
	}
	return nil
}

func listLegacyExact(ctx context.Context, e *Env) error {
	space, err := e.namespace(ctx, "")
	if err != nil {
		return err
	}
	return e.past(ctx, space, "a", "limit=10")
}

func listExact(ctx context.Context, e *Env) error {
	space, err := e.namespace(ctx, "")
	if err != nil {
		return err
	}
	return errors.Join(e.past(ctx, space, "a", "resourceVersionMatch=Exact"), e.past(ctx, space, "b", "resourceVersionMatch=Exact&limit=10"))
}

// past creates several states of a custom resource and lists each of them, with a
// query for exactly the state at its RV.
func (e *Env) past(ctx context.Context, space, name, query string) error {
	scope := doodads(space)
	rv, err := e.create(ctx, scope, doodad(name, `"spec":{"size":0}`))
	if err != nil {
		return err
	}
	// The gateway watches from here on.
	if _, err := e.at(ctx, scope, rv); err != nil {
		return err
	}
	states := []uint64{rv}
	for _, s := range []step{
		{http.MethodPatch, scope + "/" + name, `{"spec":{"size":1}}`},
		{http.MethodPatch, scope + "/" + name, `{"spec":{"size":2}}`},
		{http.MethodPost, scope, doodad(name+"-2", `"spec":{}`)},
	} {
		if rv, err = e.steps(ctx, s); err != nil {
			return err
		}
		states = append(states, rv)
	}
	if err := e.remove(ctx, scope+"/"+name); err != nil {
		return err
	}
	last, err := e.create(ctx, scope, doodad(name+"-3", `"spec":{}`))
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, scope, last); err != nil {
		return err
	}
	var errs []error
	for i, rv := range states {
		n := strconv.FormatUint(rv, 10)
		at := has(`"resourceVersion":"` + n + `"`)
		want := []option{at, has(`"name":"` + name + `"`), has(`"size":` + strconv.Itoa(min(i, 2)))}
		if i < 3 {
			want = append(want, lacks(`"`+name+`-2"`))
		}
		errs = append(errs,
			e.same(ctx, scope+"?"+query+"&resourceVersion="+n, want...),
			e.same(ctx, scope+"?"+query+"&fieldSelector=spec.size=1&resourceVersion="+n, at))
	}
	n := strconv.FormatUint(last-1, 10)
	errs = append(errs, e.same(ctx, scope+"?"+query+"&resourceVersion="+n, lacks(`"name":"`+name+`"`), has(`"`+name+`-2"`), lacks(`"`+name+`-3"`)))
	return errors.Join(errs...)
}

func listOfThePast(ctx context.Context, e *Env) error {
	path, err := e.collection(ctx, "configmaps")
	if err != nil {
		return err
	}
	one, err := e.create(ctx, path, `{"metadata":{"name":"a"},"data":{"v":"1"}}`)
	if err != nil {
		return err
	}
	two, err := e.patch(ctx, path+"/a", `{"data":{"v":"2"}}`)
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, path, two); err != nil {
		return err
	}
	var errs []error
	for _, query := range []string{"resourceVersionMatch=Exact", "limit=500"} {
		errs = append(errs,
			e.same(ctx, fmt.Sprintf("%s?%s&resourceVersion=%d", path, query, one-1), items("kube-root-ca.crt")),
			e.same(ctx, fmt.Sprintf("%s?%s&resourceVersion=%d", path, query, one), has(`"v":"1"`)),
			e.same(ctx, fmt.Sprintf("%s?%s&resourceVersion=%d", path, query, two), has(`"v":"2"`)))
	}
	return errors.Join(errs...)
}

// pages follows the continue tokens of a list at an exact RV to its end. The
// tokens of both endpoints are equal: the answers were compared.
func (e *Env) pages(ctx context.Context, path, query, rv string) error {
	next := path + "?" + query + "&" + exactly(rv)
	for n := 0; ; n++ {
		a, err := e.ask(ctx, next, code(200), has(`"resourceVersion":"`+rv+`"`))
		if err != nil {
			return err
		}
		l, err := readList(a)
		if err != nil {
			return err
		}
		if l.Continue == "" {
			if n == 0 {
				return fmt.Errorf("%s: there is only one page", next)
			}
			return nil
		}
		next = path + "?" + query + "&continue=" + url.QueryEscape(l.Continue)
	}
}

func getConsistent(ctx context.Context, e *Env) error {
	path, err := e.collection(ctx, "configmaps")
	if err != nil {
		return err
	}
	for i := range 8 {
		name := fmt.Sprintf("/c-%d", i)
		if err := e.same(ctx, path+name, code(404)); err != nil {
			return err
		}
		if _, err := e.create(ctx, path, `{"metadata":{"name":"`+name[1:]+`"}}`); err != nil {
			return err
		}
		if err := e.same(ctx, path+name, kind("ConfigMap")); err != nil {
			return err
		}
	}
	return e.same(ctx, path+"/c-1?resourceVersion=", kind("ConfigMap"))
}

func tokensOfEitherSide(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	var errs []error
	for _, query := range []string{"?limit=2&resourceVersion=" + rv, "?limit=2"} {
		for _, mint := range []*compare.Endpoint{e.Want, e.Got} {
			page, err := mint.Do(ctx, compare.Request{Path: configMaps + query})
			if err != nil {
				return err
			}
			l, err := readList(page)
			if err != nil {
				return err
			}
			errs = append(errs, e.same(ctx, configMaps+"?limit=2&continue="+url.QueryEscape(l.Continue), items("cm-3", "cm-4"),
				has(`"resourceVersion":"`+l.ResourceVersion+`"`)))
		}
	}
	return errors.Join(errs...)
}
