// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

func watchFrom(ctx context.Context, e *Env) error {
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
	// The same events again, now all in the past.
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

func timeoutSecondsIsExact(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, beacons, 0)
	if err != nil {
		return err
	}
	var waits []func() error
	for _, seconds := range []int{1, 3, 6} {
		waits = append(waits, func() error {
			start := time.Now()
			w, err := e.watch(ctx, fmt.Sprintf("%s?watch=1&timeoutSeconds=%d&resourceVersion=%s", beacons, seconds, rv))
			if err != nil {
				return err
			}
			defer w.Close()
			for _, s := range []*compare.Stream{w.Want, w.Got} {
				_, err := s.Until(ctx, nil)
				if took := time.Since(start); err != nil || took < time.Duration(seconds)*time.Second {
					return &compare.Difference{Request: beacons, What: "end of a watch", Want: fmt.Sprint(seconds, " s"), Got: fmt.Sprint(took, err)}
				}
			}
			return nil
		})
	}
	return together(len(waits), waits...)
}

// kubectlGetWatch watches from the RV of the gateway's list, as kubectl does.
func kubectlGetWatch(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	if err := e.same(ctx, p.path+"?limit=500", accept(kubectlAccept), retried, mask(compare.ListRV), kind("Table")); err != nil {
		return err
	}
	got, rv, err := version(ctx, e.Got, p.path+"?limit=500")
	if err != nil {
		return err
	}
	e.count(got)
	w, err := e.watch(ctx, fmt.Sprintf("%s?resourceVersion=%d&watch=true", p.path, rv), accept(kubectlAccept), mask(printed))
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.steps(ctx,
		step{http.MethodPatch, p.path + "/a", `{"data":{"by":"kubectl"}}`},
		step{http.MethodDelete, p.path + "/b", ""},
		step{http.MethodPost, p.path, `{"metadata":{"name":"b"}}`}); err != nil {
		return err
	}
	frames, err := w.Until(ctx, count(3))
	if err != nil {
		return err
	}
	return sequence(frames, "MODIFIED a", "DELETED b", "ADDED b")
}

func endBookmarkOnce(ctx context.Context, e *Env) error {
	return e.inTime(ctx, func(e *Env, p playground) error {
		return e.toTheEnd(ctx, p, "allowWatchBookmarks=1&timeoutSeconds=8&resourceVersion=0",
			"ADDED a", "ADDED b", "ADDED kube-root-ca.crt", "BOOKMARK end", "MODIFIED a", "BOOKMARK")
	})
}

func bookmarkBeforeTheEnd(ctx context.Context, e *Env) error {
	return e.inTime(ctx, func(e *Env, p playground) error {
		return e.toTheEnd(ctx, p, "allowWatchBookmarks=true&timeoutSeconds=8&resourceVersion="+p.rv, "MODIFIED a", "BOOKMARK")
	})
}

// inTime runs a check up to three times, each in a new playground: if a server is slow,
// a watch with timeoutSeconds ends before its last bookmark, or the bookmark comes
// before the change.
func (e *Env) inTime(ctx context.Context, check func(*Env, playground) error) error {
	for try := 1; ; try++ {
		own := *e
		own.rule += fmt.Sprint("-", try) // for separate namespaces
		p, err := own.playground(ctx)
		if err != nil {
			return err
		}
		if err = check(&own, p); err == nil || try == 3 {
			return err
		}
	}
}

// toTheEnd opens a watch, changes a, and compares all events to the end of the
// watch. The server's clock determines whether the last bookmark comes once or
// twice.
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

// once removes bookmarks that follow another one.
func once(all []compare.Frame) []compare.Frame {
	var out []compare.Frame
	for i, f := range all {
		if i == 0 || f.Type != "BOOKMARK" || f.EndsInitial() || all[i-1].Type != "BOOKMARK" {
			out = append(out, f)
		}
	}
	return out
}

func bookmarkEveryMinute(ctx context.Context, e *Env) error {
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

func bookmarkAcrossEndpoints(ctx context.Context, e *Env) error {
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
