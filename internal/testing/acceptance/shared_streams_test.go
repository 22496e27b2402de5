// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// lastObject is the name of the object whose event shows that a stream is alive.
const lastObject = "last"

// A form is how a user watches. The streams of a user have all forms.
type form struct {
	name   string
	second bool   // over HTTP/2
	query  string // of the watch
	accept string
	kind   formKind
}

type formKind int

const (
	plain     formKind = iota // a watch in the namespace whose rights are revoked
	elsewhere                 // a watch in the namespace of everybody
	multi                     // a multiwatch of both
	socket                    // a watch as plain, over a WebSocket
)

// table is the media type that kubectl asks for.
const table = "application/json;as=Table;v=v1;g=meta.k8s.io"

var forms = []form{
	{name: "plain"},
	{name: "plain with bookmarks", query: "&allowWatchBookmarks=true"},
	{name: "plain over HTTP/2", second: true},
	{name: "table over HTTP/2", second: true, accept: table},
	{name: "fields over HTTP/2", second: true, query: "&fields=data.n"},
	{name: "fields", query: "&fields=metadata.labels"},
	{name: "multiwatch", kind: multi},
	{name: "multiwatch over HTTP/2", kind: multi, second: true},
	{name: "elsewhere over HTTP/2", kind: elsewhere, second: true},
	{name: "plain again"}, // a WebSocket for one user of each group
}

// A stream is an open watch of a user.
type stream struct {
	form
	user   *sharedUser
	frames atomic.Int64
	done   chan struct{} // closed at the end

	mu      sync.Mutex // guards what follows, until done is closed
	last    string
	marked  int          // how many watches have shown the lastObject
	ended   time.Time    // of the first watch
	refusal string       // of the first watch of a multiwatch: the ERROR event
	end     [2]time.Time // of the watches of a multiwatch
	err     error        // nil for a clean end
}

func configMapsIn(ns string) string { return "/api/v1/namespaces/" + ns + "/configmaps" }

// open opens a stream through the gateway. It returns after the first event, except with
// a WebSocket.
func (u *sharedUser) open(ctx context.Context, t *testing.T, base, ns string, f form) (*stream, error) {
	t.Helper()
	s := &stream{form: f, user: u, done: make(chan struct{})}
	const query = "?watch=1&resourceVersion=0"
	path := configMapsIn(ns) + query + f.query
	switch f.kind {
	case elsewhere:
		path = configMapsIn(everybody) + query
	case multi:
		path = "/watchkeeper/v1/multiwatch?" + url.Values{"watch": {path, configMapsIn(everybody) + query}}.Encode()
	case socket:
		go s.readSocket(ctx, base, path)
		return s, nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, err
	}
	if f.accept != "" {
		r.Header.Set("Accept", f.accept)
	}
	client := u.clients[0]
	if f.second {
		client = u.clients[1]
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || f.second != (resp.ProtoMajor == 2) {
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		return nil, fmt.Errorf("%s of %s: %s %s %s", f.name, u.name, resp.Proto, resp.Status, text)
	}
	first := make(chan struct{})
	go s.read(resp.Body, sync.OnceFunc(func() { close(first) }))
	select {
	case <-first:
		return s, nil
	case <-s.done:
		return nil, fmt.Errorf("%s of %s ended: %w", f.name, u.name, s.err)
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("%s of %s has no event", f.name, u.name)
	}
}

// read reads a stream to its end.
func (s *stream) read(body io.ReadCloser, first func()) {
	defer close(s.done)
	defer body.Close()
	lines := watchread.Lines(body)
	for {
		f, err := lines.Next()
		if err == nil && !json.Valid(f.Raw) {
			err = errors.New("not JSON")
		}
		s.mu.Lock()
		switch {
		case err == nil:
			s.note(f)
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			s.ended = time.Now()
		default:
			s.ended, s.err = time.Now(), fmt.Errorf("%w after %q", err, s.last)
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
		s.frames.Add(1)
		first()
	}
}

// note notes an event.
func (s *stream) note(f watchread.Frame) {
	s.last = string(f.Raw)
	switch {
	case strings.Contains(s.last, `"`+lastObject+`"`):
		s.marked++
	case f.Type == "ERROR" && s.kind == multi && f.Watch == 0:
		s.refusal = s.last
	case f.Type == "ERROR" && s.kind != multi:
		s.err = errors.New("an ERROR event")
	case f.Type == "END":
		s.end[f.Watch] = time.Now()
	}
}

// readSocket opens a WebSocket, as a browser does, and reads it to its end.
func (s *stream) readSocket(ctx context.Context, base, path string) {
	defer close(s.done)
	dial := s.user.dial(base)
	e := &compare.Endpoint{URL: base, Dial: dial, DialPlain: dial}
	protocols := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(s.user.token)) + ", foo"
	a, messages, err := e.WebSocket(ctx, compare.Request{Path: path, Header: http.Header{
		"Origin": {compare.OwnOrigin}, "Sec-WebSocket-Protocol": {protocols},
	}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
	switch {
	case err != nil:
		s.err = err
		return
	case a.Code != http.StatusSwitchingProtocols:
		s.err = fmt.Errorf("%d %s", a.Code, a.Body)
		return
	}
	s.err = a.End
	s.frames.Store(int64(len(messages)))
	for _, m := range messages {
		if m.Op == compare.OpText {
			s.last = string(m.Payload)
			if !json.Valid(m.Payload) {
				s.err = fmt.Errorf("not JSON: %q", m.Payload)
			}
			if strings.Contains(s.last, `"`+lastObject+`"`) {
				s.marked++
			}
		}
	}
	if n := len(messages); s.err == nil && (n < 2 || !strings.HasPrefix(messages[n-1].String(), "close 1000 ")) {
		s.err = fmt.Errorf("%d messages, the last %v", n, messages[max(0, n-1):])
	}
}

// isOver reports whether the watch of the revoked right has ended, and when.
func (s *stream) isOver() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kind == multi && !s.end[0].IsZero() {
		return s.end[0], true
	}
	return s.ended, !s.ended.IsZero()
}
