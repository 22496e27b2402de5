// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
)

// unhandled has the errors reported to utilruntime since a test last read them. It
// replaces the default handlers, one of which limits the rate of errors by a clock
// outside of the bubble.
var unhandled = &diary{}

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { unhandled.add(err.Error()) }}
	m.Run()
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// settle advances the bubble's time by a minute and waits until all is idle.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// checkDone tests the result of HasSyncedChecker, which client-go's interfaces have
// since 0.36.
func checkDone(t *testing.T, of any, name string, want bool) {
	t.Helper()
	m := reflect.ValueOf(of).MethodByName("HasSyncedChecker")
	if !m.IsValid() {
		return // the compiler checks that the interfaces' methods exist
	}
	checker := m.Call(nil)[0].Interface().(interface {
		Name() string
		Done() <-chan struct{}
	})
	done := false
	select {
	case <-checker.Done():
		done = true
	default:
	}
	if done != want || checker.Name() != name {
		t.Errorf("%s is done: %t", checker.Name(), done)
	}
}

// TestHandlers: handlers receive the existing objects and the changes in order,
// removed handlers nothing. synctest fails the test if a goroutine is left after
// the informer has stopped.
func TestHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(t)
		u.put("ns/a", "red")
		u.put("ns/b", "blue")
		a := newTestInformer(u, nil)
		early, late, removed := &diary{}, &diary{}, &diary{}
		first, err := a.AddEventHandler(early)
		if err != nil {
			t.Fatal(err)
		}
		if a.HasSynced() || first.HasSynced() || a.LastSyncResourceVersion() != "" {
			t.Error("synced before the start")
		}
		checkDone(t, a, "informer of *unstructured.Unstructured", false)
		checkDone(t, first, "handler of *unstructured.Unstructured", false)
		stop := run(t, a)
		settle()
		if !a.HasSynced() || !first.HasSynced() || a.LastSyncResourceVersion() != "12" || a.store.LastStoreSyncResourceVersion() != "12" {
			t.Errorf("not synced, at %q", a.LastSyncResourceVersion())
		}
		checkDone(t, a, "informer of *unstructured.Unstructured", true)
		checkDone(t, a.GetController(), "informer of *unstructured.Unstructured", true)
		checkDone(t, first, "handler of *unstructured.Unstructured", true)
		want(t, early.read(), "add ns/a@11 red initial", "add ns/b@12 blue initial")

		gone, err := a.AddEventHandler(removed)
		if err != nil {
			t.Fatal(err)
		}
		settle()
		if !gone.HasSynced() || len(removed.read()) != 2 {
			t.Error("a late handler did not receive the existing objects")
		}
		for range 2 {
			if err := a.RemoveEventHandler(gone); err != nil {
				t.Error(err)
			}
		}

		u.put("ns/a", "green")
		u.put("ns/c", "white")
		u.remove("ns/b", "black")
		settle()
		want(t, early.read(), "update ns/a@11 red → ns/a@13 green", "add ns/c@14 white", "delete ns/b@15 black")
		want(t, removed.read())

		// Changes that only a list shows: one object deleted, one recreated.
		u.forget(func() {
			u.Put("configmaps", u.object("ns/c", "new", "another"))
			u.Delete("configmaps", "ns/a")
		})
		settle()
		got := early.read()
		slices.Sort(got)
		want(t, got, "add ns/c@16 new", "delete unseen ns/a: ns/a@13 green", "delete unseen ns/c: ns/c@14 white")

		second, err := a.AddEventHandler(late)
		if err != nil {
			t.Fatal(err)
		}
		settle()
		want(t, late.read(), "add ns/c@16 new initial")
		if !second.HasSynced() || !cache.WaitForCacheSync(t.Context().Done(), second.HasSynced, a.HasSynced) {
			t.Error("a late handler is not synced")
		}
		if err := newTestInformer(u, nil).RemoveEventHandler(second); err == nil {
			t.Error("no error for the handler of another informer")
		}
		stop()
		u.put("ns/c", "unseen")
		settle()
		want(t, early.read())
		want(t, late.read())
	})
}

// TestOwnRemoval: a handler may remove itself and add another one during a call.
func TestOwnRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(t)
		u.put("ns/a", "red")
		u.put("ns/b", "red")
		a := newTestInformer(u, nil)
		var own cache.ResourceEventHandlerRegistration
		other := &diary{}
		calls := 0
		var err error
		own, err = a.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) {
			calls++
			if err := a.RemoveEventHandler(own); err != nil {
				t.Error(err)
			}
			if _, err := a.AddEventHandler(other); err != nil {
				t.Error(err)
			}
		}}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, a)
		time.Sleep(3 * time.Hour)
		if got := other.read(); calls != 1 || len(got) != 2 {
			t.Errorf("%d calls, %v", calls, got)
		}
		stop()
	})
}

// TestRemovedMeanwhile: an event that waited for a resync is not passed to a handler that
// was removed during it.
func TestRemovedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(t)
		u.put("ns/a", "red")
		a := newTestInformer(u, nil)
		stop := run(t, a)
		settle()
		d := &diary{}
		handle, err := a.AddEventHandler(d)
		if err != nil {
			t.Fatal(err)
		}
		settle()
		want(t, d.read(), "add ns/a@11 red initial")
		if err := a.RemoveEventHandler(handle); err != nil {
			t.Error(err)
		}
		ref, _ := a.inf.Get(informer.Key{Namespace: "ns", Name: "a"})
		handle.(*registration[*unstructured.Unstructured]).dispatch(informer.Event[*unstructured.Unstructured]{Type: informer.Added, Key: ref.Key(), New: ref})
		want(t, d.read())
		stop()
	})
}

// TestRemovedWhileDecoding: a handler that is removed while an object is decoded for it is
// not called: for neither version of an update, nor in a resync.
func TestRemovedWhileDecoding(t *testing.T) {
	update := func(r *registration[configMap], old, now informer.Ref[configMap]) {
		r.dispatch(informer.Event[configMap]{Type: informer.Updated, Key: now.Key(), Old: old, New: now})
	}
	for name, test := range map[string]struct {
		decoding int
		call     func(r *registration[configMap], old, now informer.Ref[configMap])
	}{
		"new version": {1, update},
		"old version": {2, update},
		"resync": {1, func(r *registration[configMap], _, now informer.Ref[configMap]) {
			r.known[now.Key()] = now
			r.resync(t.Context())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testRemovedWhileDecoding(t, test.decoding, test.call) })
		})
	}
}

// testRemovedWhileDecoding removes the handler during the given decoding of call.
func testRemovedWhileDecoding(t *testing.T, decoding int, call func(r *registration[configMap], old, now informer.Ref[configMap])) {
	u := newUpstream(t)
	u.put("ns/a", "red")
	u.put("ns/b", "blue")
	a := newTestInformer(u, nil)
	d := &diary{}
	r := &registration[configMap]{of: a, handler: d, removed: make(chan struct{}), known: map[informer.Key]informer.Ref[configMap]{}}
	r.stop = func() { close(r.removed) }
	a.handlers[r] = true
	decoded := 0
	if err := a.SetTransform(func(o any) (any, error) {
		if decoded++; decoded == decoding {
			if err := a.RemoveEventHandler(r); err != nil {
				t.Error(err)
			}
		}
		return o, nil
	}); err != nil {
		t.Fatal(err)
	}
	stop := run(t, a)
	settle()
	old, _ := a.inf.Get(informer.Key{Namespace: "ns", Name: "a"})
	now, _ := a.inf.Get(informer.Key{Namespace: "ns", Name: "b"})
	call(r, old, now)
	want(t, d.read())
	if decoded < decoding {
		t.Errorf("%d objects were decoded", decoded)
	}
	stop()
}

// TestStop: an informer runs once.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestInformer(newUpstream(t), nil)
		if a.IsStopped() {
			t.Error("stopped before the start")
		}
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Run(stop)
		}()
		settle()
		a.Run(nil) // returns
		if err := a.SetTransform(nil); err == nil {
			t.Error("no error for a transform after the start")
		}
		if err := a.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err == nil {
			t.Error("no error for a watch error handler after the start")
		}
		c := a.GetController()
		c.Run(nil) // does nothing
		c.RunWithContext(t.Context())
		if !c.HasSynced() || c.LastSyncResourceVersion() != "10" || a.IsStopped() {
			t.Errorf("the controller is at %s", c.LastSyncResourceVersion())
		}
		close(stop)
		<-done
		if !a.IsStopped() {
			t.Error("not stopped")
		}
		a.Run(nil) // returns
		if _, err := a.AddEventHandler(&diary{}); err == nil {
			t.Error("no error for a handler after the end")
		}
		if err := a.AddIndexers(cache.Indexers{"x": cache.MetaNamespaceIndexFunc}); err == nil {
			t.Error("no error for an index after the end")
		}
	})
}

// TestResync: a handler with a period receives the objects that it knows again.
func TestResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(t)
		u.put("ns/a", "red")
		a := New(u.source(), configMaps, typed.Unstructured(), informer.Options{}, 4*time.Hour, nil)
		byDefault, often, never, added := &diary{}, &diary{}, &diary{}, &diary{}
		none := time.Duration(0)
		for _, err := range []error{
			second(a.AddEventHandler(byDefault)),
			second(a.AddEventHandlerWithResyncPeriod(often, 2*time.Hour)),
			second(a.AddEventHandlerWithOptions(never, cache.HandlerOptions{ResyncPeriod: &none})),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		stop := run(t, a)
		settle()
		u.remove("ns/a", "red")
		u.put("ns/b", "blue")
		settle()
		quick, err := a.AddEventHandlerWithResyncPeriod(added, time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		settle()
		if n := len(added.read()); n != 61 { // an Add, and one a second
			t.Errorf("a handler with the minimum period received %d events in a minute", n)
		}
		if err := a.RemoveEventHandler(quick); err != nil {
			t.Error(err)
		}
		for _, d := range []*diary{byDefault, often, never} {
			want(t, d.read(), "add ns/a@11 red initial", "delete ns/a@12 red", "add ns/b@13 blue")
		}
		added.read()
		time.Sleep(4 * time.Hour)
		again := "update ns/b@13 blue → ns/b@13 blue"
		want(t, byDefault.read(), again)
		want(t, often.read(), again, again)
		want(t, never.read())
		want(t, added.read())
		stop()
		time.Sleep(5 * time.Hour)
		want(t, often.read())
	})
}

func second[A any](_ A, err error) error { return err }

// TestRefused: a refusal is reported and retried; handlers receive no event twice.
func TestRefused(t *testing.T) {
	const pause = time.Minute // the longest, after several refusals
	refusal := regexp.MustCompile(`^(list|watch) http://upstream/api/v1/configmaps: refused with (403: no|404: no \(the API server does not serve the core group\))$`)
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(t)
		u.put("ns/a", "red")
		u.refuse(403)
		a := newTestInformer(u, nil)
		var refusals []error
		if err := a.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
			refusals = append(refusals, err)
			if !refusal.MatchString(err.Error()) {
				t.Error(err)
			}
			if !strings.Contains(r.TypeDescription(), "Unstructured") {
				t.Errorf("reflector of %q", r.TypeDescription())
			}
		}); err != nil {
			t.Fatal(err)
		}
		d := &diary{}
		if _, err := a.AddEventHandler(d); err != nil {
			t.Fatal(err)
		}
		stop := run(t, a)
		settle()
		if n := len(refusals); n < 2 || n > 20 || !apierrors.IsForbidden(refusals[0]) || a.HasSynced() {
			t.Errorf("%v", refusals)
		}
		u.refuse(0)
		time.Sleep(pause)
		settle()
		want(t, d.read(), "add ns/a@11 red initial")
		u.refuse(404)
		u.forget(func() { u.Advance(1) })
		settle()
		u.refuse(0)
		time.Sleep(pause)
		settle()
		u.put("ns/a", "blue")
		settle()
		want(t, d.read(), "update ns/a@11 red → ns/a@13 blue")
		if last := refusals[len(refusals)-1]; !apierrors.IsNotFound(last) {
			t.Error(last)
		}
		stop()
	})
}

// TestNilErrorHandler: as in client-go, a watch error handler that is nil is the default
// one.
func TestNilErrorHandler(t *testing.T) {
	for name, set := range map[string]func(*Informer[configMap]) error{
		"with context":    func(a *Informer[configMap]) error { return a.SetWatchErrorHandlerWithContext(nil) },
		"without context": func(a *Informer[configMap]) error { return a.SetWatchErrorHandler(nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			u := newUpstream(t)
			u.refuse(403)
			a := newTestInformer(u, nil)
			other := func(*cache.Reflector, error) { t.Errorf("%s: the previous handler is called", name) }
			if err := errors.Join(a.SetWatchErrorHandler(other), set(a)); err != nil {
				t.Fatal(err)
			}
			unhandled.read()
			stop := run(t, a)
			settle()
			if errs := unhandled.read(); len(errs) == 0 {
				t.Errorf("%s: the default handler is not called", name)
			}
			stop()
		})
	}
}

// TestNilArguments: an argument that must not be nil is named at the call.
func TestNilArguments(t *testing.T) {
	src, opts, none := newUpstream(t).source(), informer.Options{}, cache.Indexers{"color": nil}
	for want, call := range map[string]func(){
		"informer: New needs a": func() { New(nil, configMaps, typed.Unstructured(), opts, 0, nil) },
		"clientgo: New needs a Codec, such as those of package typed": func() { New[configMap](src, configMaps, nil, opts, 0, nil) },
		`clientgo: the function of index "color" is nil`:              func() { New(src, configMaps, typed.Unstructured(), opts, 0, none) },
		"clientgo: Wrap needs an Informer":                            func() { Wrap[configMap](nil, 0, nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("panic with %s, want %q", got, want)
				}
			}()
			call()
		}()
	}
	a := New(src, configMaps, typed.Unstructured(), opts, 0, nil)
	for want, err := range map[string]error{
		`the function of index "color" is nil`: a.AddIndexers(none),
		"the event handler is nil":             second(a.AddEventHandler(nil)),
		"manager configuration: config is nil": third(ForManager(nil, opts)),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if len(a.GetIndexer().GetIndexers()) > 0 {
		t.Error("an index without a function was added")
	}
}

func third[A, B any](_ A, _ B, err error) error { return err }

// TestTransformFails: an informer whose transform fails, or returns another type, has not
// synced, as with client-go, and the watch error handler gets the reason. It has once the
// transform succeeds.
func TestTransformFails(t *testing.T) {
	for _, test := range []struct {
		color, want string
	}{
		{"strange", "ns/a: transform: it returned a string for a *unstructured.Unstructured, and the informer keeps no other type"},
		{"refused", "ns/a: transform: " + errTest.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			u := newUpstream(t)
			u.put("ns/a", test.color)
			u.put("ns/b", "red")
			a := newTestInformer(u, nil)
			var failures []string
			err := errors.Join(a.SetTransform(func(o any) (any, error) {
				switch color, _, _ := unstructured.NestedString(o.(configMap).Object, "data", "color"); color {
				case "refused":
					return nil, errTest
				case "strange":
					return "a text", nil
				}
				return o, nil
			}), a.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failures = append(failures, err.Error()) }))
			if err != nil {
				t.Fatal(err)
			}
			r, err := a.AddEventHandler(&diary{})
			if err != nil {
				t.Fatal(err)
			}
			stop := run(t, a)
			time.Sleep(time.Minute)
			synctest.Wait()
			if a.HasSynced() || r.HasSynced() {
				t.Errorf("%s: synced", test.color)
			}
			if len(failures) < 3 || len(failures) > 10 || failures[0] != test.want {
				t.Errorf("%s: %q", test.color, failures)
			}
			u.put("ns/a", "red")
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if !a.HasSynced() || !r.HasSynced() {
				t.Errorf("%s: not synced after %q", test.color, failures)
			}
			later, err := a.AddEventHandler(&diary{})
			if synctest.Wait(); err != nil || !later.HasSynced() {
				t.Errorf("%s: a handler has not synced, %v", test.color, err)
			}
			stop()
		})
	}
}

// TestTransform: handlers, store and indexes have transformed objects.
func TestTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(t)
		u.put("ns/a", "red")
		a := newTestInformer(u, cache.Indexers{"color": byColor})
		if err := a.SetTransform(func(o any) (any, error) {
			c := o.(configMap)
			color, _, _ := unstructured.NestedString(c.Object, "data", "color")
			switch color {
			case "refused":
				return nil, errTest
			case "strange":
				return "a text", nil
			}
			return c, unstructured.SetNestedField(c.Object, "dark "+color, "data", "color")
		}); err != nil {
			t.Fatal(err)
		}
		unhandled.read()
		d := &diary{}
		if _, err := a.AddEventHandler(d); err != nil {
			t.Fatal(err)
		}
		stop := run(t, a)
		settle()
		u.put("ns/a", "refused")
		u.put("ns/b", "strange")
		settle()
		if _, _, err := a.GetStore().GetByKey("ns/a"); err == nil || !strings.Contains(err.Error(), errTest.Error()) {
			t.Error(err)
		}
		if all := a.GetStore().List(); len(all) != 0 {
			t.Error(all)
		}
		if errs := unhandled.read(); len(errs) < 2 || !strings.Contains(strings.Join(errs, "\n"), "returned a string for a *unstructured.Unstructured") {
			t.Error(errs)
		}
		u.put("ns/a", "blue")
		u.remove("ns/b", "strange")
		settle()
		want(t, d.read(), "add ns/a@11 dark red initial", "add ns/a@14 dark blue")
		colors := a.GetIndexer().ListIndexFuncValues("color")
		slices.Sort(colors)
		want(t, colors, "blue", "dark")
		stop()
	})
	wrapped := Wrap(informer.New(newUpstream(t).source(), configMaps, typed.Unstructured(), informer.Options{}), 0, nil)
	if err := wrapped.SetTransform(nil); err != nil {
		t.Error(err)
	}
	if err := wrapped.SetTransform(func(o any) (any, error) { return o, nil }); err == nil {
		t.Error("no error for a transform of a wrapped informer")
	}
}

func byColor(o any) ([]string, error) {
	c, ok := o.(configMap)
	if !ok {
		return nil, fmt.Errorf("%T: %w", o, errTest)
	}
	color, found, err := unstructured.NestedString(c.Object, "data", "color")
	if !found || color == "none" {
		return nil, err
	}
	return strings.Fields(color), err
}
