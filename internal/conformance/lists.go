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

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var listRules = rules("§2",
	ListConsistent, ListConsistentPages, ListAny, ListAnyUncached, ListNotOlder, ListLegacyExact, ListNotOlderPages,
	ListExact, ListPages, ListPagesWithVersion, ListOrder, ListLimitCountsMatches, ListRemaining, ListOfThePast,
	GetConsistent, GetAny, GetNotOlder, GetIgnoresMatch,
)

// consistent asks the API server, the gateway and the API server again for a
// consistent list; the gateway's RV lies between the other two.
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

// ListConsistent: §2 LIST, RV unset: it has every write that was acknowledged
// before the request.
func ListConsistent(ctx context.Context, e *Env) error {
	path, err := e.scratchPath(ctx, "secrets")
	if err != nil {
		return err
	}
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("s-%d", i))
		if _, err := e.create(ctx, path, `{"metadata":{"name":"`+names[i]+`"}}`); err != nil {
			return err
		}
		// At once: the gateway may not have heard of it.
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

// ListConsistentPages: §2 LIST, RV unset with a limit: later pages are of the
// first one's RV.
func ListConsistentPages(ctx context.Context, e *Env) error {
	space, err := e.scratch(ctx)
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
		late := "d-" + strconv.FormatUint(uint64(len(l.Metadata.Continue)), 10) + l.Metadata.ResourceVersion
		rv, err := e.create(ctx, path, `{"metadata":{"name":"`+late+`"}}`)
		if err != nil {
			return err
		}
		if _, err := e.at(ctx, path, rv); err != nil {
			return err
		}
		err = e.same(ctx, path+"?limit=5&continue="+url.QueryEscape(l.Metadata.Continue), hasNot(`"`+late+`"`), has(`"resourceVersion":"`+l.Metadata.ResourceVersion+`"`))
		if err != nil {
			return err
		}
	}
	return nil
}

// ListAny: §2 LIST, RV 0: any state, and the limit is ignored.
func ListAny(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, configMaps+anyVersion, items(still...), mask(compare.ListRV)),
		e.same(ctx, configMaps+anyVersion+"&limit=1", items(still...), hasNot(`"continue"`), mask(compare.ListRV)),
		e.same(ctx, configMaps+anyVersion+"&limit=1&resourceVersionMatch=NotOlderThan", items(still...), hasNot(`"continue"`), mask(compare.ListRV)),
		e.same(ctx, gadgets+anyVersion+"&limit=1", items("g-1", "g-2"), mask(compare.ListRV)),
		e.same(ctx, configMaps+anyVersion+"&labelSelector=color=red", items("cm-1", "cm-3"), mask(compare.ListRV)),
	)
}

// ListAnyUncached: §2 LIST, RV 0 of what the API server keeps no watch cache
// of: the limit is honoured.
func ListAnyUncached(ctx context.Context, e *Env) error {
	const events = core + "events"
	return errors.Join(
		e.same(ctx, events+anyVersion+"&limit=1&fieldSelector=involvedObject.kind=Pod", has(`"continue":"`), mask(compare.ListRV)),
		e.same(ctx, events+anyVersion+"&limit=1&resourceVersionMatch=NotOlderThan&fieldSelector=involvedObject.kind=Pod", has(`"continue":"`), mask(compare.ListRV)),
		e.same(ctx, "/apis/events.k8s.io/v1/namespaces/conf/events"+anyVersion+"&limit=1&fieldSelector=regarding.kind=Pod", has(`"continue":"`), mask(compare.ListRV)),
	)
}

// ListNotOlder: §2 LIST, at RV N without a limit: not older than N.
func ListNotOlder(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, configMaps+"?resourceVersion="+rv, items(still...), mask(compare.ListRV), e.atLeast(rv)),
		e.same(ctx, configMaps+"?resourceVersion=1", items(still...), mask(compare.ListRV), e.atLeast(rv)),
		e.same(ctx, configMaps+"?resourceVersionMatch=NotOlderThan&resourceVersion="+rv, items(still...), mask(compare.ListRV), e.atLeast(rv)),
		e.same(ctx, gadgets+"?resourceVersion=1", items("g-1", "g-2"), mask(compare.ListRV)),
	)
}

// atLeast is a list at an RV or later.
func (e *Env) atLeast(rv string) option {
	return check(func(a *compare.Answer) error {
		least, err := strconv.ParseUint(rv, 10, 64)
		if err != nil {
			return err
		}
		at, err := rvOf(a.Body)
		if err != nil || at < least {
			return fmt.Errorf("a list at %d, not at %d or later: %w", at, least, err)
		}
		return nil
	})
}

// ListLegacyExact: §2 LIST, at RV N with a limit and no match: exactly N.
func ListLegacyExact(ctx context.Context, e *Env) error {
	space, err := e.scratch(ctx)
	if err != nil {
		return err
	}
	return e.past(ctx, space, "a", "limit=10")
}

// ListExact: §2 LIST, exactly at N: the state at N, and N as its RV.
func ListExact(ctx context.Context, e *Env) error {
	space, err := e.scratch(ctx)
	if err != nil {
		return err
	}
	return errors.Join(e.past(ctx, space, "a", "resourceVersionMatch=Exact"), e.past(ctx, space, "b", "resourceVersionMatch=Exact&limit=10"))
}

// ListNotOlderPages: §2 LIST, not older than N with a limit: the limit is
// honoured and the token has the RV that was returned.
func ListNotOlderPages(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, gadgets, 0)
	if err != nil {
		return err
	}
	path := custom + "gadgets?resourceVersionMatch=NotOlderThan&limit=2&resourceVersion=" + rv
	a, err := e.ask(ctx, path, items("conf-b/g-3", "conf/g-1"), has(`"continue":"ey`), mask(compare.ListRV))
	if err != nil {
		return err
	}
	l, err := readList(a)
	if err != nil {
		return err
	}
	return e.same(ctx, custom+"gadgets?limit=2&continue="+l.Metadata.Continue, items("g-2"), has(`"resourceVersion":"`+l.Metadata.ResourceVersion+`"`))
}

// past makes a history of a custom resource and asks for each state of it, with
// a query that means exactly that.
func (e *Env) past(ctx context.Context, space, name, query string) error {
	scope := doodads(space)
	rv, err := e.create(ctx, scope, doodad(name, `"spec":{"size":0}`))
	if err != nil {
		return err
	}
	// The gateway sees the rest of the history.
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
			want = append(want, hasNot(`"`+name+`-2"`))
		}
		errs = append(errs,
			e.same(ctx, scope+"?"+query+"&resourceVersion="+n, want...),
			e.same(ctx, scope+"?"+query+"&fieldSelector=spec.size=1&resourceVersion="+n, at))
	}
	n := strconv.FormatUint(last-1, 10)
	errs = append(errs, e.same(ctx, scope+"?"+query+"&resourceVersion="+n, hasNot(`"name":"`+name+`"`), has(`"`+name+`-2"`), hasNot(`"`+name+`-3"`)))
	return errors.Join(errs...)
}

// ListOfThePast: §2 LIST, states of a built-in resource.
func ListOfThePast(ctx context.Context, e *Env) error {
	path, err := e.scratchPath(ctx, "configmaps")
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

// ListPages: §2 LIST, pages of every length, in every scope, by tokens of
// either endpoint.
func ListPages(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range []string{configMaps, "/api/v1/configmaps"} {
		for _, limit := range []string{"1", "2", "3"} {
			for _, more := range []string{"", "&labelSelector=color", "&fieldSelector=metadata.name!=cm-2"} {
				errs = append(errs, e.pages(ctx, path, "limit="+limit+more, rv))
			}
		}
	}
	if rv, err = e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	return errors.Join(append(errs, e.pages(ctx, custom+"gadgets", "limit=1", rv), e.pages(ctx, beacons, "limit=1", rv))...)
}

// pages follows the API server's tokens at both endpoints, and then the
// gateway's: that they are the same was compared.
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
		if l.Metadata.Continue == "" {
			if n == 0 {
				return fmt.Errorf("%s: there is one page only: nothing is shown", next)
			}
			return nil
		}
		next = path + "?" + query + "&continue=" + url.QueryEscape(l.Metadata.Continue)
	}
}

// ListPagesWithVersion: §2 LIST, a continue token takes RV "" and 0 only.
func ListPagesWithVersion(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	a, err := e.ask(ctx, configMaps+"?limit=2&resourceVersion="+rv, items("cm-1", "cm-2"))
	if err != nil {
		return err
	}
	l, err := readList(a)
	if err != nil {
		return err
	}
	next := configMaps + "?limit=2&continue=" + l.Metadata.Continue + "&resourceVersion="
	return errors.Join(
		e.same(ctx, next, items("cm-3", "cm-4")),
		// At RV 0 the limit is ignored on later pages, too.
		e.same(ctx, next+"0", items("cm-3", "cm-4", "cm-5", "kube-root-ca.crt")),
		e.same(ctx, next+rv, status(400, "BadRequest", "specifying resource version is not allowed when using continue")),
		e.same(ctx, configMaps+"?continue="+l.Metadata.Continue, items("cm-3", "cm-4", "cm-5", "kube-root-ca.crt")),
		e.same(ctx, configMaps+"?continue="+l.Metadata.Continue+"&limit=-1", items("cm-3", "cm-4", "cm-5", "kube-root-ca.crt")),
	)
}

// ListOrder: §2 LIST, the order is that of the bytes of namespace/name: conf-b
// comes before conf.
func ListOrder(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, "/api/v1/configmaps?labelSelector=color&"+exactly(rv),
			items("conf-b/cm-1", "conf/cm-1", "conf/cm-2", "conf/cm-3", "conf/cm-5")),
		e.same(ctx, custom+"gadgets"+anyVersion, items("conf-b/g-3", "conf/g-1", "conf/g-2"), mask(compare.ListRV)),
		e.same(ctx, "/api/v1/configmaps?limit=1&labelSelector=color&resourceVersion="+rv, items("conf-b/cm-1"), has(`"continue":"`)),
	)
}

// ListLimitCountsMatches: §2 LIST, the limit counts matching items, and there
// may be a token though nothing further matches.
func ListLimitCountsMatches(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	path := configMaps + "?" + exactly(rv)
	return errors.Join(
		e.same(ctx, path+"&limit=2&labelSelector=color=red", items("cm-1", "cm-3"), has(`"continue":"`)),
		e.same(ctx, path+"&limit=3&labelSelector=color=red", items("cm-1", "cm-3"), hasNot(`"continue":"`)),
		e.same(ctx, path+"&limit=1&fieldSelector=metadata.name!=cm-1", items("cm-2"), has(`"continue":"`)),
		e.pages(ctx, configMaps, "limit=2&labelSelector=color=red", rv),
	)
}

// ListRemaining: §2 LIST, remainingItemCount comes with a token, and only
// without selectors.
func ListRemaining(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	custom1, err := e.at(ctx, gadgets, 0)
	if err != nil {
		return err
	}
	path := configMaps + "?" + exactly(rv)
	return errors.Join(
		e.same(ctx, path+"&limit=2", has(`"remainingItemCount":4`)),
		e.same(ctx, path+"&limit=5", has(`"remainingItemCount":1`)),
		e.same(ctx, path+"&limit=6", hasNot("remainingItemCount")),
		e.same(ctx, path+"&limit=1&labelSelector=color", has("continue"), hasNot("remainingItemCount")),
		e.same(ctx, path+"&limit=1&fieldSelector=metadata.name!=x", has("continue"), hasNot("remainingItemCount")),
		e.same(ctx, custom+"gadgets?limit=1&resourceVersion="+custom1, has(`"continue":"ey`), has(`"remainingItemCount":2`)),
	)
}

// GetConsistent: §2 GET, RV unset: it has every write that was acknowledged
// before the request.
func GetConsistent(ctx context.Context, e *Env) error {
	path, err := e.scratchPath(ctx, "configmaps")
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

// GetAny: §2 GET, RV 0: any state.
func GetAny(ctx context.Context, e *Env) error {
	for _, path := range []string{configMaps, gadgets, beacons} {
		if _, err := e.at(ctx, path, 0); err != nil {
			return err
		}
	}
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1"+anyVersion, kind("ConfigMap")),
		e.same(ctx, gadgets+"/g-2"+anyVersion, kind("Gadget")),
		e.same(ctx, beacons+"/south"+anyVersion, kind("Beacon")),
		e.same(ctx, beacons+"/no-such"+anyVersion, status(404, "NotFound", `beacons.conformance.example.com "no-such" not found`)),
	)
}

// GetNotOlder: §2 GET, at N: not older than N.
func GetNotOlder(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1?resourceVersion="+rv, kind("ConfigMap")),
		e.same(ctx, configMaps+"/cm-1?resourceVersion=1", kind("ConfigMap")),
		e.same(ctx, configMaps+"/no-such?resourceVersion="+rv, code(404)),
	)
}

// GetIgnoresMatch: §2 GET, a match is ignored, whatever it is.
func GetIgnoresMatch(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1?resourceVersion=1&resourceVersionMatch=Exact", kind("ConfigMap")),
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&resourceVersionMatch=Foo&limit=x&continue=y&sendInitialEvents=1&labelSelector=a=b&fieldSelector=nonsense", kind("ConfigMap")),
		e.same(ctx, configMaps+"/cm-1?resourceVersionMatch=Exact", kind("ConfigMap")),
	)
}
