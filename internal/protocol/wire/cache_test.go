// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestMadeOnce: an encoding is made once per version while the cache has room, and
// the cache does not exceed its bound.
func TestMadeOnce(t *testing.T) {
	items, _, _ := samples(t)
	c := NewCache(1 << 20)
	made := 0
	encode := func(o *scan.Object) (string, error) { made++; return strings.Repeat("x", 100<<10), nil }
	for range 3 {
		for _, o := range items {
			if text, err := c.get(o, asProtobuf, encode); err != nil || len(text) != 100<<10 {
				t.Fatal(err)
			}
		}
	}
	if made != len(items) {
		t.Errorf("made %d times for %d objects", made, len(items))
	}
	var more []*scan.Object
	for range 100 {
		o := items[0].At(7)
		more = append(more, o)
		if _, err := c.get(o, asProtobuf, encode); err != nil {
			t.Fatal(err)
		}
		if c.Bytes() > 1<<20 {
			t.Fatalf("%d bytes", c.Bytes())
		}
	}
	c.mu.Lock() // an object of the samples may be collected
	n := len(c.entries)
	c.mu.Unlock()
	if n == 0 || n > 10 {
		t.Errorf("%d entries", n)
	}
	runtime.KeepAlive(more)
}

// TestListLargerThanCache: a part of a list that does not fit is found in the cache
// when the list is read again.
func TestListLargerThanCache(t *testing.T) {
	items, _, _ := samples(t)
	var many []*scan.Object
	for i := range uint64(300) {
		many = append(many, items[0].At(1000+i))
	}
	c := NewCache(200 * (1000 + entryOverhead) * frameShare / (frameShare - 1))
	made := 0
	encode := func(*scan.Object) (string, error) { made++; return strings.Repeat("x", 1000), nil }
	const rounds = 20
	for range rounds {
		for _, o := range many {
			if _, err := c.get(o, asProtobuf, encode); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all := rounds * len(many); made > all*3/4 {
		t.Errorf("%d of %d were made, though the cache has room for two thirds", made, all)
	}
}

// TestCollected: the cache keeps no object in memory, and drops the encodings of
// objects that are collected.
func TestCollected(t *testing.T) {
	items, _, _ := samples(t)
	c := NewCache(1 << 20)
	encode := func(*scan.Object) (string, error) { return "text", nil }
	for i := range uint64(100) {
		if _, err := c.get(items[0].At(1000+i), asProtobuf, encode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.get(items[0], asProtobuf, encode); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); c.Bytes() > entryOverhead+4; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are kept", c.Bytes())
		}
		runtime.GC()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[cacheKey{object: weak.Make(items[0]), as: asProtobuf}]; !ok {
		t.Error("the encoding of a live object is dropped")
	}
	runtime.KeepAlive(items)
}

// TestEncodeAll: a long list has its items in order, and returns the error of any.
func TestEncodeAll(t *testing.T) {
	items, _, _ := samples(t)
	var many []*scan.Object
	for i := range uint64(5*runLength + 7) {
		many = append(many, items[0].At(1000+i))
	}
	encode := func(bad uint64) func(*Body, int, []*scan.Object) error {
		return func(b *Body, at int, run []*scan.Object) error {
			for _, o := range run {
				if o.RV == bad {
					return ErrForm
				}
				b.add(kube.FormatRV(o.RV), ";")
				if many[at] != run[0] {
					t.Errorf("wrong index for the run of %s: %d", o.Key, at)
				}
			}
			return nil
		}
	}
	var want strings.Builder
	want.WriteString("head")
	for _, o := range many {
		want.WriteString(kube.FormatRV(o.RV) + ";")
	}
	b := &Body{parts: []string{"head"}}
	if err := encodeAll(b, many, encode(0)); err != nil || b.String() != want.String() {
		t.Errorf("%v %s", err, b)
	}
	for _, bad := range []uint64{1000, 1000 + 3*runLength, 1000 + 5*runLength + 6} {
		if err := encodeAll(&Body{}, many, encode(bad)); !errors.Is(err, ErrForm) {
			t.Errorf("%d: %v", bad, err)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic is not passed on")
			}
		}()
		_ = encodeAll(&Body{}, many, func(*Body, int, []*scan.Object) error { panic("oh") })
	}()
}
