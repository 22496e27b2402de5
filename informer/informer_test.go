// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A thing is what tests decode pods to.
type thing struct {
	Metadata struct{ Name, ResourceVersion string }
}

var pods = Resource{Version: "v1", Name: "pods"}

// newInformer returns an informer of the pods that the answers tell of.
func newInformer(t *testing.T, opts Options, answers ...answer) (*Informer[thing], *script) {
	t.Helper()
	up := &script{t: t, answers: answers}
	u, _ := url.Parse("http://upstream")
	return New(NewSource(u, up), pods, JSON[thing](), opts), up
}

// start runs the informer until the test, or stop, ends it; stop returns what
// Run returned.
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

// tell writes an event down, in short.
func tell[T any](e Event[T]) string {
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

// A diary is what a subscriber was told.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// read returns what there is, once everyone is waiting.
func (d *diary) read() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// follow subscribes until the test ends.
func follow[T any](t *testing.T, i *Informer[T]) *diary {
	t.Helper()
	d := &diary{}
	ctx := t.Context()
	go func() {
		for e, err := range i.Events(ctx) {
			if err != nil {
				d.add("error")
				continue
			}
			d.add(tell(e))
		}
		d.add("over")
	}()
	synctest.Wait()
	return d
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
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

// TestI1Order: what a subscriber is told of an object is in order and without a
// gap; I2: deletions come with the last bytes.
func TestI1Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + bookmark(10, true) +
			event("MODIFIED", "a", 11) + event("ADDED", "b", 12) + event("MODIFIED", "a", 13) + event("DELETED", "a", 14)})
		d := follow(t, i)
		stop := start(t, i)
		want(t, d.read(), "ADDED ns/a →3 initial", "SYNCED→", "UPDATED ns/a 3→11", "ADDED ns/b →12", "UPDATED ns/a 11→13", "DELETED ns/a 14→")
		if diff := cmp.Diff(map[string]string{"ns/b": "12"}, contents(i)); diff != "" || i.Len() != 1 {
			t.Error(diff)
		}
		ref, ok := i.Get(Key{"ns", "b"})
		o, err := ref.Object()
		if raw, _ := ref.Raw(); !ok || err != nil || o.Metadata.Name != "b" || string(raw) != podJSON("b", 12) {
			t.Errorf("%v %v %s", o, err, raw)
		}
		if s := i.Status(); s.Phase != Watching || s.RV != 14 || s.Objects != 1 || s.Relists["initial"] != 1 || s.Behind != 0 {
			t.Errorf("%+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := d.read(); got[len(got)-1] != "over" {
			t.Errorf("Events goes on behind Run: %q", got)
		}
	})
}

var expired = `{"type":"ERROR","object":` + status(410) + "}\n"

// TestI2Deletions: what a list no longer has is Deleted, inferred, with the last
// bytes known; I3: another UID is another object; I4: what has not changed is not
// told.
func TestI2Deletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe,
			answer{want: streaming, body: event("ADDED", "a", 3) + event("ADDED", "b", 4) + event("ADDED", "c", 5) + event("ADDED", "d", 6) + bookmark(10, true) + expired},
			probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + event("ADDED", "b", 12) + uid(event("ADDED", "d", 13), "v") + bookmark(20, true)})
		d := follow(t, i)
		start(t, i)
		want(t, d.read()[5:], "UPDATED ns/b 4→12", "DELETED ns/d 6→ inferred", "ADDED ns/d →13", "DELETED ns/c 5→ inferred")
		if diff := cmp.Diff(map[string]string{"ns/a": "3", "ns/b": "12", "ns/d": "13"}, contents(i)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestI3UID: a name that comes back with another UID in the watch, its deletion
// having been missed or not.
func TestI3UID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + bookmark(10, true) +
			uid(event("MODIFIED", "a", 11), "v") + uid(event("DELETED", "a", 12), "v") + uid(event("ADDED", "a", 13), "w") + uid(event("DELETED", "a", 14), "x")})
		d := follow(t, i)
		start(t, i)
		want(t, d.read()[2:], "DELETED ns/a 3→ inferred", "ADDED ns/a →11", "DELETED ns/a 12→", "ADDED ns/a →13", "DELETED ns/a 13→ inferred")
	})
}

// TestI5SlowSubscriber: one that does not come along blocks nobody, and is told
// of each object what matters, once it does.
func TestI5SlowSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes strings.Builder
		for rv := 20; rv < 500; rv += 2 {
			changes.WriteString(event("MODIFIED", "a", rv) + event("MODIFIED", "b", rv+1))
		}
		i, _ := newInformer(t, Options{Backlog: 10}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + event("ADDED", "b", 4) + event("ADDED", "c", 5) + bookmark(10, true),
			late: []string{changes.String() + event("DELETED", "b", 600) + uid(event("ADDED", "b", 601), "v") + uid(event("DELETED", "b", 602), "v") + uid(event("ADDED", "b", 603), "w") +
				event("DELETED", "c", 604) + event("ADDED", "x", 605) + event("DELETED", "x", 606)}})
		begin := make(chan bool)
		slow := &diary{}
		i.Handle(Handler[thing]{
			Add: func(now Ref[thing]) { slow.add("add " + now.Key().Name + now.RV()) },
			Update: func(old, now Ref[thing]) {
				slow.add("update " + now.Key().Name + old.RV() + "→" + now.RV())
				<-begin
			},
			Delete: func(last Ref[thing]) { slow.add("delete " + last.Key().Name + last.RV()) },
		})
		start(t, i)
		time.Sleep(minute)
		if got := slow.read(); len(got) != 4 {
			t.Errorf("%q", got)
		}
		if s := i.Status(); s.RV != 606 || s.Behind > 10 {
			t.Errorf("the informer stands at %d, %d events are held", s.RV, s.Behind)
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
		want(t, of("x")) // it came and went
		if b := of("b"); len(b) < 3 || b[len(b)-2] != "delete b600" || b[len(b)-1] != "add b603" {
			t.Errorf("%q", b)
		}
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasSuffix(s, "→498") }) {
			t.Errorf("the last of a is not in %q", all)
		}
		// What it had taken before it fell behind came as it was.
		if len(all) > 80 {
			t.Errorf("%d events", len(all))
		}
	})
}

// TestI6FirstSync: WaitSynced says what is wrong.
func TestI6FirstSync(t *testing.T) {
	for name, test := range map[string]struct {
		answers []answer
		is      func(error) bool
	}{
		"forbidden":    {[]answer{{code: 403, body: status(403)}}, refusedWith(403)},
		"not found":    {[]answer{{code: 404, body: "404 page not found"}}, refusedWith(404)},
		"nobody there": {[]answer{{then: syscall.ECONNREFUSED, again: true}}, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		"silence":      {[]answer{{stall: true}}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"out of order, and silence": {[]answer{{code: 429, body: status(429), header: http.Header{"Retry-After": {"50"}}, again: true}},
			func(err error) bool {
				return errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "429")
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &script{t: t, answers: test.answers}
				i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, plainly{up}), pods, Raw(), Options{})
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

// plainly asks a script without its knowing probes.
type plainly struct{ *script }

func (p plainly) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.RawQuery += "&"
	return p.script.RoundTrip(r)
}

// TestI7Restart: an informer that is run again goes on with what it holds, and
// so do its handlers.
func TestI7Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + event("ADDED", "b", 4) + bookmark(10, true)},
			probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + event("ADDED", "c", 12) + bookmark(20, true)})
		d := &diary{}
		stopHandler := i.Handle(Handler[thing]{
			Add:    func(now Ref[thing]) { d.add("add " + now.Key().Name) },
			Delete: func(last Ref[thing]) { d.add("delete " + last.Key().Name) },
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
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// TestI7Handlers: Run waits for a handler that is at work.
func TestI7Handlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + event("ADDED", "b", 4) + bookmark(10, true)})
		calls := 0
		i.Handle(Handler[thing]{Add: func(Ref[thing]) {
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

// TestI8LateSubscriber: it is told what there is, and then that this was all.
func TestI8LateSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + bookmark(10, true) + event("MODIFIED", "a", 11)})
		start(t, i)
		synctest.Wait()
		want(t, follow(t, i).read(), "ADDED ns/a →11 initial", "SYNCED→")
	})
}

// TestI9BackInTime: an older version of an object does not replace a newer one;
// but where the upstream's history is another one, it does.
func TestI9BackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := event("ADDED", "b", 3), event("ADDED", "c", 4)
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, body: event("ADDED", "a", 8) + b + c + bookmark(10, true) + expired},
			at(10), answer{want: streaming, body: event("ADDED", "a", 7) + b + c + bookmark(11, true) + expired},
			at(6), answer{want: streaming, stall: true, body: event("ADDED", "a", 5) + b + strings.Replace(c, `"spec":{}`, `"spec":{"x":1}`, 1) + bookmark(6, true) +
				event("MODIFIED", "a", 7) + event("MODIFIED", "a", 7)})
		d := follow(t, i)
		start(t, i)
		time.Sleep(time.Minute)
		want(t, d.read()[3:], "SYNCED→", "error", "UPDATED ns/a 8→5", "UPDATED ns/c 4→4", "UPDATED ns/a 5→7")
		if rv := i.Status().RV; rv != 7 {
			t.Errorf("at %d", rv)
		}
	})
}

// TestI9OutOfOrder: a watch that tells of the past is not believed; there is a
// list.
func TestI9OutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, body: event("ADDED", "a", 8) + bookmark(10, true) + event("ADDED", "b", 9)},
			at(11), answer{want: streaming, stall: true, body: event("ADDED", "a", 8) + event("ADDED", "c", 11) + bookmark(11, true)})
		d := follow(t, i)
		start(t, i)
		time.Sleep(minute)
		want(t, d.read(), "ADDED ns/a →8 initial", "SYNCED→", "error", "ADDED ns/c →11")
		if n := i.Status().Relists["diverged"]; n != 1 {
			t.Errorf("%d lists", n)
		}
	})
}

// TestSchemaOfCopy: where the same version of a custom resource looks otherwise, since
// its definition has changed, it is taken over.
func TestSchemaOfCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		custom := answer{want: "limit=1", body: `{"apiVersion":"v1","items":[],"kind":"PodList","metadata":{"continue":"","resourceVersion":"5"}}`}
		a, b := event("ADDED", "a", 3), event("ADDED", "b", 4)
		i, _ := newInformer(t, Options{}, custom, answer{want: streaming, body: a + b + bookmark(10, true), lasts: 5 * time.Second},
			custom, answer{want: streaming, stall: true, body: a + strings.Replace(b, `"spec":{}`, `"spec":{"x":1}`, 1) + bookmark(11, true)})
		d := follow(t, i)
		start(t, i)
		time.Sleep(minute)
		want(t, d.read()[2:], "SYNCED→", "UPDATED ns/b 4→4")
	})
}

// TestI10WaitRV waits for what was written.
func TestI10WaitRV(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, synced2(minute), answer{want: from(10), body: event("MODIFIED", "a", 11), stall: true})
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
			t.Error("waited for no number")
		}
	})
}

func synced2(lasts time.Duration) answer {
	a := synced
	a.lasts = lasts
	return a
}

// TestPolicies: whatever is done with the bytes, the objects are the same.
func TestPolicies(t *testing.T) {
	const managed = `"managedFields":[{"manager":"m"}]`
	full := strings.Replace(podJSON("a", 3), `"uid"`, managed+`,"uid"`, 1)
	for name, test := range map[string]struct {
		opts Options
		raw  string
	}{
		"raw":        {Options{}, podJSON("a", 3)},
		"all":        {Options{KeepManagedFields: true}, full},
		"decoded":    {Options{Decoded: true}, podJSON("a", 3)},
		"compressed": {Options{Compression: backwards{}}, podJSON("a", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				labelled := strings.Replace(full, `"uid"`, `"labels":{"app":"x"},"uid"`, 1)
				i, _ := newInformer(t, test.opts, probe, answer{want: streaming, code: 400, body: status(400)},
					answer{want: "limit=500", body: page(10, "", labelled)}, answer{want: from(10), stall: true})
				start(t, i)
				if err := i.WaitSynced(t.Context()); err != nil {
					t.Fatal(err)
				}
				ref, _ := i.Get(Key{"ns", "a"})
				raw, _ := ref.Raw()
				if want := strings.Replace(test.raw, `"uid"`, `"labels":{"app":"x"},"uid"`, 1); !sameJSON(t, string(raw), want) {
					t.Errorf("%s, want %s", raw, want)
				}
				for range 2 {
					if o, err := ref.Object(); err != nil || o.Metadata.Name != "a" {
						t.Errorf("%+v %v", o, err)
					}
				}
				if v, ok := ref.Label("app"); v != "x" || !ok {
					t.Errorf("label %q %v", v, ok)
				}
				if _, ok := ref.Label("none"); ok {
					t.Error("there is a label of no object")
				}
			})
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		t.Errorf("no JSON: %s, %s", a, b)
	}
	return cmp.Equal(x, y)
}

// backwards is a compression of sorts.
type backwards struct{}

func (backwards) Compress(dst, src []byte) []byte {
	for _, c := range slices.Backward(src) {
		dst = append(dst, c)
	}
	return dst
}

func (b backwards) Decompress(dst, src []byte) ([]byte, error) { return b.Compress(dst, src), nil }

// byNamespace answers by namespace, each with a script of its own.
type byNamespace map[string]*script

func (b byNamespace) RoundTrip(r *http.Request) (*http.Response, error) {
	for ns, up := range b {
		if strings.HasPrefix(r.URL.Path, "/prefix/apis/apps/v1/namespaces/"+ns+"/deployments") {
			return up.RoundTrip(r)
		}
	}
	return nil, fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, r.URL)
}

// TestNamespaces: they come and go at run time.
func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := byNamespace{}
		for ns, rv := range map[string]int{"x": 5, "y": 6} {
			body := strings.ReplaceAll(event("ADDED", "a", rv)+bookmark(10, true), `"ns"`, `"`+ns+`"`)
			up[ns] = &script{t: t, answers: []answer{at(5), {want: streaming + " labelSelector=app%3Dx fieldSelector=metadata.name%3Da", stall: true, body: body}}}
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
		want(t, i.Namespaces(), "y")
		if got := slices.Collect(maps.Keys(contents(i))); !slices.Equal(got, []string{"y/a"}) {
			t.Errorf("%q", got)
		}
		if _, ok := i.Get(Key{"y", "a"}); !ok {
			t.Error("y/a is not there")
		}
		if err := i.WaitRV(t.Context(), "10", "y"); err != nil {
			t.Error(err)
		}
	})
	i, _ := newInformer(t, Options{})
	if err := i.AddNamespace("x"); !errors.Is(err, ErrAllNamespaces) {
		t.Error(err)
	}
	if err := i.RemoveNamespace("x"); !errors.Is(err, ErrAllNamespaces) {
		t.Error(err)
	}
}

// TestIndex: an index finds what there is, whether it was there before the
// index or not.
func TestIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, probe, answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + event("ADDED", "bb", 4) + event("ADDED", "cc", 5) + bookmark(10, true)})
		byLength := func(r Ref[thing]) iter.Seq[int] {
			return func(yield func(int) bool) {
				_ = yield(len(r.Key().Name)) && yield(len(r.RV())*100)
			}
		}
		before := AddIndex(i, byLength)
		start(t, i)
		synctest.Wait()
		after := AddIndex(i, byLength)
		s := i.shards[""]
		s.replace(s.objects["ns/cc"], nil, entry[thing]{typ: Deleted, old: s.objects["ns/cc"]})
		for _, x := range []*Index[thing, int]{before, after} {
			names := map[int][]string{}
			for _, k := range x.Keys() {
				for key := range x.Get(k) {
					names[k] = append(names[k], key.Name)
				}
				slices.Sort(names[k])
			}
			if diff := cmp.Diff(map[int][]string{1: {"a"}, 2: {"bb"}, 100: {"a", "bb"}}, names); diff != "" {
				t.Error(diff)
			}
			if len(x.keysOf) != 2 {
				t.Errorf("%d objects in the index", len(x.keysOf))
			}
		}
	})
}

// counting counts what it decodes.
type counting struct {
	Codec[thing]
	n *int
}

func (c counting) Decode(raw []byte) (thing, error) {
	*c.n++
	return c.Codec.Decode(raw)
}

// TestDecodedOnce: who reads an object that has just been read gets the same.
func TestDecodedOnce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it forgets when there is a collection
	n := 0
	r := &record[thing]{raw: []byte(podJSON("a", 3)), format: &format[thing]{codec: counting{JSON[thing](), &n}}}
	for range 3 {
		if o, err := (Ref[thing]{r}).Object(); err != nil || o.Metadata.Name != "a" {
			t.Errorf("%v, %v", o, err)
		}
	}
	if n != 1 {
		t.Errorf("decoded %d times", n)
	}
	if _, err := (Ref[thing]{}).Object(); err == nil {
		t.Error("no object is one")
	}
}
