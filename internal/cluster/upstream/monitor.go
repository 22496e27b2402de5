// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// checkInterval is how often [Server.Monitor] looks whether it has to ask, and askAfter
	// after which silence it does.
	checkInterval = time.Second
	askAfter      = 3 * time.Second
	// readyzTimeout bounds a request for /readyz. An API server without etcd answers
	// after its own two checks of etcd, of two seconds each.
	readyzTimeout = 5 * time.Second
	// maxRefused is how long an API server counts as ready that answers 429 to all requests, also to
	// that for /readyz, and sends nothing on a watch.
	maxRefused = 30 * time.Second
)

// monitor is the one place that knows whether the API server answers: the log, the
// metrics, /readyz, multiwatch and the history API say the same.
type monitor struct {
	log    *slog.Logger
	began  time.Time
	asking chan struct{} // has a value while somebody asks

	mu     sync.Mutex // guards what follows
	err    error      // see Contact
	since  time.Time  // see Contact
	asked  time.Time  // when the last question was settled
	readyz time.Time  // when the API server last answered /readyz, or refused to
	ready  time.Time  // the first of those times since it was not ready, or since a connection broke
	breaks int64      // the connections that had broken before ready

	questions singleflight.Group // of ContactUntil
	doubted   time.Time          // when ContactUntil last got no answer
	doubt     error              // why
}

func newMonitor(log *slog.Logger) *monitor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &monitor{log: log, began: time.Now(), asked: time.Now().Add(askAfter - maxAnswerAge), asking: make(chan struct{}, 1)}
}

// isSilence reports whether an error is not an answer of the API server.
func isSilence(err error) bool {
	_, notReady := errors.AsType[notReady](err)
	_, unaccepted := errors.AsType[unaccepted](err)
	return err != nil && !notReady && !unaccepted
}

// Monitor asks the API server when nothing was heard from it for three seconds, when a
// connection broke, and while it does not answer; and every ten seconds whether it is ready:
// without etcd it keeps watches open, and sends nothing new. It logs the beginning and the
// end of an outage, once. /readyz shows, too, whether the gateway's credentials are still accepted:
// watches that are open go on without them. It returns when ctx ends.
func (u *Server) Monitor(ctx context.Context) {
	m := u.monitor
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		heard := cmp.Or(u.LastAnswer(), m.began)
		m.mu.Lock()
		due := m.err != nil || time.Since(heard) >= askAfter || time.Since(m.asked) >= maxAnswerAge
		m.mu.Unlock()
		if due || u.broken.Load() {
			_ = u.ask(ctx)
		}
	}
}

// Check asks as Monitor does, and returns why the API server does not answer, or is not ready.
func (u *Server) Check(ctx context.Context) error { return u.ask(ctx) }

// ReadySince is Check, and returns since when the API server is known to be ready: no
// connection has broken since, so that it has not started again.
func (u *Server) ReadySince(ctx context.Context) (time.Time, error) {
	if err := u.ask(ctx); err != nil {
		return time.Time{}, err
	}
	m := u.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready, nil
}

// ask finds out whether the API server answers and is ready. Callers share a question.
func (u *Server) ask(ctx context.Context) error {
	m, began := u.monitor, time.Now()
	select {
	case m.asking <- struct{}{}:
	default:
		select {
		case m.asking <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-m.asking }()
	m.mu.Lock()
	err, asked := m.err, m.asked
	m.mu.Unlock()
	if asked.After(began) {
		return err
	}
	if err = u.probeAfter(ctx, askAfter); err == nil {
		err = u.checkReady(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return err // nobody waited for the answer
	}
	m.settle(err, u.LastAnswer())
	return err
}

// checkReady asks the API server whether it is ready, unless it did so in the last ten
// seconds. An API server without etcd answers /version, and serves nothing.
func (u *Server) checkReady(ctx context.Context) error {
	m := u.monitor
	m.mu.Lock()
	known := m.err == nil && time.Since(m.readyz) < maxAnswerAge && u.isReadyUnbroken()
	m.mu.Unlock()
	if known {
		return nil
	}
	breaks := u.breaks.Load()
	res, end, err := u.readyz(ctx)
	if s, ok := errors.AsType[silence](err); ok {
		return s.error
	}
	if err != nil { // it is silent, or has been until now
		if silent := u.probe(ctx); silent != nil {
			return silent
		}
		breaks = u.breaks.Load()
		res, end, err = u.readyz(ctx)
	}
	if err != nil {
		return notReady("/readyz: " + Cause(err))
	}
	defer end()
	if res.StatusCode == http.StatusUnauthorized {
		return unaccepted(u.base.Host)
	}
	if res.StatusCode >= 500 {
		if failed := failedChecks(res.Body); failed != "" {
			return notReady(failed)
		}
		return u.probe(ctx) // it is not an API server's answer, but perhaps a load balancer's
	}
	if res.StatusCode == http.StatusTooManyRequests { // not by priority and fairness, which exempts /readyz
		if time.Since(cmp.Or(u.LastAnswer(), m.began)) >= maxRefused {
			return notReady("/readyz: " + res.Status)
		}
		return nil
	}
	// 403, 404: the gateway may not know.
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readyz = time.Now()
	if m.err != nil || !u.isReadyUnbroken() {
		m.ready, m.breaks = m.readyz, breaks
	}
	return nil
}

// isReadyUnbroken reports whether no connection has broken since the API server was first
// known to be ready. The caller holds the monitor's mutex.
func (u *Server) isReadyUnbroken() bool {
	return !u.monitor.ready.IsZero() && u.monitor.breaks == u.breaks.Load()
}

// A silence is why /readyz has no answer: the API server does not answer at all.
type silence struct{ error }

// readyz asks for /readyz, and gives up with a silence if the API server does not answer
// another question meanwhile. The caller calls end when it has read the answer.
func (u *Server) readyz(ctx context.Context) (res *http.Response, end func(), err error) {
	ctx, stop := context.WithTimeout(ctx, readyzTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	doubt := time.AfterFunc(checkInterval, func() {
		if silent := u.probe(ctx); silent != nil {
			cancel(silence{silent})
		}
	})
	res, err = u.Transport.RoundTrip(u.NewRequest(ctx, http.MethodGet, "/readyz", ""))
	doubt.Stop()
	if s, ok := context.Cause(ctx).(silence); ok && err != nil {
		err = s
	}
	if err != nil {
		cancel(nil)
		stop()
		return nil, nil, err
	}
	return res, func() { res.Body.Close(); stop() }, nil
}

// failedChecks returns the checks that failed, such as "[-]etcd failed: reason withheld".
func failedChecks(body io.Reader) string {
	var failed []string
	for lines := bufio.NewScanner(io.LimitReader(body, 64<<10)); lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSuffix(line, ": reason withheld"))
		}
	}
	return redact(strings.Join(failed, ", "))
}

// settle notes an answer, nil for a good one, and logs what has changed.
func (m *monitor) settle(err error, heard time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.err
	m.err, m.asked = err, time.Now()
	since := "never"
	if !heard.IsZero() {
		since = heard.UTC().Format(time.RFC3339Nano)
	}
	switch silent := isSilence(err); {
	case err == nil && before == nil:
		return
	case err != nil && before != nil && Contact{Err: err}.Fault() == Contact{Err: before}.Fault(): // known
		if silent && heard.After(m.since) {
			m.since = heard // it has answered in between
		}
		return
	case err == nil && isSilence(before):
		m.log.Info("the API server answers again", "after", m.outage(before))
		return
	case err == nil && !(Contact{Err: before}).NotReady():
		m.log.Info("the API server accepts the gateway's credentials again", "after", m.outage(before))
		return
	case err == nil:
		m.log.Info("the API server is ready again", "after", m.outage(before))
		return
	case silent:
		m.log.Warn("the API server "+Contact{Err: err}.Fault(), "since", since, "cause", err)
	case Contact{Err: err}.NotReady():
		m.log.Warn(err.Error())
		heard = m.readyz // what it has sent since may be from its memory
	default:
		m.log.Warn("the API server " + Contact{Err: err}.Fault())
		heard = m.readyz // what it has sent since may be of watches from before
	}
	if before == nil {
		m.since = heard
	}
}

// outage returns how long the API server was out of service with an error.
func (m *monitor) outage(was error) string {
	if m.since.IsZero() {
		return fmt.Sprintf("at least %s", time.Since(m.began).Round(time.Millisecond))
	}
	after := time.Since(m.since).Round(time.Millisecond).String()
	if !isSilence(was) { // it is asked every ten seconds whether it is ready
		return "at most " + after
	}
	return after
}

// Broken reports whether a connection to the API server failed or broke, and it has not
// answered since. Then what fails for a single resource is part of an outage, which
// [Server.Monitor] logs.
func (u *Server) Broken() bool {
	c := u.Contact()
	return u.broken.Load() || c.Err != nil && !c.NotReady()
}

// setBroken notes that a connection to the API server failed or broke.
func (u *Server) setBroken() {
	u.broken.Store(true)
	u.breaks.Add(1)
}

// heard notes that the API server answered.
func (u *Server) heard() {
	u.broken.Store(false)
	u.lastAnswer.Store(time.Now().UnixNano())
}

// heardBody notes that the API server sends something.
type heardBody struct {
	io.ReadCloser
	ctx context.Context
	up  *Server
}

func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err != nil && err != io.EOF && b.ctx.Err() == nil:
		b.up.setBroken()
	case n > 0:
		b.up.lastAnswer.Store(time.Now().UnixNano())
	}
	return n, err
}
