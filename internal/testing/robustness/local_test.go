// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// A local is a connection to a handler in this process, for synctest: it waits
// on channels and conditions only.
type local struct {
	handler http.Handler
	// buffer is how many bytes the handler may be ahead of the reader.
	buffer int
	// life, if set, returns after how many bytes the connection breaks for the
	// reader; less than 0 is never.
	life func() int
}

// pipeKey is the key of a handler's own pipe in its context.
type pipeKey struct{}

var errBroken = errors.New("the connection broke")

// RoundTrip implements http.RoundTripper.
func (l local) RoundTrip(req *http.Request) (*http.Response, error) {
	p := &pipe{header: http.Header{}, most: l.buffer, ready: make(chan struct{}), life: -1}
	p.cond.L = &p.mu
	ctx := context.WithValue(req.Context(), http.ServerContextKey, &http.Server{})
	ctx, cancel := context.WithCancel(context.WithValue(ctx, pipeKey{}, p))
	p.cancel = cancel
	if l.life != nil {
		p.life = l.life()
	}
	r := req.Clone(ctx)
	r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor = req.URL.RequestURI(), "HTTP/1.1", 1, 1
	if r.Body == nil {
		r.Body = http.NoBody
	}
	go func() {
		defer func() {
			switch cause := recover(); cause {
			case nil:
				p.WriteHeader(http.StatusOK)
				p.end(io.EOF)
			case http.ErrAbortHandler:
				p.end(errBroken)
			default:
				panic(cause)
			}
		}()
		l.handler.ServeHTTP(p, r)
	}()
	context.AfterFunc(ctx, func() { p.end(ctx.Err()) })
	<-p.ready
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code == 0 {
		cancel()
		return nil, p.err
	}
	return &http.Response{
		Status: http.StatusText(p.code), StatusCode: p.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: p.sent, Body: p, ContentLength: -1, Request: req,
	}, nil
}

// A pipe is a response under way: the handler's ResponseWriter, and the
// reader's Body.
type pipe struct {
	header http.Header   // the handler's own
	ready  chan struct{} // closed with the headers, or the end
	cancel func()        // signals the handler that the reader is gone

	mu   sync.Mutex // guards what follows
	cond sync.Cond
	most int // bytes accepted ahead of the reader
	code int
	sent http.Header
	buf  bytes.Buffer
	err  error // returned after the buffer is read
	life int   // bytes until the connection breaks
}

func (p *pipe) Header() http.Header { return p.header }

func (p *pipe) WriteHeader(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code == 0 && p.err == nil && code >= 200 {
		p.code, p.sent = code, p.header.Clone()
		close(p.ready)
	}
}

func (p *pipe) Flush() { p.WriteHeader(http.StatusOK) }

func (p *pipe) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.buf.Len() > p.most {
		p.cond.Wait()
	}
	if p.err != nil {
		return 0, p.err
	}
	p.cond.Broadcast()
	return p.buf.Write(b)
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.buf.Len() == 0 && p.life != 0 {
		p.cond.Wait()
	}
	if p.life == 0 {
		p.cancel()
		return 0, errBroken
	}
	if p.buf.Len() == 0 {
		return 0, p.err
	}
	if p.life > 0 {
		b = b[:min(len(b), p.life)]
	}
	n, _ := p.buf.Read(b)
	if p.life > 0 {
		p.life -= n
	}
	p.cond.Broadcast()
	return n, nil
}

// Close is called by the reader.
func (p *pipe) Close() error {
	p.end(errBroken)
	p.cancel()
	return nil
}

// unlimit lets the handler write ahead of the reader without a limit.
func (p *pipe) unlimit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = 1 << 40
}

func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		if p.err = err; p.code == 0 {
			close(p.ready)
		}
	}
	p.cond.Broadcast()
}
