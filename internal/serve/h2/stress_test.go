// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
)

// A countingFeed yields numbered lines until its request asked for no more.
type countingFeed struct {
	stream *h2.Stream
	of     *counters
	last   int
	next   int // for the writer only
}

func (f *countingFeed) Next() ([]string, h2.Next) {
	if f.next >= f.last {
		return nil, h2.End
	}
	if f.next >= f.of.published() {
		if f.of.wait(f) {
			return nil, h2.Wait
		}
	}
	f.next++
	return []string{"line ", strconv.Itoa(f.next), strings.Repeat(".", f.next%1000), "\n"}, h2.More
}

func (f *countingFeed) Sent() {}

func (f *countingFeed) Done() { f.of.ended() }

func (*countingFeed) Run() { panic("the feed never leaves") }

// counters publish lines to feeds, as a timeline does.
type counters struct {
	mu      sync.Mutex // guards the fields below
	lines   int
	waiting []*countingFeed
	open    int
}

func (c *counters) published() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines
}

// wait reports whether the feed has to wait, and will be woken.
func (c *counters) wait(f *countingFeed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.next < c.lines {
		return false
	}
	c.waiting = append(c.waiting, f)
	return true
}

func (c *counters) publish() {
	c.mu.Lock()
	c.lines++
	woken := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, f := range woken {
		f.stream.Wake()
	}
}

func (c *counters) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
}

func (c *counters) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// TestStress has parallel lists, uploads and watches of net/http's client on real
// connections, with and without TLS. Many are cancelled at any time. What arrives is
// right, and in the end nothing is left.
func TestStress(t *testing.T) {
	clients, rounds := 20, 8
	if testing.Short() {
		rounds = 3
	}
	body := pattern(1 << 20)
	var watches counters
	handler := http.NewServeMux()
	handler.HandleFunc("/list", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		_, _ = w.Write(body[:n])
	})
	handler.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	handler.HandleFunc("/watch", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		f := &countingFeed{stream: h2.TakeOver(w), of: &watches, last: n}
		watches.mu.Lock()
		watches.open++
		watches.mu.Unlock()
		f.stream.Pull(f)
	})
	for name, client := range serve(t, handler) {
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			var publishing, running sync.WaitGroup
			publishing.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Microsecond):
						watches.publish()
					}
				}
			})
			for i := range clients {
				running.Go(func() {
					random := rand.New(rand.NewPCG(uint64(i), 1))
					for range rounds {
						if err := stressOne(t.Context(), client, random, body); err != nil {
							t.Errorf("client %d: %v", i, err)
							return
						}
					}
				})
			}
			running.Wait()
			close(stop)
			publishing.Wait()
			for deadline := time.Now().Add(time.Minute); watches.count() > 0; time.Sleep(time.Millisecond) {
				if watches.publish(); time.Now().After(deadline) {
					t.Fatalf("%d watches are left", watches.count())
				}
			}
		})
	}
}

// stressOne makes a random request, and cancels it in the middle one time in three.
func stressOne(ctx context.Context, client *http.Client, random *rand.Rand, body []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cancelled := random.IntN(3) == 0
	n := random.IntN([]int{100, 10_000, len(body)}[random.IntN(3)])
	method, path, sent := "GET", fmt.Sprint("/list?n=", n), io.Reader(nil)
	switch random.IntN(3) {
	case 0:
		method, path, sent = "POST", "/echo", bytes.NewReader(body[:n])
	case 1:
		n %= 500
		path = fmt.Sprint("/watch?n=", n)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://h"+path, sent)
	if err != nil {
		return err
	}
	if cancelled {
		defer time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, cancel).Stop()
	}
	resp, err := client.Do(r)
	if err == nil {
		defer resp.Body.Close()
		if strings.HasPrefix(path, "/watch") {
			err = readLines(resp.Body, n)
		} else {
			var got []byte
			if got, err = io.ReadAll(resp.Body); err == nil && !bytes.Equal(got, body[:n]) {
				err = fmt.Errorf("%d wrong bytes instead of %d", len(got), n)
			}
		}
	}
	if cancelled && errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func readLines(r io.Reader, n int) error {
	lines := bufio.NewReader(r)
	for i := range n {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprint("line ", i+1, strings.Repeat(".", (i+1)%1000), "\n"); err == nil && line != want {
			err = fmt.Errorf("%q instead of %q", line, want)
		}
		if err != nil {
			return err
		}
	}
	_, err := lines.ReadByte()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("more after %d lines: %w", n, err)
}
