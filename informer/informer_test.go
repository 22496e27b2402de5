// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

const minute = time.Minute

// A testPod is the type that tests decode pods to.
type testPod struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

var pods = Resource{Version: "v1", Name: "pods"}

// newInformer returns an informer whose upstream gives the answers in order.
func newInformer(t *testing.T, opts Options, answers ...script.Answer) (*Informer[testPod], *script.Upstream) {
	t.Helper()
	up := &script.Upstream{T: t, Answers: answers}
	u, _ := url.Parse("http://upstream")
	return New(NewSource(u, up), pods, JSON[testPod](), opts), up
}

// start runs the informer until the test ends or stop is called, which returns
// Run's error.
func start[T any](t *testing.T, i *Informer[T]) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- i.Run(ctx) }()
	return func() error {
		cancel()
		return <-result
	}
}

// describe formats an event in one short line.
func describe[T any](e Event[T]) string {
	text := fmt.Sprintf("%s %s", e.Type, e.Key)
	if e.Type == Synced {
		text = "SYNCED"
	}
	if e.Type != Synced {
		text += " "
	}
	if !e.Old.IsZero() {
		text += e.Old.RV()
	}
	text += "→"
	if !e.New.IsZero() {
		text += e.New.RV()
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{e.Initial, "initial"}, {e.Inferred, "inferred"}, {e.Coalesced, "coalesced"}} {
		if flag.set {
			text += " " + flag.name
		}
	}
	return text
}

// A transcript has the lines that a subscriber has written.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (d *transcript) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// read returns the lines once every goroutine of the bubble is waiting.
func (d *transcript) read() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// follow subscribes to events until the test ends.
func follow[T any](t *testing.T, i *Informer[T]) *transcript {
	t.Helper()
	d := &transcript{}
	ctx := t.Context()
	go func() {
		for e, err := range i.Events(ctx) {
			if err != nil {
				d.add("error")
				continue
			}
			d.add(describe(e))
		}
		d.add("over")
	}()
	synctest.Wait()
	return d
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if d := difference.Of(want, got); d != "" {
		t.Errorf("%s", d)
	}
}

// uid gives an object another UID.
func uid(frame, uid string) string { return strings.Replace(frame, `"uid":"u"`, `"uid":"`+uid+`"`, 1) }

func contents[T any](i *Informer[T]) map[string]string {
	all := map[string]string{}
	for key, ref := range i.All() {
		all[key.String()] = ref.RV()
	}
	return all
}

// TestI1Order: a subscriber receives events of an object in order and without a
// gap. I2: a deletion has the last bytes.
func TestI1Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true) +
			script.Event("MODIFIED", "a", 11) + script.Event("ADDED", "b", 12) + script.Event("MODIFIED", "a", 13) + script.Event("DELETED", "a", 14)})
		d := follow(t, i)
		stop := start(t, i)
		want(t, d.read(), "ADDED ns/a →3 initial", "SYNCED→", "UPDATED ns/a 3→11", "ADDED ns/b →12", "UPDATED ns/a 11→13", "DELETED ns/a 14→")
		if d := difference.Of(map[string]string{"ns/b": "12"}, contents(i)); d != "" || i.Len() != 1 {
			t.Error(d)
		}
		ref, ok := i.Get(Key{"ns", "b"})
		o, err := ref.Object()
		if raw, _ := ref.Raw(); !ok || err != nil || o.Metadata.Name != "b" || string(raw) != script.Pod("b", 12) {
			t.Errorf("%v %v %s", o, err, raw)
		}
		if s := i.Status(); s.Phase != Watching || s.RV != 14 || s.Objects != 1 || s.Relists["initial"] != 1 || s.Behind != 0 {
			t.Errorf("%+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := d.read(); got[len(got)-1] != "over" {
			t.Errorf("Events did not end with Run: %q", got)
		}
	})
}

var expired = `{"type":"ERROR","object":` + script.Status(410) + "}\n"

// TestI2Deletions: an object that is missing from a list is Deleted with its last
// known bytes, marked Inferred. I3: another UID is another object. I4: an object
// that has not changed causes no event.
func TestI2Deletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe,
			script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 4) + script.Event("ADDED", "c", 5) + script.Event("ADDED", "d", 6) + script.Bookmark(10, true) + expired},
			script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 12) + uid(script.Event("ADDED", "d", 13), "v") + script.Bookmark(20, true)})
		d := follow(t, i)
		start(t, i)
		want(t, d.read()[5:], "UPDATED ns/b 4→12", "DELETED ns/d 6→ inferred", "ADDED ns/d →13", "DELETED ns/c 5→ inferred")
		if d := difference.Of(map[string]string{"ns/a": "3", "ns/b": "12", "ns/d": "13"}, contents(i)); d != "" {
			t.Error(d)
		}
	})
}

// TestI3UID: an object is recreated with another UID, with and without an event of
// the deletion.
func TestI3UID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true) +
			uid(script.Event("MODIFIED", "a", 11), "v") + uid(script.Event("DELETED", "a", 12), "v") + uid(script.Event("ADDED", "a", 13), "w") + uid(script.Event("DELETED", "a", 14), "x")})
		d := follow(t, i)
		start(t, i)
		want(t, d.read()[2:], "DELETED ns/a 3→ inferred", "ADDED ns/a →11", "DELETED ns/a 12→", "ADDED ns/a →13", "DELETED ns/a 13→ inferred")
	})
}

// TestI5SlowSubscriber: a blocked subscriber does not block the copy, and receives
// coalesced events once it continues.
func TestI5SlowSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes strings.Builder
		for rv := 20; rv < 500; rv += 2 {
			changes.WriteString(script.Event("MODIFIED", "a", rv) + script.Event("MODIFIED", "b", rv+1))
		}
		i, _ := newInformer(t, Options{Backlog: 10}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 4) + script.Event("ADDED", "c", 5) + script.Bookmark(10, true),
			Late: []string{changes.String() + script.Event("DELETED", "b", 600) + uid(script.Event("ADDED", "b", 601), "v") + uid(script.Event("DELETED", "b", 602), "v") + uid(script.Event("ADDED", "b", 603), "w") +
				script.Event("DELETED", "c", 604) + script.Event("ADDED", "x", 605) + script.Event("DELETED", "x", 606)}})
		begin := make(chan bool)
		slow := &transcript{}
		i.Handle(Handler[testPod]{
			Add: func(now Ref[testPod]) { slow.add("add " + now.Key().Name + now.RV()) },
			Update: func(old, now Ref[testPod]) {
				slow.add("update " + now.Key().Name + old.RV() + "→" + now.RV())
				<-begin
			},
			Delete: func(last Ref[testPod]) { slow.add("delete " + last.Key().Name + last.RV()) },
		})
		start(t, i)
		time.Sleep(minute)
		if got := slow.read(); len(got) != 4 {
			t.Errorf("%q", got)
		}
		if s := i.Status(); s.RV != 606 || s.Behind > 10 {
			t.Errorf("the informer is at %d, the subscriber lags by %d events", s.RV, s.Behind)
		}
		close(begin)
		all := slow.read()
		of := func(name string) (got []string) {
			for _, line := range all {
				if strings.Contains(line, " "+name) {
					got = append(got, line)
				}
			}
			return got
		}
		want(t, of("c"), "add c5", "delete c604")
		want(t, of("x")) // added and deleted meanwhile
		if b := of("b"); len(b) < 3 || b[len(b)-2] != "delete b600" || b[len(b)-1] != "add b603" {
			t.Errorf("%q", b)
		}
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasSuffix(s, "→498") }) {
			t.Errorf("the last version of a is missing: %q", all)
		}
		// It had taken some events before it lagged.
		if len(all) > 80 {
			t.Errorf("%d events", len(all))
		}
	})
}

// TestI6FirstSync: WaitSynced returns why the first list fails.
func TestI6FirstSync(t *testing.T) {
	for name, test := range map[string]struct {
		answers []script.Answer
		is      func(error) bool
	}{
		"forbidden":          {[]script.Answer{{Code: 403, Body: script.Status(403)}}, refusedWith(403)},
		"not found":          {[]script.Answer{{Code: 404, Body: "404 page not found"}}, refusedWith(404)},
		"connection refused": {[]script.Answer{{Then: syscall.ECONNREFUSED, Again: true}}, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		"silence":            {[]script.Answer{{Stall: true}}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"429, then silence": {[]script.Answer{{Code: 429, Body: script.Status(429), Header: http.Header{"Retry-After": {"50"}}, Again: true}},
			func(err error) bool {
				return errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "429")
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &script.Upstream{T: t, Answers: test.answers}
				i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, withoutProbes{up}), pods, Raw(), Options{})
				stop := start(t, i)
				ctx, cancel := context.WithTimeout(t.Context(), 80*time.Second)
				defer cancel()
				began := time.Now()
				if err := i.WaitSynced(ctx); !errors.Is(err, ErrNotSynced) || !test.is(err) {
					t.Errorf("%v", err)
				}
				if took := time.Since(began); took > 10*time.Second && !strings.Contains(name, "silence") {
					t.Errorf("after %v", took)
				}
				if err := stop(); errors.As(err, new(*RefusedError)) != (name == "forbidden" || name == "not found") {
					t.Error(err)
				}
			})
		})
	}
}

func refusedWith(code int) func(error) bool {
	return func(err error) bool {
		refused, ok := errors.AsType[*RefusedError](err)
		return ok && refused.Code == code
	}
}

// withoutProbes hides from a script which requests are probes, so that it answers
// them in order too.
type withoutProbes struct{ *script.Upstream }

func (p withoutProbes) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.RawQuery += "&"
	return p.Upstream.RoundTrip(r)
}

// TestI7Restart: a second run starts from the copy of the first, and handlers
// receive the difference.
func TestI7Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 4) + script.Bookmark(10, true)},
			script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "c", 12) + script.Bookmark(20, true)})
		d := &transcript{}
		stopHandler := i.Handle(Handler[testPod]{
			Add:    func(now Ref[testPod]) { d.add("add " + now.Key().Name) },
			Delete: func(last Ref[testPod]) { d.add("delete " + last.Key().Name) },
			Synced: func() { d.add("synced") },
		})
		stop := start(t, i)
		synctest.Wait()
		if err := i.Run(t.Context()); !errors.Is(err, ErrRunning) {
			t.Errorf("a second Run: %v", err)
		}
		want(t, d.read(), "add a", "add b", "synced")
		if err := stop(); err != nil || i.Len() != 2 || i.Status().Phase != Stopped {
			t.Errorf("%v, %d objects, %s", err, i.Len(), i.Status().Phase)
		}
		stop = start(t, i)
		want(t, d.read()[3:], "add c", "delete b")
		again := follow(t, i)
		stopHandler()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := again.read(); len(got) != 4 || got[2] != "SYNCED→" || got[3] != "over" {
			t.Errorf("Events in the second run: %q", got)
		}
		if n := len(i.events.subs); n > 0 {
			t.Errorf("%d subscriptions remain", n)
		}
	})
}

// TestI7Handlers: Run waits for a call of a handler.
func TestI7Handlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 4) + script.Bookmark(10, true)})
		calls := 0
		i.Handle(Handler[testPod]{Add: func(Ref[testPod]) {
			time.Sleep(minute)
			calls++
		}})
		stop := start(t, i)
		synctest.Wait()
		if err := stop(); err != nil || calls != 1 {
			t.Errorf("%v, after %d calls", err, calls)
		}
	})
}

// TestI8LateSubscriber: a late subscriber receives the existing objects, then
// Synced.
func TestI8LateSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true) + script.Event("MODIFIED", "a", 11)})
		start(t, i)
		synctest.Wait()
		want(t, follow(t, i).read(), "ADDED ns/a →11 initial", "SYNCED→")
	})
}

// TestI9BackInTime: an etcd restored from a backup continues at lower RVs. The list
// replaces the copy, also where an object differs at an equal RV.
func TestI9BackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := script.Event("ADDED", "b", 3), script.Event("ADDED", "c", 4)
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 8) + b + c + script.Bookmark(10, true) + expired},
			script.At(6), script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 5) + b + strings.Replace(c, `"spec":{}`, `"spec":{"x":1}`, 1) + script.Bookmark(6, true) +
				script.Event("MODIFIED", "a", 7) + script.Event("MODIFIED", "a", 7)})
		d := follow(t, i)
		start(t, i)
		time.Sleep(time.Minute)
		want(t, d.read()[3:], "SYNCED→", "UPDATED ns/a 8→5", "UPDATED ns/c 4→4", "UPDATED ns/a 5→7")
		if rv := i.Status().RV; rv != 7 {
			t.Errorf("at %d", rv)
		}
	})
}

// TestBumpedRestore: an etcd restored from a backup with a revision bump continues at
// higher RVs. A list that is not below the head, but shows an object below what is
// held, or one that should be held, is of another history: another list replaces the
// copy.
func TestBumpedRestore(t *testing.T) {
	const bumped = 1_000_000_010
	a, b, c := script.Event("ADDED", "a", 4), script.Event("ADDED", "b", 3), script.Event("ADDED", "c", 5)
	for name, list := range map[string][]string{
		"an object is below what is held": {a, b},
		"after others in the list":        {b, script.Event("ADDED", "d", bumped-1), a},
		"a deleted object is back":        {b, script.Event("ADDED", "a", bumped-2), c},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := script.Answer{Want: script.Streaming, Stall: true, Body: strings.Join(list, "") + script.Bookmark(bumped, true)}
				i, _ := newInformer(t, Options{}, script.Probe,
					script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 8) + script.Event("ADDED", "b", 3) + script.Event("ADDED", "e", 6) + script.Bookmark(10, true) + expired},
					script.At(bumped), all, script.At(bumped), all)
				start(t, i)
				time.Sleep(time.Minute)
				got := map[string]string{}
				for key, ref := range i.All() {
					got[key.Name] = ref.RV()
				}
				want := map[string]string{}
				for _, line := range list {
					var e struct{ Object testPod }
					if err := json.Unmarshal([]byte(line), &e); err != nil {
						t.Fatal(err)
					}
					want[e.Object.Metadata.Name] = e.Object.Metadata.ResourceVersion
				}
				if d := difference.Of(want, got); d != "" {
					t.Errorf("%s", d)
				}
				if s := i.Status(); s.RV != bumped || s.Relists["diverged"] != 1 || s.Relists["expired"] != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestI9OutOfOrder: an event before the head is not applied and causes a relist.
func TestI9OutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 8) + script.Bookmark(10, true) + script.Event("ADDED", "b", 9)},
			script.At(11), script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 8) + script.Event("ADDED", "c", 11) + script.Bookmark(11, true)})
		d := follow(t, i)
		start(t, i)
		time.Sleep(minute)
		want(t, d.read(), "ADDED ns/a →8 initial", "SYNCED→", "error", "ADDED ns/c →11")
		if n := i.Status().Relists["diverged"]; n != 1 {
			t.Errorf("%d lists", n)
		}
	})
}

// TestSchemaChangeInCopy: after a change of its definition, a custom resource whose
// contents differ at the same RV is replaced.
func TestSchemaChangeInCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		custom := script.Answer{Want: "limit=1", Body: `{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"5"}}`}
		a, b := script.Event("ADDED", "a", 3), script.Event("ADDED", "b", 4)
		i, _ := newInformer(t, Options{}, custom, script.Answer{Want: script.Streaming, Body: a + b + script.Bookmark(10, true), Lasts: 5 * time.Second},
			custom, script.Answer{Want: script.Streaming, Stall: true, Body: a + strings.Replace(b, `"spec":{}`, `"spec":{"x":1}`, 1) + script.Bookmark(11, true)})
		d := follow(t, i)
		start(t, i)
		time.Sleep(minute)
		want(t, d.read()[2:], "SYNCED→", "UPDATED ns/b 4→4")
	})
}

// TestI7Definition: a run takes over how custom resources look at equal RVs, which may have
// changed with their definition since the run before.
func TestI7Definition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		custom := script.Answer{Want: "limit=1", Body: `{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"10"}}`}
		a := script.Event("ADDED", "a", 3)
		i, _ := newInformer(t, Options{}, custom, script.Answer{Want: script.Streaming, Stall: true, Body: a + script.Bookmark(10, true)},
			custom, script.Answer{Want: script.Streaming, Stall: true, Body: strings.Replace(a, `"spec":{}`, `"spec":{"x":1}`, 1) + script.Bookmark(10, true)})
		d := &transcript{}
		i.Handle(Handler[testPod]{Event: func(e Event[testPod]) { d.add(describe(e)) }})
		for range 2 {
			stop := start(t, i)
			time.Sleep(time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		want(t, d.read(), "ADDED ns/a →3 initial", "UPDATED ns/a 3→3")
	})
}

// TestI10WaitRV: WaitRV returns once the copy has the version written.
func TestI10WaitRV(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, syncedFor(minute), script.Answer{Want: script.From(10), Body: script.Event("MODIFIED", "a", 11), Stall: true})
		start(t, i)
		began := time.Now()
		if err := i.WaitRV(t.Context(), "11"); err != nil || time.Since(began) < minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if ref, _ := i.Get(Key{"ns", "a"}); ref.RV() != "11" {
			t.Errorf("the object is at %s", ref.RV())
		}
		ctx, cancel := context.WithTimeout(t.Context(), minute)
		defer cancel()
		if err := i.WaitRV(ctx, "12"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := i.WaitRV(ctx, "x"); err == nil {
			t.Error("no error for an RV that is not a number")
		}
	})
}

func syncedFor(lasts time.Duration) script.Answer {
	a := script.Synced
	a.Lasts = lasts
	return a
}

// byNamespace answers each namespace from its own script.
type byNamespace map[string]http.RoundTripper

func (b byNamespace) RoundTrip(r *http.Request) (*http.Response, error) {
	for ns, up := range b {
		if strings.HasPrefix(r.URL.Path, "/prefix/apis/apps/v1/namespaces/"+ns+"/deployments") {
			return up.RoundTrip(r)
		}
	}
	return nil, fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, r.URL)
}

// TestNamespaces: namespaces can be added and removed at run time.
func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := byNamespace{}
		for ns, rv := range map[string]int{"x": 5, "y": 6} {
			body := strings.ReplaceAll(script.Event("ADDED", "a", rv)+script.Bookmark(10, true), `"ns"`, `"`+ns+`"`)
			up[ns] = &script.Upstream{T: t, Answers: []script.Answer{script.At(5), {Want: script.Streaming + " labelSelector=app%3Dx fieldSelector=metadata.name%3Da", Stall: true, Body: body}}}
		}
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream", Path: "/prefix"}, up), Resource{"apps", "v1", "deployments"}, Raw(),
			Options{Namespaces: []string{"x"}, LabelSelector: "app=x", FieldSelector: "metadata.name=a"})
		d := follow(t, i)
		start(t, i)
		want(t, d.read(), "ADDED x/a →5 initial", "SYNCED→")
		for range 2 {
			if err := i.AddNamespace("y"); err != nil {
				t.Fatal(err)
			}
		}
		if err := i.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := i.RemoveNamespace("x"); err != nil {
			t.Fatal(err)
		}
		want(t, d.read()[2:], "ADDED y/a →6 initial", "DELETED x/a 5→ inferred")
		names, all := i.Namespaces()
		if want(t, names, "y"); all {
			t.Error("all namespaces")
		}
		if got := slices.Collect(maps.Keys(contents(i))); !slices.Equal(got, []string{"y/a"}) {
			t.Errorf("%q", got)
		}
		if _, ok := i.Get(Key{"y", "a"}); !ok {
			t.Error("y/a is missing")
		}
		if err := i.WaitRV(t.Context(), "10", "y"); err != nil {
			t.Error(err)
		}
	})
	for _, namespaces := range [][]string{nil, {"x", ""}} {
		i, _ := newInformer(t, Options{Namespaces: namespaces})
		if names, all := i.Namespaces(); names != nil || !all {
			t.Errorf("%q: %q, %v", namespaces, names, all)
		}
		if err := i.AddNamespace("x"); !errors.Is(err, ErrAllNamespaces) {
			t.Error(err)
		}
		if err := i.RemoveNamespace("x"); !errors.Is(err, ErrAllNamespaces) {
			t.Error(err)
		}
	}
}

// TestOwners: a Ref has its owners, one of which is the controller.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owners := `"uid":"u","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"},{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"2","controller":true}]`
		body := strings.Replace(script.Event("ADDED", "a", 3), `"uid":"u"`, owners, 1) + script.Event("ADDED", "b", 4) + script.Bookmark(10, true)
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Body: body, Stall: true})
		start(t, i)
		synctest.Wait()
		a, _ := i.Get(Key{"ns", "a"})
		b, _ := i.Get(Key{"ns", "b"})
		set := Owner{"apps/v1", "ReplicaSet", "r", "2", true}
		if all := a.Owners(); !slices.Equal(all, []Owner{{"v1", "Node", "n", "1", false}, set}) {
			t.Errorf("%+v", all)
		}
		if o, ok := a.Controller(); o != set || !ok {
			t.Errorf("%+v, %v", o, ok)
		}
		for _, none := range []Ref[testPod]{b, {}} {
			if o, ok := none.Controller(); ok || len(none.Owners()) > 0 {
				t.Errorf("%+v, %+v", o, none.Owners())
			}
		}
	})
}

// TestNamespaceNames: what cannot be a namespace's name is refused.
func TestNamespaceNames(t *testing.T) {
	i, _ := newInformer(t, Options{Namespaces: []string{"x"}})
	for _, name := range []string{"", ".", "..", "a/../../b", "a%2fb"} {
		if err := i.AddNamespace(name); err == nil || errors.Is(err, ErrAllNamespaces) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if names, _ := i.Namespaces(); !slices.Equal(names, []string{"x"}) {
		t.Errorf("%q", names)
	}
}

// TestEventObject: an event is about its last version; Synced is about none.
func TestEventObject(t *testing.T) {
	of := func(name string) Ref[testPod] {
		return Ref[testPod]{&record[testPod]{raw: []byte(script.Pod(name, 3)), format: &format[testPod]{codec: JSON[testPod]()}}}
	}
	for typ, want := range map[EventType]string{Added: "new", Updated: "new", Deleted: "old"} {
		o, err := Event[testPod]{Type: typ, Old: of("old"), New: of("new")}.Object()
		if o.Metadata.Name != want || err != nil {
			t.Errorf("%s: %q, %v", typ, o.Metadata.Name, err)
		}
	}
	if _, err := (Event[testPod]{Type: Synced}).Object(); !errors.Is(err, ErrNoObject) {
		t.Errorf("%s: %v", Synced, err)
	}
}

// seeds is how many random histories a test walks.
func seeds() uint64 {
	if testing.Short() {
		return 5
	}
	return 20
}
