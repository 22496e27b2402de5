// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// freshFor is how long after a contact [Server.ContactUntil] asks nothing.
const freshFor = 2 * time.Second

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
	case c.Answers(): // since some time after that
		return c.String() + ": later changes may be missing"
	}
	return c.String() + ": nothing newer is known"
}

// Answers reports whether the API server answers, and only says that it is not ready or does not
// accept the gateway's credentials: watches that are open may go on.
func (c Contact) Answers() bool { return c.Err != nil && !isSilence(c.Err) }

// NotReady reports whether the API server answers that it is not ready.
func (c Contact) NotReady() bool {
	_, answered := errors.AsType[notReady](c.Err)
	return answered
}

// Fault says what is wrong with the API server; "" while all is well.
func (c Contact) Fault() string {
	_, unaccepted := errors.AsType[unaccepted](c.Err)
	switch {
	case c.Err == nil:
		return ""
	case c.NotReady():
		return "is not ready"
	case unaccepted:
		return "does not accept the gateway's credentials"
	}
	return silent
}

const silent = "does not answer"

// unaccepted is the error of a 401 to the gateway's own credentials.
type unaccepted string

func (e unaccepted) Error() string {
	return fmt.Sprintf("upstream %s does not accept the gateway's credentials", string(e))
}

// String says since when the API server does not answer, or until when it was known to be
// ready; "" while all is well.
func (c Contact) String() string {
	since := c.Since.UTC().Format(time.RFC3339)
	switch {
	case c.Err == nil:
		return ""
	case c.NotReady() && c.Since.IsZero():
		return "the API server has not been ready yet"
	case c.NotReady():
		return "the API server is not ready, and was known to be at " + since
	case c.Fault() != silent && c.Since.IsZero():
		return "the API server " + c.Fault()
	case c.Fault() != silent:
		return "the API server " + c.Fault() + ", and was known to at " + since
	case c.Since.IsZero():
		return "the API server has not answered yet"
	}
	return "the API server has not answered since " + since
}

// notReady is the API server's own answer that it is not ready.
type notReady string

func (e notReady) Error() string { return "the API server is not ready: " + string(e) }

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
	m, c, began := u.monitor, u.Contact(), time.Now()
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
			began := time.Now()
			err := u.probe(context.WithoutCancel(ctx))
			if _, ok := errors.AsType[unaccepted](err); ok { // that lasts, whatever is heard next
				m.settle(err, u.LastAnswer())
			}
			if err != nil && time.Since(began) >= freshFor { // others need not wait for that, too
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
	if c = u.Contact(); c.Err == nil && doubt != nil && c.Last.Before(began) {
		c.Err, c.Since = doubt, c.Last
	}
	return c
}
