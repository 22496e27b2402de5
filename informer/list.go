// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	pageSize = "500"   // of LIST, as client-go's pager
	maxPage  = 1 << 30 // bytes of a LIST answer that are read at the most
)

// list brings the sink the whole collection, and goes on watching. It returns
// when the watch ends.
func (r *reflector[O]) list(ctx context.Context, reason string) error {
	r.setPhase(Listing)
	// One item tells the kind and form of the collection's lists, which a
	// stream of nothing would not.
	page, err := r.page(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	page.Items, page.Continue = nil, ""
	r.anew = reason == "diverged" || reason == "schema" || page.RV < r.sink.Head()
	if err := r.same(page); err != nil {
		return err
	}
	r.kind = page
	// A streaming list that fails again and again is given a rest.
	if !r.noWatchList && r.badStreams < 2 {
		r.badStreams++ // until it is known to be good
		return r.streamList(ctx, reason)
	}
	list, err := r.pagedList(ctx)
	if err != nil {
		return err
	}
	r.listed(list, reason)
	return r.watch(ctx)
}

// same fails if the page is of another collection than that known.
func (r *reflector[O]) same(page *scan.List) error {
	if k := r.kind; k != nil && (k.Kind != page.Kind || k.ItemKind != page.ItemKind || k.Typed != page.Typed) {
		return &RefusedError{http.StatusNotFound, fmt.Sprintf("%s has become %s", k.Kind, page.Kind)}
	}
	return nil
}

// begin begins a list of the sink's.
func (r *reflector[O]) begin() {
	r.items, r.listing = 0, time.Now()
	r.sink.Begin(r.anew)
}

func (r *reflector[O]) item(o O) {
	r.items++
	r.sink.Item(o)
}

// listed ends a list of the sink's.
func (r *reflector[O]) listed(list *scan.List, reason string) {
	r.countRelist(reason)
	r.columns = list.Columns
	head := r.sink.Head()
	if !r.sink.End(list) {
		r.log.Info("synced", "rv", list.RV, "objects", r.items)
	} else {
		r.log.Info("synced again, the difference continues the history", "from", head, "rv", list.RV, "objects", r.items)
	}
	r.opts.metrics.Listed(reason, r.items, time.Since(r.listing))
	r.afterDelete, r.suspect, r.doubt, r.malformed, r.badStreams = false, false, nil, 0, 0
	r.setPhase(Watching)
}

// streamList is a WatchList (KEP-3157): a consistent list as a stream of ADDED
// events up to an end bookmark, and the watch behind it.
func (r *reflector[O]) streamList(ctx context.Context, reason string) error {
	s, err := r.open(ctx, url.Values{
		"sendInitialEvents":    {"true"},
		"resourceVersionMatch": {"NotOlderThan"},
	})
	if err != nil {
		if bad, ok := errors.AsType[*statusError](err); ok && bad.code/100 == 4 && bad.code != 429 && bad.code != 410 {
			r.noWatchList = true
			return fmt.Errorf("%w: %w", errNoWatchList, err)
		}
		return err
	}
	defer s.close()
	list := *r.kind
	r.begin()
	late := time.AfterFunc(r.opts.EndBookmarkTimeout, s.close)
	defer late.Stop()
	for {
		f, err := s.next()
		if !late.Reset(r.opts.EndBookmarkTimeout) {
			r.noWatchList = true
			return fmt.Errorf("%w: nothing for %v before the end bookmark", errNoWatchList, r.opts.EndBookmarkTimeout)
		}
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case f.end:
			late.Stop()
			list.RV, list.Columns = f.rv, f.columns
			r.listed(&list, reason)
			r.sink.Bookmark(f.rv, f.object)
			r.sink.Flush()
			return r.follow(ctx, s)
		case f.typ != kube.Added: // it was an ordinary watch
			r.noWatchList = true
			return fmt.Errorf("%w: %s before the end bookmark", errNoWatchList, f.typ)
		}
		r.item(f.object)
		if !s.frames.waiting() {
			r.sink.Flush()
		}
	}
}

// pagedList is a consistent LIST, by pages. It returns the head of the first.
func (r *reflector[O]) pagedList(ctx context.Context) (*scan.List, error) {
	r.begin()
	list, err := r.itemsPage(ctx, url.Values{"limit": {pageSize}})
	if err != nil {
		return nil, err
	}
	for next := list.Continue; next != ""; {
		page, err := r.itemsPage(ctx, url.Values{"limit": {pageSize}, "continue": {next}})
		if errors.Is(err, errExpired) { // too slow for pages
			r.begin()
			return r.itemsPage(ctx, url.Values{})
		}
		if err != nil {
			return nil, err
		}
		next = page.Continue
	}
	list.Continue = ""
	return list, nil
}

// itemsPage is a LIST request for items, printed if that was asked for, which
// the sink gets as they are read.
func (r *reflector[O]) itemsPage(ctx context.Context, query url.Values) (list *scan.List, err error) {
	err = r.request(ctx, query, r.form.accept(query), func(body io.Reader) error {
		list, err = r.form.list(body, r.kind, r.item)
		return err
	})
	if err != nil {
		return nil, err
	}
	// A Table does not tell whose it is.
	list.Kind, list.APIVersion, list.ItemKind, list.Typed = r.kind.Kind, r.kind.APIVersion, r.kind.ItemKind, r.kind.Typed
	return list, nil
}

// page is a LIST request for what a list tells of its collection.
func (r *reflector[O]) page(ctx context.Context, query url.Values) (list *scan.List, err error) {
	err = r.request(ctx, query, acceptJSON, func(body io.Reader) error {
		list, err = scanPage(body, r.opts.Kind)
		return err
	})
	return list, err
}

func (r *reflector[O]) request(ctx context.Context, query url.Values, accept string, read func(io.Reader) error) error {
	return r.requestOf(ctx, r.collection(query), accept, read)
}

func (r *reflector[O]) requestOf(ctx context.Context, u *url.URL, accept string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	resp, err := r.get(ctx, r.transport, u, accept)
	if err != nil {
		return err
	}
	r.refusedSince = time.Time{}
	defer resp.Body.Close()
	err = read(counted{resp.Body, r.contact})
	if errors.Is(err, scan.ErrNotObject) {
		return &RefusedError{http.StatusNotImplemented, err.Error()}
	}
	return err
}

// scanPage reads a list as a whole.
func scanPage(body io.Reader, itemKind string) (*scan.List, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	return scan.ParseList(string(text), itemKind)
}
