// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

func framePod(t testing.TB, rv uint64, size int) *scan.Object {
	t.Helper()
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"%d","labels":{"filling":%q}},"spec":{"containers":null},"status":{}}`,
		rv, strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSharedFrames: a shared frame equals the frame that Event returns, and is the
// same for all streams in its form.
func TestSharedFrames(t *testing.T) {
	e := &Encoder{Resource: kube.Resource{Version: "v1", Name: "pods"}, Cache: NewCache(64 << 20)}
	o := framePod(t, 7, 100)
	paths := func(parse func(string) (*scan.Paths, error)) *scan.Paths {
		p, err := parse("spec.nodeName")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	seen := map[*Frame]bool{}
	for _, f := range []Form{
		{}, {Media: Protobuf}, {Media: CBOR},
		{View: Metadata, Version: "v1"}, {View: Metadata, Version: "v1beta1"},
		{Media: Protobuf, View: Metadata, Version: "v1"}, {Media: CBOR, View: Metadata, Version: "v1"},
		{Fields: paths(scan.ParsePaths)}, {Fields: paths(scan.ParseRows)},
	} {
		for _, typ := range []kube.EventType{kube.Added, kube.Deleted} {
			parts, err := e.Stream(f, false).Event(typ, o)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Join(parts, "")
			shared, err := e.Stream(f, false).Shared(typ, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(shared.Bytes()); got != want {
				t.Errorf("%+v %s: got %q, want %q", f, typ, got, want)
			}
			if got, want := string(shared.Chunk()), fmt.Sprintf("%x\r\n%s\r\n", len(want), want); got != want {
				t.Errorf("%+v %s: got %q, want %q", f, typ, got, want)
			}
			switch { // equal fields of another request
			case f.Fields.Columns() != nil:
				f.Fields = paths(scan.ParseRows)
			case f.Fields != nil:
				f.Fields = paths(scan.ParsePaths)
			}
			if again, err := e.Stream(f, false).Shared(typ, o); again != shared || err != nil {
				t.Errorf("%+v %s: not shared, %v", f, typ, err)
			}
			if seen[shared] {
				t.Errorf("%+v %s: the frame of another", f, typ)
			}
			seen[shared] = true
		}
	}
	for name, s := range map[string]*Stream{"Table": e.Stream(Form{View: Table, Version: "v1"}, false), "messages": e.Stream(Form{}, true)} {
		if f, err := s.Shared(kube.Added, o); f != nil || err != nil {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// TestSharedFrameError: all streams get the error of a frame that cannot be encoded.
func TestSharedFrameError(t *testing.T) {
	e := &Encoder{Cache: NewCache(64 << 20)}
	o, err := scan.ParseObject(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},"unheard":1}`)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if f, err := e.Stream(Form{Media: Protobuf}, false).Shared(kube.Added, o); err == nil {
			t.Errorf("%q", f.Bytes())
		}
	}
}

// TestSharedFramesBound: frames do not exceed their part of the cache, whatever the
// number and size of the events (T10).
func TestSharedFramesBound(t *testing.T) {
	const maxBytes = 1 << 20
	c := NewCache(maxBytes)
	e := &Encoder{Cache: c}
	if c.Bytes() != 0 {
		t.Error("the cache is not empty before any event")
	}
	for rv := range uint64(2000) {
		f, err := e.Stream(Form{}, false).Shared(kube.Modified, framePod(t, rv+1, int(rv)))
		if err != nil {
			t.Fatal(err)
		}
		if small := rv < 500; small && f == nil {
			t.Fatalf("none at %d", rv)
		}
		if b := c.Bytes(); b == 0 || b > maxBytes/frameShare {
			t.Fatalf("%d bytes at %d", b, rv)
		}
	}
	if f, _ := e.Stream(Form{}, false).Shared(kube.Modified, framePod(t, 1, maxBytes)); f != nil {
		t.Error("a very large frame is kept")
	}
	sum := int64(0)
	for i := range c.frames.slots {
		if f := c.frames.slots[i].Load(); f != nil {
			sum += weight(f.object)
		}
	}
	if sum != c.Bytes() {
		t.Errorf("%d bytes counted, %d held", c.Bytes(), sum)
	}
}

// TestSharedFramesAtOnce: streams that call Shared at the same time, for equal and
// for different events, get the right frames.
func TestSharedFramesAtOnce(t *testing.T) {
	c := NewCache(64 << 20)
	e := &Encoder{Cache: c}
	var objects []*scan.Object
	for i := range uint64(3 * frameSlots) {
		objects = append(objects, framePod(t, 1+i*frameSlots/2, int(i)))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := e.Stream(Form{}, false)
			for _, o := range objects {
				f, err := s.Shared(kube.Added, o)
				if want := `{"type":"ADDED","object":` + o.JSON + "}\n"; err != nil || string(f.Bytes()) != want {
					t.Errorf("%v: %q", err, f.Bytes())
					return
				}
			}
		})
	}
	all.Wait()
	if b := c.Bytes(); b < 0 || b > 16<<20 {
		t.Errorf("%d bytes counted", b)
	}
}
