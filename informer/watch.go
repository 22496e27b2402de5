// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// overtime is how long past its timeoutSeconds a watch is waited for: a
	// connection that is dead and does not show it ends so at the latest.
	overtime = 10 * time.Second
)

// watch opens a watch at the sink's head and follows it.
func (r *reflector[O]) watch(ctx context.Context) error {
	rv := r.sink.Head()
	if r.suspect || r.doubt != nil {
		// An etcd restored from a backup goes on at lower RVs, and a watch
		// from a future one is silent until they come by. A consistent list
		// tells.
		page, err := r.page(ctx, url.Values{"limit": {"1"}})
		if err != nil {
			return err
		}
		if err := r.same(page); err != nil {
			return err
		}
		if page.RV < rv {
			return fmt.Errorf("%w: the upstream is at %d, %d is known", errDiverged, page.RV, rv)
		}
		if r.doubt != nil && len(r.doubt.tail) > 0 {
			err := r.watchTail(ctx)
			if r.doubt == nil || !errors.Is(err, errExpired) {
				return err
			}
			r.doubt.tail = nil // it is not to be had any more
		}
		if r.doubt != nil {
			if err := r.compare(ctx, page); err != nil {
				return err
			}
		}
	}
	s, err := r.open(ctx, url.Values{"resourceVersion": {kube.FormatRV(r.resumeAt())}})
	if err != nil {
		return err
	}
	defer s.close()
	r.setPhase(Watching)
	r.sink.Flush() // the news that there is a watch
	return r.follow(ctx, s)
}

// resumeAt is the RV that a watch goes on from.
func (r *reflector[O]) resumeAt() uint64 {
	rv := r.sink.Head()
	if r.afterDelete {
		// Deletions may share an RV (etcd's leases), and the stream may
		// have ended between two of them. The sink knows the first.
		rv--
	}
	return rv
}

// follow brings the sink what the stream brings, and then its successors, if
// the watchdog finds any. A clean end is nil.
func (r *reflector[O]) follow(ctx context.Context, s *stream[O]) (err error) {
	began := time.Now()
	defer func() {
		if ctx.Err() == nil {
			r.opts.metrics.Watched(watchEnd(err), time.Since(began))
		}
	}()
	defer r.sink.Flush()
	g := r.guard(ctx, s)
	defer g.stop()
	head := r.sink.Head()
	told := uint64(0) // what is below it has been told, by the stream before
	for {
		f, err := s.next()
		if err != nil {
			next, cause := g.instead()
			if next != nil {
				r.opts.metrics.Watched("silent", time.Since(began))
				began = time.Now()
				r.log.Info("a silent watch, replaced by a second one", "rv", r.sink.Head())
				r.discard(r.transport)
				r.sink.Flush()
				s, r.transport, told = next.stream, next.transport, r.sink.Head()
				defer s.close()
				continue
			}
			if cause != nil {
				return cause
			}
		}
		if errors.Is(err, io.EOF) {
			r.endedEarly = time.Until(s.due) > overtime
			return nil
		}
		if err != nil {
			return err
		}
		if f.rv < told {
			continue
		}
		if f.columns != r.columns {
			return errReprinted
		}
		if r.doubt != nil {
			if news, err := r.tells(f); err != nil {
				return err
			} else if !news {
				continue
			}
		}
		if f.typ == kube.Bookmark {
			r.sink.Bookmark(f.rv, f.object)
		} else if err := r.sink.Apply(f.typ, f.object); err != nil {
			return fmt.Errorf("%w: %w", errDiverged, err)
		}
		r.afterDelete = f.typ == kube.Deleted
		if r.sink.Head() > head {
			r.malformed = 0
		}
		waiting := s.frames.waiting()
		if !waiting || f.typ == kube.Bookmark {
			g.saw(f.typ)
		}
		if !waiting {
			r.sink.Flush()
		}
	}
}

// A stream is an open watch.
type stream[O any] struct {
	frames frames[O]
	due    time.Time // when the upstream is to end it
	close  func()
}

// open opens a watch.
func (r *reflector[O]) open(ctx context.Context, query url.Values) (*stream[O], error) {
	s, err := r.openOn(ctx, r.transport, query)
	if err == nil {
		r.refusedSince = time.Time{}
	}
	return s, err
}

// openOn opens a watch with bookmarks and a deadline.
func (r *reflector[O]) openOn(ctx context.Context, transport http.RoundTripper, query url.Values) (*stream[O], error) {
	timeout := 300 + rand.IntN(300) // seconds, as client-go's reflectors
	maps.Copy(query, url.Values{
		"watch":               {"true"},
		"allowWatchBookmarks": {"true"},
		"timeoutSeconds":      {strconv.Itoa(timeout)},
	})
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(timeout)*time.Second+overtime,
		errors.New("the upstream did not end the watch in time"))
	if r.opts.Watchdog {
		// Its answer comes at once, whatever there is to tell.
		defer time.AfterFunc(answerTime, cancel).Stop()
	}
	accept := r.form.accept(query)
	resp, err := r.get(ctx, transport, r.collection(query), accept)
	if err != nil {
		cancel()
		return nil, err
	}
	due := time.Now().Add(time.Duration(timeout) * time.Second)
	frames := r.form.watch(counted{resp.Body, r.contact}, query.Has("sendInitialEvents"))
	return &stream[O]{frames: frames, due: due, close: func() {
		cancel()
		resp.Body.Close()
	}}, nil
}

// next reads one frame. An ERROR is returned as an error, a clean end as
// io.EOF.
func (s *stream[O]) next() (frame[O], error) {
	f, err := s.frames.next()
	if err == nil && f.typ == kube.Error {
		err = parseStatus(http.StatusInternalServerError, f.status).asError()
	}
	return f, err
}

// collection returns the collection's URL with a query.
func (r *reflector[O]) collection(query url.Values) *url.URL {
	u := *r.opts.URL
	if u.RawQuery != "" {
		selected := u.Query()
		maps.Copy(selected, query)
		query = selected
	}
	u.RawQuery = query.Encode()
	return &u
}

// get is one request. Answers other than 200 are errors.
func (r *reflector[O]) get(ctx context.Context, transport http.RoundTripper, u *url.URL, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		r.contact(0)
		r.warnings(resp.Header.Values("Warning"))
		return resp, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	r.contact(len(body))
	bad := parseStatus(resp.StatusCode, body)
	if header := resp.Header.Get("Retry-After"); header != "" {
		bad.retryAfter = parseRetryAfter(header)
	}
	return nil, bad.asError()
}
