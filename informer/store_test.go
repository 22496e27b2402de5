// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// TestStorageOptions: objects are the same however they are stored.
func TestStorageOptions(t *testing.T) {
	const managed = `"managedFields":[{"manager":"m"}]`
	full := strings.Replace(script.Pod("a", 3), `"uid"`, managed+`,"uid"`, 1)
	for name, test := range map[string]struct {
		opts Options
		raw  string
	}{
		"raw":        {Options{}, script.Pod("a", 3)},
		"all":        {Options{KeepManagedFields: true}, full},
		"decoded":    {Options{Decoded: true}, script.Pod("a", 3)},
		"compressed": {Options{Compression: reversing{}}, script.Pod("a", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				labelled := strings.Replace(full, `"uid"`, `"labels":{"app":"x"},"uid"`, 1)
				i, _ := newInformer(t, test.opts, script.Probe, script.Answer{Want: script.Streaming, Code: 400, Body: script.Status(400)},
					script.At(10), script.Answer{Want: script.From(10), Stall: true}, script.Answer{Want: "limit=500", Body: script.Page(10, "", labelled)})
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
					t.Error("found a label that the object does not have")
				}
			})
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		t.Errorf("not JSON: %s, %s", a, b)
	}
	return reflect.DeepEqual(x, y)
}

// reversing stands in for a compression.
type reversing struct{}

func (reversing) Compress(dst, src []byte) []byte {
	for _, c := range slices.Backward(src) {
		dst = append(dst, c)
	}
	return dst
}

func (b reversing) Decompress(dst, src []byte) ([]byte, error) { return b.Compress(dst, src), nil }

// TestIndex: an index has the current objects, including those that are older than
// the index.
func TestIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "bb", 4) + script.Event("ADDED", "cc", 5) + script.Bookmark(10, true)})
		byLength := func(r Ref[testPod]) ([]int, error) {
			return []int{len(r.Key().Name), len(r.RV()) * 100, len(r.Key().Name)}, nil
		}
		before := AddIndex(i, byLength)
		start(t, i)
		synctest.Wait()
		after := AddIndex(i, byLength)
		s := i.shards[""]
		s.replace(s.objects["ns/cc"], nil, entry[testPod]{typ: Deleted, old: s.objects["ns/cc"]})
		for _, x := range []*Index[testPod, int]{before, after} {
			names := map[int][]string{}
			for _, k := range x.Keys() {
				for key := range x.Get(k) {
					names[k] = append(names[k], key.Name)
				}
				slices.Sort(names[k])
			}
			if d := difference.Of(map[int][]string{1: {"a"}, 2: {"bb"}, 100: {"a", "bb"}}, names); d != "" {
				t.Error(d)
			}
			if len(x.keysOf) != 2 {
				t.Errorf("%d objects in the index", len(x.keysOf))
			}
		}
	})
}

// TestIndexes: the functions for namespaces and labels.
func TestIndexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labelled := strings.Replace(script.Event("ADDED", "a", 3), `"metadata":{`, `"metadata":{"labels":{"app":"web"},"annotations":{"x":"y"},"finalizers":["f"],"deletionTimestamp":"2026-01-31T15:04:05Z",`, 1)
		i, _ := newInformer(t, Options{}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: labelled + script.Event("ADDED", "b", 4) + script.Bookmark(10, true)})
		byNamespace, byApp := AddIndex(i, ByNamespace), AddIndex(i, ByLabel[testPod]("app"))
		start(t, i)
		synctest.Wait()
		if got := byNamespace.Keys(); !slices.Equal(got, []string{"ns"}) {
			t.Errorf("namespaces %q", got)
		}
		for app, want := range map[string]string{"web": "a", "": ""} {
			names := ""
			for key, ref := range byApp.Get(app) {
				names += key.Name
				value, _ := ref.Annotation("x")
				if at := ref.DeletionTimestamp(); value != "y" || at.Year() != 2026 || !slices.Equal(ref.Finalizers(), []string{"f"}) {
					t.Errorf("%s: %q %v %q", key, value, at, ref.Finalizers())
				}
			}
			if names != want {
				t.Errorf("app %q: %q", app, names)
			}
		}
	})
}

// TestIndexFailure: if the function of an index fails for a version of an object, the index
// does not have the object, and subscribers get the error.
func TestIndexFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &metricsTranscript{}
		i, _ := newInformer(t, Options{Metrics: m.of}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 4) + script.Bookmark(10, true),
			Late: []string{script.Event("MODIFIED", "a", 11) + script.Event("MODIFIED", "b", 12)}})
		byName := func(r Ref[testPod]) ([]string, error) {
			if rv := r.RV(); rv == "3" || rv == "12" {
				return nil, errNo
			}
			return []string{r.Key().Name}, nil
		}
		x := AddIndex(i, byName)
		d := follow(t, i)
		start(t, i)
		want(t, d.read(), "ADDED ns/a →3 initial", "error", "ADDED ns/b →4 initial", "SYNCED→")
		want(t, x.Keys(), "b")
		late := AddIndex(i, byName)
		want(t, d.read()[4:], "error")
		time.Sleep(minute)
		want(t, d.read()[5:], "UPDATED ns/a 3→11", "UPDATED ns/b 4→12", "error", "error")
		want(t, x.Keys(), "a")
		want(t, late.Keys(), "a")
		failed := 0
		for _, call := range m.read() {
			failed += strings.Count(call, "failed")
		}
		if failed != 4 {
			t.Errorf("%d failures were reported", failed)
		}
	})
}

// TestNil: what an informer cannot work without is refused where it is passed.
func TestNil(t *testing.T) {
	src := NewSource(&url.URL{Scheme: "http", Host: "upstream"}, http.DefaultTransport)
	i := New(src, pods, Raw(), Options{})
	for what, call := range map[string]func(){
		"Source":       func() { New(nil, pods, Raw(), Options{}) },
		"Codec":        func() { New[testPod](src, pods, nil, Options{}) },
		"Resource":     func() { New(src, Resource{Name: "pods"}, Raw(), Options{}) },
		"AddIndex":     func() { AddIndex[json.RawMessage, string](i, nil) },
		"a transport":  func() { NewSource(&url.URL{}, nil) },
		"pods/a":       func() { New(src, Resource{Version: "v1", Name: "pods/a"}, Raw(), Options{}) },
		`".."`:         func() { New(src, pods, Raw(), Options{Namespaces: []string{".."}}) },
		"authenticate": func() { NewSource(&url.URL{Scheme: "http", Host: "h", User: url.User("u")}, http.DefaultTransport) },
		"a URL":        func() { NewSource(nil, http.DefaultTransport) },
		"an informer":  func() { AddIndex[json.RawMessage](nil, ByNamespace) },
		"Reconcile": func() {
			Reconcile[json.RawMessage](nil, ReconcileOptions[json.RawMessage]{}, func(context.Context, Event[json.RawMessage]) error { return nil })
		},
		"function": func() { Reconcile(i, ReconcileOptions[json.RawMessage]{}, nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, what) {
					t.Errorf("%s: %s", what, got)
				}
			}()
			call()
		}()
	}
}

// countingCodec counts calls of Decode.
type countingCodec struct {
	Codec[testPod]
	n *int
}

func (c countingCodec) Decode(raw []byte) (testPod, error) {
	*c.n++
	return c.Codec.Decode(raw)
}

// TestDecodedOnce: readers of one version share the decoded object.
func TestDecodedOnce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection drops the decoded object
	n := 0
	r := &record[testPod]{raw: []byte(script.Pod("a", 3)), format: &format[testPod]{codec: countingCodec{JSON[testPod](), &n}}}
	for range 3 {
		if o, err := (Ref[testPod]{r}).Object(); err != nil || o.Metadata.Name != "a" {
			t.Errorf("%v, %v", o, err)
		}
	}
	if n != 1 {
		t.Errorf("decoded %d times", n)
	}
	if _, err := (Ref[testPod]{}).Object(); err == nil {
		t.Error("no error for the zero Ref")
	}
}
