// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// An outage is an API server whose answers a test changes.
type outage struct {
	up  *Server
	log *logtest.Log

	mu    sync.Mutex
	hangs chan struct{} // requests wait for it; nil if they do not
	ready string        // the body of a 500 to /readyz; "" for a 200
	code  int           // the code of /readyz without that, and with 429 and 401 of all; 0 for 200
	asked map[string]int
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	o := &outage{log: &logtest.Log{}, asked: map[string]int{}}
	api := informertest.NewNetwork(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		hangs, ready, code := o.hangs, o.ready, o.code
		o.asked[r.URL.Path]++
		o.mu.Unlock()
		if hangs != nil {
			select {
			case <-hangs:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests || code == http.StatusUnauthorized {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","code":%d}`, code)
			return
		}
		if r.URL.Path == versionPath {
			io.WriteString(w, `{"gitVersion":"v1.36.0"}`)
		}
		if r.URL.Path == "/readyz" && ready != "" {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, ready)
		} else if r.URL.Path == "/readyz" && code != 0 {
			w.WriteHeader(code)
		}
		if r.URL.Path == "/stream" {
			for range 3 {
				io.WriteString(w, "bookmark\n")
				http.NewResponseController(w).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}
	}))
	t.Cleanup(api.Close)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != api.URL().Host+":80" { // TestRefusedConnection's
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		return api.Dial(ctx, network, address)
	}
	up, err := New(&rest.Config{Host: api.URL().String(), Dial: dial}, Options{Logger: slog.New(slog.NewTextHandler(o.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	o.up = up
	return o
}

func (o *outage) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// monitor runs Monitor until the test ends.
func (o *outage) monitor(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.up.Monitor(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// logs waits until the log has a text.
func (o *outage) logs(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(o.log.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log has no %q:\n%s", text, o.log)
		}
	}
}

// age makes the last contact older.
func (o *outage) age() { o.up.lastAnswer.Store(time.Now().Add(-maxAnswerAge).UnixNano()) }

// TestSilence: an API server that accepts connections and says nothing is asked, and the
// log has one line when its silence is known, and one when it answers again.
func TestSilence(t *testing.T) { synctest.Test(t, testSilence) }

func testSilence(t *testing.T) {
	o := newOutage(t)
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume := make(chan struct{})
	o.set(func() { o.hangs = resume })
	o.age()
	last := o.up.LastAnswer()
	o.monitor(t)
	o.logs(t, `level=WARN msg="the API server does not answer" since=`+last.UTC().Format(time.RFC3339Nano))
	if c := o.up.Contact(); c.Err == nil || !c.Last.Equal(last) || !c.Since.Equal(last) || !c.Unknown(time.Now()) || c.Unknown(last) {
		t.Errorf("contact %+v", c)
	}
	if err := o.up.Check(t.Context()); err == nil {
		t.Error("Check during the outage: no error")
	}
	o.set(func() { o.hangs = nil })
	close(resume)
	o.logs(t, `level=INFO msg="the API server answers again" after=1`) // ten seconds and more
	if c := o.up.Contact(); c.Err != nil || c.Unknown(time.Now()) || c.String() != "" {
		t.Errorf("contact %+v", c)
	}
	if n := strings.Count(o.log.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, o.log)
	}
}

// TestContactUntil: a read up to now asks an API server that has just become silent, once. The
// first thing that it sends ends an outage, before it is asked again.
func TestContactUntil(t *testing.T) { synctest.Test(t, testContactUntil) }

func testContactUntil(t *testing.T) {
	o := newOutage(t)
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume := make(chan struct{})
	defer close(resume)
	o.set(func() { o.hangs = resume })
	last := o.up.LastAnswer()
	if c := o.up.ContactUntil(t.Context(), last.Add(freshFor/2)); c.Err != nil {
		t.Errorf("just after the contact: %+v", c)
	}
	time.Sleep(freshFor)
	for range 2 {
		if c := o.up.ContactUntil(t.Context(), last.Add(freshFor)); c.Err == nil || !c.Since.Equal(last) || !c.Unknown(last.Add(1)) {
			t.Errorf("some seconds later: %+v", c)
		}
	}
	o.set(func() {
		if n := o.asked[versionPath]; n != 2 { // one was Check's
			t.Errorf("asked %d times", n)
		}
	})
	if c := o.up.Contact(); c.Err != nil {
		t.Errorf("an outage after seconds: %v", c.Err)
	}
	o.age()
	if err := o.up.Check(t.Context()); err == nil || o.up.Contact().Err == nil {
		t.Fatal("no outage")
	}
	o.up.heard()
	if c := o.up.ContactUntil(t.Context(), time.Now()); c.Err != nil {
		t.Errorf("something was sent: %+v", c)
	}
	o.up.monitor.settle(errors.New("no answer"), o.up.LastAnswer())
	if c := o.up.Contact(); c.Err == nil || !c.Since.Equal(c.Last) {
		t.Errorf("silent again: %+v", c)
	}
}

// TestContact: each part of an answer is a contact, after which nothing need be asked.
func TestContact(t *testing.T) {
	o := newOutage(t)
	res, err := o.up.Agent().RoundTrip(o.up.NewRequest(t.Context(), http.MethodGet, "/stream", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for range 3 {
		o.age()
		if _, err := res.Body.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := o.up.Probe(t.Context()); err != nil || time.Since(o.up.LastAnswer()) > maxAnswerAge/2 {
			t.Fatalf("%v, last answer %v", err, o.up.LastAnswer())
		}
	}
	if n := o.asked["/version"]; n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// TestRefusedConnection: an API server that was killed is asked at once, whenever it was
// heard last.
func TestRefusedConnection(t *testing.T) {
	o := newOutage(t)
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.up.base.Host = "127.0.0.1:1"
	o.monitor(t)
	if _, err := o.up.Agent().RoundTrip(o.up.NewRequest(t.Context(), http.MethodGet, "/api", "")); err == nil {
		t.Fatal("no error")
	}
	if !o.up.Broken() {
		t.Error("the connection is not known as broken")
	}
	log := slog.New(slog.NewTextHandler(o.log, nil))
	quiet := o.up.Quiet(log).With("resource", "pods")
	quiet.Info("watch interrupted", "cause", "connection refused")
	quiet.Info("synced again after a relist", "from", 1) // the first sign of its end
	o.logs(t, "connection refused")
	o.logs(t, `msg="synced again after a relist" resource=pods from=1`)
	if strings.Contains(o.log.String(), "watch interrupted") {
		t.Errorf("a line for a resource:\n%s", o.log)
	}
}

// TestFrozenWhileAsked: an API server that freezes while it is asked whether it is ready does
// not answer; it is not called one that is not ready.
func TestFrozenWhileAsked(t *testing.T) { synctest.Test(t, testFrozenWhileAsked) }

func testFrozenWhileAsked(t *testing.T) {
	o := newOutage(t)
	o.up.heard() // so that it is asked nothing else before
	resume := make(chan struct{})
	defer close(resume)
	o.set(func() { o.hangs = resume })
	if err := o.up.Check(t.Context()); err == nil || o.up.Contact().NotReady() {
		t.Errorf("%v, contact %+v", err, o.up.Contact())
	}
	o.set(func() {
		if o.asked["/readyz"] != 1 || o.asked[versionPath] != 1 {
			t.Errorf("asked %v", o.asked)
		}
	})
}

// TestReadySince: an API server is asked again whether it is ready after a connection broke:
// it may have started again.
func TestReadySince(t *testing.T) {
	o := newOutage(t)
	before := time.Now()
	first, err := o.up.ReadySince(t.Context())
	if err != nil || first.Before(before) {
		t.Fatalf("ready since %v, %v", first, err)
	}
	if again, err := o.up.ReadySince(t.Context()); err != nil || !again.Equal(first) {
		t.Errorf("ready since %v, %v, and before since %v", again, err, first)
	}
	o.up.setBroken()
	o.up.heard()
	o.set(func() { o.ready = "[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n" })
	if since, err := o.up.ReadySince(t.Context()); err == nil {
		t.Errorf("ready since %v, though it says that it is not", since)
	}
	o.set(func() { o.ready = "" })
	ready := time.Now()
	since, err := o.up.ReadySince(t.Context())
	if err != nil || since.Before(ready) {
		t.Errorf("ready since %v, %v", since, err)
	}
	if again, err := o.up.ReadySince(t.Context()); err != nil || !again.Equal(since) {
		t.Errorf("ready since %v, %v, and before since %v", again, err, since)
	}
}

// TestNotReady: an API server that answers, but says that it is not ready, is not up. One
// that does not say is.
func TestNotReady(t *testing.T) { synctest.Test(t, testNotReady) }

func testNotReady(t *testing.T) {
	o := newOutage(t)
	o.set(func() { o.code = http.StatusForbidden })
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.up.monitor.readyz = time.Now().Add(time.Hour) // the ten seconds do not end in this test
	o.set(func() { o.ready = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n" })
	if err := o.up.Check(t.Context()); err != nil {
		t.Errorf("asked more than once in ten seconds: %v", err)
	}
	const want = "the API server is not ready: [-]etcd failed"
	ready := time.Now().Add(-maxAnswerAge)
	o.up.monitor.readyz, o.up.monitor.asked = ready, ready
	o.monitor(t) // asks although the API server has just been heard
	o.logs(t, want)
	if err := o.up.Check(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	said := "the API server is not ready, and was known to be at " + ready.UTC().Format(time.RFC3339)
	if c := o.up.Contact(); c.Err == nil || !c.Since.Equal(ready) || !c.Last.After(ready) || c.String() != said {
		t.Errorf("contact %+v: %s", c, c)
	}
	o.set(func() { o.ready = "" })
	o.logs(t, `level=INFO msg="the API server is ready again"`)
	if !strings.Contains(o.log.String(), `level=WARN msg="`+want+`"`) || strings.Count(o.log.String(), "\n") != 2 {
		t.Errorf("log:\n%s", o.log)
	}
}

// TestUnaccepted: an API server that refuses the gateway's credentials is not called silent.
func TestUnaccepted(t *testing.T) { synctest.Test(t, testUnaccepted) }

func testUnaccepted(t *testing.T) {
	o := newOutage(t)
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := time.Now()
	o.set(func() { o.code = http.StatusUnauthorized })
	o.monitor(t)
	o.logs(t, `level=WARN msg="the API server does not accept the gateway's credentials"`)
	if c, want := o.up.Contact(), "the API server does not accept the gateway's credentials, and was known to at "+heard.UTC().Format(time.RFC3339); c.String() != want {
		t.Errorf("%s, want %s", c, want)
	}
	for range 60 { // a watch that was opened before goes on
		o.up.lastAnswer.Store(time.Now().UnixNano())
		time.Sleep(time.Second)
		if c := o.up.ContactUntil(t.Context(), time.Now()); !c.Answers() || c.NotReady() || !c.Since.Equal(heard) {
			t.Fatalf("%+v", c)
		}
	}
	if n := strings.Count(o.log.String(), "\n"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, o.log.String())
	}
	o.set(func() { o.code = 0 })
	o.logs(t, "accepts the gateway's credentials again")
}

// TestUnacceptedWhileHeard: refused credentials are found although watches go on.
func TestUnacceptedWhileHeard(t *testing.T) { synctest.Test(t, testUnacceptedWhileHeard) }

func testUnacceptedWhileHeard(t *testing.T) {
	o := newOutage(t)
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.monitor(t)
	o.set(func() { o.code = http.StatusUnauthorized })
	for range 12 { // by the question of every ten seconds whether it is ready
		o.up.lastAnswer.Store(time.Now().UnixNano())
		time.Sleep(time.Second)
	}
	if c := o.up.Contact(); c.Fault() != "does not accept the gateway's credentials" {
		t.Errorf("%+v", c)
	}
}

// TestUnacceptedFromNowOn: refused credentials that a question about now has found last, though
// something is heard after it.
func TestUnacceptedFromNowOn(t *testing.T) { synctest.Test(t, testUnacceptedFromNowOn) }

func testUnacceptedFromNowOn(t *testing.T) {
	o := newOutage(t)
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.set(func() { o.code = http.StatusUnauthorized })
	time.Sleep(freshFor)
	o.up.ContactUntil(t.Context(), time.Now())
	o.up.lastAnswer.Store(time.Now().UnixNano())
	if c := o.up.ContactUntil(t.Context(), time.Now()); !c.Answers() {
		t.Errorf("%+v", c)
	}
}

// TestRefusesEverything: an API server that answers 429 to all requests for half a minute is not
// ready, nor has it served anything since. It is again when it serves something.
func TestRefusesEverything(t *testing.T) { synctest.Test(t, testRefusesEverything) }

func testRefusesEverything(t *testing.T) {
	o := newOutage(t)
	if err := o.up.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := time.Now()
	o.set(func() { o.code = http.StatusTooManyRequests })
	o.monitor(t)
	time.Sleep(maxRefused - 5*time.Second)
	if c := o.up.ContactUntil(t.Context(), time.Now()); c.Err != nil {
		t.Errorf("%s after the last answer: %v", time.Since(ready), c.Err)
	}
	time.Sleep(maxAnswerAge + 5*time.Second)
	const want = "the API server is not ready: /readyz: 429 Too Many Requests"
	if c := o.up.ContactUntil(t.Context(), time.Now()); c.Err == nil || c.Err.Error() != want || !c.Since.Equal(ready) || !c.Last.Equal(ready) {
		t.Errorf("%s after the last answer: %+v", time.Since(ready), c)
	}
	o.set(func() { o.code = 0 })
	o.logs(t, `level=INFO msg="the API server is ready again"`)
}
