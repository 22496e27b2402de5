// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
)

// counting counts calls of Decode.
type counting struct {
	informer.Codec[configMap]
	n atomic.Int32
}

func (c *counting) Decode(raw []byte) (configMap, error) {
	c.n.Add(1)
	return c.Codec.Decode(raw)
}

func describeAll(objects []any) (all []string) {
	for _, o := range objects {
		all = append(all, describe(o))
	}
	slices.Sort(all)
	return all
}

// TestIndexer: the store and its indexes have the current objects, as client-go's do.
func TestIndexer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(t)
		u.put("one/a", "red blue")
		u.put("one/b", "none")
		u.put("two/a", "red")
		codec := &counting{Codec: typed.Unstructured()}
		inf := informer.New(u.source(), configMaps, codec, informer.Options{})
		a := Wrap(inf, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		stop := run(t, a)
		settle()
		s := a.GetIndexer()
		in, err := s.IndexKeys(cache.NamespaceIndex, "one")
		if err != nil {
			t.Error(err)
		}
		want(t, in, "one/a", "one/b")
		if n := codec.n.Load(); n > 0 {
			t.Errorf("%d objects were decoded for an index by namespace", n)
		}
		if err := a.AddIndexers(cache.Indexers{"color": byColor, cache.NamespaceIndex: byColor}); err == nil {
			t.Error("an index replaced one of the same name")
		}
		if _, err := s.ByIndex("color", "red"); err == nil {
			t.Error("a refused index was added")
		}
		if err := a.AddIndexers(cache.Indexers{"color": byColor}); err != nil {
			t.Error(err)
		}
		if all := s.GetIndexers(); len(all) != 2 || all["color"] == nil {
			t.Error(all)
		}
		u.put("two/b", "blue")
		u.put("two/a", "green")
		settle()

		red, err := s.ByIndex("color", "red")
		if err != nil {
			t.Error(err)
		}
		want(t, describeAll(red), "one/a@11 red blue")
		oneA, exists, err := s.GetByKey("one/a")
		if err != nil || !exists {
			t.Fatal(err)
		}
		like, err := s.Index("color", oneA)
		if err != nil {
			t.Error(err)
		}
		want(t, describeAll(like), "one/a@11 red blue", "two/b@14 blue")
		if _, err := s.Index("color", "a text"); !errors.Is(err, errTest) {
			t.Error(err)
		}
		for _, err := range []error{
			second(s.Index("none", oneA)), second(s.ByIndex("none", "x")), second(s.IndexKeys("none", "x")),
		} {
			if err == nil {
				t.Error("no error for an index that does not exist")
			}
		}
		colors := s.ListIndexFuncValues("color")
		slices.Sort(colors)
		want(t, colors, "blue", "green", "red")
		want(t, s.ListIndexFuncValues("none"))

		want(t, describeAll(s.List()), "one/a@11 red blue", "one/b@12 none", "two/a@15 green", "two/b@14 blue")
		keys := s.ListKeys()
		slices.Sort(keys)
		want(t, keys, "one/a", "one/b", "two/a", "two/b")
		got, exists, err := s.Get(oneA)
		if err != nil || !exists || describe(got) != describe(oneA) {
			t.Error(got, err)
		}
		if got, exists, err := s.Get(cache.DeletedFinalStateUnknown{Key: "two/a"}); err != nil || !exists || describe(got) != "two/a@15 green" {
			t.Error(got, err)
		}
		if _, _, err := s.Get(3); err == nil {
			t.Error("no error for an object without a key")
		}
		for _, key := range []string{"two/none", "none", "a/b/c"} {
			if got, exists, err := s.GetByKey(key); got != nil || exists || err != nil {
				t.Error(key, got, err)
			}
		}
		for _, err := range []error{s.Add(oneA), s.Update(oneA), s.Delete(oneA), s.Replace(nil, ""), s.Resync()} {
			if !errors.Is(err, ErrReadOnly) {
				t.Errorf("want ErrReadOnly, got %v", err)
			}
		}
		// client-go's interface has the method since 0.36.
		s.(interface{ Bookmark(string) }).Bookmark("99")
		testLister(t, a.Lister(schema.GroupResource{Resource: "configmaps"}))
		stop()
	})
}

func testLister(t *testing.T, l cache.GenericLister) {
	t.Helper()
	list := func(objects []runtime.Object, err error) (all []string) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		for _, o := range objects {
			all = append(all, describe(o))
		}
		slices.Sort(all)
		return all
	}
	blue := labels.SelectorFromSet(labels.Set{"color": "blue"})
	want(t, list(l.List(blue)), "two/b@14 blue")
	want(t, list(l.ByNamespace("two").List(labels.Everything())), "two/a@15 green", "two/b@14 blue")
	if o, err := l.ByNamespace("one").Get("b"); err != nil || describe(o) != "one/b@12 none" {
		t.Error(o, err)
	}
	if _, err := l.ByNamespace("one").Get("c"); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
