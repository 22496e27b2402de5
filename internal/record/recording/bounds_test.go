// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
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

// recorded returns a recording with these lines and its end.
func recorded(t testing.TB, lines ...string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
	return packed(t, append(lines, fmt.Sprintf(`{"end":{"lines":%d,"sha256":"%x"}}`, len(lines), sum))...)
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

// TestImportLimits: whatever makes an import keep memory is counted, in each member of a
// line. What goes to the store is not limited: objects, and the events of one moment.
func TestImportLimits(t *testing.T) {
	const (
		header = `{"recording":{"format":1}}`
		begin  = `{"stream":{"version":"v1","resource":"pods","listKind":"PodList","rv":1,"at":"2026-01-01T00:00:00Z"}}`
		form   = `{"form":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{}}}}`
		end    = `{"head":{"rv":1000,"at":"2026-01-01T00:00:00Z"}}`
	)
	long := strings.Repeat("a", 100)
	few := limits{kept: 3 * streamOverhead, live: 3000}
	for name, test := range map[string]struct {
		lines func(i int) []string
		kept  bool
	}{
		"empty documents":        {func(int) []string { return []string{`{"document":{}}`} }, true},
		"content of documents":   {func(int) []string { return []string{`{"document":{"path":"/api","body":"` + long + `"}}`} }, true},
		"paths of documents":     {func(int) []string { return []string{`{"document":{"path":"` + long + `"}}`} }, true},
		"types of documents":     {func(int) []string { return []string{`{"document":{"path":"/api","type":"` + long + `"}}`} }, true},
		"documents in resources": {func(int) []string { return []string{begin, form, `{"document":{}}`, `{"document":{}}`} }, true},
		"empty columns":          {func(i int) []string { return []string{begin, fmt.Sprintf(`{"columns":{"number":%d}}`, i)} }, true},
		"columns":                {func(int) []string { return []string{begin, `{"columns":{"definitions":["` + long + `"]}}`} }, true},
		"forms":                  {func(int) []string { return []string{begin, strings.Replace(form, "Pod", long, 1)} }, true},
		"gaps": {func(i int) []string {
			return []string{begin, form, fmt.Sprintf(`{"gap":{"from":{"rv":%d,"at":"2026-01-01T00:00:00Z"},"to":{"rv":%d,"at":"2026-01-01T00:00:00Z"}}}`, i+2, i+3)}
		}, true},
		"steps of the clock": {func(int) []string {
			return []string{begin, form, `{"step":{"rv":2,"from":"2026-01-01T02:00:00Z","to":"2026-01-01T01:00:00Z"}}`}
		}, true},
		"resources": {func(i int) []string {
			return []string{strings.Replace(begin, "pods", fmt.Sprintf("pods%d", i), 1), form, end}
		}, true},
		"names of resources": {func(i int) []string {
			return []string{strings.Replace(begin, "pods", strings.Repeat(long, 1000), 1), form, end}
		}, true},
		"objects": {func(i int) []string {
			return []string{begin, form, fmt.Sprintf(`{"object":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","resourceVersion":"1"}}}}`, i), end}
		}, false},
		"events of one moment": {func(i int) []string {
			return []string{begin, form, fmt.Sprintf(`{"event":{"type":"ADDED","at":"2026-01-01T00:00:00Z","json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","resourceVersion":"2"}}}}`, i), end}
		}, false},
	} {
		var head, repeated, tail []string
		for i := range 200 {
			lines := test.lines(i)
			switch at := slices.Index(lines, begin); { // one resource for all of them
			case at >= 0 && slices.Index(lines, form) >= 0:
				head, lines = lines[:2], lines[2:]
			case at >= 0:
				head, lines = lines[:1], lines[1:]
			}
			if n := len(lines) - 1; len(head) > 0 && lines[n] == end {
				lines, tail = lines[:n], lines[n:]
			}
			repeated = append(repeated, lines...)
		}
		file := recorded(t, slices.Concat([]string{header}, head, repeated, tail)...)
		_, _, err := importWithin(t.Context(), bytes.NewReader(file), openStore(t), 0, few)
		if test.kept && !(errors.Is(err, ErrDamaged) && errors.Is(err, errKept)) || !test.kept && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, two := range []string{
		`{"recording":{},"document":{"path":"/api","body":"` + long + `"}}`,
		`{"document":{},"columns":{"definitions":["` + long + `"]}}`,
		`{"object":{},"gap":{}}`,
	} {
		_, _, err := importWithin(t.Context(), bytes.NewReader(recorded(t, header, begin, form, two)), openStore(t), 0, few)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "one member") {
			t.Errorf("%s: %v", two, err)
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

// TestCheckCountsOutages: the gaps of several resources in one outage count once.
func TestCheckCountsOutages(t *testing.T) {
	lines := []string{`{"recording":{"format":1,"from":"2026-01-01T00:00:00Z","to":"2026-01-01T01:00:00Z"}}`}
	for i, resource := range []string{"pods", "nodes", "events"} {
		lines = append(lines, fmt.Sprintf(`{"stream":{"version":"v1","resource":%q,"listKind":"List","rv":1,"at":"2026-01-01T00:00:00Z"}}`, resource))
		for n, minute := range []int{10, 30} {
			lines = append(lines, fmt.Sprintf(`{"gap":{"from":{"rv":%d,"at":"2026-01-01T00:%d:%02dZ"},"to":{"rv":%d,"at":"2026-01-01T00:%d:%02dZ"}}}`,
				2*n+1, minute, 10*i, 2*n+2, minute+1, 30+i))
		}
		lines = append(lines, `{"head":{"rv":9,"at":"2026-01-01T01:00:00Z"}}`)
	}
	sum, err := Check(t.Context(), bytes.NewReader(recorded(t, lines...)))
	if err != nil || sum.Gaps != 2 {
		t.Errorf("%+v, error %v; want 2 gaps", sum, err)
	}
}

// TestImportRVs: a recording up to the greatest resourceVersion shows its objects; a greater one
// is refused, wherever it is.
func TestImportRVs(t *testing.T) {
	const most, more = uint64(math.MaxInt64), uint64(math.MaxUint64)
	const at = `"at":"2026-01-01T00:00:00Z"`
	file := func(begin, object, event, gap, end uint64) []byte {
		lines := []string{
			`{"recording":{"format":1}}`, fmt.Sprintf(`{"stream":{"version":"v1","resource":"pods","listKind":"PodList","rv":%d,%s}}`, begin, at),
			`{"form":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{}}}}`,
			fmt.Sprintf(`{"object":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"%d"}}}}`, object),
			fmt.Sprintf(`{"event":{"type":"ADDED",%s,"json":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","resourceVersion":"%d"}}}}`, at, event),
			fmt.Sprintf(`{"gap":{"from":{"rv":%d,%s},"to":{"rv":%d,%s}}}`, event, at, gap, at), fmt.Sprintf(`{"head":{"rv":%d,%s}}`, end, at),
		}
		return recorded(t, lines...)
	}
	s := openStore(t)
	if _, _, err := Import(t.Context(), bytes.NewReader(file(1, 1, most, most, most)), s, 0); err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, st := range s.Streams(pods) {
		for o, err := range st.List(t.Context(), most, "", "") {
			if err != nil {
				t.Fatal(err)
			}
			names++
			t.Log(o.Key)
		}
	}
	if names != 2 {
		t.Errorf("there are %d objects, want 2", names)
	}
	for name, test := range map[string][]byte{
		"begin": file(more, 1, more, more, more), "object": file(1, more, 5, 5, 5), "event": file(1, 1, more, more, more),
		"gap": file(1, 1, 5, more, more), "end": file(1, 1, 5, 5, more), "just above": file(1, 1, 5, 5, most+1),
	} {
		if _, _, err := Import(t.Context(), bytes.NewReader(test), openStore(t), 0); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestImportTimes: a recording that ends before its begin, or that has a time before all clusters,
// is refused; one whose clock was set back is not.
func TestImportTimes(t *testing.T) {
	file := func(from, to, at string) []byte {
		at = fmt.Sprintf(`"at":%q`, at)
		return recorded(t, fmt.Sprintf(`{"recording":{"format":1,"from":%q,"to":%q}}`, from, to),
			`{"stream":{"version":"v1","resource":"pods","listKind":"PodList","rv":1,`+at+`}}`, `{"form":{"json":{"kind":"Pod","apiVersion":"v1","metadata":{}}}}`, `{"head":{"rv":2,`+at+`}}`)
	}
	const begin, hour, year = "2026-01-01T12:00:00Z", "2026-01-01T11:00:00Z", "2001-01-01T00:00:00Z"
	for name, test := range map[string]struct {
		file []byte
		want error
	}{
		"set back": {file(begin, hour, hour), nil}, "ends before its begin": {file(begin, year, begin), ErrDamaged},
		"an early header": {file("1600-01-01T00:00:00Z", begin, begin), ErrNotRecording}, "an early state": {file(begin, begin, "1600-01-01T00:00:00Z"), ErrDamaged},
	} {
		if _, _, err := Import(t.Context(), bytes.NewReader(test.file), openStore(t), 0); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
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
