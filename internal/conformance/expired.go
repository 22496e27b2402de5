// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var expiredRules = rules("§3",
	ExpiredWatch, ExpiredWatchUncached, ExpiredList, ExpiredContinue, InconsistentContinue,
	GarbageContinue, ForeignContinue, TokensOfEitherSide,
	FutureList, FutureGet, FutureListUncached, FutureInitialEvents, FutureExact,
)

// future is an RV that no store of a test comes to.
const future = "999999999"

// ExpiredWatch: §3, a watch from an RV below the window is a stream of one
// ERROR, Status 410, whose message says the oldest RV that can be had.
func ExpiredWatch(ctx context.Context, e *Env) error {
	old := strconv.FormatUint(e.old, 10)
	if _, err := e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	want := []option{events("ERROR 410"), has(`"reason":"Expired","code":410}}`), has(`"message":"too old resource version: ` + old + ` (`)}
	return errors.Join(
		e.same(ctx, gadgets+"?watch=1&resourceVersion="+old, want...),
		e.same(ctx, gadgets+"?watch=1&timeoutSeconds=300&allowWatchBookmarks=true&resourceVersion="+old, want...),
		e.same(ctx, custom+"watch/beacons?resourceVersion="+old, want...),
		e.same(ctx, gadgets+"?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion="+old, want...),
	)
}

// ExpiredWatchUncached: §3, where there is no watch cache the message is
// another.
func ExpiredWatchUncached(ctx context.Context, e *Env) error {
	return e.same(ctx, core+"events?watch=1&resourceVersion="+strconv.FormatUint(e.old, 10), events("ERROR 410"),
		has(`"message":"The resourceVersion for the provided watch is too old.","reason":"Expired","code":410}}`))
}

// ExpiredList: §3, a list at an exact RV that was compacted is 410.
func ExpiredList(ctx context.Context, e *Env) error {
	const message = "The resourceVersion for the provided list is too old."
	old := "resourceVersion=" + strconv.FormatUint(e.old, 10)
	if _, err := e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, gadgets+"?resourceVersionMatch=Exact&"+old, status(410, "Expired", message)),
		e.same(ctx, gadgets+"?limit=1&"+old, status(410, "Expired", message)),
		e.same(ctx, core+"events?resourceVersionMatch=Exact&"+old, status(410, "Expired", message)),
	)
}

// continueToken makes a continue token.
func continueToken(rv int64, start string) string {
	key, _ := json.Marshal(start) // strings always marshal
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":%s}`, rv, key))
}

// number is an RV that [Env.at] returns, for a token.
func (e *Env) number(ctx context.Context, path string) (int64, error) {
	rv, err := e.at(ctx, path, 0)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(rv, 10, 64)
}

// ExpiredContinue: §3, a continue token that has expired is 410, with a token
// to go on inconsistently.
func ExpiredContinue(ctx context.Context, e *Env) error {
	old := int64(e.old)
	if _, err := e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	var errs []error
	for _, path := range []string{gadgets, core + "events"} {
		errs = append(errs, e.same(ctx, path+"?limit=1&continue="+continueToken(old, "g-1\x00"),
			status(410, "Expired", "The provided continue parameter is too old to display a consistent list result. …"),
			has(`"metadata":{"continue":"`+continueToken(-1, "g-1\x00")+`"}`)))
	}
	return errors.Join(errs...)
}

// InconsistentContinue: §3, the token with RV −1 goes on at the latest state.
func InconsistentContinue(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, gadgets+"?limit=1&continue="+continueToken(-1, "g-1\x00"), items("g-2"), mask(compare.ListRV)),
		e.same(ctx, custom+"gadgets?limit=1&continue="+continueToken(-1, "conf-b/g-3\x00"), items("g-1"), has(`"continue":"ey`), mask(compare.ListRV)),
		e.same(ctx, configMaps+"?continue="+continueToken(-1, "cm-4\x00"), items("cm-5", "kube-root-ca.crt"), mask(compare.ListRV)),
	)
}

// GarbageContinue: §3, a token that cannot be read is 400.
func GarbageContinue(ctx context.Context, e *Env) error {
	n, err := e.number(ctx, configMaps)
	if err != nil {
		return err
	}
	plain := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	var errs []error
	for _, garbage := range []string{
		"abc", "%%%", "=", "ey", plain("{}"), plain(`{"v":"meta.k8s.io/v2","rv":1,"start":"a"}`), plain("null"), plain("[]"),
		plain(`{"v":"meta.k8s.io/v1"}`), plain(`{"v":"meta.k8s.io/v1","rv":1}`), plain(`{"v":"meta.k8s.io/v1","rv":"1","start":"a"}`),
		continueToken(0, "a\x00"), continueToken(n, ""), continueToken(n, "../a\x00"), continueToken(n, "a/../../b\x00"), continueToken(n, "a//b\x00"), continueToken(n, "./a"),
		base64.StdEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":"a>>>???"}`)),
	} {
		query := "?limit=1&continue=" + url.QueryEscape(garbage)
		errs = append(errs,
			e.same(ctx, configMaps+query, status(400, "BadRequest", "…")),
			e.same(ctx, gadgets+query, status(400, "BadRequest", "…")))
	}
	return errors.Join(append(errs, e.same(ctx, configMaps+"?continue=abc", status(400, "BadRequest", "invalid continue token: continue key is not valid: …")))...)
}

// ForeignContinue: §3, a token that fits another list, or leads nowhere, means
// what its key says.
func ForeignContinue(ctx context.Context, e *Env) error {
	n, err := e.number(ctx, configMaps)
	if err != nil {
		return err
	}
	var errs []error
	for start, want := range map[string][]string{
		"cm-2\x00":  {"cm-3", "cm-4", "cm-5", "kube-root-ca.crt"},
		"/cm-2\x00": {"cm-3", "cm-4", "cm-5", "kube-root-ca.crt"},
		"cm-2":      {"cm-2", "cm-3", "cm-4", "cm-5", "kube-root-ca.crt"},
		"cm-25\x00": {"cm-3", "cm-4", "cm-5", "kube-root-ca.crt"},
		"zzz\x00":   {},
		"a/b\x00":   still,
	} {
		errs = append(errs, e.same(ctx, configMaps+"?continue="+continueToken(n, start), items(want...)))
	}
	return errors.Join(append(errs,
		e.same(ctx, "/api/v1/configmaps?labelSelector=color&continue="+continueToken(n, "conf/cm-2\x00"), items("conf/cm-3", "conf/cm-5")),
		e.same(ctx, "/api/v1/configmaps?labelSelector=color&continue="+continueToken(n, "conf-b/zzz\x00"), items("conf/cm-1", "conf/cm-2", "conf/cm-3", "conf/cm-5")),
		e.same(ctx, "/api/v1/configmaps?labelSelector=color&continue="+continueToken(n, "/conf/cm-2\x00"), items("conf/cm-3", "conf/cm-5")),
	)...)
}

// TokensOfEitherSide: §3, tokens have one form, and one endpoint's work at the
// other.
func TokensOfEitherSide(ctx context.Context, e *Env) error {
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
			errs = append(errs, e.same(ctx, configMaps+"?limit=2&continue="+url.QueryEscape(l.Metadata.Continue), items("cm-3", "cm-4"),
				has(`"resourceVersion":"`+l.Metadata.ResourceVersion+`"`)))
		}
	}
	return errors.Join(errs...)
}

// tooLarge is the answer to a read of a version that is not there after three
// seconds.
const tooLarge = "Timeout: Too large resource version: " + future + ", current: …"

// FutureList: §3, a list of a future version waits, and is 504 with a hint to
// try again.
func FutureList(ctx context.Context, e *Env) error {
	want := []option{mask(compare.CurrentRV), status(504, "Timeout", tooLarge), sends("Retry-After", "1"),
		has(`"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}`)}
	return together(
		func() error { return e.same(ctx, configMaps+"?resourceVersion="+future, want...) },
		func() error {
			return e.same(ctx, configMaps+"?resourceVersionMatch=NotOlderThan&limit=1&resourceVersion="+future, want...)
		},
		func() error { return e.same(ctx, gadgets+"?resourceVersion="+future, want...) },
	)
}

// FutureGet: §3, so does a get.
func FutureGet(ctx context.Context, e *Env) error {
	want := []option{mask(compare.CurrentRV), status(504, "Timeout", tooLarge), sends("Retry-After", "1")}
	return together(
		func() error { return e.same(ctx, configMaps+"/cm-1?resourceVersion="+future, want...) },
		func() error { return e.same(ctx, configMaps+"/no-such?resourceVersion="+future, want...) },
		func() error { return e.same(ctx, beacons+"/north?resourceVersion="+future, want...) },
	)
}

// FutureListUncached: §3, without a watch cache it is told at once, without a
// hint.
func FutureListUncached(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, core+"events?resourceVersion="+future, mask(compare.CurrentRV), status(504, "Timeout", tooLarge), sends("Retry-After"), hasNot("retryAfterSeconds")),
		e.same(ctx, core+"events/core?resourceVersion="+future, mask(compare.CurrentRV), status(504, "Timeout", tooLarge), sends("Retry-After")),
	)
}

// FutureInitialEvents: §3 and §2 WATCH, sendInitialEvents at a future version
// waits, and then is an ERROR within the stream.
func FutureInitialEvents(ctx context.Context, e *Env) error {
	want := []option{mask(compare.CurrentRV), events("ERROR 504"), has(`"message":"Timeout: Too large resource version: ` + future)}
	return together(
		func() error { return e.same(ctx, configMaps+"?watch=1&resourceVersion="+future+initialEvents, want...) },
		func() error {
			return e.same(ctx, gadgets+"?watch=1&allowWatchBookmarks=true&resourceVersion="+future+initialEvents, want...)
		},
	)
}

// FutureExact: §3, an exact list of a future version.
func FutureExact(ctx context.Context, e *Env) error {
	return together(
		func() error {
			return e.same(ctx, configMaps+"?"+exactly(future), mask(compare.CurrentRV), code(504))
		},
		func() error {
			return e.same(ctx, configMaps+"?limit=1&resourceVersion="+future, mask(compare.CurrentRV), code(504))
		},
		func() error {
			return e.same(ctx, configMaps+"?continue="+continueToken(999999999, "a\x00"), mask(compare.CurrentRV), code(504))
		},
	)
}
