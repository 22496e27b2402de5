// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/bench/informer/apiserver"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// boardFields are about what the page asks for of a Pod.
const boardFields = "metadata.labels,metadata.ownerReferences,metadata.creationTimestamp,metadata.deletionTimestamp,spec.nodeName," +
	"spec.containers[*].resources.requests,status.phase,status.conditions[*].type,status.conditions[*].status,status.conditions[*].lastTransitionTime," +
	"status.containerStatuses[*].name,status.containerStatuses[*].ready,status.containerStatuses[*].restartCount,status.containerStatuses[*].state"

// A countedReader counts what is read.
type countedReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// zipped asks for a multiwatch in gzip, and does not read it.
func zipped(ctx context.Context, t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip, deflate, br")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return resp
}

// serveBench serves multiwatches of the bench's.
func serveBench(t *testing.T, b *bench) string {
	return serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, metrics: b.metrics, requests: &b.requests, request: r}
		if b.cache.serve(rec, r) && rec.stream != nil {
			rec.stream.serve(rec)
		}
	}).URL
}

// TestMultiwatchBytes: a change of a Pod takes the page 300 bytes at the most,
// even one that comes alone; and it comes though nothing follows it.
func TestMultiwatchBytes(t *testing.T) {
	const n = 60
	// As it becomes at rv: with another time of its readiness.
	made := func(i int, rv uint64) *scan.Object {
		p := apiserver.Pod(i)
		p.ResourceVersion = fmt.Sprint(rv)
		p.Status.Conditions[1].LastTransitionTime = metav1.NewTime(time.Unix(1_790_000_000+int64(rv), 0).UTC())
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		o, err := scan.ParseObject(string(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var before []*scan.Object
	for i := range n {
		before = append(before, made(i, uint64(i+1)))
	}
	b := newBench(t, podList(n, before...))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch := "/api/v1/pods?watch=1&resourceVersion=" + fmt.Sprint(n) + "&fields=" + url.QueryEscape(boardFields)
	resp := zipped(ctx, t, multiwatchURL(serveBench(t, b), watch))
	wire := &countedReader{r: resp.Body}
	plain, err := gzip.NewReader(wire)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(plain)
	began, size := wire.n.Load(), 0
	for i := range n {
		o := made(n-1-i, uint64(n+1+i))
		b.apply(kube.Modified, o)
		if got, want := nextLine(t, lines), fmt.Sprintf("0 MODIFIED %s@%d", o.Key.Name(), o.RV); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		size += len(lines.Bytes())
	}
	each := (wire.n.Load() - began) / n
	t.Logf("%d bytes for a change of %d", each, size/n)
	if each > 300 {
		t.Errorf("%d bytes for a change", each)
	}
	// The whole is valid to its end.
	b.res.timeline.Close()
	if got := nextLine(t, lines); got != "0 END" {
		t.Errorf("got %q, want an end", got)
	}
	if got := nextLine(t, lines); got != "end <nil>" {
		t.Errorf("behind the last: %s", got)
	}
}

// TestMultiwatchPlain: who does not accept gzip does not get it.
func TestMultiwatchPlain(t *testing.T) {
	server := serveMultiwatch(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}\n")
	})
	for _, accept := range []string{"identity", "br", "gzip;q=0"} {
		r, err := http.NewRequest(http.MethodGet, multiwatchURL(server.URL, "/api/v1/pods?watch=1"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", accept)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := "{\"watch\":0,}\n{\"watch\":0,\"type\":\"END\"}\n"; err != nil || string(text) != want || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %q %v, %v", accept, text, resp.Header, err)
		}
	}
}

// TestMultiwatchSlow: a client that reads nothing for a while gets everything
// when it does, and one that then goes away leaves nothing behind.
func TestMultiwatchSlow(t *testing.T) {
	const events, size = 400, 64 << 10
	line := func(i int) string {
		b := make([]byte, size/2) // which does not compress
		_, _ = rand.Read(b)
		return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":"n%d","resourceVersion":"%d","uid":"%s"}}}`, i, i, hex.EncodeToString(b))
	}
	var written atomic.Int32
	both := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := range events {
			if _, err := io.WriteString(w, line(i)+"\n"); err != nil {
				return
			}
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			written.Add(1)
		}
	}
	server := serveMultiwatch(t, both)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // 50 MB through the race detector
	defer cancel()
	path := multiwatchURL(server.URL, "/api/v1/pods?watch=1", "/api/v1/nodes?watch=1")

	resp := zipped(ctx, t, path)
	// It is held: what is written stands still below the whole.
	for last, same := int32(-1), 0; same < 20; time.Sleep(10 * time.Millisecond) {
		if n := written.Load(); n == last {
			same++
		} else {
			last, same = n, 0
		}
	}
	if n := written.Load(); n == 0 || n == 2*events {
		t.Errorf("%d of %d were written to a client that does not read", n, 2*events)
	}
	plain, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	next, ends := [2]int{}, 0
	for ends < 2 {
		got := nextLine(t, lines)
		var watch, i, rv int
		if strings.HasSuffix(got, " END") {
			ends++
		} else if n, _ := fmt.Sscanf(got, "%d ADDED n%d@%d", &watch, &i, &rv); n != 3 || i != next[watch] {
			t.Fatalf("got %q, behind %v", got, next)
		} else {
			next[watch]++
		}
	}
	if next != [2]int{events, events} {
		t.Errorf("%v of each", next)
	}

	gone := zipped(ctx, t, path)
	_, _ = io.ReadFull(gone.Body, make([]byte, 1<<10))
	gone.Body.Close()
	server.Close() // waits for the handlers
}

// TestZip: whatever comes in whatever pieces is the same behind gunzip, and
// each piece is there when it was written.
func TestZip(t *testing.T) {
	var sent bytes.Buffer
	out, err := newZipOut(&responseOut{w: &sent, ctl: http.NewResponseController(flusher{})})
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
	noise := make([]byte, 3*zipPast)
	_, _ = rand.Read(noise)
	for i, piece := range []string{
		"a", "", strings.Repeat("abc", 10), strings.Repeat("x", zipPast-1), strings.Repeat("y", zipPast+1), string(noise), string(noise[:zipPast]),
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
		if len(out.past) > zipPast {
			t.Fatalf("%d bytes are kept", len(out.past))
		}
	}
	if err := out.end(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(plain); len(rest) > 0 || err != nil {
		t.Errorf("behind the last: %q, %v", rest, err)
	}
}

// A flusher is a ResponseWriter that has nothing to flush.
type flusher struct{ http.ResponseWriter }

func (flusher) Flush() {}
