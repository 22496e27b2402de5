// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package zstd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCompression(t *testing.T) {
	object := func(i int) []byte {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		return fmt.Appendf(nil, `{"metadata":{"name":"pod-%x","uid":"%x"},"spec":{%s}}`, r.Uint64(), r.Uint64(),
			strings.Repeat(`"containers":[{"image":"registry.example.com/image:v1","env":[]}],`, 20))
	}
	c := New()
	if _, err := c.Decompress(nil, []byte{compressed, 1, 2}); err == nil {
		t.Error("no error for data that was never compressed")
	}
	for i := range 100 {
		src := object(i)
		small := c.Compress(nil, src)
		if i > 0 && len(small) > 100 {
			t.Fatalf("%d bytes of %d", len(small), len(src))
		}
		if got, err := c.Decompress([]byte("x"), small); err != nil || !bytes.Equal(got[1:], src) {
			t.Fatalf("%s, %v", got, err)
		}
	}
	if got, err := c.Decompress(nil, c.Compress(nil, nil)); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := c.Decompress(nil, []byte{compressed, 1, 2, 3}); err == nil {
		t.Error("no error for garbage")
	}
	if _, err := c.Decompress(nil, nil); err == nil {
		t.Error("no error for empty data")
	}
}

func BenchmarkCompress(b *testing.B) {
	c := New()
	src := []byte(strings.Repeat(`{"metadata":{"name":"pod","uid":"123"},"spec":{"containers":[{"image":"i"}]}}`, 40))
	for b.Loop() {
		c.Compress(nil, src)
	}
}
