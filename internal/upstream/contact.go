// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
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
	// checkInterval is how often [Server.Monitor] looks whether it has to ask.
	checkInterval = time.Second
	// freshFor is how long after a contact [Server.ContactUntil] asks nothing.
	freshFor = 2 * time.Second
	// readyzTimeout bounds a request for /readyz. An API server without etcd answers
	// after its own two checks of etcd, of two seconds each.
	readyzTimeout = 5 * time.Second
)

// A Contact is what is known of whether the API server answers the gateway.
type Contact struct {
	// Last is when the API server last sent something; zero if it never did.
	Last time.Time
	// Err is why the API server does not answer, or is not ready; nil while all is well.
	Err error
	// Since is the time of which nothing newer is known while Err is not nil: the last contact,
	// or when the API server was last ready. It is zero if there was none.
	Since time.Time
}

// Unknown reports whether nothing is known of a time: the API server does not answer, or
// is not ready, since before then.
func (c Contact) Unknown(at time.Time) bool { return c.Err != nil && at.After(c.Since) }

// Warning says what an answer about a time that is unknown lacks; "" while all is well.
func (c Contact) Warning() string {
	switch {
	case c.Err == nil:
		return ""
	case c.NotReady(): // since some time after that
		return c.String() + ": changes since then may be missing"
	}
	return c.String() + ": nothing newer is known"
}

// NotReady reports whether the API server answers that it is not ready.
func (c Contact) NotReady() bool { return c.Err != nil && !isSilence(c.Err) }

// String says since when the API server does not answer, or is not ready; "" while all is
// well.
func (c Contact) String() string {
	what := "the API server has not answered"
	if c.NotReady() {
		what = "the API server has not been ready"
	}
	switch {
	case c.Err == nil:
		return ""
	case c.Since.IsZero():
		return what + " yet"
	}
	return what + " since " + c.Since.UTC().Format(time.RFC3339)
}

// notReady is the API server's own answer that it is not ready.
type notReady string

func (e notReady) Error() string { return "the API server is not ready: " + string(e) }

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

	questions singleflight.Group // of ContactUntil
	doubted   time.Time          // when ContactUntil last got no answer
	doubt     error              // why
}

func newMonitor(log *slog.Logger) *monitor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	now := time.Now()
	return &monitor{log: log, began: now, asked: now, asking: make(chan struct{}, 1)}
}

// Contact returns what is known, without asking. What the API server has sent since an outage
// began ends it, though Monitor may not have asked yet.
func (u *Server) Contact() Contact {
	m := u.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Contact{Last: u.LastAnswer()}
	if silent := isSilence(m.err); m.err != nil && !(silent && c.Last.After(m.since)) {
		c.Err, c.Since = m.err, m.since
	}
	return c
}

// ContactUntil returns what is known of the time until at. If nothing was heard in the two
// seconds before it, the API server is asked, for up to three seconds; callers share a
// question, and until something is heard again its result. Without an answer the
// contact has the error, though Monitor may not know of an outage yet.
func (u *Server) ContactUntil(ctx context.Context, at time.Time) Contact {
	m, c := u.monitor, u.Contact()
	if c.Err != nil || at.Sub(c.Last) < freshFor {
		return c
	}
	m.mu.Lock()
	doubt := m.doubt
	if m.doubted.Before(c.Last) || time.Since(m.doubted) > maxAnswerAge {
		doubt = nil
	}
	m.mu.Unlock()
	if doubt == nil {
		asked := m.questions.DoChan("", func() (any, error) {
			err := u.probe(context.WithoutCancel(ctx))
			if err != nil {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.doubt, m.doubted = err, time.Now()
			}
			return nil, err
		})
		select {
		case answer := <-asked:
			doubt = answer.Err
		case <-ctx.Done():
			doubt = context.Cause(ctx)
		}
	}
	if c = u.Contact(); c.Err == nil && doubt != nil {
		c.Err, c.Since = doubt, c.Last
	}
	return c
}

func isSilence(err error) bool {
	_, answered := errors.AsType[notReady](err)
	return err != nil && !answered
}

// Monitor asks the API server when nothing was heard from it for ten seconds, when a
// connection broke, and while it does not answer; and every ten seconds whether it is ready:
// without etcd it keeps watches open, and sends nothing new. It logs the beginning and the
// end of an outage, once. It returns when ctx ends.
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
		heard := u.LastAnswer()
		if heard.IsZero() {
			heard = m.began
		}
		m.mu.Lock()
		due := m.err != nil || max(time.Since(m.asked), time.Since(heard)) >= maxAnswerAge
		m.mu.Unlock()
		if due || u.broken.Load() {
			_ = u.ask(ctx)
		}
	}
}

// Check returns nil if the API server answers and is ready. It asks only what is not
// known from the last ten seconds. During an outage it does not wait for a question of
// Monitor.
func (u *Server) Check(ctx context.Context) error {
	if err := u.Contact().Err; err != nil && len(u.monitor.asking) > 0 {
		return err
	}
	return u.ask(ctx)
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
	if err = u.Probe(ctx); err == nil {
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
	known := m.err == nil && time.Since(m.readyz) < maxAnswerAge
	m.mu.Unlock()
	if known {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, readyzTimeout)
	defer cancel()
	res, err := u.Transport.RoundTrip(u.NewRequest(soon, http.MethodGet, "/readyz", ""))
	if err != nil {
		if silent := u.probe(ctx); silent != nil {
			return silent
		}
		return notReady("/readyz: " + Cause(err))
	}
	defer res.Body.Close()
	if res.StatusCode >= 500 {
		if failed := failedChecks(res.Body); failed != "" {
			return notReady(failed)
		}
		return u.probe(ctx) // it is not an API server's answer, but perhaps a load balancer's
	}
	// 403, 404: the gateway may not know.
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readyz = time.Now()
	return nil
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
	case err != nil && before != nil && silent == isSilence(before): // known
		if silent && heard.After(m.since) {
			m.since = heard // it has answered in between
		}
		return
	case err == nil && isSilence(before):
		m.log.Info("the API server answers again", "after", m.outage())
		return
	case err == nil:
		m.log.Info("the API server is ready again", "after", m.outage())
		return
	case silent:
		m.log.Warn("the API server does not answer", "since", since, "cause", err)
	default:
		m.log.Warn(err.Error())
		heard = m.readyz // what it has sent since may be from its memory
	}
	if before == nil {
		m.since = heard
	}
}

// outage returns how long the API server was out of service.
func (m *monitor) outage() string {
	if m.since.IsZero() {
		return fmt.Sprintf("at least %s", time.Since(m.began).Round(time.Millisecond))
	}
	return time.Since(m.since).Round(time.Millisecond).String()
}

// Broken reports whether a connection to the API server failed or broke, and it has not
// answered since. Then what fails for a single resource is part of an outage, which
// [Server.Monitor] logs.
func (u *Server) Broken() bool { return u.broken.Load() || isSilence(u.Contact().Err) }

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
		b.up.broken.Store(true)
	case n > 0:
		b.up.lastAnswer.Store(time.Now().UnixNano())
	}
	return n, err
}
