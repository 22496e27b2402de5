// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// An Env is what rules run against. [Env.Setup] fills in the unexported fields.
type Env struct {
	// Want is the API server, with the rights of a cluster admin. All writes
	// go to it.
	Want *compare.Endpoint
	// Got is the endpoint under test.
	Got *compare.Endpoint
	// Replicas are the API servers behind Want, if it is a balancer over several.
	// Want and Got may then have the answers of different ones, whose own numbers
	// are not compared.
	Replicas []*compare.Endpoint
	// Compact compacts the store of Want up to an RV.
	Compact func(ctx context.Context, rv uint64) error
	// Sockets counts the WebSockets that Got has served itself. nil means that
	// the number is unknown.
	Sockets func(ctx context.Context) (int, error)

	// Differs are the names of rules whose endpoints differ in this environment, besides
	// those that say so themselves.
	Differs []string
	// Without are the names of rules that are not run: they are about a feature that is off,
	// and here it is on.
	Without []string

	// old is an RV that the store has compacted. No watch cache of our custom
	// resources ever had it; that of a built-in resource may.
	old uint64
	// token belongs to a service account with almost no permissions.
	token string
	// sockets is held while WebSockets are counted.
	sockets *sync.Mutex

	// once disables retries, for answers that always differ.
	once bool

	rule    string // the name of the running rule
	answers *answerCount
}

// answerCount counts the answers that were compared, and those of them that
// Got served itself.
type answerCount struct{ all, own atomic.Int64 }

// Paths of the fixture.
const (
	fixtureNamespace = "conf"
	core             = "/api/v1/namespaces/conf"
	configMaps       = core + "/configmaps"
	pods             = core + "/pods"
	largeList        = "/api/v1/namespaces/conf-large/configmaps"
	custom           = "/apis/conformance.example.com/v1"
	gadgets          = custom + "/namespaces/conf/gadgets"
	oldGadgets       = "/apis/conformance.example.com/v1beta1/namespaces/conf/gadgets"
	beacons          = custom + "/beacons"
)

// allConfigMaps are the ConfigMaps of the fixture's namespace, in list order.
var allConfigMaps = []string{"cm-1", "cm-2", "cm-3", "cm-4", "cm-5", "kube-root-ca.crt"}

// Parts of queries.
const (
	anyVersion    = "?resourceVersion=0"
	initialEvents = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	// future is an RV that no store of a test reaches.
	future = "999999999"
)

// exactly is the query for the state at an RV.
func exactly(rv string) string { return "resourceVersionMatch=Exact&resourceVersion=" + rv }

// An option says how a request is sent, or what the API server must answer.
type option func(*asking)

// asking is a request with its options.
type asking struct {
	compare.Request
	masks  []framedMask
	checks []func(*compare.Answer) error
	// tries is how often the request may be sent until the answers are equal.
	tries int
	// bounded is set for a watch with timeoutSeconds. If a server is slow, its time may
	// be over before its first event.
	bounded bool
	// bookmarks keeps the bookmarks of a watch that do not end the initial
	// events.
	bookmarks bool
}

func newAsking(path string, options []option) asking {
	a := asking{Request: compare.Request{Path: path, Header: http.Header{}}, tries: 1}
	if u, err := url.Parse(path); err == nil {
		q := u.Query()
		a.bounded = q.Has("timeoutSeconds") && (q.Has("watch") || strings.Contains(u.Path, "/watch/"))
	}
	if a.bounded {
		retried(&a)
	}
	for _, o := range options {
		o(&a)
	}
	return a
}

func accept(value string) option { return func(a *asking) { a.Accept = value } }

func method(value string) option { return func(a *asking) { a.Method = value } }

func as(identity compare.As) option { return func(a *asking) { a.As = identity } }

func body(text string) option { return func(a *asking) { a.Body = text } }

func mask(m compare.Mask) option {
	return func(a *asking) { a.masks = append(a.masks, always(m)) }
}

// retried sends a request up to five times, at growing intervals: the ages in two answers
// may differ by a second, and an object may just have changed. Watches with timeoutSeconds are
// always retried.
func retried(a *asking) { a.tries = 5 }

// withBookmarks keeps all bookmarks of a watch.
func withBookmarks(a *asking) { a.bookmarks = true }

// overHTTP2 uses HTTP/2, which the API server must do as well.
func overHTTP2(a *asking) {
	a.As = compare.AsHTTP2
	a.checks = append(a.checks, func(a *compare.Answer) error {
		if a.Proto != "HTTP/2.0" {
			return errors.New(a.Proto)
		}
		return nil
	})
}

// masksFor returns the masks for the answers to a request.
func (e *Env) masksFor(a *asking, answer *compare.Answer) []compare.Mask {
	var out []compare.Mask
	if e.Replicas != nil {
		out = append(out, withoutReplica)
	}
	for _, m := range a.masks {
		out = append(out, m(answer.Header.Get("Content-Type")))
	}
	return out
}

// check checks the API server's answer to a request.
func (a *asking) check(want *compare.Answer) error {
	for _, check := range a.checks {
		if err := check(want); err != nil {
			return fmt.Errorf("%s: the API server: %w\n  it is %d %.500q", a.Request, err, want.Code, want.Body)
		}
	}
	return nil
}

// same sends a request to both endpoints. It returns an error if the API server
// does not answer as the options say, or if the answers differ.
func (e *Env) same(ctx context.Context, path string, options ...option) error {
	_, err := e.ask(ctx, path, options...)
	return err
}

// ask is same, and returns the API server's answer.
func (e *Env) ask(ctx context.Context, path string, options ...option) (*compare.Answer, error) {
	a := newAsking(path, options)
	wait := 100 * time.Millisecond
	for {
		retried, began := a.tries > 1 && !e.once, time.Now()
		last := e.isLast(&a)
		want, got, err := e.both(ctx, a.Request)
		if err != nil {
			return nil, err
		}
		if err := a.check(want); err != nil {
			if a.bounded && !last {
				continue
			}
			return nil, err
		}
		masks := e.masksFor(&a, want)
		err = compare.Diff(a.Request, want, got, masks...)
		if err != nil && retried && time.Since(began) > time.Second && compare.Diff(a.Request, want, got, append(masks, withoutAges)...) == nil {
			a.tries++ // on a busy machine, the ages always differ when the answers take so long
			continue
		}
		if err == nil || last {
			return want, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// isLast counts a try, and reports whether it is the last one.
func (e *Env) isLast(a *asking) bool {
	a.tries--
	return a.tries <= 0 || e.once
}

// both sends a request to both endpoints at the same time.
func (e *Env) both(ctx context.Context, r compare.Request) (want, got *compare.Answer, err error) {
	var wantErr, gotErr error
	var wg sync.WaitGroup
	wg.Go(func() { want, wantErr = e.Want.Do(ctx, r) })
	wg.Go(func() { got, gotErr = e.Got.Do(ctx, r) })
	wg.Wait()
	if wantErr != nil {
		return nil, nil, fmt.Errorf("the API server: %w", wantErr)
	}
	if gotErr != nil {
		return nil, nil, &compare.Difference{Request: r.String(), What: "answer", Want: strconv.Itoa(want.Code), Got: gotErr.Error()}
	}
	e.count(got)
	return want, got, nil
}

func (e *Env) count(got *compare.Answer) {
	e.answers.all.Add(1)
	if !got.FromUpstream() {
		e.answers.own.Add(1)
	}
}

// watch opens a watch at both endpoints; the caller closes it. Bookmarks other than
// the end bookmark are skipped unless the rule is about them: the time at which
// they come depends on a server's clock.
func (e *Env) watch(ctx context.Context, path string, options ...option) (*compare.Pair, error) {
	a := newAsking(path, options)
	p, err := compare.Watch(ctx, e.Want, e.Got, a.Request)
	if err != nil {
		return nil, err
	}
	e.count(p.Got.Answer)
	if all := e.masksFor(&a, p.Want.Answer); len(all) > 0 {
		p.Mask = func(frame []byte) []byte {
			for _, m := range all {
				frame = m(frame)
			}
			return frame
		}
	}
	if !a.bookmarks {
		for _, s := range []*compare.Stream{p.Want, p.Got} {
			s.Skip = func(f *compare.Frame) bool { return f.Type == "BOOKMARK" && !f.EndsInitial() }
		}
	}
	return p, nil
}

// servers returns the API servers: Replicas, or else Want.
func (e *Env) servers() []*compare.Endpoint {
	if e.Replicas != nil {
		return e.Replicas
	}
	return []*compare.Endpoint{e.Want}
}

// at waits until the API servers and the gateway have reached an RV of a collection,
// and the gateway serves the collection itself: its first list starts the watch. It
// returns the gateway's RV.
func (e *Env) at(ctx context.Context, path string, least uint64) (string, error) {
	path += "?resourceVersion=0&fieldSelector=" + url.QueryEscape("metadata.name=nothing-of-that-name")
	deadline := time.Now().Add(2 * time.Minute)
	for {
		reached, state := true, ""
		for _, at := range e.servers() {
			_, rv, err := version(ctx, at, path)
			if err != nil && !errors.Is(err, errInitializing) {
				return "", err
			}
			reached = reached && rv >= least && rv > 0
			state += fmt.Sprintf("%s is at %d, ", at.URL, rv)
		}
		got, rv, err := version(ctx, e.Got, path)
		if err != nil && !errors.Is(err, errInitializing) {
			return "", err
		}
		if reached && rv >= least && err == nil && !got.FromUpstream() {
			return strconv.FormatUint(rv, 10), nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("%s: waiting for %d, %sthe gateway at %d", path, least, state, rv)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
}

// errInitializing: an API server does not have the objects of a new resource yet.
var errInitializing = errors.New("storage is (re)initializing")

// version gets a list from an endpoint and returns its RV.
func version(ctx context.Context, e *compare.Endpoint, path string) (*compare.Answer, uint64, error) {
	a, err := e.Do(ctx, compare.Request{Path: path})
	if err != nil {
		return nil, 0, err
	}
	if a.Code == http.StatusTooManyRequests && strings.Contains(a.Text(), errInitializing.Error()) {
		return nil, 0, errInitializing
	}
	if a.Code != http.StatusOK {
		return nil, 0, fmt.Errorf("%s: %d %s", path, a.Code, a.Body)
	}
	rv, err := rvOf(a.Body)
	return a, rv, err
}

// rvOf returns the RV of an object or a list in JSON.
func rvOf(body []byte) (uint64, error) {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return 0, err
	}
	return strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
}

// together runs functions at the same time, up to a number of them, and joins
// their errors.
func together(limit int, all ...func() error) error {
	errs := make([]error, len(all))
	slots := make(chan struct{}, limit)
	var wg sync.WaitGroup
	for i, f := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f()
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
