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

var watchRules = rules("§2",
	WatchUnset, WatchUnsetAsList, WatchAny, WatchInitialEvents, WatchInitialEventsAny, WatchInitialEventsNotOlder,
	WatchInitialEventsHoweverOld, WatchFrom, WatchFromTheFuture, WatchNoInitialEvents, WatchNoInitialEventsFrom,
	WatchBookmarksOnlyIfAsked,
)

// A playground is a namespace with ConfigMaps a and b in it, which the rule
// may change.
type playground struct {
	path string // the collection
	rv   string // of its state; both endpoints have come to it
}

func (e *Env) playground(ctx context.Context) (playground, error) {
	space, err := e.scratch(ctx)
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

// mark makes the last object of a rule.
func (p playground) mark() step {
	return step{http.MethodPost, p.path, `{"metadata":{"name":"z-mark"}}`}
}

// marked waits for it.
func marked(all []compare.Frame) bool {
	f := all[len(all)-1]
	return f.Name == "z-mark" && f.Type == "ADDED"
}

// live opens a watch in the playground at both endpoints, makes some changes,
// and compares all events up to those changes.
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

// WatchUnset: §2 WATCH, RV unset: the current state, which includes every write
// acknowledged before, and then what happens.
func WatchUnset(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	if _, err := e.create(ctx, p.path, `{"metadata":{"name":"c"}}`); err != nil {
		return err
	}
	return e.live(ctx, p, "", []step{{http.MethodDelete, p.path + "/a", ""}},
		"ADDED a", "ADDED b", "ADDED c", "ADDED kube-root-ca.crt", "DELETED a")
}

// WatchUnsetAsList: §2 WATCH, RV unset is rewritten to a streaming list: with
// bookmarks, the end bookmark comes though it was not asked for.
func WatchUnsetAsList(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	return e.live(ctx, p, "allowWatchBookmarks=true&resourceVersion=", []step{{http.MethodPatch, p.path + "/a", `{"data":{"x":"y"}}`}},
		"ADDED a", "ADDED b", "ADDED kube-root-ca.crt", "BOOKMARK end", "MODIFIED a")
}

// WatchAny: §2 WATCH, RV 0: some state, and with bookmarks an end bookmark.
func WatchAny(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, configMaps+"?watch=1", events(added(still...)...)),
		e.endBookmark(ctx, configMaps+"?watch=1&allowWatchBookmarks=true&resourceVersion=0&timeoutSeconds=1", true),
		e.endBookmark(ctx, gadgets+"?watch=1&allowWatchBookmarks=true&resourceVersion=0&timeoutSeconds=1", true),
	)
}

const initialEvents = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

// WatchInitialEvents: §2 WATCH, sendInitialEvents with RV unset: it waits until
// the state is that of the store, and a bookmark ends it.
func WatchInitialEvents(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	rv, err := e.create(ctx, p.path, `{"metadata":{"name":"c"}}`)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&allowWatchBookmarks=true"+initialEvents)
	if err != nil {
		return err
	}
	defer w.Close()
	frames, err := w.Until(ctx, count(5))
	if err != nil {
		return err
	}
	if err := sequence(frames, "ADDED a", "ADDED b", "ADDED c", "ADDED kube-root-ca.crt", "BOOKMARK end"); err != nil {
		return err
	}
	if at, err := strconv.ParseUint(frames[4].RV, 10, 64); err != nil || at < rv {
		return fmt.Errorf("the end bookmark is at %s, not at %d or later: %w", frames[4].RV, rv, err)
	}
	if _, err := e.steps(ctx, p.mark()); err != nil {
		return err
	}
	_, err = w.Until(ctx, marked)
	return err
}

// WatchInitialEventsAny: §2 WATCH, sendInitialEvents with RV 0: some state.
func WatchInitialEventsAny(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, configMaps+"?watch=1"+initialEvents, events(added(still...)...)),
		e.endBookmark(ctx, configMaps+"?watch=1&allowWatchBookmarks=true&resourceVersion=0&timeoutSeconds=1"+initialEvents, true),
		e.endBookmark(ctx, beacons+"?watch=1&allowWatchBookmarks=true&resourceVersion=0&timeoutSeconds=1"+initialEvents, true),
	)
}

// WatchInitialEventsNotOlder: §2 WATCH, sendInitialEvents at N: a state not
// older than N.
func WatchInitialEventsNotOlder(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		e.endBookmark(ctx, p.path+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion="+p.rv+initialEvents, true),
		e.live(ctx, p, "allowWatchBookmarks=true&resourceVersion="+p.rv+initialEvents, nil, "ADDED a", "ADDED b", "ADDED kube-root-ca.crt", "BOOKMARK end"),
	)
}

// WatchInitialEventsHoweverOld: §2 WATCH, with sendInitialEvents no RV is too
// old.
func WatchInitialEventsHoweverOld(ctx context.Context, e *Env) error {
	old := strconv.FormatUint(e.old, 10)
	if _, err := e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, gadgets+"?watch=1&timeoutSeconds=1&resourceVersion=1"+initialEvents, events("ADDED g-1", "ADDED g-2")),
		e.endBookmark(ctx, gadgets+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion="+old+initialEvents, true),
	)
}

// WatchFrom: §2 WATCH, from N: the events above N, and nothing else.
func WatchFrom(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	changes := []step{
		{http.MethodPost, p.path, `{"metadata":{"name":"c"}}`},
		{http.MethodPatch, p.path + "/a", `{"data":{"x":"1"}}`},
		{http.MethodPatch, p.path + "/a", `{"data":{"x":"2"}}`},
		{http.MethodDelete, p.path + "/b", ""},
	}
	want := []string{"ADDED c", "MODIFIED a", "MODIFIED a", "DELETED b"}
	if err := e.live(ctx, p, "resourceVersion="+p.rv, changes, want...); err != nil {
		return err
	}
	// And once more, of the past.
	again, err := e.watch(ctx, p.path+"?watch=1&resourceVersion="+p.rv)
	if err != nil {
		return err
	}
	defer again.Close()
	frames, err := again.Until(ctx, marked)
	if err != nil {
		return err
	}
	if err := sequence(frames, append(want, "ADDED z-mark")...); err != nil {
		return err
	}
	var errs []error
	for i, f := range frames[:4] {
		rest, err := e.watch(ctx, p.path+"?watch=1&resourceVersion="+f.RV)
		if err != nil {
			return err
		}
		_, err = rest.Until(ctx, count(len(frames)-i-1))
		rest.Close()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// WatchFromTheFuture: §2 WATCH, from an N that is yet to come: it opens, and is
// silent.
func WatchFromTheFuture(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&timeoutSeconds=2&resourceVersion="+future)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.steps(ctx, p.mark()); err != nil {
		return err
	}
	frames, err := w.Until(ctx, nil)
	if err != nil {
		return err
	}
	return sequence(frames)
}

// WatchNoInitialEvents: §2 WATCH, sendInitialEvents=false with RV unset or 0:
// only what happens from now on.
func WatchNoInitialEvents(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	const none = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
	change := []step{{http.MethodPatch, p.path + "/a", `{"data":{"x":"1"}}`}}
	if err := e.live(ctx, p, none, change, "MODIFIED a"); err != nil {
		return err
	}
	if err := e.remove(ctx, p.path+"/z-mark"); err != nil {
		return err
	}
	rv, err := e.patch(ctx, p.path+"/a", `{"data":{"x":"2"}}`)
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, p.path, rv); err != nil {
		return err
	}
	return e.live(ctx, p, none+"&resourceVersion=0", []step{{http.MethodPatch, p.path + "/a", `{"data":{"x":"3"}}`}}, "MODIFIED a")
}

// WatchNoInitialEventsFrom: §2 WATCH, sendInitialEvents=false at N: as without
// it.
func WatchNoInitialEventsFrom(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	return e.live(ctx, p, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion="+p.rv,
		[]step{{http.MethodDelete, p.path + "/a", ""}}, "DELETED a")
}

// WatchBookmarksOnlyIfAsked: §2 WATCH, without allowWatchBookmarks there is no
// end bookmark either.
func WatchBookmarksOnlyIfAsked(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, beacons+"?watch=1"+initialEvents, events("ADDED north", "ADDED south"), hasNot("BOOKMARK")),
		e.replay(ctx, beacons+"?watch=1&resourceVersion=1"+initialEvents, events("ADDED north", "ADDED south"), hasNot("BOOKMARK")),
		e.replay(ctx, beacons+"?watch=1&allowWatchBookmarks=false", events("ADDED north", "ADDED south"), hasNot("BOOKMARK")),
	)
}
