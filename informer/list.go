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

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

const (
	pageSize = "500"   // of LIST, as client-go's pager
	maxPage  = 1 << 30 // bytes of a LIST answer that are read at the most
)

// list brings the sink the whole collection, and goes on watching. It returns
// when the watch ends.
func (r *Reflector) list(ctx context.Context, reason string) error {
	r.setPhase(Listing)
	// One item tells the kind and form of the collection's lists, which a
	// stream of nothing would not.
	page, err := r.page(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	page.Items, page.Continue = nil, ""
	if k := r.kind; k != nil && (k.Kind != page.Kind || k.ItemKind != page.ItemKind || k.Typed != page.Typed) {
		return &RefusedError{http.StatusNotFound, fmt.Sprintf("%s has become %s", k.Kind, page.Kind)}
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
	r.replace(list, reason)
	return r.watch(ctx)
}

func (r *Reflector) replace(list *kube.List, reason string) {
	r.countRelist(reason)
	r.columns = list.Columns
	head := r.opts.Sink.Head()
	if !r.opts.Sink.Replace(list) {
		r.log.Info("synced", "rv", list.RV, "objects", len(list.Items))
	} else {
		r.log.Info("synced again, the difference continues the history", "from", head, "rv", list.RV, "objects", len(list.Items))
	}
	r.afterDelete, r.suspect, r.malformed, r.badStreams = false, false, 0, 0
	r.setPhase(Watching)
}

// streamList is a WatchList (KEP-3157): a consistent list as a stream of ADDED
// events up to an end bookmark, and the watch behind it.
func (r *Reflector) streamList(ctx context.Context, reason string) error {
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
	for {
		late := time.AfterFunc(r.opts.EndBookmarkTimeout, s.close)
		f, err := s.next()
		if !late.Stop() {
			r.noWatchList = true
			return fmt.Errorf("%w: nothing for %v before the end bookmark", errNoWatchList, r.opts.EndBookmarkTimeout)
		}
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case f.InitialEventsEnd():
			list.RV, list.Columns = f.Object.RV, s.columns
			r.replace(&list, reason)
			r.opts.Sink.Bookmark(f)
			r.opts.Sink.Flush()
			return r.follow(s)
		case f.Type != kube.Added: // it was an ordinary watch
			r.noWatchList = true
			return fmt.Errorf("%w: %s before the end bookmark", errNoWatchList, f.Type)
		}
		if f, err = f.Detached(s.columns); err != nil {
			return err
		}
		list.Items = append(list.Items, f.Object)
	}
}

// pagedList is a consistent LIST, by pages.
func (r *Reflector) pagedList(ctx context.Context) (*kube.List, error) {
	list, err := r.itemsPage(ctx, url.Values{"limit": {pageSize}})
	if err != nil {
		return nil, err
	}
	for next := list.Continue; next != ""; {
		page, err := r.itemsPage(ctx, url.Values{"limit": {pageSize}, "continue": {next}})
		if errors.Is(err, errExpired) {
			return r.itemsPage(ctx, url.Values{}) // too slow for pages
		}
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, page.Items...)
		next = page.Continue
	}
	list.Continue = ""
	return list, nil
}

// itemsPage is a LIST request for items, printed if that was asked for.
func (r *Reflector) itemsPage(ctx context.Context, query url.Values) (*kube.List, error) {
	list, err := r.request(ctx, query, r.accept(query))
	if err != nil {
		return nil, err
	}
	// A Table does not tell whose it is.
	list.Kind, list.APIVersion, list.ItemKind, list.Typed = r.kind.Kind, r.kind.APIVersion, r.kind.ItemKind, r.kind.Typed
	return list, nil
}

// page is a LIST request for what a list tells of its collection.
func (r *Reflector) page(ctx context.Context, query url.Values) (*kube.List, error) {
	return r.request(ctx, query, acceptJSON)
}

func (r *Reflector) request(ctx context.Context, query url.Values, accept string) (*kube.List, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	resp, err := r.get(ctx, query, accept)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	r.contact(len(body))
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	list, err := kube.ScanList(string(body), r.opts.Kind)
	if errors.Is(err, kube.ErrNotObject) {
		return nil, &RefusedError{http.StatusNotImplemented, err.Error()}
	}
	return list, err
}
