// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var bookmarkRules = rules("§4",
	BookmarkForm, EndBookmarkOnce, BookmarkBeforeTheEnd, BookmarkEveryMinute, NoBookmarksUnasked,
	BookmarkAcrossEndpoints, ErrorsAreBareStatuses,
)

// BookmarkForm: §4, a bookmark has kind, apiVersion and an RV, and of what is
// required the zero value; the one that ends the initial events an annotation.
func BookmarkForm(ctx context.Context, e *Env) error {
	var errs []error
	for path, form := range map[string]string{
		pods:              `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"RV","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}`,
		configMaps:        `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"RV","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
		gadgets:           `{"type":"BOOKMARK","object":{"apiVersion":"conformance.example.com/v1","kind":"Gadget","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"RV"}}}`,
		"/api/v1/nodes":   "",
		core + "services": "",
		"/apis/apps/v1/namespaces/conf/deployments": "",
		"/apis/batch/v1/namespaces/conf/jobs":       "",
	} {
		if _, err := e.at(ctx, path, 0); err != nil {
			return err
		}
		errs = append(errs, e.same(ctx, path+"?watch=1&allowWatchBookmarks=1&resourceVersion=0&timeoutSeconds=1&fieldSelector=metadata.name=none", mask(noBookmarks),
			check(func(a *compare.Answer) error {
				if got := string(noBookmarks(a.Body)); form != "" && got != form+"\n" {
					return fmt.Errorf("the bookmark is %s, not %s", got, form)
				}
				return nil
			})))
	}
	return errors.Join(errs...)
}

// EndBookmarkOnce: §4, the end bookmark is the first one of the stream, and
// comes once.
func EndBookmarkOnce(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	return e.toTheEnd(ctx, p, "allowWatchBookmarks=1&timeoutSeconds=8&resourceVersion=0",
		"ADDED a", "ADDED b", "ADDED kube-root-ca.crt", "BOOKMARK end", "MODIFIED a", "BOOKMARK")
}

// BookmarkBeforeTheEnd: §4 and §6, one comes two seconds before the watch
// ends, if there is something to tell.
func BookmarkBeforeTheEnd(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	return e.toTheEnd(ctx, p, "allowWatchBookmarks=true&timeoutSeconds=8&resourceVersion="+p.rv, "MODIFIED a", "BOOKMARK")
}

// toTheEnd opens a watch, changes a, and compares all events to the end of the
// watch. Whether the last bookmark comes once or twice depends on how the
// server's clock ticks.
func (e *Env) toTheEnd(ctx context.Context, p playground, query string, want ...string) error {
	w, err := e.watch(ctx, p.path+"?watch=1&"+query, withBookmarks)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.patch(ctx, p.path+"/a", `{"data":{"x":"y"}}`); err != nil {
		return err
	}
	wants, err := w.Want.Until(ctx, nil)
	if err != nil {
		return err
	}
	gots, err := w.Got.Until(ctx, nil)
	if err != nil {
		return &compare.Difference{Request: query, What: "end of the watch", Want: "clean", Got: err.Error()}
	}
	wants, gots = once(wants), once(gots)
	if err := sequence(wants, want...); err != nil {
		return err
	}
	return compare.DiffFrames(p.path+"?"+query, wants, gots)
}

// once takes out bookmarks that repeat the one before.
func once(all []compare.Frame) []compare.Frame {
	var out []compare.Frame
	for i, f := range all {
		if i == 0 || f.Type != "BOOKMARK" || all[i-1].Type != "BOOKMARK" || all[i-1].EndsInitial() {
			out = append(out, f)
		}
	}
	return out
}

// BookmarkEveryMinute: §4 and §6, one comes after a minute.
func BookmarkEveryMinute(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	var pairs []*compare.Pair
	for _, query := range []string{"resourceVersion=" + p.rv, "resourceVersion=0&fieldSelector=metadata.name=b"} {
		w, err := e.watch(ctx, p.path+"?watch=1&allowWatchBookmarks=true&"+query, withBookmarks)
		if err != nil {
			return err
		}
		defer w.Close()
		pairs = append(pairs, w)
	}
	if _, err := e.patch(ctx, p.path+"/a", `{"data":{"x":"y"}}`); err != nil {
		return err
	}
	for i, want := range [][]string{{"MODIFIED a", "BOOKMARK"}, {"ADDED b", "BOOKMARK end", "BOOKMARK"}} {
		frames, err := pairs[i].Until(ctx, count(len(want)))
		if err != nil {
			return err
		}
		if err := sequence(frames, want...); err != nil {
			return err
		}
	}
	return nil
}

// NoBookmarksUnasked: §4, none without allowWatchBookmarks.
func NoBookmarksUnasked(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&timeoutSeconds=3&resourceVersion="+p.rv, withBookmarks)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.patch(ctx, p.path+"/a", `{"data":{"x":"y"}}`); err != nil {
		return err
	}
	frames, err := w.Until(ctx, nil)
	if err != nil {
		return err
	}
	return sequence(frames, "MODIFIED a")
}

// BookmarkAcrossEndpoints: §4, a bookmark claims that every matching event up
// to it was delivered: a client may go on from it, at either endpoint.
func BookmarkAcrossEndpoints(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&allowWatchBookmarks=true"+initialEvents)
	if err != nil {
		return err
	}
	defer w.Close()
	enough := func(all []compare.Frame) bool { return all[len(all)-1].EndsInitial() }
	var ends []string
	for _, s := range []*compare.Stream{w.Want, w.Got} {
		frames, err := s.Until(ctx, enough)
		if err != nil {
			return err
		}
		ends = append(ends, frames[len(frames)-1].RV)
	}
	if _, err := e.steps(ctx, step{http.MethodPatch, p.path + "/a", `{"data":{"x":"y"}}`}, p.mark()); err != nil {
		return err
	}
	for _, rv := range ends {
		if _, err := e.selected(ctx, p.path, "resourceVersion="+rv, nil, "MODIFIED a", "ADDED z-mark"); err != nil {
			return err
		}
	}
	return nil
}

// ErrorsAreBareStatuses: §4, an ERROR has a v1 Status in it, whatever view the
// client asked for.
func ErrorsAreBareStatuses(ctx context.Context, e *Env) error {
	path := fmt.Sprintf("%s?watch=1&resourceVersion=%d", gadgets, e.old)
	builtin := fmt.Sprintf("%sevents?watch=1&resourceVersion=%d", core, e.old)
	var errs []error
	for _, media := range []string{compare.JSON, tableV1, tableV1beta1, metadata} {
		errs = append(errs,
			e.same(ctx, path, accept(media), events("ERROR 410"), has(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1"`)),
			e.same(ctx, builtin, accept(media), events("ERROR 410")))
	}
	return errors.Join(append(errs,
		e.same(ctx, builtin, accept(compare.Protobuf), contentType(compare.ProtobufWatch), events("ERROR 410")),
		e.same(ctx, path, accept(metadataProtobuf), contentType(compare.ProtobufWatch), events("ERROR 410")),
	)...)
}
