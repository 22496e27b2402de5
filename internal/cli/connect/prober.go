// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// quietTime is after which time without a byte from a server it is probed.
	quietTime = 10 * time.Second
	// probeTime is how long the answer to a probe may take.
	probeTime = 5 * time.Second
	// silentTime is after which time without a byte, and without an answer to a probe, a request
	// fails. It is less than what client-go allows an HTTP/2 connection (45 s), and than the
	// timeout of discovery (32 s).
	silentTime = 30 * time.Second
)

// ErrSilent is the error of a request whose server is silent: it has stopped, or the network
// loses what it sends.
var ErrSilent = errors.New("no answer for " + silentTime.String())

// A prober is a transport that notices that a server is silent. An answer may take long, and a
// watch may have no events: while nothing arrives, the prober sends the server another request
// that any gateway answers at once. If that is not answered, it says so, and later fails the
// requests, except watches that have begun: they go on when the server does.
type prober struct {
	base http.RoundTripper
	url  string    // of the probe
	from string    // the server, for messages
	out  io.Writer // for messages; nil for none

	begin  time.Time
	heard  atomic.Int64 // when a byte arrived, after begin
	silent atomic.Bool  // which was said
}

// probed returns a transport to the gateway that notices its silence.
func (f *Flags) probed(base http.RoundTripper) http.RoundTripper {
	server, _, _ := strings.Cut(f.gateway, "/at/")
	return &prober{base: base, url: server + gatewayPath, from: server, out: f.Err, begin: time.Now()}
}

// RoundTrip implements http.RoundTripper.
func (p *prober) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return p.base.RoundTrip(r) // the connection becomes another one's
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	body := &probedBody{prober: p, ctx: ctx, end: cancel}
	go p.guard(ctx, cancel, func() bool { return body.begun.Load() && r.URL.Query().Get("watch") != "" })
	resp, err := p.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, body.failed(err)
	}
	p.hear()
	body.begun.Store(true)
	body.ReadCloser, resp.Body = resp.Body, body
	return resp, nil
}

// guard ends a request if the server is silent, unless it lasts. If the server was silent before
// the request, it is probed at once.
func (p *prober) guard(ctx context.Context, end context.CancelCauseFunc, lasts func() bool) {
	known, begin := p.silent.Load(), time.Now()
	for {
		heard := p.begin.Add(time.Duration(p.heard.Load()))
		if !known && heard.Before(begin) {
			heard = begin
		}
		wait := quietTime - time.Since(heard)
		if wait <= 0 {
			sent := time.Now()
			if p.probe(ctx, heard) {
				known = false
				continue
			}
			if time.Since(heard) >= silentTime && !lasts() {
				end(ErrSilent)
			}
			wait = probeTime - time.Since(sent)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// probe sends a request that any gateway answers, if only with an error. A proxy before it answers
// as below if it does not: other answers of a proxy, or of another replica, cannot be told apart.
func (p *prober) probe(ctx context.Context, heard time.Time) (answered bool) {
	probe, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(probe, http.MethodHead, p.url, nil)
	if err != nil {
		return false
	}
	if resp, err := p.base.RoundTrip(req); err == nil {
		resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		default:
			p.hear()
			return true
		}
	}
	if ctx.Err() == nil && !p.silent.Swap(true) {
		p.say("has not answered since " + heard.Local().Format("2006-01-02 15:04:05Z07:00") + ": waiting for it")
	}
	return false
}

// hear notes that the server has sent something.
func (p *prober) hear() {
	p.heard.Store(int64(time.Since(p.begin)))
	if p.silent.Load() && p.silent.Swap(false) {
		p.say("answers again")
	}
}

func (p *prober) say(text string) {
	if p.out != nil {
		fmt.Fprintln(p.out, p.from, text)
	}
}

// A probedBody is the body of an answer.
type probedBody struct {
	io.ReadCloser
	*prober
	ctx   context.Context
	end   context.CancelCauseFunc
	begun atomic.Bool // the header has arrived
}

// Read implements io.Reader.
func (b *probedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if n > 0 {
		b.hear()
	}
	if err != nil {
		err = b.failed(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *probedBody) Close() error {
	defer b.end(nil)
	return b.ReadCloser.Close()
}

// failed ends the request, and returns why it failed.
func (b *probedBody) failed(err error) error {
	if cause := context.Cause(b.ctx); errors.Is(cause, ErrSilent) {
		err = cause
	}
	b.end(nil)
	return err
}
