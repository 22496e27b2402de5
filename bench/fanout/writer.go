// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const (
	namespace  = "fanout"
	configMaps = "/api/v1/configmaps"
	// objects is the number of ConfigMaps. Each has a different label.
	objects = 50
	// payload is the size of a ConfigMap's data. Its event is 4.2 KB of JSON.
	payload = 3650
	// maxInFlight bounds the concurrent updates.
	maxInFlight = 8
)

// A writer updates ConfigMaps at the API server.
type writer struct {
	client *http.Client
	url    string
	seq    atomic.Int64
	filler string
}

func newWriter(ctx context.Context, c *clustertest.Cluster) (*writer, error) {
	client, url, err := c.Client()
	if err != nil {
		return nil, err
	}
	w := &writer{client: client, url: url, filler: filler(payload)}
	if err := w.send(ctx, http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace)); err != nil {
		return nil, err
	}
	for i := range objects {
		if err := w.send(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps", w.object(i)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// filler returns n bytes that look like a configuration.
func filler(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "service.%03d.timeout=%dms; ", i, (i*7919)%10007)
	}
	return b.String()[:n]
}

func (w *writer) object(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"config-%d","namespace":%q,"labels":{"id":"n%d","app":"fanout"}},"data":{"seq":"%d","settings":%q}}`,
		i, namespace, i, w.seq.Add(1), w.filler)
}

func (w *writer) send(ctx context.Context, method, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(said))
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// update changes a ConfigMap.
func (w *writer) update(ctx context.Context, i int) error {
	i %= objects
	return w.send(ctx, http.MethodPut, fmt.Sprintf("/api/v1/namespaces/%s/configmaps/config-%d", namespace, i), w.object(i))
}

// updates makes n updates, of the objects in turn, rate per second, or as fast as
// possible if the rate is 0. It ends early when ctx ends, and returns the number of
// updates.
func (w *writer) updates(ctx context.Context, n int, rate float64) (int, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // guards first
		first error
		done  atomic.Int64
		slots = make(chan struct{}, maxInFlight)
		start = time.Now()
	)
	failed := func() error {
		mu.Lock()
		defer mu.Unlock()
		return first
	}
	for i := 0; i < n && ctx.Err() == nil && failed() == nil; i++ {
		if rate > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			// An update that has begun is completed, so that the number is exact.
			if err := w.update(context.WithoutCancel(ctx), i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				first = errors.Join(first, err)
				return
			}
			done.Add(1)
		})
	}
	wg.Wait()
	return int(done.Load()), failed()
}
