// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

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
	pageSize       = "500"           // objects per page of a LIST, as client-go's pager
	maxPage        = 1 << 30         // bytes of a LIST response
	requestTimeout = 2 * time.Minute // of a LIST or GET, with its body
)

// list delivers the whole collection to the sink and then follows the watch
// until that ends.
func (r *Reflector[O]) list(ctx context.Context) error {
	r.setPhase(Listing)
	// A page of one object has the kind and form of the collection's lists. A
	// streaming list of an empty collection has neither.
	head := r.sink.Head() // before the request: it may move
	page, err := r.page(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	page.Items, page.Continue = nil, ""
	if err := r.sameCollection(page); err != nil {
		return err
	}
	if page.RV < head && r.reason != relistDiverged {
		r.reason = relistDiverged
		r.setContinuity(Diverged)
	}
	// The definition of a custom resource may have changed while there was no watch, or
	// since an earlier run.
	maybeChanged := !page.Typed && (r.reason == relistExpired || r.reason == relistUnwatched || r.reason == relistInitial && head > 0)
	r.overwrite = r.reason == relistDiverged || r.reason == relistSchema || maybeChanged
	r.collection = page
	alone := r.reason == relistUnwatched || r.unwatched.total >= maxListWait
	// After two failures in a row one paged list is taken instead, unless the upstream
	// only asked to wait.
	if !alone && !r.noStreamingList && r.failedLists < 2 {
		before := r.failedLists
		r.failedLists++ // reset by listed
		err := r.streamList(ctx)
		if _, wait := errors.AsType[retryAfterError](err); wait {
			r.failedLists = before
		}
		return err
	}
	// The watch is opened before the list is taken: one that is opened afterwards may have
	// another history, if etcd is restored meanwhile, and has to prove its own.
	s, err := r.open(ctx, url.Values{"resourceVersion": {kube.FormatRV(page.RV)}})
	switch {
	case err == nil:
		defer s.close()
	case errors.Is(err, errUnanswered), alone && isOutage(err):
	default:
		return err
	}
	r.overlap = nil
	if s != nil {
		r.overlap = newOverlap(page.RV)
	}
	list, err := r.pagedList(ctx)
	if err != nil {
		return err
	}
	if s != nil && list.RV < page.RV {
		// As after a restore of etcd in between. The watch lacks the events up to its start.
		s.close()
		s = nil
	}
	if s == nil {
		r.listed(list, Retrying)
		r.doubt()
		return r.watch(ctx)
	}
	r.listed(list, Watching)
	r.sink.Flush() // shows the sink that there is a watch
	s.overlap = r.overlap
	s.overlap.to, s.overlap.ended = list.RV, time.Now()
	return r.follow(ctx, s)
}

// sameCollection fails if page is of another collection than the last one, as
// after a CustomResourceDefinition was replaced.
func (r *Reflector[O]) sameCollection(page *scan.List) error {
	if k := r.collection; k != nil && (k.Kind != page.Kind || k.ItemKind != page.ItemKind || k.Typed != page.Typed) {
		return &RefusedError{Code: http.StatusNotFound, Message: fmt.Sprintf("%s has become %s", k.Kind, page.Kind)}
	}
	return nil
}

func (r *Reflector[O]) beginList() {
	r.items, r.listBegan = 0, time.Now()
	r.recent = recent{}
	if r.overlap != nil {
		clear(r.overlap.missing)
	}
	r.sink.Begin(r.overwrite)
}

// item delivers an object of the list to the sink.
func (r *Reflector[O]) item(o O) error {
	r.items++
	if err := r.sink.Item(o); err != nil {
		return fmt.Errorf("%w: %w", errDiverged, err)
	}
	rv := r.encoding.rv(o)
	if r.recent.isNewest(rv) {
		r.recent.item(r.encoding.known(o, false))
	}
	if r.overlap != nil && rv > r.overlap.from {
		r.overlap.missing[versionID{r.encoding.known(o, false).Key, rv}] = true
	}
	return nil
}

// listed completes the sink's list. The phase says whether there is a watch that goes on from it.
func (r *Reflector[O]) listed(list *scan.List, next Phase) {
	r.countRelist(r.reason)
	r.columns = list.Columns
	r.recent.end(list.RV)
	head := r.sink.Head()
	if !r.sink.End(list) {
		r.log.Info("synced", "rv", list.RV, "objects", r.items)
	} else {
		r.log.Info("synced again after a relist", "from", head, "rv", list.RV, "objects", r.items)
	}
	r.opts.Listed(r.reason, r.items, time.Since(r.listBegan))
	r.unwatched.listed()
	r.state = stateWatch
	r.afterList, r.afterDelete, r.malformed, r.failedLists = true, false, 0, 0
	r.setPhase(next)
	r.known()
	r.setContinuity(Watched)
}

// streamList takes a streaming list (KEP-3157), which is a consistent list as
// ADDED events up to a bookmark, and follows the watch that continues it.
func (r *Reflector[O]) streamList(ctx context.Context) error {
	s, err := r.open(ctx, url.Values{
		"sendInitialEvents":    {"true"},
		"resourceVersionMatch": {"NotOlderThan"},
	})
	if err != nil {
		if bad, ok := errors.AsType[*StatusError](err); ok && bad.Code/100 == 4 && bad.Code != 429 && bad.Code != 410 {
			r.noStreamingList = true
			return fmt.Errorf("%w: %w", errNoStreamingList, err)
		}
		return err
	}
	defer s.close()
	list := *r.collection
	r.overlap = nil
	r.beginList()
	timeout := time.AfterFunc(r.opts.EndBookmarkTimeout, s.close)
	defer timeout.Stop()
	for {
		f, err := s.next()
		if !timeout.Reset(r.opts.EndBookmarkTimeout) {
			r.noStreamingList = true
			return fmt.Errorf("%w: no frame for %v before the end bookmark", errNoStreamingList, r.opts.EndBookmarkTimeout)
		}
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case f.columns == "" && r.encoding.asksTables(): // Kubernetes 1.32 has none in such a list, but in LIST and WATCH
			r.noStreamingList = true
			return fmt.Errorf("%w: it has no Tables", errNoStreamingList)
		case f.end:
			timeout.Stop()
			list.RV, list.Columns = f.rv, f.columns
			r.listed(&list, Watching)
			r.sink.Bookmark(f.rv, f.object)
			r.sink.Flush()
			return r.follow(ctx, s)
		case f.typ != kube.Added: // the upstream ignored sendInitialEvents
			r.noStreamingList = true
			return fmt.Errorf("%w: %s before the end bookmark", errNoStreamingList, f.typ)
		}
		if err := r.item(f.object); err != nil {
			return err
		}
		if !s.frames.waiting() {
			r.sink.Flush()
		}
	}
}

// pagedList takes a consistent LIST in pages and returns the metadata of the
// first page.
func (r *Reflector[O]) pagedList(ctx context.Context) (*scan.List, error) {
	r.beginList()
	list, err := r.itemsPage(ctx, url.Values{"limit": {pageSize}})
	if err != nil {
		return nil, err
	}
	for next := list.Continue; next != ""; {
		page, err := r.itemsPage(ctx, url.Values{"limit": {pageSize}, "continue": {next}})
		if errors.Is(err, errExpired) {
			// The pages took longer than a continue token lasts: take the
			// collection in one response.
			r.beginList()
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

// itemsPage requests a page in the reflector's encoding, delivers its objects
// to the sink as they are read and returns the page's metadata.
func (r *Reflector[O]) itemsPage(ctx context.Context, query url.Values) (list *scan.List, err error) {
	accept := r.encoding.accept(query) // completes the query
	err = r.request(ctx, r.requestURL(query), accept, func(body io.Reader) error {
		list, err = r.encoding.list(body, r.collection, r.item)
		return err
	})
	if err != nil {
		return nil, err
	}
	// A Table does not name the kind of its objects.
	c := r.collection
	list.Kind, list.APIVersion, list.ItemKind, list.Typed = c.Kind, c.APIVersion, c.ItemKind, c.Typed
	return list, nil
}

// page requests a page in plain JSON.
func (r *Reflector[O]) page(ctx context.Context, query url.Values) (list *scan.List, err error) {
	err = r.request(ctx, r.requestURL(query), acceptJSON, func(body io.Reader) error {
		list, err = readPage(body, r.opts.Kind)
		return err
	})
	return list, err
}

// request gets u and calls read with the body.
func (r *Reflector[O]) request(ctx context.Context, u *url.URL, accept string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := r.get(ctx, r.transport, u, accept)
	if err != nil {
		r.unwatched.lists(err)
		return err
	}
	defer resp.Body.Close()
	err = read(countingReader{resp.Body, r.contact})
	r.unwatched.lists(err)
	if !errors.Is(err, scan.ErrNotList) {
		r.refusedSince = time.Time{}
	}
	if errors.Is(err, scan.ErrNotObject) {
		return &RefusedError{Code: http.StatusNotImplemented, Message: err.Error(), notList: errors.Is(err, scan.ErrNotList)}
	}
	return err
}

// readPage reads and parses a list as a whole.
func readPage(body io.Reader, itemKind string) (*scan.List, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	return scan.ParseList(string(text), itemKind)
}
