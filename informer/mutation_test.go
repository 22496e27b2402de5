// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// A labeled is what the tests modify.
type labeled struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

const labeledPod = `{"metadata":{"name":"a","namespace":"ns","labels":{"x":"y"}},"spec":{}}`

// detected runs an informer that detects mutations, whose Pod is replaced after ten
// seconds, and returns what it would panic with.
func detected[T any](t *testing.T, codec Codec[T], opts Options, test func(i *Informer[T], api *informertest.Server)) (found []string) {
	synctest.Test(t, func(t *testing.T) {
		api := informertest.New(informertest.Options{FirstRV: 7})
		network := informertest.NewNetwork(api)
		defer network.Close()
		api.Put("pods", labeledPod)
		opts.DetectMutation = true
		i := New(NewSource(network.URL(), network), pods, codec, opts)
		i.format.mutations.report = func(err error) {
			if !slices.Contains(found, err.Error()) {
				found = append(found, err.Error())
			}
		}
		stop := start(t, i)
		if err := i.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(i, api)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return found
}

func get[T any](i *Informer[T]) Ref[T] {
	ref, _ := i.Get(Key{"ns", "a"})
	return ref
}

// modify modifies an object, in an order with the checks that the race detector sees.
func modify[T any](i *Informer[T], change func()) {
	m := i.format.mutations
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// TestDetectMutation: a modified object is found within a second or when the run ends,
// also if a newer version has replaced it, and only what is shared.
func TestDetectMutation(t *testing.T) {
	const shared = " at resourceVersion 8 was modified: what Ref.Object and Ref.Raw return is shared, and has to be copied first (DeepCopy)"
	object := func(path string) []string {
		return []string{"informer: pods: the object at " + path + " of ns/a" + shared}
	}
	bytes := []string{"informer: pods: the bytes of ns/a" + shared}
	relabel := func(i *Informer[*labeled]) {
		pod, _ := get(i).Object()
		modify(i, func() { pod.Metadata.Labels["x"] = "z" })
	}
	for name, test := range map[string]struct {
		opts Options
		do   func(*Informer[*labeled], *informertest.Server)
		want []string
	}{
		"nothing": {Options{}, func(i *Informer[*labeled], api *informertest.Server) {
			_, _ = get(i).Object()
			api.Touch("pods", "ns/a")
			time.Sleep(time.Hour)
			_, _ = get(i).Object()
			_, _ = get(i).Raw()
			time.Sleep(time.Hour)
		}, nil},
		"before the end": {Options{}, func(i *Informer[*labeled], _ *informertest.Server) { relabel(i) }, object(".Metadata.Labels[x]")},
		"decoded":        {Options{Decoded: true}, func(i *Informer[*labeled], _ *informertest.Server) { relabel(i) }, object(".Metadata.Labels[x]")},
		"compressed":     {Options{Compression: plain{}}, func(i *Informer[*labeled], _ *informertest.Server) { relabel(i) }, object(".Metadata.Labels[x]")},
		"late": {Options{}, func(i *Informer[*labeled], _ *informertest.Server) {
			pod, _ := get(i).Object()
			time.Sleep(mutationRetention)
			modify(i, func() { pod.Metadata.Labels["y"] = "" })
			time.Sleep(time.Minute)
		}, object(".Metadata.Labels[y]")},
		"replaced": {Options{}, func(i *Informer[*labeled], api *informertest.Server) {
			api.Touch("pods", "ns/a")
			synctest.Wait()
			relabel(i)
			api.Touch("pods", "ns/a")
			synctest.Wait()
			if rv := get(i).RV(); rv != "10" {
				t.Errorf("at %s", rv)
			}
			runtime.GC()
		}, []string{strings.Replace(object(".Metadata.Labels[x]")[0], "resourceVersion 8", "resourceVersion 9", 1)}},
		"bytes": {Options{}, func(i *Informer[*labeled], _ *informertest.Server) {
			raw, _ := get(i).Raw()
			modify(i, func() { raw[0] = ' ' })
			time.Sleep(time.Minute)
		}, bytes},
		"bytes, late": {Options{}, func(i *Informer[*labeled], _ *informertest.Server) {
			raw, _ := get(i).Raw()
			time.Sleep(time.Hour)
			modify(i, func() { raw[0] = ' ' })
			_, _ = get(i).Raw()
		}, bytes},
		"bytes of its own": {Options{Compression: plain{}}, func(i *Informer[*labeled], _ *informertest.Server) {
			raw, _ := get(i).Raw()
			modify(i, func() { raw[0] = ' ' })
		}, nil},
		"in an event": {Options{}, func(i *Informer[*labeled], _ *informertest.Server) {
			stop := i.Handle(Handler[*labeled]{Add: func(now Ref[*labeled]) {
				pod, _ := now.Object()
				modify(i, func() { pod.Metadata.Name = "b" })
			}})
			time.Sleep(10 * time.Second)
			stop()
		}, object(".Metadata.Name")},
	} {
		if got := detected(t, JSON[*labeled](), test.opts, test.do); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	// The object of Raw is the bytes, and that of a struct is a copy.
	got := detected(t, Raw(), Options{}, func(i *Informer[json.RawMessage], _ *informertest.Server) {
		raw, _ := get(i).Object()
		modify(i, func() { raw[0] = ' ' })
	})
	want(t, got, bytes...)
	got = detected(t, JSON[labeled](), Options{}, func(i *Informer[labeled], _ *informertest.Server) {
		pod, _ := get(i).Object()
		pod.Metadata.Name = "b"
	})
	want(t, got)
	got = detected(t, randomCodec{}, Options{}, func(i *Informer[float64], _ *informertest.Server) { _, _ = get(i).Object() })
	want(t, got, "informer: pods: two decodings of ns/a differ, so that DetectMutation is not possible with this codec")
}

// plain is a Compression that leaves the bytes as they are.
type plain struct{}

func (plain) Compress(dst, src []byte) []byte            { return append(dst, src...) }
func (plain) Decompress(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

// A randomCodec never decodes to equal objects.
type randomCodec struct{}

func (randomCodec) Protobuf() bool                 { return false }
func (randomCodec) Decode([]byte) (float64, error) { return math.NaN(), nil }

// TestDetectMutationMemory: what was read is kept for two minutes, and nothing of records
// that are gone.
func TestDetectMutationMemory(t *testing.T) {
	var m *mutationDetector[*labeled]
	detected(t, JSON[*labeled](), Options{}, func(i *Informer[*labeled], api *informertest.Server) {
		m = i.format.mutations
		for range 100 {
			api.Touch("pods", "ns/a")
			synctest.Wait()
			_, _ = get(i).Object()
		}
		time.Sleep(mutationRetention)
		if n := len(m.snapshot()); n != 100 {
			t.Errorf("%d versions are kept, want 100", n)
		}
		_, _ = get(i).Object()
		time.Sleep(time.Minute)
		if n := len(m.snapshot()); n != 1 {
			t.Errorf("%d versions are kept, want the one that was read again", n)
		}
	})
	sums := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.sums)
	}
	for until := time.Now().Add(10 * time.Second); sums() > 5 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		runtime.GC()
	}
	if n := sums(); n > 5 {
		t.Errorf("checksums of %d versions are kept", n)
	}
	if i := New(NewSource(&url.URL{}, http.DefaultTransport), pods, Raw(), Options{}); i.format.mutations != nil {
		t.Error("mutations are detected without the option")
	}
}

// TestDetectMutationPanics: a process that modifies an object ends.
func TestDetectMutationPanics(t *testing.T) {
	const variable = "WATCHKEEPER_MUTATE"
	switch os.Getenv(variable) {
	case "":
	case "while it runs":
		modifyOne(t, time.Hour)
		return
	default:
		modifyOne(t, 0)
		return
	}
	for _, when := range []string{"while it runs", "at the end"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDetectMutationPanics$")
		cmd.Env = append(os.Environ(), variable+"="+when)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: informer: pods: the object at .Metadata.Labels[x] of ns/a at resourceVersion 101 was modified") || strings.Contains(string(out), "survived") {
			t.Errorf("%s: %v\n%s", when, err, out)
		}
	}
}

// modifyOne modifies an object of an informer that runs for a while longer.
func modifyOne(t *testing.T, longer time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		api := informertest.New(informertest.Options{})
		network := informertest.NewNetwork(api)
		defer network.Close()
		api.Put("pods", labeledPod)
		i := New(NewSource(network.URL(), network), pods, JSON[*labeled](), Options{DetectMutation: true})
		stop := start(t, i)
		if err := i.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		pod, _ := get(i).Object()
		pod.Metadata.Labels["x"] = "z"
		time.Sleep(longer)
		if longer > 0 {
			fmt.Println("survived")
		}
		_ = stop()
		fmt.Println("survived")
	})
}

// TestFirstDifference: it finds a difference where reflect.DeepEqual does.
func TestFirstDifference(t *testing.T) {
	type node struct {
		Next  *node
		Any   any
		Map   map[string][]int
		Array [2]float64
		When  time.Time
		F     func()
		inner struct{ c http.Cookie }
	}
	loop := &node{}
	loop.Next = loop
	differs := func(change func(*node)) *node {
		n := &node{Next: &node{}, Any: 1, Map: map[string][]int{"a": {1, 2}, "b": nil}}
		change(n)
		return n
	}
	same := differs(func(*node) {})
	for _, test := range []struct {
		b    any
		path string
	}{
		{differs(func(*node) {}), ""},
		{differs(func(n *node) { n.Next = nil }), ".Next"},
		{differs(func(n *node) { n.Next.Any = "x" }), ".Next.Any"},
		{differs(func(n *node) { n.Any = int64(1) }), ".Any"},
		{differs(func(n *node) { n.Any = nil }), ".Any"},
		{differs(func(n *node) { n.Any = 2 }), ".Any"},
		{differs(func(n *node) { n.Map["a"][1] = 3 }), ".Map[a][1]"},
		{differs(func(n *node) { n.Map["a"] = n.Map["a"][:1] }), ".Map[a]"},
		{differs(func(n *node) { n.Map["b"] = []int{} }), ".Map[b]"},
		{differs(func(n *node) { n.Map["c"] = nil }), ".Map[c]"},
		{differs(func(n *node) { delete(n.Map, "a") }), ".Map[a]"},
		{differs(func(n *node) { n.Map = nil }), ".Map[a]"},
		{differs(func(n *node) { n.Array[1] = math.NaN() }), ".Array[1]"},
		{differs(func(n *node) { n.When = time.Unix(1, 0).UTC() }), ".When.ext"},
		{differs(func(n *node) { n.F = func() {} }), ".F"},
		{differs(func(n *node) { n.inner.c.Name = "x" }), ".inner.c.Name"},
		{differs(func(n *node) { n.Next = loop }), ".Next.Next"},
		{1, ""},
		{nil, ""},
	} {
		path, differ := firstDifference(reflect.ValueOf(same), reflect.ValueOf(test.b), 0)
		if path != test.path && path != test.path+".wall" || differ == reflect.DeepEqual(same, test.b) {
			t.Errorf("%+v: %t at %s, want %s", test.b, differ, path, test.path)
		}
	}
	if path, differ := firstDifference(reflect.ValueOf(loop), reflect.ValueOf(&node{Next: loop}), 0); differ {
		t.Errorf("loops differ at %s", path)
	}
	for _, pair := range [][2]any{{[]int{}, []int(nil)}, {map[int]int{}, map[int]int(nil)}} {
		if _, differ := firstDifference(reflect.ValueOf(pair[0]), reflect.ValueOf(pair[1]), 0); !differ {
			t.Errorf("%#v equals %#v", pair[0], pair[1])
		}
	}
}
