// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/watchkeeper/watchkeeper/internal/history"
)

// A countedReader counts the bytes that it has read, and calls before ahead of each
// read.
type countedReader struct {
	r      io.Reader
	n      int
	before func(n int)
}

func (c *countedReader) Read(p []byte) (int, error) {
	if c.before != nil {
		c.before(c.n)
	}
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// packed compresses lines.
func packed(t testing.TB, lines ...string) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll([]byte(strings.Join(lines, "\n")+"\n"), nil)
}

// TestImportTooLarge: an import unpacks no more than maxBytes of a small file with a
// large content.
func TestImportTooLarge(t *testing.T) {
	r, w := io.Pipe()
	z, err := zstd.NewWriter(w, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(z, `{"recording":{"format":1}}`+"\n") //nolint:errcheck // the reader ends it
		line := []byte(`{"ignored":"` + strings.Repeat("a", 1<<20) + `"}` + "\n")
		for err := error(nil); err == nil; { // until the reader closes
			_, err = z.Write(line)
		}
	}()
	_, _, err = Import(t.Context(), r, openStore(t), 8<<20)
	if !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotRecording) {
		t.Errorf("got %v", err)
	}
	r.Close()
	s := openStore(t)
	fill(t, s)
	file := export(t, s, everything())
	if _, _, err := Import(t.Context(), bytes.NewReader(file), openStore(t), 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("in the first line: %v", err)
	}
}

// TestImportEnds: an import ends with its context, at any position.
func TestImportEnds(t *testing.T) {
	s := openStore(t)
	fill(t, s)
	file := export(t, s, everything())
	for _, after := range []int{0, len(file) / 2} {
		ctx, cancel := context.WithCancel(t.Context())
		r := &countedReader{r: &oneByte{bytes.NewReader(file)}, before: func(n int) {
			if n >= after {
				cancel()
			}
		}}
		_, _, err := Import(ctx, r, openStore(t), 0)
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotRecording) {
			t.Errorf("after %d bytes: %v", after, err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, bytes.NewReader(file)); !errors.Is(err, context.Canceled) {
		t.Errorf("check: %v", err)
	}
}

type oneByte struct{ r io.Reader }

func (o *oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// TestImportLimits: a file that needs unbounded memory is refused; objects beyond the
// limit of live are read from the store again.
func TestImportLimits(t *testing.T) {
	const (
		header = `{"recording":{"format":1}}`
		begin  = `{"stream":{"version":"v1","resource":"pods","listKind":"PodList","rv":1,"at":"2026-01-01T00:00:00Z"}}`
		form   = `{"form":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{}}}}`
		same   = `{"event":{"type":"MODIFIED","at":"2026-01-01T00:00:00Z","json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"2"}}}}`
	)
	object := func(i int) string {
		return fmt.Sprintf(`{"object":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","resourceVersion":"1"}}}}`, i)
	}
	few := limits{held: 100, pending: 500, live: 1 << 20, objects: 10}
	for name, test := range map[string]struct {
		more func(i int) string
		want string
	}{
		"documents": {func(int) string { return `{"document":{"path":"/api","body":{"a":1}}}` }, "besides objects"},
		"columns": {func(i int) string {
			return fmt.Sprintf(`{"columns":{"number":%d,"definitions":["a","b"]}}`, i)
		}, "besides objects"},
		"objects":              {object, "more than 10 objects"},
		"events of one moment": {func(int) string { return same }, "of one moment"},
		"objects added by events": {func(i int) string {
			return strings.NewReplacer(`"a"`, fmt.Sprintf(`"p%d"`, i), `"2"`, fmt.Sprintf(`"%d"`, i+2)).Replace(same)
		}, "more than 10 objects"},
	} {
		lines := []string{header, begin, form}
		for i := range 100 {
			lines = append(lines, test.more(i))
		}
		most := few
		if strings.HasPrefix(name, "objects added") {
			most.pending = 1 << 20
		}
		_, _, err := importWithin(t.Context(), bytes.NewReader(packed(t, lines...)), openStore(t), 0, most)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	from, to := openStore(t), openStore(t)
	fill(t, from)
	most := defaultLimits
	most.live = 1
	if _, _, err := importWithin(t.Context(), bytes.NewReader(export(t, from, everything())), to, 0, most); err != nil {
		t.Fatal(err)
	}
	if got, want := story(t, to), story(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestImportIntoClosedStore: an error of the store is not ErrDamaged.
func TestImportIntoClosedStore(t *testing.T) {
	s := openStore(t)
	fill(t, s)
	to := openStore(t)
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err := Import(t.Context(), bytes.NewReader(export(t, s, everything())), to, 0)
	if !errors.Is(err, history.ErrClosed) || errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}
