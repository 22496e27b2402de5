// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/typed"
)

// An upstream is an API server's ConfigMaps, as far as an informer sees them.
type upstream struct {
	mu      sync.Mutex
	rv      int
	objects map[string]string // by key: the JSON
	streams map[*stream]bool
	code    int // of every answer; 0 for 200
	expired bool
}

func newUpstream() *upstream {
	return &upstream{rv: 10, objects: map[string]string{}, streams: map[*stream]bool{}}
}

// A stream is the body of a watch.
type stream struct {
	of     *upstream
	ctx    context.Context
	frames chan string
	rest   string
}

func (s *stream) Read(b []byte) (int, error) {
	if s.rest == "" {
		select {
		case f, ok := <-s.frames:
			if !ok {
				return 0, io.EOF
			}
			s.rest = f
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) Close() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.streams, s)
	return nil
}

// RoundTrip answers a list or a watch.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answer := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: body, Request: r}, nil
	}
	text := func(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
	query := r.URL.Query()
	switch {
	case u.code != 0:
		return answer(u.code, text(fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","message":"no","code":%d}`, u.code)))
	case !query.Has("watch"):
		return answer(http.StatusOK, text(fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`,
			u.rv, strings.Join(slices.Collect(maps.Values(u.objects)), ","))))
	case u.expired && !query.Has("sendInitialEvents"):
		u.expired = false
		return answer(http.StatusGone, text(`{"kind":"Status","apiVersion":"v1","message":"too old","code":410}`))
	}
	s := &stream{of: u, ctx: r.Context(), frames: make(chan string, 1000)}
	if query.Has("sendInitialEvents") {
		for _, key := range slices.Sorted(maps.Keys(u.objects)) {
			s.frames <- frame("ADDED", u.objects[key])
		}
		s.frames <- frame("BOOKMARK", fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, u.rv))
	}
	u.streams[s] = true
	return answer(http.StatusOK, s)
}

func frame(typ, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", typ, object)
}

// object is the JSON of "namespace/name".
func (u *upstream) object(key, color, uid string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":{"color":%q}},"data":{"color":%q}}`,
		name, namespace, uid, u.rv, color, color)
}

func (u *upstream) tell(frame string) {
	for s := range u.streams {
		s.frames <- frame
	}
}

// put makes or changes an object.
func (u *upstream) put(key, color string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rv++
	typ := "MODIFIED"
	if u.objects[key] == "" {
		typ = "ADDED"
	}
	u.objects[key] = u.object(key, color, "uid-"+key)
	u.tell(frame(typ, u.objects[key]))
}

func (u *upstream) remove(key, color string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rv++
	delete(u.objects, key)
	u.tell(frame("DELETED", u.object(key, color, "uid-"+key)))
}

// forget loses the history: streams end, and what is done meanwhile can only be
// learned from a list.
func (u *upstream) forget(meanwhile func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for s := range u.streams {
		close(s.frames)
	}
	clear(u.streams)
	u.expired = true
	u.rv++
	meanwhile()
}

func (u *upstream) refuse(code int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.code = code
}

func (u *upstream) source() *informer.Source {
	return informer.NewSource(&url.URL{Scheme: "http", Host: "upstream"}, u)
}

var configMaps = informer.Resource{Version: "v1", Name: "configmaps"}

type configMap = *unstructured.Unstructured

func newTestInformer(u *upstream, indexers cache.Indexers) *Informer[configMap] {
	return New(u.source(), configMaps, typed.Unstructured(), informer.Options{}, 0, indexers)
}

// run runs the informer until stop is called, which waits for its end.
func run(t *testing.T, a *Informer[configMap]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.RunWithContext(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// A diary is an event handler that logs each call in one short line.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// read returns the lines since the last call.
func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func describe(o any) string {
	switch o := o.(type) {
	case configMap:
		color, _, _ := unstructured.NestedString(o.Object, "data", "color")
		return fmt.Sprintf("%s/%s@%s %s", o.GetNamespace(), o.GetName(), o.GetResourceVersion(), color)
	case cache.DeletedFinalStateUnknown:
		return "unseen " + o.Key + ": " + describe(o.Obj)
	}
	return fmt.Sprintf("%T", o)
}

func (d *diary) OnAdd(o any, initial bool) {
	line := "add " + describe(o)
	if initial {
		line += " initial"
	}
	d.add(line)
}
func (d *diary) OnUpdate(old, o any) { d.add("update " + describe(old) + " → " + describe(o)) }
func (d *diary) OnDelete(o any)      { d.add("delete " + describe(o)) }

var errTest = errors.New("as the test wants it")
