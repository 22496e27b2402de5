// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestGzip: random pieces are equal after decompression, and each piece can be
// decompressed once it is written.
func TestGzip(t *testing.T) {
	var sent bytes.Buffer
	out, err := newGzipOutput(&responseOutput{w: &sent, ctl: http.NewResponseController(flusher{})})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(&sent)
	if err != nil {
		t.Fatal(err)
	}
	read := func(n int) string {
		p := make([]byte, n)
		if n, err := io.ReadFull(plain, p); err != nil {
			t.Fatalf("%d bytes of %d: %v", n, len(p), err)
		}
		return string(p)
	}
	noise := make([]byte, 3*gzipWindow)
	_, _ = rand.Read(noise)
	for i, piece := range []string{
		"a", "", strings.Repeat("abc", 10), strings.Repeat("x", gzipWindow-1), strings.Repeat("y", gzipWindow+1), string(noise), string(noise[:gzipWindow]),
		strings.Repeat(string(noise[:5000]), 13), "end",
	} {
		b := &block{}
		fill(b, piece)
		if err := out.writeBlock(b); err != nil {
			t.Fatal(err)
		}
		if got := read(len(piece)); got != piece {
			t.Fatalf("piece %d differs", i)
		}
		if len(out.window) > gzipWindow {
			t.Fatalf("%d bytes are kept", len(out.window))
		}
	}
	if err := out.end(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(plain); len(rest) > 0 || err != nil {
		t.Errorf("after the last piece: %q, %v", rest, err)
	}
}

// A flusher is a ResponseWriter whose Flush does nothing.
type flusher struct{ http.ResponseWriter }

func (flusher) Flush() {}
