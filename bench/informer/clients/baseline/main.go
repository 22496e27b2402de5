// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command baseline reads the streaming list of all Pods and keeps only their number and
// the newest resourceVersion. No informer can cost less: its figures are those of HTTP,
// TLS, the kernel and the server.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"log"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
)

func main() {
	measure.Main(
		measure.Mode{
			Name: "json-watchlist", Library: "baseline", Encoding: "JSON", Partial: true,
			New: func() measure.Client {
				return &client{accept: "application/json", next: line, rv: []byte(`"resourceVersion":"`)}
			},
		},
		measure.Mode{
			Name: "protobuf-watchlist", Library: "baseline", Encoding: "protobuf", Partial: true,
			New: func() measure.Client {
				// Tag and length of the string, which is ten digits long.
				return &client{accept: "application/vnd.kubernetes.protobuf", next: frame, rv: []byte("\x32\x0a")}
			},
		},
	)
}

// client reads watches one after the other.
type client struct {
	accept string
	next   func(*bufio.Reader) ([]byte, error) // an event, valid until the next call
	rv     []byte                              // the bytes before the first resourceVersion

	handled atomic.Int64
	synced  atomic.Bool

	mu     sync.Mutex // guards the fields below
	pods   int        // of the last initial list
	latest []byte     // resourceVersion
}

func (c *client) Start(ctx context.Context, target measure.Target) error {
	// A few large frames cost less than many frames of 16 KiB.
	transport := &http.Transport{ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{MaxReadFrameSize: 1 << 20}}
	if target.CA != nil {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(target.CA)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	go func() {
		for ctx.Err() == nil {
			if err := c.watch(ctx, &http.Client{Transport: transport}, target.URL); err != nil && ctx.Err() == nil {
				log.Fatal(err)
			}
		}
	}()
	return nil
}

// watch reads one watch until it expires.
func (c *client) watch(ctx context.Context, over *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		url+"/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", c.accept)
	resp, err := over.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("watch: %s", resp.Status)
	}
	pods := 0
	for events := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		event, err := c.next(events)
		if err != nil {
			return err
		}
		head := event[:min(len(event), 64)] // the type is in it
		switch {
		case bytes.Contains(head, []byte("ADDED")):
			pods++
		case bytes.Contains(head, []byte("MODIFIED")):
		case bytes.Contains(head, []byte("BOOKMARK")):
			c.mu.Lock()
			c.pods = pods
			c.mu.Unlock()
			c.synced.Store(true)
			continue
		default:
			return nil // 410: this server sends no other error
		}
		if _, rv, found := bytes.Cut(event, c.rv); found && len(rv) >= 10 {
			c.mu.Lock()
			c.latest = append(c.latest[:0], rv[:10]...)
			c.mu.Unlock()
		}
		c.handled.Add(1)
	}
}

// line reads an event in JSON.
func line(r *bufio.Reader) ([]byte, error) { return r.ReadSlice('\n') }

// frame reads an event in protobuf.
func frame(r *bufio.Reader) ([]byte, error) {
	var size [4]byte
	for i := range size {
		b, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		size[i] = b
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	event, err := r.Peek(n)
	if err != nil {
		return nil, err
	}
	// Discard does not overwrite the buffer.
	_, err = r.Discard(n)
	return event, err
}

func (c *client) Synced() bool   { return c.synced.Load() }
func (c *client) Handled() int64 { return c.handled.Load() }

func (c *client) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods
}

// ResourceVersion returns the newest resourceVersion of all Pods.
func (c *client) ResourceVersion(string, string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.latest)
}
