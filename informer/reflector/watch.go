// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

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
	// minWatchTimeout and maxWatchTimeout bound the random timeoutSeconds of
	// a watch, as in client-go's reflector.
	minWatchTimeout = 300
	maxWatchTimeout = 600
	// endGrace is how long the reflector waits for the end of a watch after its
	// timeoutSeconds. Without a watchdog, nothing else ends a watch on a dead
	// connection.
	endGrace = 10 * time.Second
	// maxUnproven is how long the proof of a history may take, of which an API server sends
	// all at once.
	maxUnproven = 10 * time.Second
	// maxBlind is how long after the end of a watch the next one may be answered without a
	// proof: an API server does not restart in that time, so that its etcd cannot have been
	// restored. It is longer for a process that was suspended meanwhile.
	maxBlind = time.Second
)

// watch opens a watch at the sink's head, or before it if the upstream has to prove its
// history, and follows it.
func (r *Reflector[O]) watch(ctx context.Context) error {
	r.afterList = false
	since := r.resumeRV()
	if r.state == stateVerify || r.state == stateProve {
		empty, err := r.verify(ctx)
		if err == nil && r.unwatched.isDue() {
			return r.listUnwatched(ctx)
		}
		if err == nil && r.state == stateProve {
			since, err = r.startProof(ctx, empty)
		}
		if err != nil {
			return err
		}
	}
	s, err := r.open(ctx, url.Values{"resourceVersion": {kube.FormatRV(since)}})
	if err != nil {
		return err
	}
	defer s.close()
	if r.state == stateWatch && time.Since(r.ended) > maxBlind {
		if r.doubt(); r.state == stateProve {
			r.setPhase(Retrying)
		}
		s.close()
		return r.watch(ctx)
	}
	if r.state != stateProve {
		r.state = stateWatch
		r.watching()
	} else if len(r.check.missing) == 0 {
		r.watching()
	}
	return r.follow(ctx, s)
}

// watching shows that there is a watch that continues the sink's history.
func (r *Reflector[O]) watching() {
	r.setPhase(Watching)
	r.setContinuity(Watched)
	r.sink.Flush()
}

// verify fails if the upstream's RV is below the sink's head. An etcd restored from
// a backup continues at lower RVs, and a watch from an RV in the future is
// silent until the upstream reaches it. A consistent list returns the upstream's RV,
// and whether the collection is empty.
func (r *Reflector[O]) verify(ctx context.Context) (empty bool, err error) {
	head := r.sink.Head() // before the request: it may move
	page, err := r.page(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return false, err
	}
	if err := r.sameCollection(page); err != nil {
		return false, err
	}
	if page.RV < head {
		return false, fmt.Errorf("%w: upstream is at %d, behind the head %d", errDiverged, page.RV, head)
	}
	return len(page.Items) == 0, nil
}

// resumeRV returns the RV from which the next watch has to start.
func (r *Reflector[O]) resumeRV() uint64 {
	rv := r.sink.Head()
	if r.afterDelete {
		// Several deletions can share an RV (etcd leases), and the stream may
		// have ended between them. The sink ignores the one that it has seen.
		rv--
	}
	return rv
}

// follow delivers the frames of a stream to the sink. It returns nil if the
// upstream ended it in order, and ErrSilent if the watchdog did.
func (r *Reflector[O]) follow(ctx context.Context, s *stream[O]) (err error) {
	began := time.Now()
	defer func() {
		if ctx.Err() == nil {
			r.opts.Watched(watchEnd(err), time.Since(began))
		}
	}()
	defer r.sink.Flush()
	wd := r.startWatchdog(ctx, s)
	defer close(wd.over)
	defer wd.stop()
	r.watchdog.Store(wd)
	defer r.watchdog.Store(nil)
	unproven := time.AfterFunc(maxUnproven, func() { wd.end(errUnproven) })
	defer unproven.Stop()
	head := r.sink.Head()
	defer func() {
		continues := r.state != stateProve || len(r.check.missing) == 0
		if r.sink.Head() > head || continues && time.Since(began) > minStream {
			r.unwatched.reset()
		}
	}()
	for {
		if !r.opts.Watchdog || r.state != stateProve || len(r.check.missing) == 0 {
			unproven.Stop()
		}
		f, err := s.next()
		if err != nil {
			if cause := wd.stop(); cause != nil {
				err = cause
			}
			if errors.Is(err, ErrSilent) {
				r.silent()
				r.setContinuity(Silent)
			}
		}
		if errors.Is(err, io.EOF) {
			left := time.Until(s.due)
			r.ended, r.endedEarly, r.endedLongBefore = s.due, left > 0, left > endGrace
			r.endedInList = s.overlap != nil && (r.endedEarly || s.due.Before(s.overlap.ended))
			return nil
		}
		if err != nil {
			return err
		}
		if f.columns != r.columns {
			return errColumnsChanged
		}
		if s.overlap != nil {
			if f.rv <= s.overlap.to {
				r.checkOverlap(s.overlap, f)
				wd.observe(f.typ)
				continue
			}
			if err := s.overlap.end(); err != nil {
				return err
			}
			s.overlap = nil
		}
		if r.state == stateProve {
			if isNew, err := r.checkFrame(f); err != nil {
				return err
			} else if !isNew {
				wd.observe(f.typ)
				continue
			}
		}
		if f.typ == kube.Bookmark {
			r.sink.Bookmark(f.rv, f.object)
		} else {
			if err := r.sink.Apply(f.typ, f.object); err != nil {
				return fmt.Errorf("%w: %w", errDiverged, err)
			}
			r.recent.event(r.encoding.known(f.object, f.typ == kube.Deleted))
		}
		r.afterDelete = f.typ == kube.Deleted
		if r.sink.Head() > head {
			r.malformed = 0
		}
		waiting := s.frames.waiting()
		if !waiting || f.typ == kube.Bookmark {
			wd.observe(f.typ)
		}
		if !waiting {
			r.sink.Flush()
			r.known()
		}
	}
}

// A stream is an open watch.
type stream[O any] struct {
	frames frames[O]
	due    time.Time // when the upstream ends it, at the earliest
	// overlap is that of a watch with the list that was taken after it was opened, until a
	// frame shows that the watch lasted longer than the list.
	overlap *overlap
	close   func()
}

// open opens a watch on the reflector's transport.
func (r *Reflector[O]) open(ctx context.Context, query url.Values) (*stream[O], error) {
	s, err := r.openOn(ctx, r.transport, query)
	if err == nil {
		r.refusedSince = time.Time{}
	}
	return s, err
}

// openOn opens a watch with bookmarks and a deadline. Any goroutine may call it.
func (r *Reflector[O]) openOn(ctx context.Context, transport http.RoundTripper, query url.Values) (*stream[O], error) {
	seconds := minWatchTimeout + rand.IntN(maxWatchTimeout-minWatchTimeout)
	maps.Copy(query, url.Values{
		"watch":               {"true"},
		"allowWatchBookmarks": {"true"},
		"timeoutSeconds":      {strconv.Itoa(seconds)},
	})
	timeout := time.Duration(seconds) * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, timeout+endGrace, errors.New("watch not ended within its timeoutSeconds"))
	ctx, end := context.WithCancelCause(ctx)
	if r.opts.Watchdog {
		// API servers answer a watch at once, even if there is no event.
		defer time.AfterFunc(answerTimeout, func() { end(errUnanswered) }).Stop()
	}
	accept := r.encoding.accept(query)
	sent := time.Now()
	resp, err := r.get(ctx, transport, r.requestURL(query), accept)
	if err != nil {
		end(nil)
		cancel()
		return nil, err
	}
	if n, err := strconv.Atoi(resp.Header.Get(kube.TimeoutHeader)); err == nil && n < seconds {
		timeout = time.Duration(n) * time.Second
	}
	due := sent.Add(timeout)
	frames := r.encoding.watch(countingReader{resp.Body, r.contact})
	return &stream[O]{frames: frames, due: due, close: func() {
		end(nil)
		cancel()
		resp.Body.Close()
	}}, nil
}

// next reads a frame. An ERROR event is returned as an error, an orderly end as
// io.EOF.
func (s *stream[O]) next() (frame[O], error) {
	f, err := s.frames.next()
	if err == nil && f.typ == kube.Error {
		err = parseStatus(http.StatusInternalServerError, f.status).asError()
	}
	return f, err
}

// requestURL returns the collection's URL with its own query and the given
// one, which has precedence.
func (r *Reflector[O]) requestURL(query url.Values) *url.URL {
	u := *r.opts.URL
	if u.RawQuery != "" {
		own := u.Query()
		maps.Copy(own, query)
		query = own
	}
	u.RawQuery = query.Encode()
	return &u
}

// get sends a request. Any status but 200 is returned as an error.
func (r *Reflector[O]) get(ctx context.Context, transport http.RoundTripper, u *url.URL, accept string) (*http.Response, error) {
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
		r.setWarnings(resp.Header.Values("Warning"))
		return resp, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	r.contact(len(body))
	bad := parseStatus(resp.StatusCode, body)
	if header := resp.Header.Get("Retry-After"); header != "" {
		bad.RetryAfter = parseRetryAfter(header)
	}
	return nil, bad.asError()
}
