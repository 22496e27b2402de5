// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type (
	controllerOptions = controller.Options
	reconcileFunc     = reconcile.Func
)

// seen are the names that a controller has seen.
type seen struct {
	mu  sync.Mutex // guards all
	all []string
}

func (s *seen) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, name)
}

func (s *seen) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// A trail is what a client has noticed of its reads of ConfigMaps, each once: answers,
// such as "list 403", and ends of watches.
type trail struct {
	mu      sync.Mutex // guards what follows
	noticed []string
	open    map[*cutBody]struct{}
}

func (t *trail) note(steps ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range steps {
		if !slices.Contains(t.noticed, s) {
			t.noticed = append(t.noticed, s)
		}
	}
}

// reset forgets what was noticed.
func (t *trail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noticed = nil
}

// steps returns the successful answers that were noticed since the last reset, or all
// else.
func (t *trail) steps(ok bool) (some []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.noticed {
		if strings.HasSuffix(s, " 200") == ok {
			some = append(some, s)
		}
	}
	return some
}

// cut ends all open watches as the API server does after their time.
func (t *trail) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for b := range t.open {
		b.cut.Do(func() { close(b.gone); b.ReadCloser.Close() })
	}
}

// follow notes the answers to the requests of a client.
func (t *trail) follow(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/configmaps") {
			return resp, err
		}
		q := r.URL.Query()
		watch, initial := q.Get("watch") == "true", q.Get("sendInitialEvents") == "true"
		switch {
		case watch && initial && resp.StatusCode == http.StatusOK: // equivalent: which it is depends on the time
			t.note("list 200", "watch 200")
		case watch && initial:
			t.note(fmt.Sprint("initial events ", resp.StatusCode))
		case watch:
			t.note(fmt.Sprint("watch ", resp.StatusCode))
		default:
			t.note(fmt.Sprint("list ", resp.StatusCode))
		}
		if watch && resp.StatusCode == http.StatusOK {
			b := &cutBody{ReadCloser: resp.Body, gone: make(chan struct{}), t: t, r: r}
			resp.Body = b
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.open == nil {
				t.open = map[*cutBody]struct{}{}
			}
			t.open[b] = struct{}{}
		}
		return resp, err
	})
}

// A cutBody is the body of a watch.
type cutBody struct {
	io.ReadCloser
	cut  sync.Once
	gone chan struct{} // closed once it is cut
	t    *trail
	r    *http.Request
}

// Read implements io.Reader.
func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	select {
	case <-b.gone:
		n, err = 0, io.EOF
	default:
	}
	b.t.mu.Lock()
	delete(b.t.open, b)
	b.t.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		b.t.note("end of the watch")
	case b.r.Context().Err() == nil:
		b.t.note("broken watch: " + err.Error())
	}
	return n, err
}
